"""Status and publication date of events, venues and organizers (behaviour 4.6)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import Sample

DATE_FORMAT = "%Y-%m-%d %H:%M:%S"
FUTURE = "2090-01-01 00:00:00"


@pytest.fixture(scope="module", autouse=True)
def new_york(app: RunningApp) -> None:
    """The site is five hours behind UTC in January, four in July."""
    app.set_site("timezone", "America/New_York")


def publication_fields(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["status"], record["date"], record["date_utc"]


@pytest.mark.quick("events-fields0-2026-01-15 08:00:00-", "organizers-fields8-1969-12-31")
@pytest.mark.parametrize(
    ("fields", "date", "date_utc"),
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
    editor: Caller, post: Sample, fields: dict[str, str], date: str, date_utc: str
) -> None:
    record = editor.create(post.kind, **post.body(**fields))
    assert publication_fields(record) == ("publish", date, date_utc)
    other = editor.create(post.kind, **post.body(status="draft"))
    assert publication_fields(editor.change(post.kind, other["id"], **fields)) == ("draft", date, date_utc)


def test_event_timezone_does_not_affect_publication_date(editor: Caller) -> None:
    record = editor.create(
        "events",
        title="Z",
        start_date="2027-01-01",
        end_date="2027-01-01",
        timezone="Asia/Tokyo",
        date="2026-01-15 08:00:00",
    )
    assert publication_fields(record) == ("publish", "2026-01-15 08:00:00", "2026-01-15 13:00:00")


def test_publication_date_defaults_to_now(editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body())
    published = datetime.strptime(record["date_utc"], DATE_FORMAT).replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - published) < timedelta(minutes=1)
    assert record["modified_utc"] == record["date_utc"]


def test_modified_is_time_of_last_write(editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body(date="2020-01-01"))
    assert record["modified_utc"] > record["date_utc"]
    table = post.kind
    editor.app.sql(f"UPDATE {table} SET modified_utc = '2021-01-01Z' WHERE id = $1", record["id"])
    assert editor.read(post.kind, record["id"])["modified_utc"] == "2021-01-01 00:00:00"
    changed = editor.change(post.kind, record["id"], description="new")
    assert changed["modified_utc"] >= record["modified_utc"]
    assert changed["date_utc"] == record["date_utc"]


@pytest.mark.quick("events--date", "organizers-13/02/2026-date_utc")
@pytest.mark.parametrize("name", ["date", "date_utc"])
@pytest.mark.parametrize(
    "wrong", ["", " ", "next friday", "2026-02-30", "1768465200", "2026-13-01", 5, True, [], {}, "13/02/2026"]
)
def test_invalid_publication_date_is_rejected(editor: Caller, post: Sample, name: str, wrong: object) -> None:
    assert_error(editor.post(f"/{post.kind}", post.body(**{name: wrong})), 400, "rest_invalid_param", name)


@pytest.mark.quick("events-publish", "organizers-None")
@pytest.mark.parametrize("status", ["publish", "future", None])
def test_future_date_schedules_publication(editor: Caller, post: Sample, status: str | None) -> None:
    record = editor.create(post.kind, **post.body(status=status, date=FUTURE))
    assert publication_fields(record)[:2] == ("future", FUTURE)
    assert editor.change(post.kind, record["id"], description="x")["status"] == "future"
    assert editor.change(post.kind, record["id"], date="2026-01-01")["status"] == "publish"
    assert editor.change(post.kind, record["id"], date=FUTURE)["status"] == "future"


@pytest.mark.quick("events-draft", "organizers-private")
@pytest.mark.parametrize("status", ["draft", "pending", "private"])
def test_future_date_alone_does_not_publish(editor: Caller, post: Sample, status: str) -> None:
    record = editor.create(post.kind, **post.body(status=status, date=FUTURE))
    assert publication_fields(record) == (status, FUTURE, "2090-01-01 05:00:00")
    assert editor.change(post.kind, record["id"], date="2026-01-01")["status"] == status
    assert editor.change(post.kind, record["id"], status="publish")["status"] == "publish"


def test_future_status_without_future_date_is_published(editor: Caller, post: Sample) -> None:
    assert editor.create(post.kind, **post.body(status="future"))["status"] == "publish"
    record = editor.create(post.kind, **post.body())
    assert editor.change(post.kind, record["id"], status="future")["status"] == "publish"


def test_publication_boundary_is_now(editor: Caller, post: Sample) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=5)).strftime(DATE_FORMAT)
    just_now = (datetime.now(UTC) - timedelta(seconds=2)).strftime(DATE_FORMAT)
    assert editor.create(post.kind, **post.body(date_utc=soon))["status"] == "future"
    assert editor.create(post.kind, **post.body(date_utc=just_now))["status"] == "publish"


@pytest.mark.quick("events-publish", "organizers-private")
@pytest.mark.parametrize("status", ["publish", "draft", "pending", "private"])
def test_omitted_status_is_unchanged(editor: Caller, post: Sample, status: str) -> None:
    record = editor.create(post.kind, **post.body(status=status, date="2026-01-15"))
    changed = editor.change(
        post.kind, record["id"], description="x", **{post.name_param: record[post.name_param] + " x"}
    )
    assert publication_fields(changed) == publication_fields(record)


@pytest.mark.quick("events-publish-publish", "organizers-trash-trash")
@pytest.mark.parametrize("before", ["publish", "draft", "pending", "private", "trash"])
@pytest.mark.parametrize("after", ["publish", "draft", "pending", "private", "trash"])
def test_all_status_transitions_are_possible(editor: Caller, post: Sample, before: str, after: str) -> None:
    record = editor.create(post.kind, **post.body())
    editor.change(post.kind, record["id"], status=before)
    assert editor.change(post.kind, record["id"], status=after)["status"] == after


@pytest.mark.quick("events-trash", "organizers-wrong11")
@pytest.mark.parametrize(
    "wrong", ["trash", "any", "", "PUBLISH", "auto-draft", "inherit", "x", 5, True, [], ["draft"], {}]
)
def test_invalid_initial_status_is_rejected(editor: Caller, post: Sample, wrong: object) -> None:
    assert_error(editor.post(f"/{post.kind}", post.body(status=wrong)), 400, "rest_invalid_param", "status")
    record = editor.create(post.kind, **post.body())
    if wrong != "trash":
        response = editor.patch(f"/{post.kind}/{record['id']}", {"status": wrong})
        assert_error(response, 400, "rest_invalid_param", "status")


@pytest.mark.quick("events-contributor-None-draft", "organizers-administrator-None-publish")
@pytest.mark.parametrize(
    ("role", "requested", "expected"),
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
    app: RunningApp, post: Sample, role: str, requested: str | None, expected: str
) -> None:
    caller = app.caller(role)
    body = post.body(**({"status": requested} if requested else {}))
    record = caller.create(post.kind, **body)
    assert (record["status"], record["author"]) == (expected, str(caller.id))


def test_contributor_cannot_publish_by_update(contributor: Caller, editor: Caller, post: Sample) -> None:
    record = contributor.create(post.kind, **post.body())
    assert contributor.change(post.kind, record["id"], status="publish")["status"] == "pending"
    assert contributor.change(post.kind, record["id"], date="2020-01-01")["status"] == "pending"
    assert contributor.change(post.kind, record["id"], status="private")["status"] == "pending"
    assert editor.change(post.kind, record["id"], status="publish")["status"] == "publish"
    assert_error(contributor.patch(f"/{post.kind}/{record['id']}", {"description": "x"}), 403, "rest_forbidden")


# Authors --------------------------------------------------------------------------------------


def test_editor_can_set_author(editor: Caller, author: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body(author=author.id))
    assert record["author"] == str(author.id)
    assert editor.change(post.kind, record["id"], author=str(editor.id))["author"] == str(editor.id)
    assert editor.change(post.kind, record["id"], description="x")["author"] == str(editor.id)


@pytest.mark.quick("events-contributor", "organizers-author")
@pytest.mark.parametrize("role", ["contributor", "author"])
def test_other_roles_cannot_set_author(app: RunningApp, editor: Caller, post: Sample, role: str) -> None:
    caller = app.caller(role)
    assert_error(caller.post(f"/{post.kind}", post.body(author=editor.id)), 403, "rest_forbidden")
    record = caller.create(post.kind, **post.body(author=caller.id, status="draft"))
    assert record["author"] == str(caller.id)
    assert_error(caller.patch(f"/{post.kind}/{record['id']}", {"author": editor.id}), 403, "rest_forbidden")


@pytest.mark.quick("events-999999", "organizers-1152921504606846976")
@pytest.mark.parametrize("wrong", [999999, 0, -1, "x", 1.5, True, [], {}, "", 2**60])
def test_unknown_author_is_rejected(editor: Caller, post: Sample, wrong: object) -> None:
    assert_error(editor.post(f"/{post.kind}", post.body(author=wrong)), 400, "rest_invalid_param", "author")
