"""Answers kept in memory are right at once after any write in any process, and when the clock moves."""

import gzip
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from tests.api.conftest import Start
from tests.api.running_app import NAMESPACE, Interface

EVENT = {"title": "Kept", "start_date": "2030-01-01 10:00", "end_date": "2030-01-01 12:00"}
LIST = f"{NAMESPACE}/events"
WIDE = b"start_date=2029-12-01&end_date=2030-12-31"


def statements_of(interface: Interface, query: bytes = WIDE, path: str = LIST) -> int:
    """How many transactions one read takes: none when it comes from memory."""
    counted = 0
    database = interface.app._state.database
    begin = database.transaction

    def counting(*given: object, **more: object) -> object:
        nonlocal counted
        counted += 1
        return begin(*given, **more)  # type: ignore[arg-type]

    with patch.object(database, "transaction", counting):
        interface.raw("GET", path, query=query)
    return counted


def test_second_read_of_list_is_served_from_cache(fresh: Start) -> None:
    interface = fresh()
    first = interface.raw("GET", LIST, query=WIDE)
    assert statements_of(interface) == 0
    assert interface.raw("GET", LIST, query=WIDE)[2] == first[2]


def test_disabled_cache_stores_nothing(fresh: Start) -> None:
    interface = fresh({"KALENDS_CACHE_MB": "0"})
    interface.raw("GET", LIST, query=WIDE)
    assert statements_of(interface) == 1


def test_write_in_another_process_is_visible_immediately(fresh: Start) -> None:
    interface = fresh()
    with Interface(interface.database_url, interface.people) as other:
        assert b'"total":0' in interface.raw("GET", LIST, query=WIDE)[2]
        for count in (1, 2, 3):
            other.caller("editor").post("/events", EVENT)
            assert f'"total":{count}'.encode() in interface.raw("GET", LIST, query=WIDE)[2]


def test_renaming_venue_invalidates_cached_events(fresh: Start) -> None:
    interface = fresh()
    editor = interface.caller("editor")
    event = editor.post("/events", {**EVENT, "venue": {"venue": "Old hall"}}).json()
    path = f"{NAMESPACE}/events/{event['id']}"
    assert b"Old hall" in interface.raw("GET", path)[2]
    editor.patch(f"/venues/{event['venue']['id']}", {"venue": "New hall"})
    assert b"New hall" in interface.raw("GET", path)[2]


def test_default_list_expires_at_midnight_of_site(fresh: Start) -> None:
    interface = fresh()
    interface.set_site("timezone", "America/New_York")
    today = datetime.now(UTC)
    start = (today - timedelta(hours=5)).strftime("%Y-%m-%d")
    interface.caller("editor").post("/events", {**EVENT, "start_date": start, "end_date": start})
    assert b'"total":1' in interface.raw("GET", LIST)[2]
    assert statements_of(interface, b"") == 0
    with patch("kalends.asgi.utc_now", lambda: (today + timedelta(days=1)).replace(microsecond=0)):
        assert b'"total":0' in interface.raw("GET", LIST)[2]


def test_upcoming_events_of_venues_are_not_cached(fresh: Start) -> None:
    interface = fresh()
    path, query = f"{NAMESPACE}/venues", b"only_with_upcoming=true"
    interface.raw("GET", path, query=query)
    assert statements_of(interface, query, path) == 1


def test_authenticated_responses_are_not_served_to_others(fresh: Start) -> None:
    interface = fresh()
    editor = interface.caller("editor")
    editor.post("/events", {**EVENT, "status": "draft"})
    query = WIDE.decode()
    assert editor.get(f"/events?{query}").json()["total"] == 1
    assert b'"total":0' in interface.raw("GET", LIST, query=WIDE)[2]
    assert editor.get(f"/events?{query}").headers["cache-control"] == "private, no-store"


def test_responses_to_event_passwords_are_not_cached(fresh: Start) -> None:
    interface = fresh()
    event = interface.caller("editor").post("/events", {**EVENT, "new_password": "sesame"}).json()
    path = f"{NAMESPACE}/events/{event['id']}"
    for _ in range(2):
        assert interface.raw("GET", path, query=b"password=sesame")[0] == 200
        assert interface.raw("GET", path)[0] == 403


def test_list_has_weak_etag_and_304_is_served_from_cache(fresh: Start) -> None:
    interface = fresh()
    _, headers, _ = interface.raw("GET", LIST, query=WIDE)
    tag = headers["etag"]
    assert tag.startswith('W/"')
    for _ in range(2):
        status, _, body = interface.raw("GET", LIST, query=WIDE, headers=[("If-None-Match", tag)])
        assert (status, body) == (304, b"")
    interface.caller("editor").post("/events", EVENT)
    assert interface.raw("GET", LIST, query=WIDE, headers=[("If-None-Match", tag)])[0] == 200


def test_cached_response_is_compressed_on_request(fresh: Start) -> None:
    interface = fresh()
    interface.caller("editor").post("/events", {**EVENT, "description": "word " * 400})
    plain = interface.raw("GET", LIST, query=WIDE)[2]
    _, headers, body = interface.raw("GET", LIST, query=WIDE, headers=[("Accept-Encoding", "br, gzip")])
    assert headers["content-encoding"] == "gzip"
    assert len(body) < len(plain) / 2
    assert gzip.decompress(body) == plain
    assert "Accept-Encoding" in headers["vary"]


def test_head_has_headers_of_cached_response_and_no_body(fresh: Start) -> None:
    interface = fresh()
    _, expected, body = interface.raw("GET", LIST, query=WIDE)
    _, headers, nothing = interface.raw("HEAD", LIST, query=WIDE)
    assert nothing == b""
    assert headers["content-length"] == str(len(body)) == expected["content-length"]


@pytest.mark.parametrize("kind", ["events", "venues", "tags"])
def test_public_responses_have_shared_max_age_and_surrogate_keys(fresh: Start, kind: str) -> None:
    interface = fresh({"KALENDS_SHARED_CACHE_SECONDS": "3600", "KALENDS_PURGE_URLS": "http://127.0.0.1:9/"})
    _, headers, _ = interface.raw("GET", f"{NAMESPACE}/{kind}")
    assert "stale-while-revalidate" in headers["cache-control"]
    assert headers["surrogate-key"].split()[:2] == ["s1", f"s1-{kind}"]
    seconds = int(headers["cache-control"].partition("s-maxage=")[2].partition(",")[0])
    assert seconds == 3600 if kind != "events" else 0 <= seconds <= 3600
