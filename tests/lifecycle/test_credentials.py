"""Credentials under attack: guessing is slowed down everywhere at once, and the owner still gets in."""

import base64
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import repeat
from random import Random
from statistics import fmean, variance

import httpx
import pytest

from kalends.accounts.operations import user_accounts
from kalends.core.limits import Limit
from kalends.core.times import utc_now
from kalends.http import auth
from kalends.store.database import Database, Options, Transaction
from tests.api.running_app import API_PATH, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import SAMPLES
from tests.lifecycle.conftest import UserDatabase
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL, report
from tests.lifecycle.processes import run_command, wait_until
from tests.servers import Server

KNOWN_ADDRESS, OTHER_ADDRESS = "203.0.113.5", "198.51.100.7"


def caller_from(app: RunningApp, login: str, password: str, address: str) -> Caller:
    return Caller(app, 0, httpx.BasicAuth(login, password), {"X-Forwarded-For": address})


def login_status(app: RunningApp, login: str, password: str, address: str) -> int:
    """The status of a read with these credentials."""
    return caller_from(app, login, password, address).get("/tags").status_code


def move_attempts_back(app: RunningApp, seconds: int) -> None:
    """What is forgiven depends on when it was counted, so that is moved."""
    app.sql("UPDATE login_failures SET counted_at = counted_at - make_interval(secs => $1)", seconds)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with fewer tries, which are forgiven so slowly that a test may take its time."""
    monkeypatch.setattr(auth, "PER_ACCOUNT_AND_IP", Limit(burst=3, seconds=900))
    monkeypatch.setattr(auth, "PER_IP", Limit(burst=6, seconds=900))
    monkeypatch.setattr(auth, "PER_ACCOUNT", Limit(burst=12, seconds=900))


# Slower and slower ---------------------------------------------------------------------------


def test_failed_logins_are_counted_across_servers(
    user_database: UserDatabase, start_server: Callable[..., Server]
) -> None:
    forwarded = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}
    servers = [start_server(user_database.url, environment=forwarded) for _ in range(2)]
    attempt_numbers = iter(range(10**6))

    def guess(login: str, password: str, address: str) -> httpx.Response:
        """One server after the other."""
        server = servers[next(attempt_numbers) % 2]
        url = f"{server.base_url}{API_PATH}/tags"
        return httpx.get(url, auth=(login, password), headers={"X-Forwarded-For": address})

    def attempts_until_throttled(logins: Iterator[str]) -> int:
        for n, login in enumerate(logins):
            response = guess(login, "wrong", OTHER_ADDRESS)
            if response.status_code != 401:
                assert_error(response, 429, "rest_too_many_attempts")
                assert 0 < int(response.headers["retry-after"]) <= 60
                return n
        raise AssertionError("never refused")

    def is_throttled(login: str, password: str, wrong_logins: Iterator[str]) -> bool:
        """Send the right password to both servers, which accept it if an attempt is forgiven in between."""
        attempts_until_throttled(wrong_logins)
        return [guess(login, password, OTHER_ADDRESS).status_code for _ in servers] == [429, 429]

    editor, author = user_database.users["editor"].password, user_database.users["author"].password
    # One more or two: some are forgiven while the others are counted.
    assert 10 <= attempts_until_throttled(repeat("editor", 20)) <= 12
    assert any(is_throttled("editor", editor, repeat("editor", 20)) for _ in range(5))
    assert guess("editor", editor, KNOWN_ADDRESS).status_code == 200
    assert guess("author", author, OTHER_ADDRESS).status_code == 200
    unknown = (f"user{n}" for n in range(200))  # Each once, so that only the limit of the address applies.
    assert 45 <= attempts_until_throttled(unknown) <= 65
    assert any(is_throttled("author", author, unknown) for _ in range(10))
    assert guess("author", author, KNOWN_ADDRESS).status_code == 200


@pytest.mark.usefixtures("small_limits")
def test_correct_password_is_accepted_after_retry_after(
    start_app: Callable[..., RunningApp],
) -> None:
    app = start_app()
    right = app.users["editor"].password
    while (response := caller_from(app, "editor", "wrong", KNOWN_ADDRESS).get("/tags")).status_code == 401:
        pass
    assert_error(response, 429, "rest_too_many_attempts")
    assert login_status(app, "editor", right, KNOWN_ADDRESS) == 429
    move_attempts_back(app, int(response.headers["retry-after"]))
    assert login_status(app, "editor", right, KNOWN_ADDRESS) == 200


@pytest.mark.quick("editor", "editor@example.org")
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", ["editor", "EDITOR", "editor@example.org"])
def test_known_client_is_not_locked_out_by_others(start_app: Callable[..., RunningApp], name: str) -> None:
    app = start_app()
    password = app.run_operation(lambda tx: user_accounts.add_application_password(tx, "editor", "phone"))
    assert login_status(app, name, password, KNOWN_ADDRESS) == 200
    wait_until(lambda: len(app.sql("SELECT FROM application_password_uses")) == 1, 5)
    statuses = [login_status(app, name, "wrong", f"198.51.100.{n}") for n in range(20)]
    assert statuses[:12] + statuses[-6:] == [401] * 12 + [429] * 6
    assert login_status(app, name, password, "192.0.2.1") == 429
    assert login_status(app, name, password, KNOWN_ADDRESS) == 200


@pytest.mark.usefixtures("small_limits")
def test_login_containing_address_locks_out_nobody(start_app: Callable[..., RunningApp]) -> None:
    """A login may hold any text; it must not be counted as somebody else's."""
    app = start_app()
    for n in range(8):
        login_status(app, f"editor from {KNOWN_ADDRESS}", "wrong", f"198.51.100.{n}")
    assert login_status(app, "editor", app.users["editor"].password, KNOWN_ADDRESS) == 200


