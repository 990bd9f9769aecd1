"""Changes of several events at once: permissions, preconditions, conflicts, confirmation, limits and undo."""

import re

import pytest

from kalends.calendar.console import bulk_edit
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page, set_passwords
from tests.console.event_table_pages import BULK, CHECKBOX, TABLE, Table, change, make_event, read_statuses
from tests.series.series_client import SeriesClient


@pytest.fixture(scope="module")
def desk(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "editor")


def make_drafts(app: RunningApp, name: str, count: int, role: str = "editor") -> list[int]:
    caller = app.caller(role)
    return [make_event(caller, f"{name} {n:03}", 10, status="draft")["id"] for n in range(count)]


def select(desk: ConsoleClient, name: str, status: str = "draft") -> list[str]:
    """Return the events whose title begins with a word, as the table offers them for selection."""
    boxes = Table.read(desk, f"search={name}&status={status}&per_page=500").boxes
    return [box for title, box in sorted(boxes.items()) if title.startswith(name)]


def undo(desk: ConsoleClient, location: str) -> Page:
    """Press the button that the table shows after a change; return the page behind it."""
    form = desk.page(location).form()
    response = desk.post(f"{BULK}/undo", {name: form[name] for name in ("after_revision", "until_revision")})
    if response.status_code == 303:
        return desk.page(response.headers["location"])
    return Page.parse(response.text)


