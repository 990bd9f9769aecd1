"""What `changes` tells whom, case by case."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash, trim_old_changes
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import SAMPLES, unique
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL

SyncedCopy = dict[tuple[str, int], Any]


def read_changes(caller: Caller, since: Any = 0, **query: Any) -> dict[str, Any]:
    return expect_json(caller.get(f"{EXTENSION_URL}/changes", {"since": since, **query}))


def sync(caller: Caller, copy: SyncedCopy, since: Any = 0, **query: Any) -> Any:
    """Apply all pages of changes to the copy and return the token of the last page."""
    more = True
    while more:
        page = read_changes(caller, since, **query)
        for change in page["changes"]:
            if change["deleted"]:
                copy.pop((change["kind"], change["id"]), None)
            else:
                copy[change["kind"], change["id"]] = change["record"]
        since, more = page["next_since"], page["more"]
    return since


def change_keys(page: dict[str, Any]) -> list[tuple[str, int, bool]]:
    return [(change["kind"], change["id"], change["deleted"]) for change in page["changes"]]


def run_task(app: RunningApp, task: Callable[[Database, int], Any], days: int) -> None:
    """Run a task of the worker as if it were this many days later."""

    async def run() -> None:
        database = await Database.open(Options(url=app.database_url))
        try:
            await task(database, days)
        finally:
            await database.close()

    app.run(run())


def age_changes(app: RunningApp, days: int, last_revision: int) -> None:
    """Backdate the changes up to a revision by this many days."""
    app.sql(
        "UPDATE changes SET changed_at = changed_at - make_interval(days => $1) WHERE revision <= $2",
        days,
        last_revision,
    )


def test_changes_are_listed_once_ordered_by_latest_revision(app: RunningApp) -> None:
    editor, anonymous = app.caller("editor"), app.caller()
    since = sync(anonymous, {})
    first = editor.create("venues", venue=unique("first"))["id"]
    second = editor.create("organizers", organizer=unique("second"))["id"]
    editor.change("venues", first, phone="1")
    page = read_changes(anonymous, since)
    assert change_keys(page) == [("organizers", second, False), ("venues", first, False)]
    assert page["more"] is False
    assert read_changes(anonymous, page["next_since"])["changes"] == []


def test_links_are_ids_and_terms_have_no_counts(app: RunningApp) -> None:
    editor = app.caller("editor")
    since = sync(editor, {})
    venue = editor.create("venues", venue=unique("venue"))["id"]
    tag = editor.create("tags", name=unique("tag"))["id"]
    body = SAMPLES["events"].body(venue=[venue], tags=[tag], categories=[unique("category")])
    event = editor.create("events", **body)
    records = {change["kind"]: change["record"] for change in read_changes(editor, since)["changes"]}
    flat = records["events"]
    assert (flat["venue"], flat["organizer"], flat["tags"]) == ([venue], [], [tag])
    assert flat["categories"] == [category["id"] for category in event["categories"]]
    links = {"venue", "organizer", "categories", "tags"}
    assert {k: v for k, v in flat.items() if k not in links} == {k: v for k, v in event.items() if k not in links}
    assert {"count", "url"} & {*records["tags"], *records["categories"]} == set()


@pytest.mark.quick("events", "tags")
@pytest.mark.parametrize("kind", ["events", "venues", "organizers", "categories", "tags"])
def test_kind_filter_supports_initial_sync(app: RunningApp, kind: str) -> None:
    record = app.caller("editor").create(kind, **SAMPLES[kind].body())["id"]
    page = read_changes(app.caller(), kind=kind, per_page=500)
    assert {change["kind"] for change in page["changes"]} == {kind}
    assert record in {change["id"] for change in page["changes"]}


@pytest.mark.quick("categories", "organizer")
@pytest.mark.parametrize("filter_name", ["categories", "tags", "venue", "organizer"])
def test_link_filters_support_initial_sync(app: RunningApp, filter_name: str) -> None:
    editor = app.caller("editor")
    kind = {"venue": "venues", "organizer": "organizers"}.get(filter_name, filter_name)
    target = editor.create(kind, **SAMPLES[kind].body())["id"]
    inside = editor.create("events", **SAMPLES["events"].body(**{filter_name: [target]}))["id"]
    copy: SyncedCopy = {}
    since = sync(app.caller(), copy, **{filter_name: target})
    assert list(copy) == [("events", inside)]
    editor.change("events", inside, **{filter_name: []})
    sync(app.caller(), copy, since, **{filter_name: target})
    assert copy == {}


def test_never_public_records_are_invisible_to_public(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    editor, anonymous, subscriber = (app.caller(role) for role in ("editor", "anonymous", "subscriber"))
    editor.create("tags", name="Before")
    since = sync(editor, {})
    secret = editor.create("venues", venue=unique("secret"), status="draft")["id"]
    hidden = editor.create("events", **SAMPLES["events"].body(hide_from_listings=True))["id"]
    known = editor.create("venues", venue=unique("known"))["id"]
    editor.change("venues", secret, phone="1")
    for kind, record_id in (("venues", secret), ("events", hidden), ("venues", known)):
        editor.trash(kind, record_id)
    assert (
        change_keys(read_changes(anonymous, since))
        == change_keys(read_changes(subscriber, since))
        == [("venues", known, True)]
    )
    run_task(app, empty_old_trash, -1)
    assert (
        change_keys(read_changes(anonymous, since))
        == change_keys(read_changes(subscriber, since))
        == [("venues", known, True)]
    )
    everything = [("venues", secret, True), ("events", hidden, True), ("venues", known, True)]
    assert sorted(change_keys(read_changes(editor, since))) == sorted(everything)


@pytest.mark.quick("vanish0", "vanish2")
@pytest.mark.parametrize("vanish", [{"status": "draft"}, {"hide_from_listings": True}, {"status": "trash"}])
def test_record_hidden_between_pages_is_reported_as_deleted(app: RunningApp, vanish: dict[str, Any]) -> None:
    """It vanished within what the first page covers and changed once more behind that."""
    editor, anonymous = app.caller("editor"), app.caller()
    event = editor.create("events", **SAMPLES["events"].body())["id"]
    copy: SyncedCopy = {}
    since = sync(anonymous, copy, per_page=500)
    assert ("events", event) in copy
    editor.change("events", event, **vanish)
    for _ in range(3):
        editor.create("tags", name=unique("tag"))
    editor.change("events", event, excerpt="changed where nobody sees it")
    sync(anonymous, copy, since, per_page=2)
    assert ("events", event) not in copy


def test_moving_category_removes_its_events_from_filtered_copy(app: RunningApp) -> None:
    editor, anonymous = app.caller("editor"), app.caller()
    above = editor.create("categories", name=unique("above"))["id"]
    below = editor.create("categories", name=unique("below"), parent=above)["id"]
    lowest = editor.create("categories", name=unique("lowest"), parent=below)["id"]
    event = editor.create("events", **SAMPLES["events"].body(categories=[lowest]))["id"]
    copy: SyncedCopy = {}
    since = sync(anonymous, copy, categories=above)
    assert list(copy) == [("events", event)]
    editor.change("categories", below, parent=0)
    since = sync(anonymous, copy, since, categories=above)
    assert copy == {}
    editor.change("categories", below, parent=above)
    sync(anonymous, copy, since, categories=above)
    assert list(copy) == [("events", event)]


def test_filter_does_not_reveal_links_of_protected_event(app: RunningApp) -> None:
    editor = app.caller("editor")
    tag = editor.create("tags", name=unique("tag"))["id"]
    event = editor.create("events", **SAMPLES["events"].body(tags=[tag], new_password="secret"))["id"]
    for caller, seen in ((app.caller(), False), (editor, True)):
        copy: SyncedCopy = {}
        sync(caller, copy, tags=tag)
        assert (("events", event) in copy) == seen


def test_subscriber_is_notified_of_own_trashed_draft(app: RunningApp) -> None:
    editor, subscriber = app.caller("editor"), app.caller("subscriber")
    draft = editor.create("venues", venue=unique("draft"), status="draft", author=subscriber.id)["id"]
    copy: SyncedCopy = {}
    since = sync(subscriber, copy, per_page=500)
    assert ("venues", draft) in copy
    editor.trash("venues", draft)
    sync(subscriber, copy, since)
    assert ("venues", draft) not in copy


def test_permanently_deleted_venue_changes_its_events(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    editor, anonymous = app.caller("editor"), app.caller()
    venue = editor.create("venues", venue="Venue")["id"]
    event = editor.create("events", **SAMPLES["events"].body(venue=[venue]))["id"]
    copy: SyncedCopy = {}
    since = sync(anonymous, copy)
    editor.trash("venues", venue)
    run_task(app, empty_old_trash, -1)
    sync(anonymous, copy, since)
    assert set(copy) == {("events", event)}
    assert copy["events", event]["venue"] == []


def test_copy_filtered_by_deleted_record_becomes_empty(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    editor, anonymous = app.caller("editor"), app.caller()
    venue = editor.create("venues", venue="Venue")["id"]
    event = editor.create("events", **SAMPLES["events"].body(venue=[venue]))["id"]
    copy: SyncedCopy = {}
    since = sync(anonymous, copy, venue=venue)
    assert set(copy) == {("events", event)}
    editor.trash("venues", venue)
    run_task(app, empty_old_trash, -1)
    sync(anonymous, copy, since, venue=venue)
    assert copy == {}
    # The first request of a new copy reports the wrong name.
    assert_error(anonymous.get(f"{EXTENSION_URL}/changes?venue={venue}"), 400, "rest_invalid_param", "venue")


# Forgotten changes ---------------------------------------------------------------------------


def test_token_older_than_log_or_from_future_is_410(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    editor, anonymous = app.caller("editor"), app.caller()
    editor.create("venues", venue="One")
    too_old = sync(anonymous, {})
    editor.create("venues", venue="Two")
    old = sync(anonymous, {})
    editor.create("venues", venue="Three")
    age_changes(app, 400, int(old))
    run_task(app, trim_old_changes, 365)
    for token in (too_old, int(old) + 1000):
        error = assert_error(anonymous.get(f"{EXTENSION_URL}/changes", {"since": token}), 410, "rest_history_expired")
        assert error["oldest"] == int(old)
    assert [change["record"]["venue"] for change in read_changes(anonymous, old)["changes"]] == ["Three"]


def test_initial_sync_works_with_trimmed_log(
    start_single_site: Callable[..., RunningApp],
) -> None:
    app = start_single_site()
    editor, anonymous = app.caller("editor"), app.caller()
    record = [editor.create("venues", venue=f"Venue {n}")["id"] for n in range(7)]
    age_changes(app, 400, int(sync(anonymous, {})))
    run_task(app, trim_old_changes, 365)
    editor.create("venues", venue="Later")
    copy: SyncedCopy = {}
    sync(anonymous, copy, per_page=3)
    assert {record_id for _, record_id in copy} >= set(record)
