"""Plans and their application: new, changed, moved, missing and rejected records."""

from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest

from kalends.calendar.operations import duplicates
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.imports.operations import import_runs
from kalends.imports.rules.import_records import ImportedRecord, Rejection
from kalends.store.database import Database
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.imports.site import Subscription, event


@dataclass(frozen=True)
class Candidate:
    event_id: int
    score: float


def revision_of(app: RunningApp) -> int:
    return int(app.sql("SELECT revision FROM sites")[0]["revision"])


def decide(feed: Subscription, run_id: int, number: int, *, is_same: bool) -> None:
    async def work(database: Database) -> None:
        async with database.transaction(feed.site_id, feed.now, writing=True) as tx:
            await import_runs.decide_row(tx, run_id, number, is_same=is_same)

    feed.app.run_with_database(work)


def test_a_plan_writes_no_records(app: RunningApp):
    feed = Subscription.add(app)
    before = revision_of(app)
    run_id = feed.plan(event("n1@x", "New"), event("n2@x", ""), rejections=[
        Rejection(Message("TZID {zone} is unknown.", zone="X"), 12, "n3@x")])  # fmt: skip
    assert revision_of(app) == before
    assert feed.state(run_id) == "planned"
    assert [(row["action"], row["state"], row["reasons"], row["line"]) for row in feed.rows(run_id)] == [
        ("new", "pending", [], None),
        ("rejected", "skipped", ["Invalid parameter(s): title. `title`: must be a non-empty string."], None),
        ("rejected", "skipped", ["TZID X is unknown."], 12),
    ]
    counts = feed.apply(run_id)
    assert (counts["new"], counts["rejected"], counts["rows_applied"]) == (1, 2, 1)
    assert feed.event("n1@x")["title"] == "New"
    assert feed.state(run_id) == "applied"


def test_progress_counts_the_rows_that_somebody_chose(app: RunningApp):
    feed = Subscription.add(app)
    run_id = feed.plan(*[event(f"p{n}@x", f"Step {n}") for n in range(4)])

    def read_progress() -> dict[str, int]:
        (row,) = app.sql("SELECT progress FROM import_runs WHERE site_id = $1 AND id = $2", feed.site_id, run_id)
        progress: dict[str, int] = orjson.loads(row["progress"])
        return progress

    feed.apply(run_id, numbers=[1, 2])
    assert read_progress() == {"done": 2, "total": 2}
    feed.apply(run_id, numbers=[2, 3])
    assert read_progress() == {"done": 3, "total": 3}
    feed.apply(run_id)
    assert read_progress() == {"done": 4, "total": 4}


def test_the_same_input_writes_nothing(app: RunningApp):
    feed = Subscription.add(app)
    records = [
        ImportedRecord("venues", "v", {"venue": "Same Hall"}),
        replace(event("s1@x", description="<p>A<script>x</script></p>", tags=["Same"]), links={"venue": ["v"]}),
        ImportedRecord("series", "s2@x", {**event(title="Weekly").values, "rule": "FREQ=WEEKLY;COUNT=3"}),
        replace(event("s2@x", "Elsewhere", "2027-05-09"), recurrence_id="2027-05-08T19:00:00"),
    ]
    feed.sync(*records)
    before = revision_of(app)
    run_id = feed.plan(*records)
    assert (feed.state(run_id), feed.counts(run_id)["unchanged"], feed.rows(run_id)) == ("unchanged", 4, [])
    assert revision_of(app) == before


