"""What the server derives by itself changes the body of a record, but nobody has edited it (decision 0033)."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from kalends.series import jobs as series_jobs
from kalends.store.database import Database
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.console.console_client import ConsoleClient, Page
from tests.console.event_table_pages import BULK, Table, change, make_event
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL
from tests.media.image_fixtures import make_image
from tests.media.media_client import create_image, generate_sizes
from tests.series.series_client import SeriesClient

WEEKS = {
    "start_date": "2031-01-07 19:30:00",
    "end_date": "2031-01-07 21:00:00",
    "rule": "FREQ=WEEKLY;BYDAY=TU;COUNT=6",
}
KINDS = ("events", "venues", "organizers", "series")


@pytest.fixture
def image(app: RunningApp, request: pytest.FixtureRequest) -> dict[str, Any]:
    """An image whose sizes have not been made yet."""
    return create_image(app.caller("editor"), make_image(width=400, seed=hash(request.node.name) % 10_000))


def run_job(app: RunningApp, image: dict[str, Any]) -> None:
    """Make the sizes of an image, long after everything that has been written so far."""
    for table in ("events", "venues", "organizers", "series", "media"):
        app.sql(f"UPDATE {table} SET modified_utc = '2025-01-01'")
    assert generate_sizes(app, image)


def create_all(app: RunningApp, image: dict[str, Any]) -> dict[str, int]:
    """Create a record of each kind with an image, and return their IDs."""
    caller = app.caller("editor")
    return {
        "events": make_event(caller, "Pictured", image=image["id"])["id"],
        "venues": caller.create("venues", venue="Pictured hall", image=image["id"])["id"],
        "organizers": caller.create("organizers", organizer="Pictured choir", image=image["id"])["id"],
        "series": SeriesClient(caller).create(title="Pictured course", image=image["id"], **WEEKS)["id"],
    }


def read_record(app: RunningApp, kind: str, record_id: int) -> tuple[dict[str, Any], str]:
    """Return the body of a record and its ETag."""
    response = app.caller("editor").get(f"{EXTENSION_URL}/{kind}/{record_id}" if kind in ("series", "media")
                                        else f"/{kind}/{record_id}")  # fmt: skip
    return expect_json(response), response.headers["etag"]


def read_history(app: RunningApp, kind: str, record_id: int) -> Any:
    return expect_json(app.caller("editor").get(f"{EXTENSION_URL}/{kind}/{record_id}/history"))


def read_revision(app: RunningApp, record_id: int) -> int:
    revision: int = app.sql("SELECT revision FROM events WHERE id = $1", record_id)[0]["revision"]
    return revision


def without_sizes(body: dict[str, Any]) -> dict[str, Any]:
    image = {name: value for name, value in body["image"].items() if name != "sizes"}
    return {**body, "image": image, "modified": None, "modified_utc": None}


def test_new_sizes_change_the_body_and_nothing_else(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    ids = create_all(app, image)
    before = {kind: read_record(app, kind, ids[kind]) for kind in KINDS}
    histories = {kind: read_history(app, kind, ids[kind]) for kind in KINDS}
    pages = {kind: editor.page(f"/console/{kind}/{ids[kind]}/history").text for kind in KINDS[:3]}
    since = app.sql("SELECT revision FROM sites")[0]["revision"]
    run_job(app, image)
    for kind in KINDS:
        body, etag = read_record(app, kind, ids[kind])
        assert body["modified_utc"] == "2025-01-01 00:00:00", kind
        assert body["image"]["sizes"], kind
        assert without_sizes(body) == without_sizes(before[kind][0]), kind
        assert etag != before[kind][1], kind
        assert read_history(app, kind, ids[kind]) == histories[kind], kind
        query = {"since": since, "kind": kind}
        changes = expect_json(app.caller("editor").get(f"{EXTENSION_URL}/changes", query))["changes"]
        listed = {entry["id"]: entry["record"] for entry in changes}
        assert listed[ids[kind]]["image"]["sizes"], kind
    for kind, text in pages.items():
        assert editor.page(f"/console/{kind}/{ids[kind]}/history").text == text, kind
    item, _ = read_record(app, "media", image["id"])
    assert (item["modified_utc"], bool(item["sizes"])) == ("2025-01-01 00:00:00", True)


def test_subscriber_and_table_see_no_change(app: RunningApp, editor: ConsoleClient, image: dict[str, Any]) -> None:
    make_event(app.caller("editor"), "Subscribed", image=image["id"])
    series = SeriesClient(app.caller("editor")).create(title="Subscribed course", image=image["id"], **WEEKS)
    series_path = f"/series/{series['slug']}.ics"

    def read(path: str) -> str:
        status, _, body = app.raw("GET", path)
        assert status == 200, path
        return body.decode()

    def read_sequences() -> list[list[str]]:
        return [re.findall(r"(?m)^SEQUENCE:.*$", read(path)) for path in ("/events.ics", series_path)]

    sequences = read_sequences()
    run_job(app, image)
    assert read_sequences() == sequences
    for path in ("/events.ics", series_path):
        assert set(re.findall(r"(?m)^LAST-MODIFIED:(\d{4})", read(path))) == {"2025"}, path
    assert re.findall(r"<updated>(\d{4})", read("/events.atom"))[0] == "2025"
    table = Table.read(editor, "search=Subscribed&per_page=100")
    assert table.html.count("Jan 1, 2025") == len(table.titles) == 7


def test_revision_before_new_sizes_is_accepted(app: RunningApp, image: dict[str, Any]) -> None:
    caller = app.caller("editor")
    ids = create_all(app, image)
    etags = {kind: read_record(app, kind, ids[kind])[1] for kind in (*KINDS,)}
    media_etag = read_record(app, "media", image["id"])[1]
    run_job(app, image)
    names = {"events": "title", "venues": "venue", "organizers": "organizer"}
    for kind, name in names.items():
        path, headers = f"/{kind}/{ids[kind]}", {"If-Match": etags[kind]}
        expect_json(caller.patch(path, {name: "Renamed"}, headers=headers))
        assert_error(caller.patch(path, {name: "Again"}, headers=headers), 412, "rest_precondition_failed")
    for path, fields, etag in (
        (f"{EXTENSION_URL}/series/{ids['series']}", {"title": "Renamed"}, etags["series"]),
        (f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "A choir"}, media_etag),
    ):
        expect_json(caller.patch(path, fields, headers={"If-Match": etag}))
        response = caller.patch(path, dict.fromkeys(fields, "x"), headers={"If-Match": etag})
        assert_error(response, 412, "rest_precondition_failed")


def test_batch_accepts_the_revision_before_new_sizes(app: RunningApp, image: dict[str, Any]) -> None:
    caller = app.caller("editor")
    event = make_event(caller, "In a batch", image=image["id"])["id"]
    revision = read_revision(app, event)
    run_job(app, image)
    operation = {"method": "PATCH", "path": f"/events/{event}", "if_match": revision, "body": {"title": "Batched"}}
    for status in (200, 412):
        body = caller.post(f"{EXTENSION_URL}/batch", {"operations": [operation], "atomic": False}).json()
        assert [result["status"] for result in body["results"]] == [status]


def test_unknown_revision_is_refused(app: RunningApp, image: dict[str, Any]) -> None:
    """Neither a revision before an edit, nor a later one than that of the record, is the record's."""
    caller = app.caller("editor")
    event = make_event(caller, "First", image=image["id"])["id"]
    created = read_revision(app, event)
    caller.change("events", event, title="Second")
    edited = read_revision(app, event)
    run_job(app, image)
    current = read_revision(app, event)
    for revision, status in ((created, 412), (edited, 200), (current, 412), (current + 100, 412)):
        response = caller.patch(f"/events/{event}", {"title": str(revision)}, headers={"If-Match": f'"{revision}-0"'})
        assert response.status_code == status, revision


