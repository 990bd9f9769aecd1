"""Restoring, case by case: out of the trash, back to a revision, by whom; and what history shows."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.kinds import BY_NAME
from tests.api.interface import Interface, assert_refused, done
from tests.api.samples import SAMPLES, unique
from tests.life.kit import EXTENSION
from tests.life.processes import run_command
from tests.life.test_history import restore, told


def history(interface: Interface, kind: str, record_id: int, role: str = "editor") -> list[dict[str, Any]]:
    answer = interface.caller(role).get(f"{EXTENSION}/{kind}/{record_id}/history")
    found: list[dict[str, Any]] = done(answer)["history"]
    return found


def revision(interface: Interface, kind: str, record_id: int) -> int:
    latest: int = history(interface, kind, record_id)[0]["revision"]
    return latest


# Restoring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["events", "venues", "organizers"])
@pytest.mark.parametrize("status", ["publish", "draft", "pending", "private", "future"])
def test_out_of_the_trash_a_record_is_as_it_was(interface: Interface, kind: str, status: str) -> None:
    editor = interface.caller("editor")
    date = {"date_utc": "2090-01-01 00:00:00"} if status == "future" else {}
    made = editor.create(kind, **SAMPLES[kind].body(status=status, **date))
    editor.trash(kind, made["id"])
    assert told(restore(editor, kind, made["id"])) == told(made)


def test_a_slug_that_was_taken_meanwhile_is_numbered(interface: Interface) -> None:
    editor = interface.caller("editor")
    slug = unique("wanted").lower().replace(" ", "-")
    made = editor.create("events", **SAMPLES["events"].body(slug=slug))
    first = revision(interface, "events", made["id"])
    editor.trash("events", made["id"])
    editor.create("events", **SAMPLES["events"].body(slug=slug))
    assert restore(editor, "events", made["id"])["slug"] == f"{slug}-2"
    assert told(restore(editor, "events", made["id"], first)) == told({**made, "slug": f"{slug}-2"}) | {
        name: made[name].replace(slug, f"{slug}-2") for name in ("url", "website")
    }


def test_which_of_two_equal_hours_was_meant_comes_back(interface: Interface) -> None:
    editor = interface.caller("editor")
    zone = {"timezone": "America/New_York"}
    hours = {"start_date": "2027-11-07 01:30:00-05:00", "end_date": "2027-11-07 01:30:00-05:00"}
    made = editor.create("events", title=unique("fold"), **hours, **zone)
    assert made["utc_start_date"] == "2027-11-07 06:30:00"
    second = revision(interface, "events", made["id"])
    earlier = editor.change("events", made["id"], start_date="2027-11-07 01:30:00-04:00")
    assert (earlier["start_date"], earlier["utc_start_date"]) == (made["start_date"], "2027-11-07 05:30:00")
    assert told(restore(editor, "events", made["id"], second)) == told(made)
    editor.change("events", made["id"], timezone="UTC")
    assert told(restore(editor, "events", made["id"], second)) == told(made)


def test_a_draft_that_had_no_slug_has_none_again(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("events", **SAMPLES["events"].body(status="draft"))
    assert made["slug"] == ""
    first = revision(interface, "events", made["id"])
    editor.change("events", made["id"], status="publish")
    assert told(restore(editor, "events", made["id"], first)) == told(made)


def test_a_link_to_what_is_gone_for_good_stays_away(interface: Interface) -> None:
    editor = interface.caller("editor")
    gone, stays = (editor.create("tags", name=unique("tag"))["id"] for _ in range(2))
    event = editor.create("events", **SAMPLES["events"].body(tags=[gone, stays]))["id"]
    first = revision(interface, "events", event)
    editor.change("events", event, tags=[])
    done(editor.delete(f"/tags/{gone}"))
    assert [tag["id"] for tag in restore(editor, "events", event, first)["tags"]] == [stays]


def test_a_record_with_thousands_of_changes_goes_back_to_its_first(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("venues", venue="First")
    first = revision(interface, "venues", made["id"])
    editor.change("venues", made["id"], venue="Second")
    # As many more as it takes, without asking the server a thousand times.
    interface.sql(
        """
        WITH added AS (
            INSERT INTO changes (site_id, revision, kind, record_id, action, before, after, changed_at)
            SELECT 1, s.revision + n, 'venues', $1, 'update', '{"phone": ""}', '{"phone": ""}', now()
            FROM sites s, generate_series(1, 1500) AS n
        ), stamped AS (UPDATE venues SET revision = revision + 1500 WHERE id = $1)
        UPDATE sites SET revision = revision + 1500
        """,
        made["id"],
    )
    assert restore(editor, "venues", made["id"], first)["venue"] == "First"


def test_what_is_older_than_the_record_is_refused(interface: Interface) -> None:
    editor = interface.caller("editor")
    editor.create("venues", venue=unique("before"))
    before = revision(interface, "venues", editor.create("venues", venue=unique("venue"))["id"])
    later = editor.create("venues", venue=unique("later"))["id"]
    answer = editor.post(f"{EXTENSION}/venues/{later}/restore", {"revision": before})
    assert_refused(answer, 400, "rest_invalid_param", "revision")


def test_what_has_been_forgotten_is_410(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    editor = interface.caller("editor")
    venue = editor.create("venues", venue="One")["id"]
    first = revision(interface, "venues", venue)
    editor.change("venues", venue, venue="Two")
    interface.sql("UPDATE sites SET trimmed_revision = $1", first + 1)
    interface.sql("DELETE FROM changes WHERE revision <= $1", first + 1)
    answer = editor.post(f"{EXTENSION}/venues/{venue}/restore", {"revision": first})
    assert_refused(answer, 410, "rest_history_expired")


# By whom -------------------------------------------------------------------------------------


def test_an_author_cannot_make_somebody_else_the_author_by_restoring(interface: Interface) -> None:
    editor, author = interface.caller("editor"), interface.caller("author")
    venue = editor.create("venues", venue=unique("venue"))["id"]
    first = revision(interface, "venues", venue)
    editor.change("venues", venue, author=author.id)
    answer = author.post(f"{EXTENSION}/venues/{venue}/restore", {"revision": first})
    assert_refused(answer, 403, "rest_forbidden")


def test_a_contributor_cannot_publish_by_restoring(interface: Interface) -> None:
    editor, contributor = interface.caller("editor"), interface.caller("contributor")
    event = editor.create("events", **SAMPLES["events"].body(author=contributor.id))["id"]
    published = revision(interface, "events", event)
    editor.change("events", event, status="draft")
    assert restore(contributor, "events", event, published)["status"] == "pending"


def test_a_restore_that_expects_another_state_is_412(interface: Interface) -> None:
    editor = interface.caller("editor")
    venue = editor.create("venues", venue=unique("venue"))["id"]
    tag = editor.get(f"/venues/{venue}").headers["etag"]
    editor.change("venues", venue, phone="1")
    first = history(interface, "venues", venue)[-1]["revision"]
    path = f"{EXTENSION}/venues/{venue}/restore"
    answer = editor.post(path, {"revision": first}, headers={"If-Match": tag})
    assert_refused(answer, 412, "rest_precondition_failed")


# What history shows --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["events", "venues", "organizers"])
def test_history_tells_who_changed_what_by_the_names_of_parameters(interface: Interface, kind: str) -> None:
    editor, author = interface.caller("editor"), interface.caller("author")
    sample = SAMPLES[kind]
    made = author.create(kind, **sample.body(status="draft"))
    author.change(kind, made["id"], **{sample.text: "before"})
    editor.change(kind, made["id"], **{sample.text: "after", "status": "publish", "author": editor.id})
    author_of, changed, created = history(interface, kind, made["id"])
    assert author_of["user"] == {"id": editor.id, "login": "editor"}
    assert author_of["changes"][sample.text] == {"before": "before", "after": "after"}
    assert author_of["changes"]["status"] == {"before": "draft", "after": "publish"}
    assert author_of["changes"]["author"] == {"before": author.id, "after": editor.id}
    assert changed["changes"] == {sample.text: {"before": "", "after": "before"}}
    assert (created["action"], created["user"]["login"]) == ("create", "author")
    assert created["changes"][sample.name] == {"before": None, "after": made[sample.name]}
    names = {name for change in (author_of, changed, created) for name in change["changes"]}
    assert names <= {param.name for param in BY_NAME[kind].fields} | {"slug"}


def test_history_shows_links_as_ids_and_dates_as_they_are_written(interface: Interface) -> None:
    editor = interface.caller("editor")
    tag = editor.create("tags", name=unique("tag"))["id"]
    event = editor.create("events", **SAMPLES["events"].body())
    editor.change("events", event["id"], tags=[tag], start_date="2027-06-01 10:00", end_date="2027-06-02 10:00")
    assert history(interface, "events", event["id"])[0]["changes"] == {
        "tags": {"before": [], "after": [tag]},
        "start_date": {"before": event["start_date"], "after": "2027-06-01 10:00:00"},
        "end_date": {"before": event["end_date"], "after": "2027-06-02 10:00:00"},
    }


def test_neither_history_nor_its_command_shows_the_hash_of_a_password(interface: Interface) -> None:
    editor = interface.caller("editor")
    event = editor.create("events", **SAMPLES["events"].body(new_password="secret one"))["id"]
    hashes = [interface.sql("SELECT password_hash FROM events WHERE id = $1", event)[0][0].hex()]
    editor.change("events", event, new_password="secret two")
    hashes.append(interface.sql("SELECT password_hash FROM events WHERE id = $1", event)[0][0].hex())
    editor.change("events", event, new_password="")
    shown = [change["changes"].get("new_password") for change in history(interface, "events", event)]
    assert shown == [
        {"before": True, "after": False},
        {"before": True, "after": True},
        {"before": None, "after": True},
    ]
    text = editor.get(f"{EXTENSION}/events/{event}/history").text
    command = run_command(interface.database_url, "history", "event", str(event))
    assert command.exit_code == 0
    assert "new_password" in command.stdout
    for secret in (*hashes, "secret one", "secret two"):
        assert secret not in text
        assert secret not in command.stdout


def test_a_revision_that_is_yet_to_come_is_refused(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("venues", **SAMPLES["venues"].body())
    answer = editor.post(f"{EXTENSION}/venues/{made['id']}/restore", {"revision": 10**9})
    assert_refused(answer, 400, "rest_invalid_param", "revision")


def test_history_is_told_page_by_page(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("venues", **SAMPLES["venues"].body())
    for number in range(4):
        editor.change("venues", made["id"], city=f"City {number}")
    whole = history(interface, "venues", made["id"])
    assert len(whole) == 5
    pages, before = [], ""
    while True:
        page = done(editor.get(f"{EXTENSION}/venues/{made['id']}/history?per_page=2{before}"))
        pages.append(page["history"])
        if page["next_before"] is None:
            break
        before = f"&before={page['next_before']}"
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [change for page in pages for change in page] == whole
