"""Status and publication date of events, venues and organizers (behaviour 4.6)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, Interface, assert_refused
from tests.api.sample_records import Sample

STAMP = "%Y-%m-%d %H:%M:%S"
FUTURE = "2090-01-01 00:00:00"


@pytest.fixture(scope="module", autouse=True)
def new_york(interface: Interface) -> None:
    """The site is five hours behind UTC in January, four in July."""
    interface.set_site("timezone", "America/New_York")


def dates(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["status"], record["date"], record["date_utc"]


@pytest.mark.parametrize(
    ("sent", "date", "date_utc"),
    [
        ({"date": "2026-01-15 08:00:00"}, "2026-01-15 08:00:00", "2026-01-15 13:00:00"),
        ({"date": "2026-07-15 08:00:00"}, "2026-07-15 08:00:00", "2026-07-15 12:00:00"),
        ({"date": "2026-01-15"}, "2026-01-15 00:00:00", "2026-01-15 05:00:00"),
        ({"date": "2026-01-15T08:00:00Z"}, "2026-01-15 03:00:00", "2026-01-15 08:00:00"),
        ({"date": "2026-01-15T08:00:00+05:00"}, "2026-01-14 22:00:00", "2026-01-15 03:00:00"),
        ({"date_utc": "2026-01-15 08:00:00"}, "2026-01-15 03:00:00", "2026-01-15 08:00:00"),
        ({"date_utc": "2026-01-15T08:00:00-05:00"}, "2026-01-15 08:00:00", "2026-01-15 13:00:00"),
        ({"date": "2020-01-01", "date_utc": "2026-01-15 08:00:00"}, "2026-01-15 03:00:00", "2026-01-15 08:00:00"),
        ({"date": "@0"}, "1969-12-31 19:00:00", "1970-01-01 00:00:00"),
    ],
)
def test_publication_date_is_in_site_timezone(
    editor: Caller, post: Sample, sent: dict[str, str], date: str, date_utc: str
) -> None:
    made = editor.create(post.kind, **post.body(**sent))
    assert dates(made) == ("publish", date, date_utc)
    other = editor.create(post.kind, **post.body(status="draft"))
    assert dates(editor.change(post.kind, other["id"], **sent)) == ("draft", date, date_utc)


def test_event_timezone_does_not_affect_publication_date(editor: Caller) -> None:
    made = editor.create(
        "events",
        title="Z",
        start_date="2027-01-01",
        end_date="2027-01-01",
        timezone="Asia/Tokyo",
        date="2026-01-15 08:00:00",
    )
    assert dates(made) == ("publish", "2026-01-15 08:00:00", "2026-01-15 13:00:00")


def test_publication_date_defaults_to_now(editor: Caller, post: Sample) -> None:
    made = editor.create(post.kind, **post.body())
    published = datetime.strptime(made["date_utc"], STAMP).replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - published) < timedelta(minutes=1)
    assert made["modified_utc"] == made["date_utc"]


def test_modified_is_time_of_last_write(editor: Caller, post: Sample) -> None:
    made = editor.create(post.kind, **post.body(date="2020-01-01"))
    assert made["modified_utc"] > made["date_utc"]
    table = post.kind
    editor.interface.sql(f"UPDATE {table} SET modified_utc = '2021-01-01Z' WHERE id = $1", made["id"])
    assert editor.read(post.kind, made["id"])["modified_utc"] == "2021-01-01 00:00:00"
    changed = editor.change(post.kind, made["id"], description="new")
    assert changed["modified_utc"] >= made["modified_utc"]
    assert changed["date_utc"] == made["date_utc"]


@pytest.mark.parametrize("name", ["date", "date_utc"])
@pytest.mark.parametrize(
    "wrong", ["", " ", "tomorrow", "2026-02-30", "1768465200", "2026-13-01", 5, True, [], {}, "01/02/2026"]
)
def test_invalid_publication_date_is_rejected(editor: Caller, post: Sample, name: str, wrong: object) -> None:
    assert_refused(editor.post(f"/{post.kind}", post.body(**{name: wrong})), 400, "rest_invalid_param", name)


@pytest.mark.parametrize("asked", ["publish", "future", None])
def test_future_date_schedules_publication(editor: Caller, post: Sample, asked: str | None) -> None:
    made = editor.create(post.kind, **post.body(status=asked, date=FUTURE))
    assert dates(made)[:2] == ("future", FUTURE)
    assert editor.change(post.kind, made["id"], description="x")["status"] == "future"
    assert editor.change(post.kind, made["id"], date="2026-01-01")["status"] == "publish"
    assert editor.change(post.kind, made["id"], date=FUTURE)["status"] == "future"


@pytest.mark.parametrize("status", ["draft", "pending", "private"])
def test_future_date_alone_does_not_publish(editor: Caller, post: Sample, status: str) -> None:
    made = editor.create(post.kind, **post.body(status=status, date=FUTURE))
    assert dates(made) == (status, FUTURE, "2090-01-01 05:00:00")
    assert editor.change(post.kind, made["id"], date="2026-01-01")["status"] == status
    assert editor.change(post.kind, made["id"], status="publish")["status"] == "publish"


def test_future_status_without_future_date_is_published(editor: Caller, post: Sample) -> None:
    assert editor.create(post.kind, **post.body(status="future"))["status"] == "publish"
    made = editor.create(post.kind, **post.body())
    assert editor.change(post.kind, made["id"], status="future")["status"] == "publish"


def test_publication_boundary_is_now(editor: Caller, post: Sample) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=5)).strftime(STAMP)
    just_now = (datetime.now(UTC) - timedelta(seconds=2)).strftime(STAMP)
    assert editor.create(post.kind, **post.body(date_utc=soon))["status"] == "future"
    assert editor.create(post.kind, **post.body(date_utc=just_now))["status"] == "publish"


@pytest.mark.parametrize("status", ["publish", "draft", "pending", "private"])
def test_omitted_status_is_unchanged(editor: Caller, post: Sample, status: str) -> None:
    made = editor.create(post.kind, **post.body(status=status, date="2026-01-15"))
    changed = editor.change(post.kind, made["id"], description="x", **{post.name: made[post.name] + " x"})
    assert dates(changed) == dates(made)


@pytest.mark.parametrize("before", ["publish", "draft", "pending", "private", "trash"])
@pytest.mark.parametrize("after", ["publish", "draft", "pending", "private", "trash"])
def test_all_status_transitions_are_possible(editor: Caller, post: Sample, before: str, after: str) -> None:
    made = editor.create(post.kind, **post.body())
    editor.change(post.kind, made["id"], status=before)
    assert editor.change(post.kind, made["id"], status=after)["status"] == after


@pytest.mark.parametrize(
    "wrong", ["trash", "any", "", "PUBLISH", "auto-draft", "inherit", "x", 5, True, [], ["draft"], {}]
)
def test_invalid_initial_status_is_rejected(editor: Caller, post: Sample, wrong: object) -> None:
    assert_refused(editor.post(f"/{post.kind}", post.body(status=wrong)), 400, "rest_invalid_param", "status")
    made = editor.create(post.kind, **post.body())
    if wrong != "trash":
        answer = editor.patch(f"/{post.kind}/{made['id']}", {"status": wrong})
        assert_refused(answer, 400, "rest_invalid_param", "status")


@pytest.mark.parametrize(
    ("role", "asked", "given"),
    [
        ("contributor", None, "draft"),
        ("contributor", "publish", "pending"),
        ("contributor", "future", "pending"),
        ("contributor", "private", "pending"),
        ("contributor", "draft", "draft"),
        ("contributor", "pending", "pending"),
        ("author", None, "publish"),
        ("author", "publish", "publish"),
        ("author", "private", "private"),
        ("author", "draft", "draft"),
        ("administrator", None, "publish"),
    ],
)
def test_effective_status_depends_on_role(
    interface: Interface, post: Sample, role: str, asked: str | None, given: str
) -> None:
    caller = interface.caller(role)
    body = post.body(**({"status": asked} if asked else {}))
    made = caller.create(post.kind, **body)
    assert (made["status"], made["author"]) == (given, str(caller.id))


def test_contributor_cannot_publish_by_update(contributor: Caller, editor: Caller, post: Sample) -> None:
    made = contributor.create(post.kind, **post.body())
    assert contributor.change(post.kind, made["id"], status="publish")["status"] == "pending"
    assert contributor.change(post.kind, made["id"], date="2020-01-01")["status"] == "pending"
    assert contributor.change(post.kind, made["id"], status="private")["status"] == "pending"
    assert editor.change(post.kind, made["id"], status="publish")["status"] == "publish"
    assert_refused(contributor.patch(f"/{post.kind}/{made['id']}", {"description": "x"}), 403, "rest_forbidden")


# Authors --------------------------------------------------------------------------------------


def test_editor_can_set_author(editor: Caller, author: Caller, post: Sample) -> None:
    made = editor.create(post.kind, **post.body(author=author.id))
    assert made["author"] == str(author.id)
    assert editor.change(post.kind, made["id"], author=str(editor.id))["author"] == str(editor.id)
    assert editor.change(post.kind, made["id"], description="x")["author"] == str(editor.id)


@pytest.mark.parametrize("role", ["contributor", "author"])
def test_other_roles_cannot_set_author(interface: Interface, editor: Caller, post: Sample, role: str) -> None:
    caller = interface.caller(role)
    assert_refused(caller.post(f"/{post.kind}", post.body(author=editor.id)), 403, "rest_forbidden")
    made = caller.create(post.kind, **post.body(author=caller.id, status="draft"))
    assert made["author"] == str(caller.id)
    assert_refused(caller.patch(f"/{post.kind}/{made['id']}", {"author": editor.id}), 403, "rest_forbidden")


@pytest.mark.parametrize("wrong", [999999, 0, -1, "x", 1.5, True, [], {}, "", 2**60])
def test_unknown_author_is_rejected(editor: Caller, post: Sample, wrong: object) -> None:
    assert_refused(editor.post(f"/{post.kind}", post.body(author=wrong)), 400, "rest_invalid_param", "author")
