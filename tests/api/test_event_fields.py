"""Events: every field, what keeps it and what clears it (behaviour 5.1)."""

import re
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import unique

DATES = {"start_date": "2027-06-10 19:30:00", "end_date": "2027-06-10 22:00:00"}
FLAGS = ("show_map", "show_map_link", "hide_from_listings", "sticky", "featured")


@pytest.fixture(scope="module", autouse=True)
def new_york(app: RunningApp) -> None:
    app.set_site("timezone", "America/New_York")


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", **{"title": unique("event"), **DATES, **fields})


def date_parts(text: str) -> dict[str, str]:
    year, month, day, hour, minutes, seconds = re.split("[- :]", text)
    return {"year": year, "month": month, "day": day, "hour": hour, "minutes": minutes, "seconds": seconds}


def without_keys(record: dict[str, Any], *names: str) -> dict[str, Any]:
    omitted = {"modified", "modified_utc", "json_ld", *names}
    return {key: value for key, value in record.items() if key not in omitted}


@pytest.fixture(scope="module")
def full(editor: Caller) -> dict[str, Any]:
    """What creates an event with every field."""
    venue = editor.create("venues", venue="Full Hall", city="Paris")["id"]
    organizers = [editor.create("organizers", organizer=name)["id"] for name in ("Zoe", "Adam")]
    categories = [editor.create("categories", name=name)["id"] for name in ("Zumba", "Art")]
    tag = editor.create("tags", name="Outdoor")["id"]
    return {
        "title": "Full <em>event</em>", "description": "One.\n\nTwo.", "excerpt": "Short", "slug": "full-event",
        "timezone": "Europe/Paris", "all_day": False, "cost": "10-20", "website": "https://event.example/?a=b&c=d",
        "date": "2026-01-15 08:00:00", "status": "publish", **dict.fromkeys(FLAGS, True), "hide_from_listings": False,
        "categories": categories, "tags": [tag], "venue": venue, "organizer": organizers,
        "ticket_url": "https://tickets.example/1", **DATES,
    }  # fmt: skip


def test_event_with_all_fields_has_exact_representation(
    anonymous: Caller, editor: Caller, full: dict[str, Any]
) -> None:
    record = create_event(editor, **full)
    url = f"{editor.app.base_url}/event/full-event/"
    by_kind = {
        "venue": editor.read("venues", full["venue"]),
        "organizer": [editor.read("organizers", one) for one in full["organizer"]],
    }
    by_kind["venue"].pop("json_ld", None)
    for organizer in by_kind["organizer"]:
        organizer.pop("json_ld", None)
    expected = {
        "id": record["id"],
        "global_id": f"{editor.app.host}?id={record['id']}",
        "global_id_lineage": [f"{editor.app.host}?id={record['id']}"],
        "author": str(editor.id),
        "status": "publish",
        "date": "2026-01-15 08:00:00",
        "date_utc": "2026-01-15 13:00:00",
        "url": url,
        "rest_url": f"{editor.app.api_url}/events/{record['id']}",
        "title": "Full <em>event</em>",
        "description": "<p>One.</p>\n<p>Two.</p>",
        "excerpt": "<p>Short</p>",
        "slug": "full-event",
        "image": False,
        "all_day": False,
        "start_date": "2027-06-10 19:30:00",
        "start_date_details": date_parts("2027-06-10 19:30:00"),
        "end_date": "2027-06-10 22:00:00",
        "end_date_details": date_parts("2027-06-10 22:00:00"),
        "utc_start_date": "2027-06-10 17:30:00",
        "utc_start_date_details": date_parts("2027-06-10 17:30:00"),
        "utc_end_date": "2027-06-10 20:00:00",
        "utc_end_date_details": date_parts("2027-06-10 20:00:00"),
        "timezone": "Europe/Paris",
        "timezone_abbr": "CEST",
        "cost": "$10 – $20",
        "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": ["10", "20"]},
        "website": "https://event.example/?a=b&c=d",
        "show_map": True,
        "show_map_link": True,
        "hide_from_listings": False,
        "sticky": True,
        "featured": True,
        "categories": [embedded_term(editor, "categories", one, 1) for one in reversed(full["categories"])],
        "tags": [embedded_term(editor, "tags", full["tags"][0], 1)],
        "venue": by_kind["venue"],
        "organizer": by_kind["organizer"],
        "series": None,
        "custom_fields": [],
        "ticket_url": "https://tickets.example/1",
        "event_status": "scheduled",
        "status_reason": "",
        "online_url": "",
        "currency_symbol": None,
        "currency_code": None,
        "currency_position": None,
        "uid": record["uid"],
    }
    assert without_keys(record) == expected
    assert without_keys(anonymous.read("events", record["id"])) == expected
    (listed,) = anonymous.page("events", include=record["id"])["events"]
    assert without_keys(listed) == expected
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", record["uid"])
    editor.trash("events", record["id"])


