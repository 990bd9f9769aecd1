"""Who may read and change what: every role, status, owner and kind (behaviour 2.2).

The rules stand twice in the code, in Python and in SQL. Here both are held against the table of the
interface and against real rows, and the routes by ID, by slug and the lists against both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kalends.core.statuses import STATUSES
from kalends.kinds.kind import Actor
from kalends.operations import permissions
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.interface import ROLES, Caller, Interface, assert_refused
from tests.api.samples import POSTS, SAMPLES, Sample

EVERYBODY = ("anonymous", *ROLES)
LIVE = STATUSES[:-1]
# Every status, and the trash after each of the others.
STATES = [*LIVE, *(f"trash after {status}" for status in LIVE)]


@dataclass(frozen=True)
class Held:
    id: int
    slug: str
    owner: str
    status: str
    before: str  # the status before the trash


def may_edit(role: str, record: Held) -> bool:
    """Editors everything, authors their own, contributors theirs until it is published."""
    if role in ("editor", "administrator"):
        return True
    state = record.before or record.status
    return record.owner == role and (
        role == "author" or (role == "contributor" and state not in ("publish", "future"))
    )


def may_read(role: str, record: Held) -> bool:
    if record.status == "trash":
        return may_edit(role, record)
    return record.status == "publish" or role in ("editor", "administrator") or record.owner == role


class Matrix:
    def __init__(self, interface: Interface, post: Sample) -> None:
        self.interface, self.post = interface, post
        self.actors = {
            role: Actor(interface.people[role].id, role, role) if role in interface.people else Actor()
            for role in EVERYBODY
        }
        editor = interface.caller("administrator")
        self.records: list[Held] = []
        for owner in ROLES:
            for state in STATES:
                self.records.append(self.make(editor, owner, state))

    def make(self, editor: Caller, owner: str, state: str) -> Held:
        status = state.removeprefix("trash after ")
        name = f"{owner} {state}"
        fields = {self.post.name: name, "author": self.interface.people[owner].id, "status": status}
        fields |= {"date": "2090-01-01"} if status == "future" else {}
        fields |= {"slug": name} if self.post.kind == "events" else {}
        made = editor.create(self.post.kind, **self.post.body(**fields))
        assert (made["status"], made["author"]) == (status, str(fields["author"]))
        if state == status:
            return Held(made["id"], made["slug"], owner, status, "")
        trashed = editor.trash(self.post.kind, made["id"])
        return Held(trashed["id"], trashed["slug"], owner, "trash", status)

    def rows(self, condition: Sql, actor: Actor) -> dict[int, Any]:
        """What the condition says of each row."""

        async def select(tx: Transaction) -> list[Any]:
            sql = Sql("SELECT r.id, r.author_id, r.status, r.trashed_status, (") + condition
            return await tx.fetch_all(sql + Sql(") AS holds FROM " + self.post.kind + " r"))

        return {row["id"]: row for row in self.interface.operate(select)}


@pytest.fixture(scope="module", params=POSTS, ids=lambda post: post.kind)
def matrix(request: pytest.FixtureRequest, fresh_for_module: Callable[..., Interface]) -> Matrix:
    return Matrix(fresh_for_module(), request.param)


@pytest.mark.parametrize("role", EVERYBODY)
def test_python_and_sql_say_the_same_as_the_table(matrix: Matrix, role: str) -> None:
    actor = matrix.actors[role]
    readable = matrix.rows(permissions.readable_condition(actor), actor)
    editable = matrix.rows(permissions.editable_condition(actor), actor)
    embedded = matrix.rows(permissions.embeddable_condition(actor), actor)
    assert len(readable) == len(matrix.records) == 50
    for record in matrix.records:
        reads, edits = may_read(role, record), may_edit(role, record)
        row = readable[record.id]
        assert (row["holds"], permissions.may_read(actor, row)) == (reads, reads), record
        assert (editable[record.id]["holds"], permissions.may_edit(actor, row)) == (edits, edits), record
        assert embedded[record.id]["holds"] == (reads and record.status != "trash"), record


@pytest.mark.parametrize("role", EVERYBODY)
def test_reading_by_id_and_by_slug(matrix: Matrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    for record in matrix.records:
        for path in (f"/{post.kind}/{record.id}", f"/{post.kind}/by-slug/{record.slug}"):
            answer = caller.get(path)
            if post.kind == "events" and record.status == "trash":
                assert_refused(answer, 403, "event-no-longer-available")
            elif may_read(role, record):
                assert (answer.status_code, answer.json()["id"]) == (200, record.id), record
            else:
                assert_refused(answer, 403, f"{post.singular}-not-accessible")


@pytest.mark.parametrize("role", EVERYBODY)
def test_lists_contain_what_can_be_read(matrix: Matrix, role: str) -> None:
    caller, kind = matrix.interface.caller(role), matrix.post.kind
    readable = [record for record in matrix.records if may_read(role, record)]
    assert set(caller.ids(kind)) == {record.id for record in readable if record.status != "trash"}
    for status in STATUSES:
        answer = caller.get(f"/{kind}", {"status": status})
        if role in ("anonymous", "subscriber") and status != "publish":
            assert_refused(answer, 400, "rest_invalid_param", "status")
        else:
            assert set(caller.ids(kind, status=status)) == {one.id for one in readable if one.status == status}


@pytest.mark.parametrize("role", EVERYBODY)
def test_writing_by_id_and_by_slug(matrix: Matrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    for number, record in enumerate(matrix.records):
        # Each in turn: the rule is looked up behind the address.
        by_slug = (number + number // len(STATES) + EVERYBODY.index(role)) % 2
        path = f"/{post.kind}/by-slug/{record.slug}" if by_slug else f"/{post.kind}/{record.id}"
        answer = caller.patch(path, {"description": f"by {role}"})
        if may_edit(role, record):
            assert (answer.status_code, answer.json()["status"]) == (200, record.status), record
        else:
            assert_refused(answer, 401 if role == "anonymous" else 403, "rest_forbidden")
            assert record.slug not in answer.text


@pytest.mark.parametrize("role", EVERYBODY)
def test_deleting(matrix: Matrix, role: str) -> None:
    caller, post = matrix.interface.caller(role), matrix.post
    administrator = matrix.interface.caller("administrator")
    spare: list[int] = []
    for record in matrix.records:
        if may_edit(role, record) and record.status != "trash":
            made = matrix.make(administrator, record.owner, record.status)
            spare.append(made.id)
            answer = caller.delete(f"/{post.kind}/by-slug/{made.slug}")
            assert (answer.status_code, answer.json()["status"]) == (200, "trash")
            continue
        answer = caller.delete(f"/{post.kind}/{record.id}")
        if may_edit(role, record):
            assert_refused(answer, 410, f"{post.singular}-is-in-trash")
        else:
            assert_refused(answer, 401 if role == "anonymous" else 403, "rest_forbidden")
    matrix.interface.sql(f"DELETE FROM {post.kind} WHERE id = ANY($1)", spare)


def test_who_writes_each_kind() -> None:
    least = {kind: permissions.ROLES[rank] for kind, rank in permissions.MIN_WRITER_ROLES.items()}
    assert least == {
        "events": "contributor",
        "venues": "contributor",
        "organizers": "contributor",
        "categories": "author",
        "tags": "editor",
        "media": "author",
    }


@pytest.mark.parametrize("role", EVERYBODY)
def test_who_creates_each_kind(interface: Interface, sample: Sample, role: str) -> None:
    least = {"categories": "author", "tags": "editor"}.get(sample.kind, "contributor")
    answer = interface.caller(role).post(f"/{sample.kind}", sample.body())
    if EVERYBODY.index(role) >= EVERYBODY.index(least):
        assert answer.status_code == 201
    else:
        assert_refused(answer, 401 if role == "anonymous" else 403, "rest_forbidden")


def test_nobody_becomes_somebody_by_what_they_send(editor: Caller, contributor: Caller) -> None:
    """Fields that are no parameters are ignored, whoever sends them (reliability.md, S3)."""
    sent = {"site_id": 2, "id": 77, "revision": 1, "role": "administrator", "author_id": editor.id,
    "post_author": editor.id,
            "trashed_status": "publish", "password_hash": "x", "post_parent": 1, "uid": "0" * 32}  # fmt: skip
    made = contributor.create("events", **SAMPLES["events"].body(**sent))
    assert (made["author"], made["status"], made["id"] != 77) == (str(contributor.id), "draft", True)
    assert contributor.read("events", made["id"])["id"] == made["id"]
