"""Writing one imported record."""

from dataclasses import replace
from typing import Any

from kalends.calendar.kinds import BY_NAME
from kalends.imports.operations.row_writing import Applied, write_imported
from kalends.imports.rules.import_records import ImportedRecord
from kalends.store.database import Database
from tests.api.running_app import RunningApp
from tests.imports.site import add_source, event, find_source, writing


def write(app: RunningApp, source_id: int, *records: ImportedRecord, **options: Any) -> list[Applied]:
    """Write records, each of them again if it has been written before."""
    known: dict[tuple[str, str, str], int] = options.pop("known", {})

    async def write_all(database: Database) -> list[Applied]:
        async with writing(app, database) as (tx, context):
            source = await find_source(tx, source_id)
            results: list[Applied] = []
            for record in records:
                kind = BY_NAME[record.kind]
                row = await kind.fetch(tx, known[record.key]) if record.key in known else None
                results.append(await write_imported(context, source, record, row, **options))
                known[record.key] = results[-1].record_id or 0
            return results

    return app.run_with_database(write_all)


def revision_of(app: RunningApp) -> int:
    return int(app.sql("SELECT revision FROM sites")[0]["revision"])


def test_a_record_is_created_with_its_id_and_exact_columns(app: RunningApp):
    source_id = add_source(app, kind="tec")
    columns = {
        "slug": "old-concert",
        "uid": "7-concert@old.example",
        "feed_guid": "https://old.example/?p=9000",
        "published_at": "2019-04-01T10:00:00+00:00",
        "modified_utc": "2020-01-02T03:04:05+00:00",
    }
    (written,) = write(app, source_id, replace(event("9000"), columns=columns, wanted_id=9000))
    assert written.record_id == 9000
    row = dict(app.sql("SELECT * FROM events WHERE id = 9000")[0])
    for name in ("slug", "uid", "feed_guid"):
        assert row[name] == columns[name]
    for name in ("published_at", "modified_utc"):
        assert row[name].isoformat() == columns[name]
    (later,) = write(app, source_id, event("9001"))
    assert later.record_id == 9001
    (taken,) = write(app, source_id, replace(event("9002"), wanted_id=9000))
    assert taken.record_id == 9002


def test_the_same_record_again_writes_nothing(app: RunningApp):
    source_id = add_source(app)
    known: dict[Any, int] = {}
    columns = {"slug": "twice", "uid": "twice@x", "feed_guid": "g", "modified_utc": "2020-01-02T03:04:05+00:00"}
    record = replace(event("twice@x", venue={"venue": "Twice Hall"}, tags=["Twice"]), columns=columns)
    write(app, source_id, record, known=known)
    before = revision_of(app)
    write(app, source_id, record, known=known)
    assert revision_of(app) == before
    (changed,) = write(app, source_id, replace(record, values={**record.values, "title": "Other"}), known=known)
    row = app.sql("SELECT title, revision, modified_utc FROM events WHERE id = $1", changed.record_id)[0]
    assert revision_of(app) == row["revision"] == before + 1
    assert (row["title"], row["modified_utc"].year) == ("Other", 2020)


def test_only_the_given_fields_are_written(app: RunningApp):
    source_id = add_source(app)
    known: dict[Any, int] = {}
    write(app, source_id, event("f@x", "First"), known=known)
    changed = event("f@x", "Second", website="https://a.example/")
    (written,) = write(app, source_id, changed, known=known, fields={"website"})
    row = app.sql("SELECT title, website FROM events WHERE id = $1", written.record_id)[0]
    assert (row["title"], row["website"]) == ("First", "https://a.example/")
    item = app.sql(
        "SELECT source_values->>'title' AS sent, stored_values->>'title' AS stored FROM import_items"
        " WHERE identity = 'f@x'"
    )[0]
    assert (item["sent"], item["stored"]) == ("Second", "First")


def test_links_are_resolved_by_identity(app: RunningApp):
    source_id = add_source(app)
    venue = ImportedRecord("venues", "v1", {"venue": "Identity Hall", "city": "Ulm"})
    category = ImportedRecord("categories", "c1", {"name": "Identity"})
    child = ImportedRecord("categories", "c2", {"name": "Child"}, links={"parent": ["c1"]})
    linked = replace(event("l@x"), links={"venue": ["v1"], "categories": ["c2", "missing"]})
    written = write(app, source_id, venue, category, child, linked)
    assert [str(message) for message in written[-1].warnings] == [
        "`categories`: the source has no usable record missing, so it is left out."
    ]
    body = app.caller("editor").get(f"/events/{written[-1].record_id}").json()
    assert body["venue"]["id"] == written[0].record_id
    assert [(entry["id"], entry["parent"]) for entry in body["categories"]] == [
        (written[2].record_id, written[1].record_id)
    ]


def test_a_series_and_a_date_of_its_own(app: RunningApp):
    source_id = add_source(app)
    known: dict[Any, int] = {}
    rule = "FREQ=WEEKLY;COUNT=4"
    removed = ["2027-05-08 19:00:00", "2031-01-01 19:00:00"]
    values = {**event(title="Course").values, "rule": rule, "remove_dates": removed}
    series = ImportedRecord("series", "s@x", values)
    moved = replace(event("s@x", "Course elsewhere", "2027-05-16"), recurrence_id="2027-05-15T19:00:00")
    written = write(app, source_id, series, moved, known=known)

    def list_dates() -> list[Any]:
        rows = app.sql(
            "SELECT title, start_local, status FROM events WHERE series_id = $1 ORDER BY slot", written[0].record_id
        )
        return [(row["title"], str(row["start_local"])[:13]) for row in rows if row["status"] != "trash"]

    assert list_dates() == [
        ("Course", "2027-05-01 19"),
        ("Course elsewhere", "2027-05-16 19"),
        ("Course", "2027-05-22 19"),
    ]
    before = revision_of(app)
    write(app, source_id, series, moved, known=known)
    assert revision_of(app) == before
    ids = app.sql("SELECT id FROM events WHERE series_id = $1 ORDER BY slot", written[0].record_id)
    later: dict[str, Any] = {
        "start_date": "2027-05-01 20:00:00",
        "end_date": "2027-05-01 22:00:00",
        "title": "New course",
    }
    later["remove_dates"] = ["2027-05-08 20:00:00"]
    write(app, source_id, replace(series, values={**values, **later}), known=known)
    assert list_dates()[::2] == [("New course", "2027-05-01 20"), ("New course", "2027-05-22 20")]
    assert app.sql("SELECT id FROM events WHERE series_id = $1 ORDER BY slot", written[0].record_id) == ids
