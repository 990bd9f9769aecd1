"""Surrogate keys: sent only where a shared cache needs them, and without the links of protected events."""

import re
from collections.abc import Callable

import pytest

from tests.api.running_app import API_PATH, RunningApp
from tests.api.sample_records import DATES

PURGE_SETTINGS = {"KALENDS_PURGE_URLS": "http://127.0.0.1:9/", "KALENDS_SHARED_CACHE_SECONDS": "3600"}


def create_events(app: RunningApp) -> tuple[dict, dict]:
    """A protected event, and a public one with the same links."""
    editor = app.caller("editor")
    venue = editor.create("venues", venue="Hall", status="private")["id"]
    links = {"venue": venue, "organizer": {"organizer": "Host"}, "categories": ["Kept"], "tags": ["Kept"]}
    protected = editor.create("events", title="Protected", slug="protected", new_password="sesame", **links, **DATES)
    return protected, editor.create("events", title="Public", slug="public", **links, **DATES)


def read_surrogate_keys(app: RunningApp, path: str, query: str = "") -> list[str]:
    status, headers, _ = app.raw("GET", path, query=query.encode())
    assert status == 200
    # A feed with protected events depends on all venues, without naming one.
    return [key for key in headers["surrogate-key"].split() if key != f"s{app.site_id}-venues"]


def test_surrogate_keys_are_omitted_without_shared_cache(start_app: Callable[..., RunningApp]) -> None:
    app = start_app({"KALENDS_SHARED_CACHE_SECONDS": "3600"})
    _, public = create_events(app)
    kinds = ("events", "venues", "organizers", "categories", "tags")
    paths = [f"{API_PATH}/{kind}" for kind in kinds] + [f"{API_PATH}/events/{public['id']}"]
    paths += [
        "/",
        "/events/list/",
        "/events/map/",
        "/events.ics",
        "/events.rss",
        "/event/public/",
        "/event/public.ics",
    ]
    paths += ["/sitemap.xml", "/sitemap/0.xml", "/robots.txt", "/tag/kept/", "/events/category/kept/"]
    for path in paths:
        for _ in range(2):  # The second one comes from memory.
            status, headers, _body = app.raw("GET", path)
            assert status == 200, path
            assert "surrogate-key" not in headers, path


@pytest.mark.parametrize("path", [f"{API_PATH}/events", "/events.ics"])
def test_surrogate_keys_do_not_reveal_links_of_protected_event(
    start_app: Callable[..., RunningApp], path: str
) -> None:
    app = start_app(PURGE_SETTINGS)
    protected, public = create_events(app)
    named = read_surrogate_keys(app, path, f"include={protected['id']}")
    assert named[0] == f"s{app.site_id}"
    assert len(named) == 3
    # The public one names its four links, none of them by an ID.
    public_keys = read_surrogate_keys(app, path, f"include={public['id']}")
    assert len(public_keys) == 2 + 1 + 4
    assert not set(named[2:]) & set(public_keys)
    both = read_surrogate_keys(app, path, f"include={protected['id']},{public['id']}")
    assert set(both) == {*named, *public_keys}
    assert all(re.fullmatch(f"s{app.site_id}-[0-9a-f]{{18}}", entry) for entry in both[2:])
