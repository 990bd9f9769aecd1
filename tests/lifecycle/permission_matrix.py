"""The matrix of all callers, records and operations, and the records that it needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from typing import Any, get_args

import httpx

from kalends.accounts.operations import user_accounts
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.api.sample_records import SAMPLES
from tests.lifecycle import expected_permissions
from tests.lifecycle.expected_permissions import Case, Credential, ExpectedResponse, ListVisibility, Visibility
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL
from tests.soak import SOAK

PASSWORD = "open sesame"
FAR_FUTURE = "2098-01-01 10:00:00"
# A record in the trash remembers what it was; that decides whose it is.
STATUS_PAIRS = [
    *((status, "") for status in expected_permissions.STATUSES[:-1]),
    ("trash", "publish"),
    ("trash", "draft"),
]

Rule = Callable[[Case], ExpectedResponse | ListVisibility]

READS: dict[str, Rule] = {
    "read by ID": expected_permissions.expect_read,
    "read by slug": expected_permissions.expect_read,
}
WRITES: dict[str, Rule] = {
    "update by ID": expected_permissions.expect_update,
    "update by slug": expected_permissions.expect_update,
    "delete by ID": expected_permissions.expect_delete,
    "delete by slug": expected_permissions.expect_delete,
}
LISTS: dict[str, Rule] = {
    f"list {status or 'default'}": lambda case, status=status: expected_permissions.expect_listing(case, status)  # type: ignore[misc]
    for status in ("", *expected_permissions.STATUSES)
}
OTHERS: dict[str, Rule] = {
    "history": expected_permissions.expect_history,
    "restore": expected_permissions.expect_restore,
    "changes": expected_permissions.expect_change_feed,
}


@dataclass(frozen=True)
class Cell:
    case: Case
    operation: str
    expected: ExpectedResponse | ListVisibility


def iter_cells(kind: str) -> Iterator[Cell]:
    """Return all cells of a kind. Reads come first, before any record changes."""
    visibilities: tuple[Visibility, ...] = get_args(Visibility) if kind == "events" else ("open",)
    for name, rule in _rules_by_operation(kind).items():
        for visibility, (role, is_own), (status, status_before_trash) in product(
            visibilities, _callers(), STATUS_PAIRS
        ):
            for credential in _credentials(visibility, name) if SOAK or _is_relevant(visibility, name) else ():
                case = Case(kind, role, is_own, status, status_before_trash, visibility, credential)
                yield Cell(case, name, rule(case))


def _rules_by_operation(kind: str) -> dict[str, Rule]:
    embedded: dict[str, Rule] = {} if kind == "events" else {"embedded": expected_permissions.expect_embedding}
    return {**LISTS, **embedded, "changes": OTHERS["changes"], **READS, **OTHERS, **WRITES}


def _is_relevant(visibility: Visibility, operation: str) -> bool:
    """Hiding and protecting are for readers; that they change nothing for writers takes a longer run."""
    return visibility == "open" or not (
        operation in ("history", "restore") or (visibility == "hidden" and operation in WRITES)
    )


def _callers() -> list[tuple[str, bool]]:
    """Nobody owns a record of their own."""
    return [
        (role, is_own)
        for role, is_own in product(expected_permissions.ROLES, (False, True))
        if role != "anonymous" or not is_own
    ]


def _credentials(visibility: Visibility, operation: str) -> tuple[Credential, ...]:
    if visibility != "protected":
        return ("nothing",)
    if operation in READS:
        return get_args(Credential)
    if operation in WRITES:
        return ("nothing", "wrong") if SOAK else ("nothing",)
    return ("nothing", "right") if operation in LISTS else ("nothing",)


@dataclass(frozen=True)
class Record:
    id: int
    slug: str


class MatrixSite:
    """The records of one kind in all states and of all users, and the request of each cell."""

    def __init__(self, app: RunningApp, kind: str) -> None:
        self.interface, self.kind, self.sample = app, kind, SAMPLES[kind]
        self.requests = 0
        self._addresses = count(1)
        self._responses: dict[tuple[Case, str], httpx.Response] = {}
        self._list_cached = cache(self._list_visibility)
        self._administrator.create("tags", **SAMPLES["tags"].body())  # 0 would be a copy that begins
        self._since: int = app.sql("SELECT revision FROM sites")[0]["revision"]
        stranger = app.run_operation(lambda tx: user_accounts.add_user(tx, f"stranger-to-{kind}", "author", ""))
        self._owners = {**{role: user.id for role, user in app.users.items()}, "stranger": stranger}
        visibilities: tuple[Visibility, ...] = get_args(Visibility) if kind == "events" else ("open",)
        keys = list(product(self._owners, STATUS_PAIRS, visibilities))
        self._records = {key: self._create(*key) for key in keys}
        if kind != "events":
            links = {self.sample.singular: [record.id for record in self._records.values()]}
            # By SQL, because publishing the event through the API would publish its drafts.
            self._event = self._administrator.create("events", **SAMPLES["events"].body(status="private", **links))[
                "id"
            ]
            app.sql("UPDATE events SET status = 'publish' WHERE id = $1", self._event)
        for (owner, (status, status_before_trash), visibility), record in self._records.items():
            if status_before_trash:
                trashed = self._administrator.trash(kind, record.id)
                self._records[owner, (status, status_before_trash), visibility] = Record(record.id, trashed["slug"])

    @property
    def _administrator(self) -> Caller:
        return self.interface.caller("administrator")

    def _create(self, owner: str, state: tuple[str, str], visibility: Visibility) -> Record:
        status, status_before_trash = state
        body = self.sample.body(author=self._owners[owner], status=status_before_trash or status, description="Told.")
        if self.kind == "events":
            body["slug"] = f"{owner}-{status}-{status_before_trash}-{visibility}"
            body["hide_from_listings"] = visibility == "hidden"
        if visibility == "protected":
            body["new_password"] = PASSWORD
        if status == "future":
            body["date_utc"] = FAR_FUTURE
        record = self._administrator.create(self.kind, **body)
        assert record["status"] == (status_before_trash or status)
        return Record(record["id"], record["slug"])

    def record(self, case: Case) -> Record:
        owner = case.role if case.is_own else "stranger"
        return self._records[owner, (case.status, case.status_before_trash), case.visibility]

    def evaluate(self, cell: Cell) -> ExpectedResponse | ListVisibility:
        """What the server says in this cell; afterwards the record is as it was."""
        case, record = cell.case, self.record(cell.case)
        verb, _, route = cell.operation.partition(" ")
        if verb == "list":
            return self._record_visibility(self._list_cached(case.role, cell.operation, case.credential), record)
        if verb in ("embedded", "changes"):
            return self._record_visibility(self._list_cached(case.role, verb, "nothing"), record)
        response = self._request(
            case, verb, record, f"by-slug/{record.slug}" if route == "by slug" else str(record.id)
        )
        if verb in ("delete", "restore") and response.status_code == 200:
            self._reset_record(case)
        if route == "by slug":
            self._compare_routes(case, verb, response)
        self._responses[case, verb] = response
        body = response.json()
        return ExpectedResponse(response.status_code, body.get("code") or body.get("status", ""))

    def _request(self, case: Case, verb: str, record: Record, at: str) -> httpx.Response:
        self.requests += 1
        query = {
            "nothing": {},
            "right": {"password": PASSWORD},
            "wrong": {"password": "guess"},
            "edit": {"context": "edit"},
        }[case.credential]
        extension_url = f"{EXTENSION_URL}/{self.kind}/{record.id}"
        method, path, body = {
            "read": ("GET", f"/{self.kind}/{at}", None),
            "update": ("PATCH", f"/{self.kind}/{at}", {self.sample.text_param: "changed"}),
            "delete": ("DELETE", f"/{self.kind}/{at}", None),
            "history": ("GET", f"{extension_url}/history", None),
            "restore": ("POST", f"{extension_url}/restore", None),
        }[verb]
        return self._caller(case.role).request(method, path, params=query, json=body)

    def _caller(self, role: str) -> Caller:
        """Send each request from another IP address, so that failed logins do not add up."""
        caller = self.interface.caller(role)
        caller.headers = {"X-Forwarded-For": f"2001:db8:0:{next(self._addresses):x}::1"}
        return caller

    def change_status(self, case: Case, status: str) -> ExpectedResponse:
        """The answer to an update with a status; afterwards the record is as it was."""
        self.requests += 1
        path = f"/{self.kind}/{self.record(case).id}"
        reply = self._caller(case.role).patch(path, {"status": status})
        body = reply.json()
        if reply.status_code == 200 and body["status"] != case.status:
            self._reset_record(case)
        return ExpectedResponse(reply.status_code, body.get("code") or body["status"])

    def _reset_record(self, case: Case) -> None:
        record = self.record(case)
        self.interface.sql(
            f"UPDATE {self.kind} SET status = $1, trashed_status = $2, slug = $3, "
            "trashed_at = CASE WHEN $1 = 'trash' THEN now() END WHERE id = $4",
            case.status, case.status_before_trash, record.slug, record.id,
        )  # fmt: skip

    def _compare_routes(self, case: Case, verb: str, by_slug: httpx.Response) -> None:
        by_id = self._responses[case, verb]
        one, other = by_id.json(), by_slug.json()
        for body in (one, other):
            for name in ("modified", "modified_utc", "json_ld"):
                body.pop(name, None)
        assert (by_id.status_code, one) == (by_slug.status_code, other), (case, verb)

    def _list_visibility(self, role: str, operation: str, credential: Credential) -> dict[int, ListVisibility] | None:
        """What a list, an event with all records in it, or the feed shows of each; None: it is refused."""
        if operation == "embedded":
            self.requests += 1
            linked = expect_json(self._caller(role).get(f"/events/{self._event}"))[self.sample.singular]
            return {record["id"]: "whole" for record in linked}
        if operation == "changes":
            return self._read_change_feed(role)
        status = operation.removeprefix("list ").removeprefix("default")
        query = {"per_page": 50, **({"status": status} if status else {})}
        if credential == "right":
            query["password"] = PASSWORD
        visibilities: dict[int, ListVisibility] = {}
        for page in count(1):
            self.requests += 1
            result = self._caller(role).get(f"/{self.kind}", {**query, "page": page})
            if result.status_code == 400:
                assert list(result.json()["data"]["params"]) == ["status"]
                return None
            body = expect_json(result)
            visibilities.update({record["id"]: _content_visibility(record) for record in body[self.kind]})
            if page >= body["total_pages"]:
                assert len(visibilities) == body["total"]
                break
        return visibilities

    def _read_change_feed(self, role: str) -> dict[int, ListVisibility]:
        visibilities: dict[int, ListVisibility] = {}
        since, more = self._since, True
        while more:
            self.requests += 1
            query = {"since": since, "kind": self.kind, "per_page": 500}
            page = expect_json(self._caller(role).get(f"{EXTENSION_URL}/changes", query))
            for change in page["changes"]:
                visibilities[change["id"]] = "gone" if change["deleted"] else _content_visibility(change["record"])
            since, more = page["next_since"], page["more"]
        return visibilities

    @staticmethod
    def _record_visibility(visibilities: dict[int, ListVisibility] | None, record: Record) -> ListVisibility:
        return "refused" if visibilities is None else visibilities.get(record.id, "absent")


def _content_visibility(record: dict[str, Any]) -> ListVisibility:
    return "whole" if record.get("description") == "<p>Told.</p>" else "blank"
