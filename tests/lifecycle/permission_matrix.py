"""The table of everybody × every record × every operation, and the records it is asked of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from typing import Any, get_args

import httpx

from kalends.operations import accounts
from tests.api.running_app import Caller, Interface, done
from tests.api.sample_records import SAMPLES
from tests.lifecycle import expected_permissions
from tests.lifecycle.expected_permissions import Answer, Case, Guard, Offer, Sight
from tests.lifecycle.lifecycle_fixtures import EXTENSION
from tests.soak import SOAK

PASSWORD = "open sesame"
FAR = "2098-01-01 10:00:00"
# A record in the trash remembers what it was; that decides whose it is.
STATES = [*((status, "") for status in expected_permissions.STATUSES[:-1]), ("trash", "publish"), ("trash", "draft")]

Rule = Callable[[Case], Answer | Sight]

READS: dict[str, Rule] = {"read by ID": expected_permissions.reading, "read by slug": expected_permissions.reading}
WRITES: dict[str, Rule] = {
    "update by ID": expected_permissions.updating,
    "update by slug": expected_permissions.updating,
    "delete by ID": expected_permissions.deleting,
    "delete by slug": expected_permissions.deleting,
}
LISTS: dict[str, Rule] = {
    f"list {asked or 'default'}": lambda case, asked=asked: expected_permissions.listing(case, asked)  # type: ignore[misc]
    for asked in ("", *expected_permissions.STATUSES)
}
OTHERS: dict[str, Rule] = {
    "history": expected_permissions.history,
    "restore": expected_permissions.restoring,
    "changes": expected_permissions.following,
}


@dataclass(frozen=True)
class Cell:
    case: Case
    operation: str
    expected: Answer | Sight


def cells(kind: str) -> Iterator[Cell]:
    """Every cell of a kind. What only reads comes first, so that nothing has moved yet when it is asked."""
    guards: tuple[Guard, ...] = get_args(Guard) if kind == "events" else ("open",)
    for name, rule in _operations(kind).items():
        for guard, (role, own), (status, was) in product(guards, _somebody(), STATES):
            for offer in _offers(guard, name) if SOAK or _matters(guard, name) else ():
                case = Case(kind, role, own, status, was, guard, offer)
                yield Cell(case, name, rule(case))


def _operations(kind: str) -> dict[str, Rule]:
    embedded: dict[str, Rule] = {} if kind == "events" else {"embedded": expected_permissions.embedding}
    return {**LISTS, **embedded, "changes": OTHERS["changes"], **READS, **OTHERS, **WRITES}


def _matters(guard: Guard, operation: str) -> bool:
    """Hiding and protecting are for readers; that they change nothing for writers takes a longer run."""
    return guard == "open" or not (operation in ("history", "restore") or (guard == "hidden" and operation in WRITES))


def _somebody() -> list[tuple[str, bool]]:
    """Nobody owns a record of their own."""
    return [
        (role, own)
        for role, own in product(expected_permissions.ROLES, (False, True))
        if role != "anonymous" or not own
    ]


def _offers(guard: Guard, operation: str) -> tuple[Offer, ...]:
    if guard != "protected":
        return ("nothing",)
    if operation in READS:
        return get_args(Offer)
    if operation in WRITES:
        return ("nothing", "wrong") if SOAK else ("nothing",)
    return ("nothing", "right") if operation in LISTS else ("nothing",)


@dataclass(frozen=True)
class Record:
    id: int
    slug: str


class Table:
    """The records of one kind in all states, of everybody and of a stranger, and how each cell is asked."""

    def __init__(self, interface: Interface, kind: str) -> None:
        self.interface, self.kind, self.sample = interface, kind, SAMPLES[kind]
        self.requests = 0
        self._addresses = count(1)
        self._answers: dict[tuple[Case, str], httpx.Response] = {}
        self._many = cache(self._ask_for_many)
        self._administrator.create("tags", **SAMPLES["tags"].body())  # 0 would be a copy that begins
        self._since: int = interface.sql("SELECT revision FROM sites")[0]["revision"]
        stranger = interface.operate(lambda tx: accounts.add_user(tx, f"stranger to {kind}", "author", ""))
        self._owners = {**{role: person.id for role, person in interface.people.items()}, "stranger": stranger}
        guards: tuple[Guard, ...] = get_args(Guard) if kind == "events" else ("open",)
        keys = list(product(self._owners, STATES, guards))
        self._records = {key: self._create(*key) for key in keys}
        if kind != "events":
            links = {self.sample.singular: [record.id for record in self._records.values()]}
            self._event = self._administrator.create("events", **SAMPLES["events"].body(**links))["id"]
        for (owner, (status, was), guard), record in self._records.items():
            if was:
                trashed = self._administrator.trash(kind, record.id)
                self._records[owner, (status, was), guard] = Record(record.id, trashed["slug"])

    @property
    def _administrator(self) -> Caller:
        return self.interface.caller("administrator")

    def _create(self, owner: str, state: tuple[str, str], guard: Guard) -> Record:
        status, was = state
        body = self.sample.body(author=self._owners[owner], status=was or status, description="Told.")
        if self.kind == "events":
            body["slug"] = f"{owner}-{status}-{was}-{guard}"
            body["hide_from_listings"] = guard == "hidden"
        if guard == "protected":
            body["new_password"] = PASSWORD
        if status == "future":
            body["date_utc"] = FAR
        made = self._administrator.create(self.kind, **body)
        assert made["status"] == (was or status)
        return Record(made["id"], made["slug"])

    def record(self, case: Case) -> Record:
        owner = case.role if case.own else "stranger"
        return self._records[owner, (case.status, case.was), case.guard]

    def ask(self, cell: Cell) -> Answer | Sight:
        """What the server says in this cell; afterwards the record is as it was."""
        case, record = cell.case, self.record(cell.case)
        verb, _, how = cell.operation.partition(" ")
        if verb == "list":
            return self._sight(self._many(case.role, cell.operation, case.offer), record)
        if verb in ("embedded", "changes"):
            return self._sight(self._many(case.role, verb, "nothing"), record)
        answer = self._request(case, verb, record, f"by-slug/{record.slug}" if how == "by slug" else str(record.id))
        if verb in ("delete", "restore") and answer.status_code == 200:
            self._put_back(case)
        if how == "by slug":
            self._compare_routes(case, verb, answer)
        self._answers[case, verb] = answer
        body = answer.json()
        return Answer(answer.status_code, body.get("code") or body.get("status", ""))

    def _request(self, case: Case, verb: str, record: Record, at: str) -> httpx.Response:
        self.requests += 1
        query = {
            "nothing": {},
            "right": {"password": PASSWORD},
            "wrong": {"password": "guess"},
            "edit": {"context": "edit"},
        }[case.offer]
        ours = f"{EXTENSION}/{self.kind}/{record.id}"
        method, path, body = {
            "read": ("GET", f"/{self.kind}/{at}", None),
            "update": ("PATCH", f"/{self.kind}/{at}", {self.sample.text: "changed"}),
            "delete": ("DELETE", f"/{self.kind}/{at}", None),
            "history": ("GET", f"{ours}/history", None),
            "restore": ("POST", f"{ours}/restore", None),
        }[verb]
        return self._caller(case.role).request(method, path, params=query, json=body)

    def _caller(self, role: str) -> Caller:
        """Each request comes from an address of its own, so that wrong passwords do not add up."""
        caller = self.interface.caller(role)
        caller.headers = {"X-Forwarded-For": f"2001:db8:0:{next(self._addresses):x}::1"}
        return caller

    def move(self, case: Case, asked: str) -> Answer:
        """The answer to an update with a status; afterwards the record is as it was."""
        self.requests += 1
        path = f"/{self.kind}/{self.record(case).id}"
        answer = self._caller(case.role).patch(path, {"status": asked})
        body = answer.json()
        if answer.status_code == 200 and body["status"] != case.status:
            self._put_back(case)
        return Answer(answer.status_code, body.get("code") or body["status"])

    def _put_back(self, case: Case) -> None:
        record = self.record(case)
        self.interface.sql(
            f"UPDATE {self.kind} SET status = $1, trashed_status = $2, slug = $3, "
            "trashed_at = CASE WHEN $1 = 'trash' THEN now() END WHERE id = $4",
            case.status, case.was, record.slug, record.id,
        )  # fmt: skip

    def _compare_routes(self, case: Case, verb: str, by_slug: httpx.Response) -> None:
        by_id = self._answers[case, verb]
        one, other = by_id.json(), by_slug.json()
        for body in (one, other):
            for name in ("modified", "modified_utc", "json_ld"):
                body.pop(name, None)
        assert (by_id.status_code, one) == (by_slug.status_code, other), (case, verb)

    def _ask_for_many(self, role: str, operation: str, offer: Offer) -> dict[int, Sight] | None:
        """What a list, an event with all records in it, or the feed shows of each; None: it is refused."""
        if operation == "embedded":
            self.requests += 1
            shown = done(self._caller(role).get(f"/events/{self._event}"))[self.sample.singular]
            return {record["id"]: "whole" for record in shown}
        if operation == "changes":
            return self._follow(role)
        asked = operation.removeprefix("list ").removeprefix("default")
        query = {"per_page": 50, **({"status": asked} if asked else {})}
        if offer == "right":
            query["password"] = PASSWORD
        sights: dict[int, Sight] = {}
        for page in count(1):
            self.requests += 1
            answer = self._caller(role).get(f"/{self.kind}", {**query, "page": page})
            if answer.status_code == 400:
                assert list(answer.json()["data"]["params"]) == ["status"]
                return None
            body = done(answer)
            sights.update({record["id"]: _look(record) for record in body[self.kind]})
            if page >= body["total_pages"]:
                assert len(sights) == body["total"]
                break
        return sights

    def _follow(self, role: str) -> dict[int, Sight]:
        sights: dict[int, Sight] = {}
        since, more = self._since, True
        while more:
            self.requests += 1
            query = {"since": since, "kind": self.kind, "per_page": 500}
            page = done(self._caller(role).get(f"{EXTENSION}/changes", query))
            for change in page["changes"]:
                sights[change["id"]] = "gone" if change["deleted"] else _look(change["record"])
            since, more = page["next_since"], page["more"]
        return sights

    @staticmethod
    def _sight(many: dict[int, Sight] | None, record: Record) -> Sight:
        return "refused" if many is None else many.get(record.id, "absent")


def _look(record: dict[str, Any]) -> Sight:
    return "whole" if record.get("description") == "<p>Told.</p>" else "blank"