# Responses disclose nothing -----------------------------------------------------------------------------


def test_unknown_user_and_wrong_password_cost_same_statements(
    start_app: Callable[..., RunningApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_app()
    transactions: list[Transaction] = []
    original_init = Transaction.__init__

    def recording_init(self: Transaction, *values: object, **named: object) -> None:
        transactions.append(self)
        original_init(self, *values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "__init__", recording_init)
    counts, responses = [], []
    for login in ("editor", "nobody"):
        transactions.clear()
        response = caller_from(app, login, "wrong", OTHER_ADDRESS).get("/tags")
        counts.append([tx.statements for tx in transactions])
        responses.append((response.status_code, response.json()))
    assert counts[0] == counts[1]
    assert sum(counts[0]) > 0
    assert responses[0] == responses[1]


@pytest.mark.exhaustive
def test_unknown_user_and_wrong_password_take_same_time(start_app: Callable[..., RunningApp]) -> None:
    """Two times three hundred tries in mixed order; a difference would have to be one in ten thousand by chance."""
    app = start_app()
    # Few per account, and none from an address twice: nobody is slowed down.
    known, unknown = list(app.users), [f"nobody{n}" for n in range(5)]
    attempts = [(group, logins[n % 5], n) for group, logins in enumerate((known, unknown)) for n in range(300)]
    Random(1).shuffle(attempts)
    times: list[list[float]] = [[], []]
    for group, login, n in attempts:
        caller = caller_from(app, login, "wrong", f"2001:db8:{group}:{n:x}::1")
        started = time.perf_counter()
        assert caller.get("/tags").status_code == 401
        times[group].append(math.log(time.perf_counter() - started))
    error = math.sqrt(sum(variance(group) / len(group) for group in times))
    t = (fmean(times[0]) - fmean(times[1])) / error
    p_value = math.erfc(abs(t) / math.sqrt(2))
    medians = [f"{math.exp(sorted(group)[150]) * 1000:.2f} ms" for group in times]
    report(f"wrong password {medians[0]}, unknown user {medians[1]} (medians); t = {t:.2f}, p = {p_value:.3f}")
    assert p_value > 0.0001


def test_account_password_is_rejected_for_api(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    app.run_operation(lambda tx: user_accounts.set_account_password(tx, "editor", "correct horse battery"))
    response = caller_from(app, "editor", "correct horse battery", KNOWN_ADDRESS).get("/tags")
    assert_error(response, 401, "incorrect_password")


# Application passwords -----------------------------------------------------------------------


def test_read_only_password_can_read_but_not_write(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    secret = app.run_operation(
        lambda tx: user_accounts.add_application_password(tx, "editor", "display", read_only=True)
    )
    editor, reader = app.caller("editor"), caller_from(app, "editor", secret, KNOWN_ADDRESS)
    draft = editor.create("events", **SAMPLES["events"].body(status="draft"))["id"]
    path = f"/events/{draft}"
    assert reader.read("events", draft)["status"] == "draft"
    assert expect_json(reader.get(f"{EXTENSION_URL}{path}/history"))["history"]
    assert draft in {change["id"] for change in expect_json(reader.get(f"{EXTENSION_URL}/changes"))["changes"]}
    before = app.sql("SELECT revision FROM sites")
    writes = [
        *[reader.post(f"/{kind}", sample.body()) for kind, sample in SAMPLES.items()],
        *[reader.request(method, path, json={"title": "No"}) for method in ("POST", "PUT", "PATCH")],
        reader.delete(path),
        reader.post(path, headers={"X-HTTP-Method-Override": "DELETE"}),
        reader.post(f"{EXTENSION_URL}{path}/restore", {"revision": 1}),
    ]
    for response in writes:
        assert_error(response, 403, "rest_read_only")
    assert app.sql("SELECT revision FROM sites") == before


@pytest.mark.parametrize(
    ("take_away", "status", "code"),
    [
        (lambda tx: user_accounts.revoke_application_password(tx, "editor", "slow"), 401, "incorrect_password"),
        (lambda tx: user_accounts.disable_user(tx, "editor"), 401, "incorrect_password"),
        (lambda tx: user_accounts.set_role(tx, "editor", "subscriber"), 403, "rest_forbidden"),
    ],
    ids=["revoked", "disabled", "another role"],
)
def test_rights_are_checked_again_after_the_body(
    start_app: Callable[..., RunningApp],
    take_away: Callable[[Transaction], Awaitable[None]],
    status: int,
    code: str,
) -> None:
    """A body can take minutes, in which its sender may lose the password or the role."""
    app = start_app()
    secret = app.run_operation(lambda tx: user_accounts.add_application_password(tx, "editor", "slow"))
    encoded = json.dumps(SAMPLES["events"].body()).encode()

    async def send_slowly() -> AsyncIterator[bytes]:
        yield encoded[:10]
        database = await Database.open(Options(url=app.database_url))
        try:
            async with database.transaction(app.site_id, utc_now(), writing=True) as tx:
                await take_away(tx)
        finally:
            await database.close()
        yield encoded[10:]

    writer = caller_from(app, "editor", secret, KNOWN_ADDRESS)
    response = writer.request("POST", "/events", content=send_slowly(), headers={"Content-Type": "application/json"})
    assert_error(response, status, code)
    assert app.sql("SELECT FROM events") == []


def test_password_uses_are_logged_by_hour_and_address(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    secret = app.run_operation(lambda tx: user_accounts.add_application_password(tx, "author", "laptop"))

    def use(address: str) -> None:
        caller = caller_from(app, "author", secret, address)
        assert caller.get("/tags", headers={"User-Agent": "Test/1"}).status_code == 200

    def logged_uses() -> list[tuple[str, ...]]:
        rows = app.sql("SELECT client_ip, user_agent FROM application_password_uses ORDER BY client_ip")
        return [tuple(row) for row in rows]

    for address in (KNOWN_ADDRESS, KNOWN_ADDRESS, OTHER_ADDRESS):
        use(address)
    wait_until(lambda: len(logged_uses()) >= 2, 5)
    assert logged_uses() == [(OTHER_ADDRESS, "Test/1"), (KNOWN_ADDRESS, "Test/1")]
    lines = run_command(app.database_url, "app-password", "log", "author", "--site", app.host).stdout.splitlines()
    hour = time.strftime("%Y-%m-%d %Hh", time.gmtime())
    words = [" ".join(line.split()) for line in lines]
    assert sorted(words) == [f"{hour} laptop {address} Test/1" for address in (OTHER_ADDRESS, KNOWN_ADDRESS)]


# Passwords of events -------------------------------------------------------------------------


def test_event_password_guessing_is_throttled(app: RunningApp) -> None:
    event = app.caller("editor").create("events", **SAMPLES["events"].body(new_password="right one"))
    paths = (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}")

    def guess(password: str, address: str, path: str = paths[0]) -> httpx.Response:
        caller = Caller(app, 0, None, {"X-Forwarded-For": address})
        return caller.get(path, {"password": password})

    statuses = [guess("wrong", OTHER_ADDRESS, paths[n % 2]).status_code for n in range(30)]
    assert statuses[:20] == [403] * 20
    assert 429 in statuses
    while guess("wrong", OTHER_ADDRESS).status_code != 429:
        pass  # One was forgiven meanwhile.
    for path in paths:
        response = guess("right one", OTHER_ADDRESS, path)
        assert_error(response, 429, "rest_too_many_attempts")
        assert int(response.headers["retry-after"]) > 0
    assert guess("right one", KNOWN_ADDRESS).status_code == 200


def test_password_for_list_counts_as_one_attempt(app: RunningApp) -> None:
    editor = app.caller("editor")
    own_event = editor.create("events", **SAMPLES["events"].body(new_password="mine only", description="Told."))["id"]
    for n in range(25):
        editor.create("events", **SAMPLES["events"].body(new_password=f"other {n}"))
    reader = Caller(app, 0, None, {"X-Forwarded-For": "192.0.2.77"})
    page = expect_json(reader.get("/events", {"password": "mine only", "per_page": 50}))
    assert {event["id"]: event["description"] for event in page["events"]}[own_event] == "<p>Told.</p>"


def test_malformed_credentials_are_treated_as_anonymous(app: RunningApp) -> None:
    garbage = base64.b64encode(b"no colon").decode()
    for header in ("Bearer abc", f"Basic {garbage}", "Basic ???"):
        response = app.caller().get("/tags", headers={"Authorization": header})
        assert response.status_code == 200, header