def test_few_events_are_published_at_once_and_undone(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Few", 3)
    response = change(desk, "publish", select(desk, "Few"), query="status=draft")
    location = response.headers["location"]
    assert re.fullmatch(r"/console/events\?status=draft&changed=\d+-\d+", location)
    assert read_statuses(app, ids) == ["publish"] * 3
    assert "3 events were changed." in desk.page(location).text
    assert "Change undone." in undo(desk, location).text
    assert read_statuses(app, ids) == ["draft"] * 3


def test_many_events_need_a_confirmation(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Many", 21)
    response = change(desk, "publish", select(desk, "Many"))
    page = Page.parse(response.text)
    assert "Publish 21 events" in page.text
    assert "1 more" in page.text
    assert read_statuses(app, ids) == ["draft"] * 21
    assert desk.post(BULK, page.form()).status_code == 303
    assert read_statuses(app, ids) == ["publish"] * 21


def test_bulk_change_of_200_events_is_one_transaction_with_conflicts_and_undo(
    app: RunningApp, desk: ConsoleClient
) -> None:
    ids = make_drafts(app, "Bulk", 200)
    boxes = select(desk, "Bulk")
    assert len(boxes) == 200
    app.caller("administrator").change("events", ids[7], title="Bulk 007 changed")
    revision = app.sql("SELECT revision FROM sites")[0]["revision"]
    response = change(desk, "publish", boxes, confirmed="true")
    page = Page.parse(response.text)
    assert "Changed 199" in page.text
    assert "Not changed 1" in page.text
    assert "Someone else has changed this event." in page.text
    assert f'<a href="{TABLE}/{ids[7]}">Bulk 007 changed</a>' in page.html
    assert read_statuses(app, ids) == [*["publish"] * 7, "draft", *["publish"] * 192]
    transactions = app.sql(
        "SELECT count(DISTINCT xmin::text) AS n, count(*) AS changes FROM changes WHERE revision > $1", revision
    )
    assert dict(transactions[0]) == {"n": 1, "changes": 199}
    # Of the events that were published, one is changed before the undo: it stays as it is.
    app.caller("administrator").change("events", ids[20], title="Bulk 020 changed")
    form = page.form()
    undone = desk.post(f"{BULK}/undo", {name: form[name] for name in ("after_revision", "until_revision")})
    assert "Bulk 020 changed" in undone.text
    statuses = read_statuses(app, ids)
    assert statuses.count("draft") == 199
    assert statuses[20] == "publish"


def test_many_events_are_changed_in_portions_and_undone_together(
    app: RunningApp, desk: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_edit, "MAX_PORTION", 3)
    ids = make_drafts(app, "Portion", 7)
    revision = app.sql("SELECT revision FROM sites")[0]["revision"]
    response = change(desk, "publish", select(desk, "Portion"))
    assert read_statuses(app, ids) == ["publish"] * 7
    portions = app.sql(
        "SELECT count(*) AS n FROM changes WHERE revision > $1 GROUP BY xmin::text ORDER BY 1", revision
    )
    assert [row["n"] for row in portions] == [1, 3, 3]
    assert "7 events were changed." in desk.page(response.headers["location"]).text
    assert "Change undone." in undo(desk, response.headers["location"]).text
    assert read_statuses(app, ids) == ["draft"] * 7


def test_portion_that_takes_too_long_is_reported(
    start_single_site: StartApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_edit, "MAX_PORTION", 3)
    app = start_single_site({"KALENDS_TRANSACTION_TIMEOUT": "4"})
    set_passwords(app)
    desk = ConsoleClient.signed_in(app, "editor")
    ids = make_drafts(app, "Slow", 7)
    boxes = select(desk, "Slow")
    app.sql(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'"
    )
    app.sql(
        f"CREATE TRIGGER wait BEFORE UPDATE ON events FOR EACH ROW WHEN (OLD.id = {ids[4]}) EXECUTE FUNCTION wait()"
    )
    page = Page.parse(change(desk, "publish", boxes).text)
    assert "Changed 4 Not changed 3" in page.text
    assert "was rolled back" in page.text
    assert read_statuses(app, ids) == ["publish"] * 3 + ["draft"] * 3 + ["publish"]


def test_repeated_form_changes_nothing_twice(app: RunningApp, desk: ConsoleClient) -> None:
    make_drafts(app, "Twice", 2)
    boxes = select(desk, "Twice")
    assert change(desk, "publish", boxes).status_code == 303
    assert "Not changed 2" in Page.parse(change(desk, "publish", boxes).text).text


@pytest.mark.quick("pending-status-pending", "cancel-event_status-cancelled")
@pytest.mark.parametrize(
    ("action", "column", "value"),
    [
        ("pending", "status", "pending"),
        ("private", "status", "private"),
        ("feature", "featured", True),
        ("cancel", "event_status", "cancelled"),
    ],
)
def test_action_changes_a_field_and_is_undone(
    app: RunningApp, desk: ConsoleClient, action: str, column: str, value: object
) -> None:
    name = f"Action{action}"
    ids = make_drafts(app, name, 2)
    before = app.sql(f"SELECT {column} AS value FROM events WHERE id = $1", ids[0])[0]["value"]
    location = change(desk, action, select(desk, name)).headers["location"]
    assert {row["value"] for row in app.sql(f"SELECT {column} AS value FROM events WHERE id = ANY($1)", ids)} == {
        value
    }
    undo(desk, location)
    assert {row["value"] for row in app.sql(f"SELECT {column} AS value FROM events WHERE id = ANY($1)", ids)} == {
        before
    }


def test_category_is_added_and_removed(app: RunningApp, desk: ConsoleClient) -> None:
    editor = app.caller("editor")
    first, second = (editor.create("categories", name=name)["id"] for name in ("Cinema", "Theatre"))
    event = make_event(editor, "Categorized", status="draft", categories=[first])["id"]
    change(desk, "add_category", select(desk, "Categorized"), category=str(second))
    assert _read_categories(app, event) == ["Cinema", "Theatre"]
    change(desk, "remove_category", select(desk, "Categorized"), category=str(first))
    assert _read_categories(app, event) == ["Theatre"]
    refused = change(desk, "add_category", select(desk, "Categorized"), category="99999")
    assert "Not possible" in refused.text
    assert change(desk, "add_category", select(desk, "Categorized")).status_code == 400


def test_tag_is_added_and_removed(app: RunningApp, desk: ConsoleClient) -> None:
    editor = app.caller("editor")
    before = editor.create("tags", name="Bring a mug")["name"]
    ids = [make_event(editor, f"Tagged {n}", status="draft", tags=[before])["id"] for n in range(2)]

    def read_tags() -> list[list[str]]:
        return [[tag["name"] for tag in editor.read("events", event)["tags"]] for event in ids]

    location = change(desk, "add_tag", select(desk, "Tagged"), tag="Brand new").headers["location"]
    assert read_tags() == [["Brand new", before]] * 2 or read_tags() == [[before, "Brand new"]] * 2
    undo(desk, location)
    assert read_tags() == [[before]] * 2
    location = change(desk, "remove_tag", select(desk, "Tagged"), tag="bring A mug").headers["location"]
    assert read_tags() == [[], []]
    undo(desk, location)
    assert read_tags() == [[before]] * 2
    assert "“Nowhere” was not found." in change(desk, "remove_tag", select(desk, "Tagged"), tag="Nowhere").text
    assert "Enter a tag." in change(desk, "add_tag", select(desk, "Tagged")).text


def test_only_editors_create_tags_in_bulk(app: RunningApp) -> None:
    author = ConsoleClient.signed_in(app, "author")
    make_drafts(app, "Untagged", 1, "author")
    assert (
        "“Unheard of” was not found." in change(author, "add_tag", select(author, "Untagged"), tag="Unheard of").text
    )


def test_organizer_is_set_and_undone(app: RunningApp, desk: ConsoleClient) -> None:
    editor = app.caller("editor")
    first, second = (editor.create("organizers", organizer=name)["id"] for name in ("Rowing Club", "Sailing Club"))
    event = make_event(editor, "Regatta", status="draft", organizer=[first])["id"]
    location = change(desk, "set_organizer", select(desk, "Regatta"), organizer="Sailing Club").headers["location"]
    assert [entry["id"] for entry in editor.read("events", event)["organizer"]] == [second]
    undo(desk, location)
    assert [entry["id"] for entry in editor.read("events", event)["organizer"]] == [first]
    assert (
        "Several organizers match." in change(desk, "set_organizer", select(desk, "Regatta"), organizer="Club").text
    )


def test_dates_are_moved_across_a_clock_change_and_undone(app: RunningApp, desk: ConsoleClient) -> None:
    """Times of day and lengths stay, in the zone of each event; a date of a series moves alone."""
    editor = app.caller("editor")
    span = {"start_date": "2031-03-28 19:00:00", "end_date": "2031-03-28 21:00:00"}
    berlin = editor.create("events", title="Shifted a", status="draft", timezone="Europe/Berlin", **span)
    all_day = editor.create("events", title="Shifted b", status="draft", start_date="2031-03-28",
                            end_date="2031-03-30", all_day=True)  # fmt: skip
    series = SeriesClient(editor).create(title="Shifted c", status="draft", rule="FREQ=WEEKLY;COUNT=2", **span)
    before = read_spans(app, "Shifted")
    boxes = select_all(desk, "Shifted")
    assert len(boxes) == 4
    location = change(desk, "move_dates", boxes, days="7").headers["location"]
    moved = read_spans(app, "Shifted")
    assert moved[berlin["id"]] == ("2031-04-04 19:00:00", "2031-04-04 21:00:00", "2031-04-04 17:00:00", False)
    assert moved[all_day["id"]][:2] == ("2031-04-04 00:00:00", "2031-04-06 23:59:59")
    assert moved[all_day["id"]][3] is True
    assert [event["start_date"] for event in SeriesClient(editor).events(series["id"])] == [
        "2031-04-04 19:00:00",
        "2031-04-11 19:00:00",
    ]
    assert "Change undone." in undo(desk, location).text
    assert read_spans(app, "Shifted") == before
    location = change(desk, "move_dates", select_all(desk, "Shifted"), days="-1").headers["location"]
    assert read_spans(app, "Shifted")[berlin["id"]][0] == "2031-03-27 19:00:00"
    undo(desk, location)
    for days in ("", "0", "367", "week", "--1", "9" * 30):
        refused = change(desk, "move_dates", select_all(desk, "Shifted"), days=days)
        assert (refused.status_code, "Enter the number of days" in refused.text) == (400, True), days
    assert read_spans(app, "Shifted") == before


def select_all(desk: ConsoleClient, name: str) -> list[str]:
    """Return all events that the table offers, also if they have the same title."""
    return CHECKBOX.findall(desk.page(f"{TABLE}?search={name}&period=all&per_page=500").html)


def read_spans(app: RunningApp, name: str) -> dict[int, tuple[str, str, str, bool]]:
    rows = app.sql(
        "SELECT id, start_local, end_local, start_utc AT TIME ZONE 'UTC' AS utc, all_day FROM events "
        "WHERE title LIKE $1 AND status <> 'trash'",
        f"{name}%",
    )
    return {
        row["id"]: (str(row["start_local"]), str(row["end_local"]), str(row["utc"]), row["all_day"]) for row in rows
    }


@pytest.mark.parametrize("day", ["0001-01-02", "9998-12-31"])
def test_dates_stay_within_the_calendar(app: RunningApp, desk: ConsoleClient, day: str) -> None:
    name = f"Edge{day[:4]}"
    times = {"start_date": f"{day} 10:00:00", "end_date": f"{day} 11:00:00"}
    app.caller("editor").create("events", title=name, status="draft", **times)
    refused = change(desk, "move_dates", select_all(desk, name), days="-366" if day < "1" else "366")
    assert refused.status_code == 400


def _read_categories(app: RunningApp, event: int) -> list[str]:
    return [row["name"] for row in app.caller("editor").read("events", event)["categories"]]


def test_venue_is_set_by_name(app: RunningApp, desk: ConsoleClient) -> None:
    editor = app.caller("editor")
    venue = editor.create("venues", venue="Castle")["id"]
    editor.create("venues", venue="Castle Garden")
    event = make_event(editor, "Placed", status="draft")["id"]
    assert change(desk, "set_venue", select(desk, "Placed"), venue="castle").status_code == 303
    assert editor.read("events", event)["venue"]["id"] == venue
    ambiguous = change(desk, "set_venue", select(desk, "Placed"), venue="cast")
    assert (ambiguous.status_code, "Several venues match." in ambiguous.text) == (400, True)
    unknown = change(desk, "set_venue", select(desk, "Placed"), venue="Nowhere")
    assert (unknown.status_code, "“Nowhere” was not found." in unknown.text) == (400, True)


def test_trash_is_confirmed_and_restored(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Waste", 2)
    boxes = select(desk, "Waste")
    page = Page.parse(desk.post(BULK, {"row": boxes[0]}).text)
    assert "Move to trash One event Waste 000" in page.text
    desk.post(BULK, page.form())
    assert read_statuses(app, ids) == ["trash", "draft"]
    location = change(desk, "trash", select(desk, "Waste"), confirmed="true").headers["location"]
    undo(desk, location)
    assert read_statuses(app, ids) == ["trash", "draft"]
    assert change(desk, "restore", select(desk, "Waste", "trash")).status_code == 303
    assert read_statuses(app, ids) == ["draft", "draft"]


def test_all_events_of_the_page_are_selected_without_script(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Whole", 4)
    form = desk.page(f"{TABLE}?search=Whole&status=draft").form()
    response = desk.post(BULK, {"all": "true", "all_events": form["all_events"], "action": "publish"})
    assert response.status_code == 303
    assert read_statuses(app, ids) == ["publish"] * 4


def test_contributor_cannot_publish_by_a_forged_form(app: RunningApp, desk: ConsoleClient) -> None:
    """The forged form has the same effect as the same request to the API."""
    caller = app.caller("contributor")
    foreign = make_drafts(app, "Foreign", 1)
    own, by_api = make_drafts(app, "Own", 2, "contributor")
    refused = caller.patch(f"/events/{foreign[0]}", {"status": "publish"})
    assert refused.status_code == 403
    assert caller.change("events", by_api, status="publish")["status"] == "pending"
    helper = ConsoleClient.signed_in(app, "contributor")
    boxes = [*select(desk, "Foreign"), *[box for box in select(desk, "Own") if box.startswith(f"{own}:")]]
    page = Page.parse(change(helper, "publish", boxes).text)
    assert "Not permitted" in page.text
    assert f"Event {foreign[0]}" in page.text
    assert "Foreign 000" not in page.text
    assert read_statuses(app, [*foreign, own]) == ["draft", "pending"]


def test_undo_restores_only_own_changes(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Mine", 1)
    location = change(desk, "publish", select(desk, "Mine")).headers["location"]
    first, last = re.findall(r"\d+", location.partition("changed=")[2])
    other = ConsoleClient.signed_in(app, "administrator")
    other.post(f"{BULK}/undo", {"after_revision": first, "until_revision": last})
    assert read_statuses(app, ids) == ["publish"]
    assert "Undo" not in other.page(location).text


@pytest.mark.quick("fields0", "fields3")
@pytest.mark.parametrize(
    "fields",
    [
        {"event": "x", "action": "publish"},
        {"event": "1", "action": "publish"},
        {"event": "1:1", "action": "nonsense"},
        {"event": [f"{n}:1" for n in range(1, 502)], "action": "publish"},
    ],
)
def test_malformed_form_is_refused(desk: ConsoleClient, fields: dict[str, object]) -> None:
    assert desk.post(BULK, fields).status_code == 400


def test_nothing_selected(desk: ConsoleClient) -> None:
    response = desk.post(BULK, {"action": "publish", "query": "status=draft"})
    assert response.headers["location"] == f"{TABLE}?status=draft&notice=nothing-selected"


def test_form_of_another_site_is_refused(app: RunningApp, desk: ConsoleClient) -> None:
    ids = make_drafts(app, "Cross", 1)
    boxes = select(desk, "Cross")
    headers = {"sec-fetch-site": "cross-site"}
    assert desk.post(BULK, {"event": boxes, "action": "publish"}, headers=headers).status_code == 403
    assert read_statuses(app, ids) == ["draft"]