def test_people_and_the_source_change_fields(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("c@x", "One", website="https://one.example/", cost="5"))
    editor = app.caller("editor")
    editor.post(f"/events/{feed.record_id('c@x')}", {"title": "By hand"})
    run_id = feed.plan(event("c@x", "Two", website="https://two.example/"))
    (row,) = feed.rows(run_id)
    assert row["action"] == "changed"
    assert row["changes"]["title"] == {"stored": "By hand", "before": "One", "now": "Two", "decision": "local"}
    assert row["changes"]["website"]["decision"] == row["changes"]["cost"]["decision"] == "source"
    feed.apply(run_id)
    body = feed.event("c@x")
    assert (body["title"], body["website"], body["cost"]) == ("By hand", "https://two.example/", "")
    # The difference is known now. A later change of the source does not overwrite the edit either.
    run_id = feed.plan(event("c@x", "Three", website="https://two.example/"))
    assert [(row["action"], row["changes"]["title"]["decision"]) for row in feed.rows(run_id)] == [
        ("unchanged", "local")
    ]
    feed.apply(run_id)
    assert feed.event("c@x")["title"] == "By hand"
    assert feed.state(feed.plan(event("c@x", "Three", website="https://two.example/"))) == "unchanged"


def test_a_record_that_changed_since_the_plan_is_compared_again(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("r@x", "One"))
    run_id = feed.plan(event("r@x", "Two", website="https://two.example/"))
    app.caller("editor").post(f"/events/{feed.record_id('r@x')}", {"title": "By hand"})
    feed.apply(run_id)
    assert (feed.event("r@x")["title"], feed.event("r@x")["website"]) == ("By hand", "https://two.example/")
    (row,) = feed.rows(run_id)
    assert row["changes"]["title"]["decision"] == "local"
    assert row["reasons"] == ["The record had changed since the plan, so it was compared again."]


def test_a_new_identity_keeps_the_record(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("old@x", "Moved", venue={"venue": "Moved Hall"}), event("stays@x", "Moved", "2027-05-02"))
    record_id = feed.record_id("old@x")
    moved = event("new@x", "Moved", venue={"venue": "Moved Hall"}, website="https://new.example/")
    run_id = feed.plan(moved, event("stays@x", "Moved", "2027-05-02"))
    assert [row["action"] for row in feed.rows(run_id)] == ["moved"]
    feed.apply(run_id)
    assert feed.record_id("new@x") == record_id
    assert feed.event("new@x")["website"] == "https://new.example/"
    assert not app.sql("SELECT FROM import_items WHERE identity = 'old@x'")
    assert feed.state(feed.plan(moved, event("stays@x", "Moved", "2027-05-02"))) == "unchanged"


def test_a_record_is_removed_when_it_is_missing_twice_and_comes_back(app: RunningApp):
    feed = Subscription.add(app)
    others = [event(f"g{number}@x", f"Stays {number}") for number in range(9)]
    feed.sync(event("gone@x", "Goes"), *others)
    run_id = feed.plan(*others)
    assert [(row["action"], row["state"]) for row in feed.rows(run_id)] == [("gone", "skipped")]
    feed.sync(*others)
    assert feed.status("gone@x") == "trash"
    feed.sync(*others)
    feed.sync(event("gone@x", "Is back"), *others)
    assert (feed.status("gone@x"), feed.event("gone@x")["title"]) == ("publish", "Is back")
    assert feed.state(feed.plan(event("gone@x", "Is back"), *others)) == "unchanged"


def test_a_record_in_the_trash_stays_there(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("t@x", "One"))
    app.caller("editor").delete(f"/events/{feed.record_id('t@x')}")
    run_id = feed.plan(event("t@x", "Two"))
    assert [row["reasons"] for row in feed.rows(run_id)] == [["The record is in the trash, so it is left as it is."]]
    feed.apply(run_id)
    assert feed.status("t@x") == "trash"
    assert feed.state(feed.plan(event("t@x", "Two"))) == "unchanged"