def embedded_term(caller: Caller, kind: str, term_id: int, count: int) -> dict[str, Any]:
    term = caller.read(kind, term_id)
    return {
        "name": term["name"], "slug": term["slug"], "term_group": 0, "term_taxonomy_id": term_id,
        "taxonomy": term["taxonomy"], "description": term["description"], "parent": 0, "count": count,
        "filter": "raw", "id": term_id, "urls": term["urls"],
    }  # fmt: skip


def test_event_with_required_fields_has_same_keys(editor: Caller, full: dict[str, Any]) -> None:
    minimal, complete = create_event(editor), create_event(editor, **{**full, "slug": "most"})
    assert minimal.keys() == complete.keys()
    empty = {
        "description": "", "excerpt": "", "image": False, "all_day": False, "cost": "", "categories": [], "tags": [],
        "venue": [], "organizer": [], "custom_fields": [], "ticket_url": "", "timezone": "America/New_York",
        "website": minimal["url"], **dict.fromkeys(FLAGS, False),
    }  # fmt: skip
    assert {key: minimal[key] for key in empty} == empty


def test_updating_one_field_keeps_all_others(editor: Caller, full: dict[str, Any]) -> None:
    record = create_event(editor, **{**full, "slug": "kept"})
    changes: dict[str, tuple[Any, Any, set[str]]] = {
        "title": ("New", "New", set()),
        "description": ("New", "<p>New</p>", set()),
        "excerpt": ("New", "<p>New</p>", set()),
        "website": ("https://new.example", "https://new.example", set()),
        "ticket_url": ("", "", set()),
        "cost": ("5", "$5", {"cost_details"}),
        "venue": ([], [], set()),
        "organizer": ([], [], set()),
        "categories": ([], [], set()),
        "tags": ([], [], set()),
        "featured": (False, False, set()),
        "sticky": (False, False, set()),
        "show_map": (False, False, set()),
        "show_map_link": (False, False, set()),
        "hide_from_listings": (True, True, set()),
        "slug": ("kept-2", "kept-2", {"url"}),
    }
    for name, (value, expected, derived) in changes.items():
        changed = editor.change("events", record["id"], **{name: value})
        assert changed[name] == expected
        counts = {"categories", "tags"}
        assert without_keys(changed, name, *derived, *counts) == without_keys(record, name, *derived, *counts)
        record = changed


def test_empty_update_changes_nothing(editor: Caller) -> None:
    record = create_event(editor)
    path = f"/events/{record['id']}"
    before = editor.get(path).headers["etag"]
    revision = editor.app.sql("SELECT revision FROM events WHERE id = $1", record["id"])
    for nothing in ({}, {"title": record["title"]}, {"unknown": 1}, {"cost": ""}):
        expect_json(editor.patch(path, nothing))
    assert editor.app.sql("SELECT revision FROM events WHERE id = $1", record["id"]) == revision
    assert editor.get(path).headers["etag"] == before


@pytest.mark.quick("-description", "None-ticket_url")
@pytest.mark.parametrize("name", ["description", "excerpt", "cost", "website", "ticket_url"])
@pytest.mark.parametrize("empty", ["", None])
def test_empty_value_clears_text(editor: Caller, name: str, empty: str | None) -> None:
    value = "https://a.example" if name in ("website", "ticket_url") else "10"
    record = create_event(editor, **{name: value})
    assert record[name] not in ("", record["url"])
    for cleared in (editor.change("events", record["id"], **{name: empty}), create_event(editor, **{name: empty})):
        assert cleared[name] == (cleared["url"] if name == "website" else "")


def test_website_defaults_to_event_page(editor: Caller) -> None:
    record = create_event(editor)
    assert record["website"] == record["url"] == f"{editor.app.base_url}/event/{record['slug']}/"
    draft = create_event(editor, status="draft")
    assert draft["website"] == draft["url"] == f"{editor.app.base_url}/?p={draft['id']}"


