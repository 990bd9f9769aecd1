"""A page of another site cannot write with the credentials that a visitor's browser has stored."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import unique

ALLOWED_ORIGIN, OTHER_ORIGIN = "https://app.example.org", "https://evil.example"
SITES = ("cross-site", "same-site", "same-origin", "none", None)
ORIGINS = (ALLOWED_ORIGIN, OTHER_ORIGIN, None)
# Requests that a form of any page can send: form data, or text with the parameters in the URL.
BODIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "form": lambda name: {"data": {"name": name}},
    "text": lambda name: {"params": {"name": name}, "content": "x", "headers": {"Content-Type": "text/plain"}},
}


@pytest.fixture(scope="module")
def writer(start_app_for_module: Callable[..., RunningApp]) -> Caller:
    return start_app_for_module({"KALENDS_CORS_ORIGINS": ALLOWED_ORIGIN}).caller("editor")


def browser_headers(site: str | None, origin: str | None) -> dict[str, str]:
    headers = {"Sec-Fetch-Site": site, "Origin": origin}
    return {name: value for name, value in headers.items() if value is not None}


def write_tag(writer: Caller, how: str, headers: dict[str, str], **more: Any) -> int:
    options = BODIES[how](unique("tag"))
    options["headers"] = {**options.get("headers", {}), **headers}
    return writer.request("POST", "/tags", **options, **more).status_code


def test_only_cross_site_writes_are_rejected(writer: Caller, report: Callable[[object], None]) -> None:
    cases = list(product(BODIES, SITES, ORIGINS))
    statuses = {case: write_tag(writer, case[0], browser_headers(case[1], case[2])) for case in cases}
    rejected = [case for case, status in statuses.items() if status == 403]
    assert rejected == [(how, "cross-site", origin) for how in BODIES for origin in (OTHER_ORIGIN, None)]
    assert [status for status in statuses.values() if status != 403] == [201] * 26
    report(f"{len(cases)} cross-site cases, {len(rejected)} rejected as required")


@pytest.mark.parametrize("how", BODIES)
def test_wildcard_origin_does_not_allow_cross_site_writes(start_app: Callable[..., RunningApp], how: str) -> None:
    writer = start_app().caller("editor")
    assert write_tag(writer, how, browser_headers("cross-site", ALLOWED_ORIGIN)) == 403
    assert write_tag(writer, how, browser_headers("cross-site", "*")) == 403
    assert write_tag(writer, how, browser_headers("same-origin", writer.app.base_url)) == 201


def test_preflighted_writes_are_allowed(start_app: Callable[..., RunningApp]) -> None:
    """Allow scripts that send a password; browsers send no stored credentials after a preflight."""
    writer, headers = start_app().caller("editor"), browser_headers("cross-site", ALLOWED_ORIGIN)
    response = writer.post("/tags", {"name": "A"}, headers=headers)
    assert response.status_code == 201
    path = f"/tags/{response.json()['id']}"
    assert writer.request("PATCH", path, data={"name": "B"}, headers=headers).status_code == 200
    assert writer.delete(path, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/tags/1?_method=DELETE", {}),
        ("/tags/1", {"data": {"name": "x"}}),
        ("/tags", {"files": {"a": b"x"}}),
        ("/tags", {"content": '{"name": "x"}', "headers": {"Content-Type": " TEXT/plain ;charset=x"}}),
        ("/events", {"data": {"title": "x"}}),
        ("//api/kalends/v1/batch", {"data": {"operations": "[]"}}),
        ("//api/kalends/v1/media", {"files": {"file": b"x"}}),
    ],
)
def test_all_cross_site_writes_are_rejected(writer: Caller, path: str, options: dict[str, Any]) -> None:
    headers = {**options.get("headers", {}), **browser_headers("cross-site", OTHER_ORIGIN)}
    response = writer.request("POST", path, **{**options, "headers": headers})
    assert_error(response, 403, "rest_cross_site")


def test_cross_site_reads_are_allowed(writer: Caller) -> None:
    assert writer.get("/tags", headers=browser_headers("cross-site", OTHER_ORIGIN)).status_code == 200