def test_nothing_is_removed_without_a_complete_input(app: RunningApp):
    feed = Subscription.add(app)
    records = [event(f"i{number}@x", f"Kept {number}") for number in range(10)]
    feed.sync(*records)
    broken = Rejection(Message("A broken event."))
    for _ in range(3):
        assert feed.rows(feed.plan()) == []
        assert [row["action"] for row in feed.rows(feed.plan(*records[1:], rejections=[broken]))] == ["rejected"]
    # A rejected record is not missing.
    rejected = Rejection(Message("A broken date."), identity="i0@x")
    for _ in range(3):
        assert [row["action"] for row in feed.rows(feed.plan(*records[1:], rejections=[rejected]))] == ["rejected"]


def test_many_missing_records_wait_for_a_person(app: RunningApp):
    feed = Subscription.add(app)
    records = [event(f"m{number}@x", f"Many {number}") for number in range(10)]
    feed.sync(*records)
    feed.plan(*records[:5])
    run_id = feed.plan(*records[:5])
    assert [row["state"] for row in feed.rows(run_id)] == ["waiting"] * 5
    assert app.sql("SELECT jsonb_array_length(warnings) AS n FROM import_runs WHERE id = $1", run_id)[0]["n"] == 1
    feed.apply(run_id)
    assert feed.state(run_id) == "planned"
    feed.apply(run_id, numbers=[1, 2])
    assert sorted(feed.status(f"m{number}@x") for number in range(5, 10)) == ["publish"] * 3 + ["trash"] * 2
    assert [row["state"] for row in feed.rows(run_id)] == ["applied"] * 2 + ["waiting"] * 3


def test_a_plan_is_applied_in_part(app: RunningApp):
    feed = Subscription.add(app)
    run_id = feed.plan(*[event(f"p{number}@x", f"Part {number}") for number in range(4)])
    counts = feed.apply(run_id, numbers=[2, 4])
    assert (counts["rows_applied"], counts["rows_pending"], feed.state(run_id)) == (2, 2, "planned")
    titles = [row["title"] for row in app.sql("SELECT title FROM events WHERE title LIKE 'Part %' ORDER BY id")]
    assert titles == ["Part 1", "Part 3"]
    feed.apply(run_id)
    assert feed.state(run_id) == "applied"
    with pytest.raises(ApiError, match="not possible"):
        feed.apply(run_id)


