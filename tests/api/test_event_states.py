"""The state of an event: `event_status`, `status_reason` and `online_url` (docs/event-states.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import API_PATH, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, unique

EXTENSIONS = f"/{API_PATH.replace('calendar/events', 'kalends')}"
REASON = "The hall is closed, sorry."
LINK = "https://meet.example/room"
DEFAULTS = {"event_status": "scheduled", "status_reason": "", "online_url": ""}


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", title=unique("talk"), **DATES, **fields)


def read_state(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in DEFAULTS}


def test_state_is_scheduled_until_it_is_set(editor: Caller, anonymous: Caller) -> None:
    event = create_event(editor)
    assert read_state(event) == DEFAULTS
    changed = {"event_status": "cancelled", "status_reason": f" <b>{REASON}</b> ", "online_url": LINK}
    state = {**changed, "status_reason": REASON}
    assert read_state(editor.change("events", event["id"], **changed)) == state
    # A client that knows nothing of states changes nothing.
    assert read_state(editor.change("events", event["id"], title="New")) == state
    assert read_state(anonymous.read("events", event["id"])) == state
    assert event["id"] in anonymous.ids("events", event_status="cancelled")
    cleared = editor.change("events", event["id"], **dict.fromkeys(DEFAULTS))
    assert read_state(cleared) == DEFAULTS


@pytest.mark.quick("event_status-canceled", "online_url-wrong8")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("event_status", "canceled"), ("event_status", ""), ("event_status", 1), ("event_status", ["cancelled"]),
        ("status_reason", "x" * 501), ("status_reason", 5), ("online_url", "ftp://x.example"),
        ("online_url", "javascript:alert(1)"), ("online_url", ["https://x.example"]),
    ],
)  # fmt: skip
def test_invalid_state_is_rejected(editor: Caller, name: str, wrong: object) -> None:
    body = {"title": "x", **DATES, name: wrong}
    data = assert_error(editor.post("/events", body), 400, "rest_invalid_param", name)
    if wrong == "canceled":
        assert "Did you mean cancelled?" in data["params"][name]


def test_list_filter_selects_states(editor: Caller, anonymous: Caller) -> None:
    venue = editor.create("venues", venue=unique("hall"))["id"]
    states = ("scheduled", "cancelled", "postponed", "moved_online", "sold_out")
    ids = {state: create_event(editor, venue=venue, event_status=state)["id"] for state in states}

    def list_ids(**query: Any) -> set[int]:
        return set(anonymous.ids("events", venue=venue, **query))

    assert list_ids() == set(ids.values())
    for state in states:
        assert list_ids(event_status=state) == {ids[state]}
    assert list_ids(event_status="scheduled,cancelled") == {ids["scheduled"], ids["cancelled"]}
    assert list_ids(**{"event_status[]": ["sold_out", "postponed"]}) == {ids["sold_out"], ids["postponed"]}
    for wrong in ("", "gone", "cancelled,gone"):
        assert_error(anonymous.get("/events", {"event_status": wrong}), 400, "rest_invalid_param", "event_status")


def test_protected_event_reveals_no_state(editor: Caller, anonymous: Caller) -> None:
    # On a day without other events, so that every page has room for it.
    day = datetime.now(UTC).date() + timedelta(days=3)
    event = editor.create(
        "events", title=unique("secret"), start_date=f"{day} 10:00", end_date=f"{day} 11:00",
        event_status="cancelled", status_reason=REASON, online_url=LINK, new_password="open sesame",
    )  # fmt: skip
    (listed,) = anonymous.page("events", include=event["id"])["events"]
    assert read_state(listed) == {"event_status": None, "status_reason": "", "online_url": ""}
    for state in ("cancelled", "scheduled"):
        assert anonymous.ids("events", include=event["id"], event_status=state) == []
    assert anonymous.ids("events", include=event["id"], event_status="cancelled", password="open sesame")
    pages = ("list/", f"day/{day}/", f"week/{day}/", f"month/{day:%Y-%m}/")
    feeds = [f"/events.{form}" for form in ("ics", "rss", "atom", "json")]
    for path in (*feeds, *[f"/events/{page}" for page in pages], f"/event/{event['slug']}/"):
        _, _, body = anonymous.app.raw("GET", path, headers=[("accept", "text/html")])
        text = body.decode()
        at = text.rindex(event["title"])
        assert "cancelled" not in text[max(0, at - 300) : at + 300].lower(), path
        assert REASON not in text, path
        assert LINK not in text, path


def test_history_and_changes_contain_states(editor: Caller, anonymous: Caller) -> None:
    event = create_event(editor)
    since = anonymous.app.sql("SELECT revision FROM sites")[0]["revision"]
    editor.change("events", event["id"], event_status="postponed", status_reason=REASON, online_url=LINK)
    history = expect_json(editor.get(f"{EXTENSIONS}/events/{event['id']}/history"))["history"]
    assert history[0]["changes"] == {
        "online_url": {"before": "", "after": LINK},
        "event_status": {"before": "scheduled", "after": "postponed"},
        "status_reason": {"before": "", "after": REASON},
    }
    (change,) = expect_json(anonymous.get(f"{EXTENSIONS}/changes", {"since": since}))["changes"]
    assert change["record"]["event_status"] == "postponed"
    revision = history[1]["revision"]
    restored = expect_json(editor.post(f"{EXTENSIONS}/events/{event['id']}/restore", {"revision": revision}))
    assert read_state(restored) == DEFAULTS


def describe(caller: Caller, **fields: Any) -> dict[str, Any]:
    json_ld: dict[str, Any] = caller.read("events", create_event(caller, **fields)["id"])["json_ld"]
    return json_ld


@pytest.mark.quick("scheduled-EventScheduled", "sold_out-EventScheduled")
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("scheduled", "EventScheduled"),
        ("cancelled", "EventCancelled"),
        ("postponed", "EventPostponed"),
        ("moved_online", "EventMovedOnline"),
        ("sold_out", "EventScheduled"),
    ],
)
def test_structured_data_names_state(editor: Caller, state: str, expected: str) -> None:
    json_ld = describe(editor, event_status=state, cost="5")
    assert json_ld["eventStatus"] == f"https://schema.org/{expected}"
    availability = json_ld.get("offers", {}).get("availability")
    expected_availability = {"cancelled": None, "sold_out": "https://schema.org/SoldOut"}
    assert availability == expected_availability.get(state, "https://schema.org/InStock")


def test_structured_data_names_ways_to_attend(editor: Caller) -> None:
    venue = editor.create("venues", venue=unique("hall"))

    def describe_attendance(**fields: Any) -> tuple[str, Any]:
        json_ld = describe(editor, **fields)
        mode = json_ld["eventAttendanceMode"].removeprefix("https://schema.org/").removesuffix("EventAttendanceMode")
        location = json_ld.get("location", [])
        places = location if isinstance(location, list) else [location]
        return mode, [place["url"] for place in places]

    assert describe_attendance(venue=venue["id"]) == ("Offline", [venue["url"]])
    assert describe_attendance(venue=venue["id"], online_url=LINK) == ("Mixed", [venue["url"], LINK])
    assert describe_attendance(online_url=LINK) == ("Online", [LINK])
    assert describe_attendance(venue=venue["id"], online_url=LINK, event_status="moved_online") == ("Online", [LINK])
    sold_out = describe(editor, event_status="sold_out", ticket_url="https://tickets.example")
    assert sold_out["offers"] == {
        "@type": "Offer",
        "url": "https://tickets.example",
        "availability": "https://schema.org/SoldOut",
    }


def test_feeds_mark_titles(app: RunningApp, editor: Caller) -> None:
    venue = editor.create("venues", venue=unique("hall"))["id"]
    event = create_event(editor, venue=venue, event_status="sold_out", status_reason=REASON)

    def read(form: str, query: str = "") -> str:
        status, _, body = app.raw("GET", f"/events.{form}", query=f"venue={venue}{query}".encode())
        assert status == 200
        return body.decode()

    for form in ("rss", "atom", "json", "ics"):
        text = read(form)
        assert f"Sold out: {event['title']}" in text, form
        assert REASON.split(",", maxsplit=1)[0] in text, form
        assert f"Ausverkauft: {event['title']}" in read(form, "&lang=de"), form
