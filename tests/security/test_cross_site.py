"""A page of another site cannot write with the credentials that a visitor's browser has stored."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.api.running_app import HOST, NS, Caller, Interface, assert_refused
from tests.api.sample_records import unique

NAMED, OTHER = "https://app.example.org", "https://evil.example"
SITES = ("cross-site", "same-site", "same-origin", "none", None)
ORIGINS = (NAMED, OTHER, None)
# What the form of any page can send: as a form, or as text with the parameters in the address.
BODIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "form": lambda name: {"data": {"name": name}},
    "text": lambda name: {"params": {"name": name}, "content": "x", "headers": {"Content-Type": "text/plain"}},
}


@pytest.fixture(scope="module")
def writer(fresh_for_module: Callable[..., Interface]) -> Caller:
    return fresh_for_module({"KALENDS_CORS_ORIGINS": NAMED}).caller("editor")


def browser(site: str | None, origin: str | None) -> dict[str, str]:
    sent = {"Sec-Fetch-Site": site, "Origin": origin}
    return {name: value for name, value in sent.items() if value is not None}


def write(writer: Caller, how: str, headers: dict[str, str], **more: Any) -> int:
    options = BODIES[how](unique("tag"))
    options["headers"] = {**options.get("headers", {}), **headers}
    return writer.request("POST", "/tags", **options, **more).status_code


def test_only_cross_site_writes_are_rejected(writer: Caller, tell: Callable[[object], None]) -> None:
    cases = list(product(BODIES, SITES, ORIGINS))
    statuses = {case: write(writer, case[0], browser(case[1], case[2])) for case in cases}
    refused = [case for case, status in statuses.items() if status == 403]
    assert refused == [(how, "cross-site", origin) for how in BODIES for origin in (OTHER, None)]
    assert [status for status in statuses.values() if status != 403] == [201] * 26
    tell(f"{len(cases)} cross-site cases, {len(refused)} refused as they must be")


@pytest.mark.parametrize("how", BODIES)
def test_wildcard_origin_does_not_allow_cross_site_writes(fresh: Callable[..., Interface], how: str) -> None:
    writer = fresh().caller("editor")
    assert write(writer, how, browser("cross-site", NAMED)) == 403
    assert write(writer, how, browser("cross-site", "*")) == 403
    assert write(writer, how, browser("same-origin", f"http://{HOST}")) == 201


def test_preflighted_writes_are_allowed(fresh: Callable[..., Interface]) -> None:
    """A script with a password of its own; stored ones a browser does not send after a preflight."""
    writer, headers = fresh().caller("editor"), browser("cross-site", NAMED)
    made = writer.post("/tags", {"name": "A"}, headers=headers)
    assert made.status_code == 201
    path = f"/tags/{made.json()['id']}"
    assert writer.request("PATCH", path, data={"name": "B"}, headers=headers).status_code == 200
    assert writer.delete(path, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/tags/1?_method=DELETE", {}),
        ("/tags/1", {"data": {"name": "x"}}),
        ("/tags", {"files": {"a": b"x"}}),
        ("/tags", {"content": '{"name": "x"}', "headers": {"Content-Type": " TEXT/plain ;charset=x"}}),
        (f"{NS}/events", {"data": {"title": "x"}}),
        (f"http://{HOST}/api/kalends/v1/batch", {"data": {"operations": "[]"}}),
        (f"http://{HOST}/api/kalends/v1/media", {"files": {"file": b"x"}}),
    ],
)
def test_all_cross_site_writes_are_rejected(writer: Caller, path: str, options: dict[str, Any]) -> None:
    headers = {**options.get("headers", {}), **browser("cross-site", OTHER)}
    answer = writer.request("POST", path, **{**options, "headers": headers})
    assert_refused(answer, 403, "rest_cross_site")


def test_cross_site_reads_are_allowed(writer: Caller) -> None:
    assert writer.get("/tags", headers=browser("cross-site", OTHER)).status_code == 200
