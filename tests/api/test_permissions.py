"""Who may read and change what: every role, status, owner and kind (behaviour 2.2).

The rules stand twice in the code, in Python and in SQL. Here both are held against the table of the
interface and against real rows, and the routes by ID, by slug and the lists against both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kalends.calendar.access import permissions
from kalends.calendar.kinds.kind import Actor
from kalends.core.statuses import STATUSES
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.running_app import ROLES, Caller, RunningApp, assert_error
from tests.api.sample_records import POSTS, SAMPLES, Sample

ALL_ROLES = ("anonymous", *ROLES)
LIVE_STATUSES = STATUSES[:-1]
# Every status, and the trash after each of the others.
STATES = [*LIVE_STATUSES, *(f"trash after {status}" for status in LIVE_STATUSES)]


@dataclass(frozen=True)
class OwnedRecord:
    id: int
    slug: str
    owner: str
    status: str
    status_before_trash: str  # the status before the trash


def may_edit(role: str, record: OwnedRecord) -> bool:
    """Editors everything, authors their own, contributors theirs until it is published."""
    if role in ("editor", "administrator"):
        return True
    state = record.status_before_trash or record.status
    return record.owner == role and (
        role == "author" or (role == "contributor" and state not in ("publish", "future"))
    )


def may_read(role: str, record: OwnedRecord) -> bool:
    if record.status == "trash":
        return may_edit(role, record)
    return record.status == "publish" or role in ("editor", "administrator") or record.owner == role


class PermissionMatrix:
    def __init__(self, app: RunningApp, post: Sample) -> None:
        self.interface, self.post = app, post
        self.actors = {
            role: Actor(app.users[role].id, role, role) if role in app.users else Actor() for role in ALL_ROLES
        }
        editor = app.caller("administrator")
        self.records: list[OwnedRecord] = []
        for owner in ROLES:
            for state in STATES:
                self.records.append(self.create_record(editor, owner, state))

    def create_record(self, editor: Caller, owner: str, state: str) -> OwnedRecord:
        status = state.removeprefix("trash after ")
        name = f"{owner} {state}"
        fields = {self.post.name_param: name, "author": self.interface.users[owner].id, "status": status}
        fields |= {"date": "2090-01-01"} if status == "future" else {}
        fields |= {"slug": name} if self.post.kind == "events" else {}
        record = editor.create(self.post.kind, **self.post.body(**fields))
        assert (record["status"], record["author"]) == (status, str(fields["author"]))
        if state == status:
            return OwnedRecord(record["id"], record["slug"], owner, status, "")
        trashed = editor.trash(self.post.kind, record["id"])
        return OwnedRecord(trashed["id"], trashed["slug"], owner, "trash", status)

    def evaluate_condition(self, condition: Sql, actor: Actor) -> dict[int, Any]:
        """What the condition says of each row."""

        async def select_rows(tx: Transaction) -> list[Any]:
            sql = Sql("SELECT r.id, r.author_id, r.status, r.trashed_status, (") + condition
            return await tx.fetch_all(sql + Sql(") AS holds FROM " + self.post.kind + " r"))

        return {row["id"]: row for row in self.interface.run_operation(select_rows)}


@pytest.fixture(scope="module", params=POSTS, ids=lambda post: post.kind)
def matrix(request: pytest.FixtureRequest, start_app_for_module: Callable[..., RunningApp]) -> PermissionMatrix:
    return PermissionMatrix(start_app_for_module(), request.param)


@pytest.mark.parametrize("role", ALL_ROLES)
def test_python_and_sql_rules_match_expected_permissions(matrix: PermissionMatrix, role: str) -> None:
    actor = matrix.actors[role]
    readable = matrix.evaluate_condition(permissions.readable_condition(actor), actor)
    editable = matrix.evaluate_condition(permissions.editable_condition(actor), actor)
    embedded = matrix.evaluate_condition(permissions.embeddable_condition(actor), actor)
    assert len(readable) == len(matrix.records) == 50
    for record in matrix.records:
        reads, edits = may_read(role, record), may_edit(role, record)
        row = readable[record.id]
        assert (row["holds"], permissions.may_read(actor, row)) == (reads, reads), record
        assert (editable[record.id]["holds"], permissions.may_edit(actor, row)) == (edits, edits), record
        assert embedded[record.id]["holds"] == (reads and record.status != "trash"), record


@pytest.mark.parametrize("role", ALL_ROLES)
def test_read_permissions_by_id_and_by_slug(matrix: PermissionMatrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    for record in matrix.records:
        for path in (f"/{post.kind}/{record.id}", f"/{post.kind}/by-slug/{record.slug}"):
            response = caller.get(path)
            if post.kind == "events" and record.status == "trash":
                assert_error(response, 403, "event-no-longer-available")
            elif may_read(role, record):
                assert (response.status_code, response.json()["id"]) == (200, record.id), record
            else:
                assert_error(response, 403, f"{post.singular}-not-accessible")


@pytest.mark.parametrize("role", ALL_ROLES)
def test_lists_contain_only_readable_records(matrix: PermissionMatrix, role: str) -> None:
    caller, kind = matrix.interface.caller(role), matrix.post.kind
    readable = [record for record in matrix.records if may_read(role, record)]
    assert set(caller.ids(kind)) == {record.id for record in readable if record.status != "trash"}
    for status in STATUSES:
        response = caller.get(f"/{kind}", {"status": status})
        if role in ("anonymous", "subscriber") and status != "publish":
            assert_error(response, 400, "rest_invalid_param", "status")
        else:
            assert set(caller.ids(kind, status=status)) == {one.id for one in readable if one.status == status}


@pytest.mark.parametrize("role", ALL_ROLES)
def test_write_permissions_by_id_and_by_slug(matrix: PermissionMatrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    for number, record in enumerate(matrix.records):
        # Each in turn: the rule is looked up behind the address.
        by_slug = (number + number // len(STATES) + ALL_ROLES.index(role)) % 2
        path = f"/{post.kind}/by-slug/{record.slug}" if by_slug else f"/{post.kind}/{record.id}"
        response = caller.patch(path, {"description": f"by {role}"})
        if may_edit(role, record):
            assert (response.status_code, response.json()["status"]) == (200, record.status), record
        else:
            assert_error(response, 401 if role == "anonymous" else 403, "rest_forbidden")
            assert record.slug not in response.text


@pytest.mark.parametrize("role", ALL_ROLES)
def test_delete_permissions(matrix: PermissionMatrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    administrator = matrix.interface.caller("administrator")
    created_ids: list[int] = []
    for record in matrix.records:
        if may_edit(role, record) and record.status != "trash":
            created = matrix.create_record(administrator, record.owner, record.status)
            created_ids.append(created.id)
            response = caller.delete(f"/{post.kind}/by-slug/{created.slug}")
            assert (response.status_code, response.json()["status"]) == (200, "trash")
            continue
        response = caller.delete(f"/{post.kind}/{record.id}")
        if may_edit(role, record):
            assert_error(response, 410, f"{post.singular}-is-in-trash")
        else:
            assert_error(response, 401 if role == "anonymous" else 403, "rest_forbidden")
    matrix.interface.sql(f"DELETE FROM {post.kind} WHERE id = ANY($1)", created_ids)


def test_minimum_role_to_write_each_kind() -> None:
    minimum_roles = {kind: permissions.ROLES[rank] for kind, rank in permissions.MIN_WRITER_ROLES.items()}
    assert minimum_roles == {
        "events": "contributor",
        "venues": "contributor",
        "organizers": "contributor",
        "categories": "author",
        "tags": "editor",
        "media": "author",
        "series": "contributor",
    }


@pytest.mark.parametrize("role", ALL_ROLES)
def test_create_permissions_of_each_kind(app: RunningApp, sample: Sample, role: str) -> None:
    minimum_role = {"categories": "author", "tags": "editor"}.get(sample.kind, "contributor")
    response = app.caller(role).post(f"/{sample.kind}", sample.body())
    if ALL_ROLES.index(role) >= ALL_ROLES.index(minimum_role):
        assert response.status_code == 201
    else:
        assert_error(response, 401 if role == "anonymous" else 403, "rest_forbidden")


def test_internal_fields_cannot_be_set_by_clients(editor: Caller, contributor: Caller) -> None:
    """Fields that are no parameters are ignored, whoever sends them (reliability.md, S3)."""
    fields = {"site_id": 2, "id": 77, "revision": 1, "role": "administrator", "author_id": editor.id,
    "post_author": editor.id,
            "trashed_status": "publish", "password_hash": "x", "post_parent": 1, "uid": "0" * 32}  # fmt: skip
    record = contributor.create("events", **SAMPLES["events"].body(**fields))
    assert (record["author"], record["status"], record["id"] != 77) == (str(contributor.id), "draft", True)
    assert contributor.read("events", record["id"])["id"] == record["id"]
