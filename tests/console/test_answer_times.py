"""Signing in and requesting a new password take the same time for known and unknown logins."""

import time
from collections.abc import Callable
from statistics import median

import pytest

from tests.api.conftest import StartApp, statements
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, set_passwords
from tests.soak import SOAK, scaled

__all__ = ["statements"]

FORMS = {"/console/sign-in": {"password": "wrong"}, "/console/reset": {}}
# Known logins, each with an unknown one of the same form.
PAIRS = (("author", "nobody"), ("author@example.org", "nobody@example.org"))
LOGINS = [login for pair in PAIRS for login in pair]
# Seconds. The memory that other programs use makes the time of a hash vary, but by much less than a hash takes.
MAX_DIFFERENCE = {"/console/sign-in": 0.005 if SOAK else 0.08, "/console/reset": 0.005 if SOAK else 0.02}


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    """Return an application that can send emails; no worker sends them."""
    environment = {"KALENDS_SMTP_URL": "smtp://127.0.0.1:1", "KALENDS_BASE_URL": "https://calendar.test"}
    started = start_app_for_module(environment)
    set_passwords(started)
    return started


@pytest.mark.parametrize("path", FORMS)
def test_known_and_unknown_logins_take_the_same_time(
    app: RunningApp, report: Callable[[object], None], path: str
) -> None:
    """Compare the CPU times of alternating requests: other programs affect both of a pair alike."""
    differences: list[float] = []
    for number in range(scaled(7, 40)):
        for pair in PAIRS:
            order = pair if number % 2 else pair[::-1]
            times = {login: measure(app, path, login) for login in order}
            differences.append(times[pair[0]] - times[pair[1]])
    difference = median(differences)
    report(f"{path}: median difference of {len(differences)} pairs {1000 * difference:+.2f} ms")
    assert abs(difference) < MAX_DIFFERENCE[path]
    assert bool(app.jobs("send_email")) == (path == "/console/reset")


@pytest.mark.parametrize("path", FORMS)
def test_known_and_unknown_logins_run_the_same_statements(app: RunningApp, statements: list[str], path: str) -> None:
    runs = set[tuple[str, ...]]()
    for login in LOGINS:
        measure(app, path, login)
        runs.add(tuple(statements))
        statements.clear()
    assert len(runs) == 1
    assert all(runs)


def measure(app: RunningApp, path: str, login: str) -> float:
    """Return the CPU time of one request. Earlier ones must not throttle it."""
    app.sql("DELETE FROM login_failures")
    client = ConsoleClient(app)
    started = time.process_time()
    response = client.post(path, {"login": login, **FORMS[path]})
    elapsed = time.process_time() - started
    assert response.status_code == (401 if FORMS[path] else 200)
    return elapsed