def test_a_failing_row_does_not_stop_the_others(app: RunningApp):
    feed = Subscription.add(app)
    endless = {**event(title="Dense").values, "rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}
    counts = feed.sync(ImportedRecord("series", "bad@x", endless), event("good@x", "Good"))
    assert (counts["rows_failed"], counts["rows_applied"]) == (1, 1)
    assert feed.event("good@x")["title"] == "Good"


def test_two_sources_of_one_event(app: RunningApp):
    first, second = Subscription.add(app, trust_rank=10), Subscription.add(app, trust_rank=20)
    first.sync(event("a@x", "Trusted"))
    event_id = first.record_id("a@x")

    async def find_same(*_: Any) -> list[Candidate]:
        return [Candidate(event_id, 0.9)]

    linked = event("b@x", "Less trusted", website="https://second.example/")
    run_id = second.plan(linked, find_candidates=find_same)
    assert [(row["action"], row["record_id"]) for row in second.rows(run_id)] == [("linked", event_id)]
    second.apply(run_id)
    body = second.event("b@x")
    assert (body["id"], body["title"], body["website"]) == (event_id, "Trusted", "https://second.example/")
    second.sync(event("b@x", "Still less trusted", website="https://second.example/"))
    first.sync(event("a@x", "Trusted again"))
    assert first.event("a@x")["title"] == "Trusted again"
    # It is removed only if both sources have lost it.
    others = [event(f"o{number}@x", f"Other {number}") for number in range(9)]
    for _ in range(3):
        first.sync(*others)
    assert first.status("a@x") == "publish"


def test_the_same_event_in_two_sources_is_found(app: RunningApp):
    first, second = Subscription.add(app), Subscription.add(app)
    hall = ImportedRecord("venues", "v", {"venue": "Hall of duplicates"})

    def linked(identity: str, title: str) -> ImportedRecord:
        return replace(event(identity, title, "2027-09-09"), links={"venue": ["v"]})

    first.sync(hall, linked("one@x", "Summer concert of the choir"))
    run_id = second.plan(
        replace(hall, identity="w"),
        replace(linked("other@y", "Summer Concert of the Choir"), links={"venue": ["w"]}),
        event("third@y", "Meeting of the stamp collectors", "2027-09-09"),
        find_candidates=duplicates.find_candidates,
    )
    assert [row["action"] for row in second.rows(run_id)] == ["new", "linked", "new"]
    second.apply(run_id)
    assert second.record_id("other@y") == first.record_id("one@x")


def test_a_similar_event_waits_for_a_decision(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("first@x", "Stored"))
    other = Subscription.add(app)
    event_id = feed.record_id("first@x")

    async def find_similar(*_: Any) -> list[Candidate]:
        return [Candidate(event_id, 0.7)]

    run_id = other.plan(event("d1@x", "Similar"), event("d2@x", "Similar too"), find_candidates=find_similar)
    assert [(row["action"], row["state"]) for row in other.rows(run_id)] == [("duplicate", "waiting")] * 2
    decide(other, run_id, 1, is_same=True)
    decide(other, run_id, 2, is_same=False)
    other.apply(run_id)
    assert other.record_id("d1@x") == event_id
    assert other.event("d2@x")["title"] == "Similar too"


def test_a_declared_difference_is_not_proposed_again(app: RunningApp):
    first, second = Subscription.add(app), Subscription.add(app)
    first.sync(event("one@x", "Rehearsal of the chamber choir", "2027-09-16"))
    record = event("two@y", "Rehearsal of the choir", "2027-09-16")

    def plan() -> tuple[int, list[str]]:
        run_id = second.plan(record, find_candidates=duplicates.find_candidates)
        return run_id, [row["action"] for row in second.rows(run_id)]

    run_id, actions = plan()
    assert actions == ["duplicate"]
    decide(second, run_id, 1, is_same=False)
    # Another plan replaces the one with the decision.
    run_id, actions = plan()
    assert actions == ["new"]
    run_id, actions = plan()
    second.apply(run_id)
    assert actions == ["new"]
    second.undo(run_id)
    run_id, actions = plan()
    assert actions == ["new"]
    second.apply(run_id)
    ids = [first.record_id("one@x"), second.record_id("two@y")]
    for event_id in ids:
        body = app.caller("editor").patch(f"/events/{event_id}?check_duplicates=1", {}).json()
        assert not set(ids) & {entry["id"] for entry in body["possible_duplicates"]}


def test_a_difference_is_remembered_with_the_new_event(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("m1@x", "Autumn reading with poets", "2027-09-23"))
    other = Subscription.add(app)
    run_id = other.plan(
        event("m2@y", "Autumn reading with local poets and cake", "2027-09-23"),
        find_candidates=duplicates.find_candidates,
    )
    decide(other, run_id, 1, is_same=False)
    other.apply(run_id)
    pair = sorted([feed.record_id("m1@x"), other.record_id("m2@y")])
    rows = app.sql("SELECT event_id, other_id FROM not_duplicates WHERE event_id = ANY($1)", pair)
    assert [list(row) for row in rows] == [pair]


def test_an_export_that_comes_back_is_recognized(start_app: StartApp):
    app = start_app()
    app.set_site("base_url", "http://exported.example")
    feed = Subscription.add(app)
    hall = ImportedRecord("venues", "v", {"venue": "Exported Hall"})
    weekly = ImportedRecord("series", "s@x", {**event(title="Exported course").values, "rule": "FREQ=WEEKLY;COUNT=3"})
    feed.sync(hall, event("e@x", "Exported event"), weekly)
    uids = {row["title"]: row["uid"] for row in app.sql("SELECT title, uid FROM events")}
    before = revision_of(app)
    other = Subscription.add(app)
    run_id = other.plan(
        replace(hall, identity=f"exported.example?id={feed.record_id('v')}"),
        event(uids["Exported event"], "Exported event"),
        replace(weekly, identity=app.sql("SELECT uid FROM series")[0]["uid"]),
    )
    kinds = ("v", "e@x", "s@x")
    assert [(row["action"], row["record_id"]) for row in other.rows(run_id)] == [
        ("linked", feed.record_id(identity)) for identity in kinds
    ]
    other.apply(run_id)
    assert revision_of(app) == before
    changed = event(uids["Exported event"], "Another title", "2028-01-01")
    assert [row["action"] for row in other.rows(other.plan(changed))] == ["unchanged"]


def test_a_date_that_the_source_no_longer_changes_follows_its_series(app: RunningApp):
    feed = Subscription.add(app)
    series = ImportedRecord("series", "d@x", {**event(title="Course").values, "rule": "FREQ=WEEKLY;COUNT=3"})
    override = replace(event("d@x", "Other room", "2027-05-08"), recurrence_id="2027-05-08T19:00:00")
    feed.sync(series, override)
    dates = "SELECT title, own_fields FROM events WHERE series_id = $1 ORDER BY slot"
    series_id = int(app.sql("SELECT record_id FROM import_items WHERE kind = 'series' AND identity = 'd@x'")[0][0])
    assert [row["title"] for row in app.sql(dates, series_id)] == ["Course", "Other room", "Course"]
    feed.sync(series)
    assert [tuple(row) for row in app.sql(dates, series_id)] == [("Course", None)] * 3


def test_a_newer_plan_replaces_an_open_one(app: RunningApp):
    feed = Subscription.add(app)
    first = feed.plan(event("x1@x"))
    second = feed.plan(event("x1@x"))
    assert (feed.state(first), feed.state(second)) == ("discarded", "planned")


def test_the_owner_must_be_an_editor(app: RunningApp):
    feed = Subscription.add(app, owner_id=app.users["author"].id)
    with pytest.raises(ApiError, match="owner of the source"):
        feed.sync(event("o@x"))


def test_an_image_that_cannot_be_fetched_is_left_out(app: RunningApp):
    feed = Subscription.add(app)
    run_id = feed.plan(event("img@x", "With an image", image="https://images.example/a.jpg"))
    feed.apply(run_id)
    assert (feed.event("img@x")["title"], feed.event("img@x")["image"]) == ("With an image", False)
    assert feed.rows(run_id)[0]["reasons"] == ["The image is left out: images are not fetched here."]
    # The next run tries again.
    again = feed.plan(event("img@x", "With an image", image="https://images.example/a.jpg"))
    assert list(feed.rows(again)[0]["changes"]) == ["image"]


def test_chosen_rows_bring_the_new_records_that_they_link_to(app: RunningApp):
    feed = Subscription.add(app)
    hall = ImportedRecord("venues", "linked hall", {"venue": "Linked hall"})
    music = ImportedRecord("categories", "linked music", {"name": "Linked music"})
    jazz = ImportedRecord("categories", "linked jazz", {"name": "Linked jazz"}, links={"parent": ["linked music"]})
    park = ImportedRecord("venues", "linked park", {"venue": "Linked park"})
    concert = replace(event("linked@x", "Linked"), links={"venue": ["linked hall"], "categories": ["linked jazz"]})
    run_id = feed.plan(hall, park, music, jazz, concert, event("other@x", "Not chosen"))
    number = next(row["number"] for row in feed.rows(run_id) if row["title"] == "Linked")
    feed.apply(run_id, numbers=[number])
    stored = feed.event("linked@x")
    assert stored["venue"]["venue"] == "Linked hall"
    assert [entry["name"] for entry in stored["categories"]] == ["Linked jazz"]
    waiting = [row["title"] for row in feed.rows(run_id) if row["state"] == "pending"]
    assert sorted(waiting) == ["Linked park", "Not chosen"]
