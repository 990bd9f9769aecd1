"""Random sequences of sending, editing, deciding and undoing, compared with a model of what may be overwritten.

In the model, a proposal changes a field only if the field still has the value that the sender saw, or if the editor
has chosen the proposed value after seeing the present one.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.writes import write_changes
from kalends.store.database import Transaction
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.proposals.proposals_client import EVENT, ProposalsClient
from tests.soak import scaled

STEPS = 18
CHOICES: dict[str, tuple[Any, ...]] = {
    "title": ("Choir", "Band", "Opera"),
    "website": ("", "https://one.example.org/", "https://two.example.org/"),
    "start_date": ("2031-05-05 18:00:00", "2031-05-05 19:00:00"),
    "end_date": ("2031-05-05 21:00:00", "2031-05-05 22:00:00"),
}
GROUPS = {"title": ("title",), "website": ("website",), "dates": ("start_date", "end_date")}
Values = dict[str, Any]


@dataclass
class Proposed:
    id: str
    sender: int
    values: Values
    seen: Values
    base_revision: int
    state: str = "waiting"
    version: int = 1
    before: Values | None = None  # the event before acceptance
    edits: int = 0  # of people, at acceptance


@dataclass
class Model:
    """One event, the proposals for it, and what both must be like after each step."""

    app: RunningApp
    random: random.Random
    desk: ProposalsClient
    senders: list[ProposalsClient]
    event_id: int = 0
    values: Values = field(default_factory=dict[str, Any])
    proposals: list[Proposed] = field(default_factory=list[Proposed])
    edits: int = 0
    is_trashed: bool = False
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def run(self) -> None:
        if self.random.random() < 0.7:
            self.event_id = self.desk.caller.create("events", **EVENT)["id"]
        else:
            proposal = self.senders[0].propose()
            self.event_id = self.desk.accept(proposal)["record"]
            self.proposals.append(Proposed(proposal["id"], 0, {}, {}, 0, "accepted", 2))
        self.values = self.read()
        for _ in range(STEPS):
            if self.is_trashed:
                return
            name = self.random.choice(
                ("send", "send", "edit", "accept", "accept", "accept", "change", "change", "undo", "undo", "more")
            )
            getattr(self, name)()
            assert self.read() == self.values, name

    def more(self) -> None:
        getattr(self, self.random.choice(("withdraw", "send_back", "work")))()

    def read(self) -> Values:
        columns = "title, website, start_local::text AS start_date, end_local::text AS end_date, featured"
        (row,) = self.app.sql(f"SELECT {columns} FROM events WHERE id = $1", self.event_id)
        return dict(row)

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def choose_values(self) -> Values:
        names = self.random.sample(sorted(CHOICES), self.random.randint(1, 3))
        return {name: self.random.choice(CHOICES[name]) for name in names}

    def choose(self, *states: str) -> Proposed | None:
        found = [row for row in self.proposals if row.state in states]
        return self.random.choice(found) if found else None

    # What senders do

    def send(self) -> None:
        sender, values = self.random.randrange(len(self.senders)), self.choose_values()
        sent = self.senders[sender].propose_change({"id": self.event_id}, **values)
        earlier = next((row for row in self.proposals if row.id == sent["id"]), None)
        own = [row for row in self.proposals if row.sender == sender and row.state in ("waiting", "returned")]
        assert own == ([earlier] if earlier else [])
        row = Proposed(sent["id"], sender, values, dict(self.values), self.senders[0].revision(self.event_id))
        if earlier is not None:
            self.proposals.remove(earlier)
        row.version = sent["version"]
        self.proposals.append(row)

    def edit(self) -> None:
        """Change a proposal; it keeps the revision that its values are based on."""
        if row := self.choose("waiting", "returned"):
            row.values = self.choose_values()
            expect_json(self.senders[row.sender].edit(row.__dict__, row.version, values=row.values))
            row.state, row.version = "waiting", row.version + 1

    def withdraw(self) -> None:
        if row := self.choose("waiting", "returned"):
            expect_json(self.senders[row.sender].withdraw(row.__dict__))
            row.state = "withdrawn"

    # What editors do

    def change(self) -> None:
        values = self.choose_values()
        changed = {**self.values, **values} != self.values
        self.desk.caller.change("events", self.event_id, **values)
        self.values |= values
        self.edits += changed

    def send_back(self) -> None:
        if row := self.choose("waiting"):
            self.desk.send_back(row.__dict__)
            row.state, row.version = "returned", row.version + 1

    def accept(self) -> None:
        row = self.choose("waiting")
        if row is None:
            return
        expected, conflicts = self.merge(row)
        response = self.desk.act("accept", row.__dict__, row.version)
        if conflicts:
            self.count("conflict")
            data = assert_error(response, 409, "rest_proposal_conflict")
            assert set(data["conflicts"]) == set(conflicts)
            if self.random.random() < 0.3:
                return
            if self.random.random() < 0.2:  # Someone else is faster.
                self.change()
                expected, conflicts = self.merge(row)
            choices = {name: self.random.choice(("proposal", "record")) for name in data["conflicts"]}
            response = self.desk.act("accept", row.__dict__, row.version, choices=choices, revision=data["revision"])
            if self.senders[0].revision(self.event_id) != data["revision"] and response.status_code == 409:
                self.count("outdated choice")
                assert_error(response, 409, "rest_proposal_conflict")
                return
            for name, proposed in conflicts.items():
                expected |= proposed if choices[name] == "proposal" else {}
        expect_json(response)
        self.count("accepted")
        self.edits += expected != self.values
        row.state, row.version, row.before, row.edits = "accepted", row.version + 1, self.values, self.edits
        self.values = expected

    def merge(self, row: Proposed) -> tuple[Values, dict[str, Values]]:
        """Return the event after acceptance, and the proposed values of groups that need a choice."""
        expected, conflicts = dict(self.values), dict[str, Values]()
        for group, names in GROUPS.items():
            if not set(names) & row.values.keys():
                continue
            seen, now = ({name: values[name] for name in names} for values in (row.seen, self.values))
            proposed = {name: row.values.get(name, seen[name]) for name in names}
            if now == seen:
                expected |= proposed
            elif now != proposed:
                conflicts[group] = proposed
        return expected, conflicts

    def undo(self) -> None:
        row = self.choose("accepted", "returned")
        if row is None:
            return
        others = [other for other in self.proposals if other.sender == row.sender and other is not row]
        is_blocked = any(other.state in ("waiting", "returned") for other in others)
        was_changed = row.state == "accepted" and row.edits != self.edits
        response = self.desk.act("undo", row.__dict__, row.version)
        if is_blocked or was_changed:
            self.count("refused undo")
            assert_error(response, 409, "rest_proposal_final")
            return
        expect_json(response)
        if not row.seen:
            self.count("trashed")
            self.is_trashed = True
            assert self.app.sql("SELECT status FROM events WHERE id = $1", self.event_id)[0][0] == "trash"
        elif row.state == "accepted":
            self.count("undone")
            self.edits += row.before != self.values
            self.values = row.before or {}
        row.state, row.version = "waiting", row.version + 1

    # What the worker does

    def work(self) -> None:
        """Change the event without a user, as a job does."""

        async def run(tx: Transaction) -> None:
            await tx.lock_site(None)
            row = await EVENTS.fetch(tx, self.event_id)
            assert row is not None
            await write_changes(EVENTS, tx, row, {"featured": not row["featured"]})

        self.app.run_operation(run)
        self.values = {**self.values, "featured": not self.values["featured"]}


@pytest.mark.parametrize("seed", range(2))
def test_no_value_is_lost(start_app: Any, seed: int, report: Callable[[object], None]) -> None:
    chance, counts = random.Random(seed), dict[str, int]()
    runs = scaled(15, 5000)
    for number in range(runs):
        if number % 25 == 0:  # Open proposals and new records per account are limited.
            app = start_app()
            senders = [ProposalsClient(app.caller(role)) for role in ("contributor", "author", "administrator")]
            desk = ProposalsClient(app.caller("editor"))
        Model(app, chance, desk, senders, counts=counts).run()
    assert {"accepted", "conflict", "undone", "refused undo"} <= counts.keys()
    report(f"{runs} sequences of {STEPS} steps, no lost value: {counts}")
