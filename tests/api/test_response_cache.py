"""Answers kept in memory are right at once after any write in any process, and when the clock moves."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from kalends.http.responses import HeaderPolicy
from tests.api.conftest import StartApp
from tests.api.running_app import API_PATH, RunningApp

EVENT = {"title": "Kept", "start_date": "2030-01-01 10:00", "end_date": "2030-01-01 12:00"}
LIST = f"{API_PATH}/events"
WIDE_WINDOW = b"start_date=2029-12-01&end_date=2030-12-31"


def count_transactions(
    app: RunningApp, query: bytes = WIDE_WINDOW, path: str = LIST, headers: Sequence[tuple[str, str]] = ()
) -> int:
    """How many transactions one read takes: none when it comes from memory."""
    count = 0
    database = app.asgi._state.database
    original = database.transaction

    def count_and_begin(*arguments: object, **options: object) -> object:
        nonlocal count
        count += 1
        return original(*arguments, **options)  # type: ignore[arg-type]

    with patch.object(database, "transaction", count_and_begin):
        app.raw("GET", path, query=query, headers=headers)
    return count


def test_second_read_of_list_is_served_from_cache(start_app: StartApp) -> None:
    app = start_app()
    first = app.raw("GET", LIST, query=WIDE_WINDOW)
    assert count_transactions(app) == 0
    assert app.raw("GET", LIST, query=WIDE_WINDOW)[2] == first[2]


def test_disabled_cache_stores_nothing(start_app: StartApp) -> None:
    app = start_app({"KALENDS_CACHE_MB": "0"})
    app.raw("GET", LIST, query=WIDE_WINDOW)
    assert count_transactions(app) == 1


def test_write_in_another_process_is_visible_immediately(start_app: StartApp) -> None:
    app = start_app()
    with app.twin() as other:
        assert b'"total":0' in app.raw("GET", LIST, query=WIDE_WINDOW)[2]
        for count in (1, 2, 3):
            other.caller("editor").post("/events", EVENT)
            assert f'"total":{count}'.encode() in app.raw("GET", LIST, query=WIDE_WINDOW)[2]


def test_renaming_venue_invalidates_cached_events(start_app: StartApp) -> None:
    app = start_app()
    editor = app.caller("editor")
    event = editor.post("/events", {**EVENT, "venue": {"venue": "Old hall"}}).json()
    path = f"{API_PATH}/events/{event['id']}"
    assert b"Old hall" in app.raw("GET", path)[2]
    editor.patch(f"/venues/{event['venue']['id']}", {"venue": "New hall"})
    assert b"New hall" in app.raw("GET", path)[2]


def test_default_list_expires_at_midnight_of_site(start_app: StartApp) -> None:
    app = start_app()
    app.set_site("timezone", "America/New_York")
    today = datetime.now(UTC)
    start = (today - timedelta(hours=5)).strftime("%Y-%m-%d")
    app.caller("editor").post("/events", {**EVENT, "start_date": start, "end_date": start})
    assert b'"total":1' in app.raw("GET", LIST)[2]
    assert count_transactions(app, b"") == 0
    with patch("kalends.asgi.utc_now", lambda: (today + timedelta(days=1)).replace(microsecond=0)):
        assert b'"total":0' in app.raw("GET", LIST)[2]


def test_upcoming_events_of_venues_are_not_cached(start_app: StartApp) -> None:
    app = start_app()
    path, query = f"{API_PATH}/venues", b"only_with_upcoming=true"
    app.raw("GET", path, query=query)
    assert count_transactions(app, query, path) == 1


def test_authenticated_responses_are_not_served_to_others(start_app: StartApp) -> None:
    app = start_app()
    editor = app.caller("editor")
    editor.post("/events", {**EVENT, "status": "draft"})
    query = WIDE_WINDOW.decode()
    assert editor.get(f"/events?{query}").json()["total"] == 1
    assert b'"total":0' in app.raw("GET", LIST, query=WIDE_WINDOW)[2]
    assert editor.get(f"/events?{query}").headers["cache-control"] == "private, no-store"


def test_responses_to_event_passwords_are_not_cached(start_app: StartApp) -> None:
    app = start_app()
    event = app.caller("editor").post("/events", {**EVENT, "new_password": "sesame"}).json()
    path = f"{API_PATH}/events/{event['id']}"
    for _ in range(2):
        assert app.raw("GET", path, query=b"password=sesame")[0] == 200
        assert app.raw("GET", path)[0] == 403


def test_cache_key_has_the_selected_language_and_no_other_header(start_app: StartApp) -> None:
    app = start_app()

    def needs_transaction(**headers: str) -> bool:
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return count_transactions(app, headers=named) == 1

    assert needs_transaction(accept_language="en")
    assert needs_transaction(accept_language="de-AT, en;q=0.5")
    for same in ("de", "de;q=0.9, fr;q=0.1", "tlh, de"):
        assert not needs_transaction(accept_language=same), same
    assert not needs_transaction(accept_language="en", user_agent="Other", referer="http://other.example/")


def test_list_has_weak_etag_and_304_is_served_from_cache(start_app: StartApp) -> None:
    app = start_app()
    _, headers, _ = app.raw("GET", LIST, query=WIDE_WINDOW)
    tag = headers["etag"]
    assert tag.startswith('W/"')
    for _ in range(2):
        status, _, body = app.raw("GET", LIST, query=WIDE_WINDOW, headers=[("If-None-Match", tag)])
        assert (status, body) == (304, b"")
    app.caller("editor").post("/events", EVENT)
    assert app.raw("GET", LIST, query=WIDE_WINDOW, headers=[("If-None-Match", tag)])[0] == 200


def test_cached_response_is_compressed_on_request(start_app: StartApp) -> None:
    app = start_app()
    app.caller("editor").post("/events", {**EVENT, "description": "word " * 400})
    plain = app.raw("GET", LIST, query=WIDE_WINDOW)[2]
    _, headers, body = app.raw("GET", LIST, query=WIDE_WINDOW, headers=[("Accept-Encoding", "br, gzip")])
    assert headers["content-encoding"] == "gzip"
    assert len(body) < len(plain) / 2
    assert gzip.decompress(body) == plain
    assert "Accept-Encoding" in headers["vary"]


def test_head_has_headers_of_cached_response_and_no_body(start_app: StartApp) -> None:
    app = start_app()
    _, expected, body = app.raw("GET", LIST, query=WIDE_WINDOW)
    _, headers, nothing = app.raw("HEAD", LIST, query=WIDE_WINDOW)
    assert nothing == b""
    assert headers["content-length"] == str(len(body)) == expected["content-length"]


@pytest.mark.quick("events", "tags")
@pytest.mark.parametrize("kind", ["events", "venues", "tags"])
def test_public_responses_have_shared_max_age_and_surrogate_keys(start_app: StartApp, kind: str) -> None:
    app = start_app({"KALENDS_SHARED_CACHE_SECONDS": "3600", "KALENDS_PURGE_URLS": "http://127.0.0.1:9/"})
    _, headers, _ = app.raw("GET", f"{API_PATH}/{kind}")
    assert "stale-while-revalidate" in headers["cache-control"]
    keys = headers["surrogate-key"].split()
    assert keys[0] == f"s{app.site_id}"
    # A list of events names the set that it selects from; other lists depend on all records of their kind.
    assert (f"s{app.site_id}-{kind}" in keys) == (kind != "events")
    seconds = int(headers["cache-control"].partition("s-maxage=")[2].partition(",")[0])
    assert seconds == 3600 if kind != "events" else 0 <= seconds <= 3600


@pytest.mark.parametrize(
    ("remaining", "expected"),
    [
        (3600, "s-maxage=10, stale-while-revalidate=60"),
        (30, "stale-while-revalidate=20"),
        (5, "s-maxage=5, stale-while-revalidate=0"),
        (0, "no-store"),
    ],
)
def test_shared_caches_do_not_use_a_response_after_its_expiry(remaining: int, expected: str) -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    assert expected in HeaderPolicy(()).cache_control(now + timedelta(seconds=remaining), now)