def test_form_is_saved_with_the_revision_before_new_sizes(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    event = make_event(app.caller("editor"), "Typed", image=image["id"])["id"]
    path = f"/console/events/{event}"
    form = editor.page(path).form(action="save", title="Typed on")
    history = editor.page(f"{path}/history").text
    run_job(app, image)
    poll = editor.get(f"{path}/revision", headers={"accept": "application/json"}).json()
    assert poll["revision"] <= int(form["base_revision"])
    assert editor.page(f"{path}/history").text == history
    response = editor.post(path, form)
    assert (response.status_code, response.headers.get("location")) == (303, f"{path}?notice=saved")
    poll = editor.get(f"{path}/revision", headers={"accept": "application/json"}).json()
    assert poll["revision"] > int(form["base_revision"])
    assert app.caller().read("events", event)["title"] == "Typed on"


def test_scope_is_chosen_while_sizes_are_made(app: RunningApp, editor: ConsoleClient, image: dict[str, Any]) -> None:
    api = SeriesClient(app.caller("editor"))
    series = api.create(title="Scoped", image=image["id"], **WEEKS)
    event = api.events(series["id"])[2]["id"]
    path = f"/console/events/{event}"
    page = Page.parse(editor.post(path, editor.page(path).form(action="save", title="Scoped on")).text)
    run_job(app, image)
    response = editor.post(path, page.form(scope="following"))
    assert response.status_code == 303, Page.parse(response.text).text
    assert [entry["title"] for entry in api.events(series["id"])] == ["Scoped"] * 2 + ["Scoped on"] * 4


def test_bulk_change_and_its_undo_ignore_new_sizes(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    caller = app.caller("editor")
    other = create_image(caller, make_image(width=400, seed=77_001))
    event = make_event(caller, "Grouped", image=image["id"], status="draft")["id"]
    boxes = list(Table.read(editor, "search=Grouped").boxes.values())
    run_job(app, image)
    before = without_sizes(caller.read("events", event))
    location = change(editor, "publish", boxes).headers["location"]
    assert caller.read("events", event)["status"] == "publish"
    caller.patch(f"{EXTENSION_URL}/media/{image['id']}", {"focus_x": 0.1})
    run_job(app, image)
    run_job(app, other)
    form = editor.page(location).form()
    undone = editor.post(f"{BULK}/undo", {name: form[name] for name in ("after_revision", "until_revision")})
    assert undone.status_code == 303, Page.parse(undone.text).text
    after = without_sizes(caller.read("events", event))
    assert {**after, "image": None} == {**before, "image": None}


def test_earlier_version_of_an_event_is_restored_after_the_job(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    caller = app.caller("editor")
    event = make_event(caller, "Original", image=image["id"])["id"]
    before = caller.read("events", event)
    caller.change("events", event, title="Wrong", cost="5")
    run_job(app, image)
    path = f"/console/events/{event}/history"
    page = editor.page(path)
    assert page.text.count("Current version") == 1
    assert editor.post(path, {"revision": page.fields["revision"][0]}).status_code == 303
    assert without_sizes(caller.read("events", event)) == without_sizes(before)


def test_series_edit_is_undone_after_the_job_and_new_dates(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    api = SeriesClient(app.caller("editor"))
    series = api.create(title="Judo", image=image["id"], **{**WEEKS, "rule": "FREQ=MONTHLY;BYMONTHDAY=7"})
    before = api.events(series["id"])
    api.edit(before[2]["id"], "following", title="Judo for all")
    run_job(app, image)
    extend(app, series["id"])
    path = f"/console/series/{series['id']}"
    edited = api.events(series["id"])
    assert len(edited) > len(before)
    for expected in (["Judo"] * len(edited), ["Judo"] * 2 + ["Judo for all"] * (len(edited) - 2)):
        page = editor.page(path)
        assert "Automatically" not in page.text
        form = {"base_revision": page.fields["base_revision"][0], "edit": page.fields["edit"][0]}
        assert len(page.fields["edit"]) == 1
        generate_sizes(app, image)
        assert editor.post(f"{path}/undo", form).headers["location"] == f"{path}?notice=undone"
        events = api.events(series["id"])
        assert [event["title"] for event in events] == expected
        assert [event["id"] for event in events] == [event["id"] for event in edited]


def extend(app: RunningApp, series_id: int) -> None:
    """Create the next dates of a series, as the nightly job does five years later."""

    async def run(database: Database) -> None:
        async with database.transaction(app.site_id, datetime(2031, 6, 1, tzinfo=UTC), writing=True) as tx:
            assert await series_jobs.extend_batch(tx, [series_id]) > 0

    app.run_with_database(run)


def test_description_of_an_image_is_no_edit_of_the_records_with_it(
    app: RunningApp, editor: ConsoleClient, image: dict[str, Any]
) -> None:
    ids = create_all(app, image)
    before = {kind: (read_record(app, kind, ids[kind])[1], read_history(app, kind, ids[kind])) for kind in KINDS}
    app.sql("UPDATE events SET modified_utc = '2025-01-01'")
    expect_json(app.caller("editor").patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "A choir"}))
    for kind in KINDS:
        body, etag = read_record(app, kind, ids[kind])
        assert body["image"]["alt_text"] == "A choir"
        assert (etag != before[kind][0], read_history(app, kind, ids[kind])) == (True, before[kind][1])
    assert read_record(app, "events", ids["events"])[0]["modified_utc"] == "2025-01-01 00:00:00"
    assert "edit" not in editor.page(f"/console/series/{ids['series']}").fields


def test_automatic_entry_of_an_earlier_version_is_not_offered(app: RunningApp, editor: ConsoleClient) -> None:
    """A worker of an earlier version logs new sizes as an update without user and fields."""
    api = SeriesClient(app.caller("editor"))
    series = api.create(title="Chess", **WEEKS)
    before = api.events(series["id"])
    api.edit(before[0]["id"], "all", title="Chess for all")
    history = api.history(series["id"])
    app.sql("UPDATE sites SET revision = revision + 1")
    app.sql("UPDATE series SET revision = (SELECT revision FROM sites) WHERE id = $1", series["id"])
    app.sql(
        """INSERT INTO changes (site_id, revision, kind, record_id, action, was_public)
            SELECT site_id, revision, 'series', id, 'update', true FROM series WHERE id = $1""",
        series["id"],
    )
    assert api.history(series["id"]) == history
    path = f"/console/series/{series['id']}"
    page = editor.page(path)
    assert "Automatically" not in page.text
    form = {"base_revision": page.fields["base_revision"][0], "edit": str(history[0])}
    assert page.fields["edit"] == [form["edit"]]
    assert editor.post(f"{path}/undo", form).headers["location"] == f"{path}?notice=undone"
    assert [event["title"] for event in api.events(series["id"])] == ["Chess"] * len(before)
