"""What `changes` tells whom, case by case."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash, trim_old_changes
from tests.api.interface import Caller, Interface, assert_refused, done
from tests.api.samples import SAMPLES, unique
from tests.life.kit import EXTENSION

Copy = dict[tuple[str, int], Any]


def ask(caller: Caller, since: Any = 0, **query: Any) -> dict[str, Any]:
    return done(caller.get(f"{EXTENSION}/changes", {"since": since, **query}))


def follow(caller: Caller, copy: Copy, since: Any = 0, **query: Any) -> Any:
    """Asks until there is no more, changing the copy; the token behind the last page."""
    more = True
    while more:
        page = ask(caller, since, **query)
        for change in page["changes"]:
            if change["deleted"]:
                copy.pop((change["kind"], change["id"]), None)
            else:
                copy[change["kind"], change["id"]] = change["record"]
        since, more = page["next_since"], page["more"]
    return since


def keys(page: dict[str, Any]) -> list[tuple[str, int, bool]]:
    return [(change["kind"], change["id"], change["deleted"]) for change in page["changes"]]


def work(interface: Interface, task: Callable[[Database, int], Any], days: int) -> None:
    """A task of the worker, as if it were so many days later."""

    async def run() -> None:
        database = await Database.open(Options(url=interface.database_url))
        try:
            await task(database, days)
        finally:
            await database.close()

    interface.run(run())


def age(interface: Interface, days: int, up_to: int) -> None:
    """Makes the changes up to a revision so many days older."""
    interface.sql(
        "UPDATE changes SET changed_at = changed_at - make_interval(days => $1) WHERE revision <= $2", days, up_to
    )


def test_changes_are_told_once_in_the_order_of_their_latest_revision(interface: Interface) -> None:
    editor, anonymous = interface.caller("editor"), interface.caller()
    since = follow(anonymous, {})
    first = editor.create("venues", venue=unique("first"))["id"]
    second = editor.create("organizers", organizer=unique("second"))["id"]
    editor.change("venues", first, phone="1")
    page = ask(anonymous, since)
    assert keys(page) == [("organizers", second, False), ("venues", first, False)]
    assert page["more"] is False
    assert ask(anonymous, page["next_since"])["changes"] == []


def test_links_are_told_as_ids_and_terms_without_counts(interface: Interface) -> None:
    editor = interface.caller("editor")
    since = follow(editor, {})
    venue = editor.create("venues", venue=unique("venue"))["id"]
    tag = editor.create("tags", name=unique("tag"))["id"]
    body = SAMPLES["events"].body(venue=[venue], tags=[tag], categories=[unique("category")])
    event = editor.create("events", **body)
    told = {change["kind"]: change["record"] for change in ask(editor, since)["changes"]}
    flat = told["events"]
    assert (flat["venue"], flat["organizer"], flat["tags"]) == ([venue], [], [tag])
    assert flat["categories"] == [category["id"] for category in event["categories"]]
    links = {"venue", "organizer", "categories", "tags"}
    assert {k: v for k, v in flat.items() if k not in links} == {k: v for k, v in event.items() if k not in links}
    assert {"count", "url"} & {*told["tags"], *told["categories"]} == set()


@pytest.mark.parametrize("kind", ["events", "venues", "organizers", "categories", "tags"])
def test_one_kind_can_be_asked_for_from_the_beginning(interface: Interface, kind: str) -> None:
    made = interface.caller("editor").create(kind, **SAMPLES[kind].body())["id"]
    page = ask(interface.caller(), kind=kind, per_page=500)
    assert {change["kind"] for change in page["changes"]} == {kind}
    assert made in {change["id"] for change in page["changes"]}


@pytest.mark.parametrize("filter_name", ["categories", "tags", "venue", "organizer"])
def test_a_filter_can_be_asked_for_from_the_beginning(interface: Interface, filter_name: str) -> None:
    editor = interface.caller("editor")
    kind = {"venue": "venues", "organizer": "organizers"}.get(filter_name, filter_name)
    target = editor.create(kind, **SAMPLES[kind].body())["id"]
    inside = editor.create("events", **SAMPLES["events"].body(**{filter_name: [target]}))["id"]
    copy: Copy = {}
    since = follow(interface.caller(), copy, **{filter_name: target})
    assert list(copy) == [("events", inside)]
    editor.change("events", inside, **{filter_name: []})
    follow(interface.caller(), copy, since, **{filter_name: target})
    assert copy == {}


def test_a_record_that_never_was_public_leaves_no_trace_for_the_public(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    editor, anonymous, subscriber = (interface.caller(role) for role in ("editor", "anonymous", "subscriber"))
    editor.create("tags", name="Before")
    since = follow(editor, {})
    secret = editor.create("venues", venue=unique("secret"), status="draft")["id"]
    hidden = editor.create("events", **SAMPLES["events"].body(hide_from_listings=True))["id"]
    known = editor.create("venues", venue=unique("known"))["id"]
    editor.change("venues", secret, phone="1")
    for kind, record_id in (("venues", secret), ("events", hidden), ("venues", known)):
        editor.trash(kind, record_id)
    assert keys(ask(anonymous, since)) == keys(ask(subscriber, since)) == [("venues", known, True)]
    work(interface, empty_old_trash, -1)
    assert keys(ask(anonymous, since)) == keys(ask(subscriber, since)) == [("venues", known, True)]
    everything = [("venues", secret, True), ("events", hidden, True), ("venues", known, True)]
    assert sorted(keys(ask(editor, since))) == sorted(everything)


@pytest.mark.parametrize("vanish", [{"status": "draft"}, {"hide_from_listings": True}, {"status": "trash"}])
def test_a_record_that_vanished_between_two_pages_is_told_of(interface: Interface, vanish: dict[str, Any]) -> None:
    """It vanished within what the first page covers and changed once more behind that."""
    editor, anonymous = interface.caller("editor"), interface.caller()
    event = editor.create("events", **SAMPLES["events"].body())["id"]
    copy: Copy = {}
    since = follow(anonymous, copy, per_page=500)
    assert ("events", event) in copy
    editor.change("events", event, **vanish)
    for _ in range(3):
        editor.create("tags", name=unique("tag"))
    editor.change("events", event, excerpt="changed where nobody sees it")
    follow(anonymous, copy, since, per_page=2)
    assert ("events", event) not in copy


def test_a_category_that_moves_takes_its_events_out_of_a_filtered_copy(interface: Interface) -> None:
    editor, anonymous = interface.caller("editor"), interface.caller()
    above = editor.create("categories", name=unique("above"))["id"]
    below = editor.create("categories", name=unique("below"), parent=above)["id"]
    lowest = editor.create("categories", name=unique("lowest"), parent=below)["id"]
    event = editor.create("events", **SAMPLES["events"].body(categories=[lowest]))["id"]
    copy: Copy = {}
    since = follow(anonymous, copy, categories=above)
    assert list(copy) == [("events", event)]
    editor.change("categories", below, parent=0)
    since = follow(anonymous, copy, since, categories=above)
    assert copy == {}
    editor.change("categories", below, parent=above)
    follow(anonymous, copy, since, categories=above)
    assert list(copy) == [("events", event)]


def test_a_filter_does_not_tell_the_links_of_a_protected_event(interface: Interface) -> None:
    editor = interface.caller("editor")
    tag = editor.create("tags", name=unique("tag"))["id"]
    event = editor.create("events", **SAMPLES["events"].body(tags=[tag], new_password="secret"))["id"]
    for caller, seen in ((interface.caller(), False), (editor, True)):
        copy: Copy = {}
        follow(caller, copy, tags=tag)
        assert (("events", event) in copy) == seen


def test_a_subscriber_is_told_that_an_own_draft_is_gone(interface: Interface) -> None:
    editor, subscriber = interface.caller("editor"), interface.caller("subscriber")
    draft = editor.create("venues", venue=unique("draft"), status="draft", author=subscriber.id)["id"]
    copy: Copy = {}
    since = follow(subscriber, copy, per_page=500)
    assert ("venues", draft) in copy
    editor.trash("venues", draft)
    follow(subscriber, copy, since)
    assert ("venues", draft) not in copy


def test_a_venue_that_is_removed_for_good_changes_the_events_that_had_it(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    editor, anonymous = interface.caller("editor"), interface.caller()
    venue = editor.create("venues", venue="Venue")["id"]
    event = editor.create("events", **SAMPLES["events"].body(venue=[venue]))["id"]
    copy: Copy = {}
    since = follow(anonymous, copy)
    editor.trash("venues", venue)
    work(interface, empty_old_trash, -1)
    follow(anonymous, copy, since)
    assert set(copy) == {("events", event)}
    assert copy["events", event]["venue"] == []


def test_a_copy_filtered_by_a_record_that_is_gone_for_good_becomes_empty(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    editor, anonymous = interface.caller("editor"), interface.caller()
    venue = editor.create("venues", venue="Venue")["id"]
    event = editor.create("events", **SAMPLES["events"].body(venue=[venue]))["id"]
    copy: Copy = {}
    since = follow(anonymous, copy, venue=venue)
    assert set(copy) == {("events", event)}
    editor.trash("venues", venue)
    work(interface, empty_old_trash, -1)
    follow(anonymous, copy, since, venue=venue)
    assert copy == {}
    # A copy that begins is told that the name is wrong.
    assert_refused(anonymous.get(f"{EXTENSION}/changes?venue={venue}"), 400, "rest_invalid_param", "venue")


# Forgotten changes ---------------------------------------------------------------------------


def test_a_token_older_than_the_log_or_from_the_future_is_410(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    editor, anonymous = interface.caller("editor"), interface.caller()
    editor.create("venues", venue="One")
    too_old = follow(anonymous, {})
    editor.create("venues", venue="Two")
    old = follow(anonymous, {})
    editor.create("venues", venue="Three")
    age(interface, 400, int(old))
    work(interface, trim_old_changes, 365)
    for token in (too_old, int(old) + 1000):
        refused = assert_refused(anonymous.get(f"{EXTENSION}/changes", {"since": token}), 410, "rest_history_expired")
        assert refused["oldest"] == int(old)
    assert [change["record"]["venue"] for change in ask(anonymous, old)["changes"]] == ["Three"]


def test_a_site_with_a_forgotten_past_can_be_read_from_the_beginning_page_by_page(
    fresh: Callable[..., Interface],
) -> None:
    interface = fresh()
    editor, anonymous = interface.caller("editor"), interface.caller()
    made = [editor.create("venues", venue=f"Venue {n}")["id"] for n in range(7)]
    age(interface, 400, int(follow(anonymous, {})))
    work(interface, trim_old_changes, 365)
    editor.create("venues", venue="Later")
    copy: Copy = {}
    follow(anonymous, copy, per_page=3)
    assert {record_id for _, record_id in copy} >= set(made)