@pytest.mark.quick("show_map", "all_day")
@pytest.mark.parametrize("name", [*FLAGS, "all_day"])
def test_booleans_accept_all_notations(editor: Caller, name: str) -> None:
    for value, expected in (
        (True, True),
        (1, True),
        ("yes", True),
        ("ON", True),
        (False, False),
        ("0", False),
        ("no", False),
    ):
        assert create_event(editor, **{name: value})[name] is expected
    for wrong in ("", "bogus", 2, -1, [], {}, 1.5, "y"):
        response = editor.post("/events", {"title": "x", **DATES, name: wrong})
        assert_error(response, 400, "rest_invalid_param", name)
    assert create_event(editor, **{name: None})[name] is False
    record = create_event(editor, **{name: True})
    assert editor.change("events", record["id"], title="x")[name] is True
    assert_error(editor.patch(f"/events/{record['id']}", {name: None}), 400, "rest_invalid_param", name)


@pytest.mark.quick('It\'s "quoted" -- and... <3-It\'s "quoted" -- and... <3', "AT&T &amp; Co-AT&T & Co")
@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ('It\'s "quoted" -- and... <3', 'It\'s "quoted" -- and... <3'),
        ("Back\\slash \\\\ \\n", "Back\\slash \\\\ \\n"),
        ("a\x00b\x07c", "abc"),
        ("<script>alert(1)</script>Safe", "Safe"),
        ("<b>bold</b> <a href='x'>link</a>", "<b>bold</b> link"),
        ("e\u0301 \U0001f389", "é \U0001f389"),
        ("two\nlines", "two lines"),
        ("0", "0"),
        ("AT&T &amp; Co", "AT&T & Co"),
    ],
)
def test_titles_are_sanitized(editor: Caller, title: str, expected: str) -> None:
    assert create_event(editor, title=title)["title"] == expected


@pytest.mark.quick("", "title8")
@pytest.mark.parametrize("title", ["", " ", "\x00", "<script>x</script>", 5, True, [], {}, "x" * 10_001])
def test_invalid_title_is_rejected(editor: Caller, title: object) -> None:
    assert_error(editor.post("/events", {"title": title, **DATES}), 400, "rest_invalid_param", "title")


@pytest.mark.quick("contributor", "administrator")
@pytest.mark.parametrize("role", ["contributor", "author", "editor", "administrator"])
def test_scripts_are_removed_for_all_roles(app: RunningApp, role: str) -> None:
    html = '<p onclick="x">a</p><script>1</script><iframe src="//x"></iframe><a href="javascript:y">l</a><img src="https://i.example/a.png">'
    record = create_event(app.caller(role), description=html, excerpt=html)
    assert (
        record["description"] == record["excerpt"] == '<p>a</p>\n<p><a>l</a><img src="https://i.example/a.png"></p>'
    )


@pytest.mark.quick("ftp://a.example-website", "wrong7-ticket_url")
@pytest.mark.parametrize("name", ["website", "ticket_url"])
@pytest.mark.parametrize(
    "wrong", ["ftp://a.example", "javascript:x", "a.example", "http://", 5, True, ["http://a.example"], {}]
)
def test_urls_must_be_http_or_https(editor: Caller, name: str, wrong: object) -> None:
    assert_error(editor.post("/events", {"title": "x", **DATES, name: wrong}), 400, "rest_invalid_param", name)


def test_json_ld_is_included_in_single_reads_only(anonymous: Caller, editor: Caller) -> None:
    record = create_event(
        editor, title="A &lt;b&gt; & <b>B</b>", cost="10-20", venue={"venue": "LD Hall", "city": "Oslo"}
    )
    assert "json_ld" not in record
    described = anonymous.read("events", record["id"])["json_ld"]
    assert (described["@type"], described["startDate"]) == ("Event", "2027-06-10T19:30:00-04:00")
    assert described["location"]["address"] == {"@type": "PostalAddress", "addressLocality": "Oslo"}
    assert (described["offers"]["lowPrice"], described["offers"]["highPrice"]) == ("10", "20")
    by_slug = expect_json(anonymous.get(f"/events/by-slug/{record['slug']}"))
    assert by_slug["json_ld"] == described
    assert all("json_ld" not in one for one in anonymous.page("events", include=record["id"])["events"])
