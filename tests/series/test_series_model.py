"""Any sequence of edits of a series by any people leaves the events that a model in plain Python has."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import httpx
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from psycopg.rows import dict_row

from kalends.operations.series.horizon import extend_batch
from kalends.operations.series.matching import compute_horizon
from kalends.store.database import Database, Options
from tests.robustness.compared_site import ACTORS, ComparedSite
from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.model_records import Actor
from tests.robustness.site_fixtures import run_application
from tests.series.series_model import Occurrence, Refused, ScopeEdit, Segment, SeriesModel
from tests.soak import scaled

EXTENSION = "/api/kalends/v1"
EDITOR = ACTORS["ed"]
# People who may not edit the series of the editor, with the status that they get.
STRANGERS = [(ACTORS["au1"], 403), (ACTORS["co1"], 403), (ACTORS["su"], 403), (Actor("", 0, None), 401)]
BEGIN = datetime(2027, 3, 10, 12, 0, tzinfo=UTC)
# Few dates each, so that a sequence is quick; some rules have no end.
RULES = (
    "FREQ=WEEKLY;COUNT=8",
    "FREQ=WEEKLY;BYDAY=TU,TH;COUNT=9",
    "FREQ=DAILY;INTERVAL=3;COUNT=10",
    "FREQ=MONTHLY;BYMONTHDAY=15",
    "FREQ=MONTHLY;BYDAY=-1FR;COUNT=6",
    "FREQ=MONTHLY;BYDAY=2SA",
    "FREQ=WEEKLY;INTERVAL=2;UNTIL=20270801",
    "FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20270520",
    "FREQ=YEARLY;BYMONTH=5,6;BYMONTHDAY=1",
)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo")
FIELDS = ("title", "cost", "featured", "tags", "status")

rules = st.sampled_from(RULES)
zones = st.sampled_from(ZONES)
clocks = st.sampled_from(["09:00", "18:00", "19:30", "21:00"])
lengths = st.sampled_from([timedelta(minutes=60), timedelta(minutes=90)])
indexes = st.integers(0, 20)
contents = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["Yoga", "Yin", "Flow"]),
        "cost": st.sampled_from(["", "5", "7"]),
        "featured": st.booleans(),
        "tags": st.sampled_from([[], ["body"], ["mind", "body"]]),
        "status": st.sampled_from(["publish", "publish", "draft", "private"]),
    },
)
scopes = st.sampled_from(["following", "following", "all"])


@dataclass
class Before:
    """The events before a step, to compare with."""

    revision: int
    rows: dict[int, dict[str, Any]]


class SeriesComparison(RuleBasedStateMachine):
    def __init__(self, site: ComparedSite, database: Database, runner: asyncio.Runner) -> None:
        super().__init__()
        self.site, self.database, self.runner = site, database, runner
        self.now = BEGIN
        self.model: SeriesModel
        self.identities: dict[int, tuple[str, str]] = {}
        # The series before the last edit of several dates, and the revision of the site.
        self.undoable: tuple[SeriesModel, int] | None = None

    @initialize(text=rules, day=st.integers(-60, 30), clock=clocks, length=lengths, zone=zones, more=contents,
                repeats=st.booleans())  # fmt: skip
    def create_series(
        self, text: str, day: int, clock: str, length: timedelta, zone: str, more: dict[str, Any], repeats: bool
    ) -> None:
        base = datetime.combine(BEGIN.date() + timedelta(days=day), datetime.strptime(clock, "%H:%M").time())
        start = Segment(text, base, length, zone).first
        fields = {"title": "Yoga", "cost": "", "featured": False, "tags": [], "status": "publish", **more}
        body = {"start_date": str(start), "end_date": str(start + length), "timezone": zone, "rule": text, **fields}
        headers = {"Idempotency-Key": f"create {self.site.id}"}
        first = self.request(EDITOR, "POST", "/series", json=body, headers=headers)
        assert first.status_code == 201, first.text
        if repeats:
            again = self.request(EDITOR, "POST", "/series", json=body, headers=headers)
            assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
        self.model = SeriesModel(first.json()["id"], [Segment(text, start, length, zone)], dict(fields))
        self.model.create_until(self.model.horizon(self.now))
        self._adopt_new_events()
        self._compare(Before(0, {}))

    # One date ----------------------------------------------------------------------------------

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, more=contents)
    def edit_this(self, index: int, more: dict[str, Any]) -> None:
        event, before = self._pick(index), self._before()
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}?scope=this", json=more)
        assert response.status_code == 200, response.text
        self.model.edit_this(event, more)
        self._compare(before, {event.id})

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, hours=st.integers(-30, 30), length=lengths)
    def move_this(self, index: int, hours: int, length: timedelta) -> None:
        event, before = self._pick(index), self._before()
        start = datetime.combine(event.slot.date(), datetime.min.time()) + timedelta(hours=12 + hours)
        body = {"start_date": str(start), "end_date": str(start + length)}
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}", json=body)
        assert response.status_code == 200, response.text
        self.model.edit_this(event, {}, start, start + length)
        self._compare(before, {event.id})

    @precondition(lambda self: self.model.active())
    @rule(index=indexes)
    def move_back(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        segment = self.model.segment_at(event.slot)
        end = event.slot + segment.length
        body = {"start_date": str(event.slot), "end_date": str(end), "timezone": event.zone}
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}", json=body)
        assert response.status_code == 200, response.text
        self.model.edit_this(event, {}, event.slot, end)
        self._compare(before, {event.id})

    @precondition(lambda self: len(self.model.active()) > 1)
    @rule(index=indexes)
    def trash_this(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        response = self.request(EDITOR, "DELETE", f"/events/{event.id}?scope=this")
        assert response.status_code == 200, response.text
        self.model.trash_one(event)
        self._compare(before, {event.id})

    @precondition(lambda self: any(event.trashed for event in self.model.events.values()))
    @rule(index=indexes)
    def restore_this(self, index: int) -> None:
        before, trashed = self._before(), [event for event in self.model.events.values() if event.trashed]
        event = trashed[index % len(trashed)]
        response = self.request(EDITOR, "POST", f"/events/{event.id}/restore")
        assert response.status_code == 200, response.text
        self.model.restore_one(event)
        self._compare(before, {event.id})

    # Scopes ------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, scope=scopes, more=contents, replaces=st.booleans(), dry=st.booleans())
    def edit_content(self, index: int, scope: str, more: dict[str, Any], replaces: bool, dry: bool) -> None:
        self._edit(self._pick(index), scope, ScopeEdit(None, fields=more, replaces=replaces), more, dry=dry)

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, scope=scopes, clock=clocks, length=lengths, dry=st.booleans(), replaces=st.booleans())
    def edit_times(self, index: int, scope: str, clock: str, length: timedelta, dry: bool, replaces: bool) -> None:
        start = datetime.strptime(clock, "%H:%M")
        body = {"start_date": clock, "end_date": f"{start + length:%H:%M}"}
        edit = ScopeEdit(None, time_of_day=start, length=length, replaces=replaces)
        self._edit(self._pick(index), scope, edit, body, dry=dry)

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, scope=scopes, zone=zones, dry=st.booleans())
    def edit_zone(self, index: int, scope: str, zone: str, dry: bool) -> None:
        self._edit(self._pick(index), scope, ScopeEdit(None, zone=zone), {"timezone": zone}, dry=dry)

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, scope=scopes, text=rules, dry=st.booleans(), replaces=st.booleans(), more=contents)
    def edit_rule(self, index: int, scope: str, text: str, dry: bool, replaces: bool, more: dict[str, Any]) -> None:
        edit = ScopeEdit(None, fields=more, rule=text, replaces=replaces)
        self._edit(self._pick(index), scope, edit, {"rule": text, **more}, dry=dry)

    @precondition(lambda self: len(self.model.active()) > 3)
    @rule(index=st.integers(2, 20))
    def trash_following(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        if event.slot <= self.model.active()[1].slot:
            return
        response = self.request(EDITOR, "DELETE", f"/events/{event.id}?scope=following")
        assert response.status_code == 200, response.text
        assert not self.model.trash_following(event.slot, self.now)
        if self.model.created_until is not None:
            self.model.create_until(self.model.created_until)
        self._compare(before)

    @precondition(lambda self: self.undoable is not None)
    @rule(twice=st.booleans())
    def undo(self, twice: bool) -> None:
        """Undo the last scope edit; undo of undo brings it back."""
        earlier, revision = self.undoable or (self.model, 0)
        later, before = self.model.copy(), self._before()
        for target, number in [(earlier, revision), (later, before.revision)][: 1 + twice]:
            current = self._before()
            response = self.request(EDITOR, "POST", f"/series/{self.model.id}/restore", json={"revision": number})
            assert response.status_code == 200, response.text
            self.model = self.model.undo_to(target, self.now)
            self._adopt_new_events()
            self._compare(current)

    @precondition(lambda self: self.model.active())
    @rule(index=indexes)
    def follow(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        response = self.request(EDITOR, "POST", f"/events/{event.id}/follow")
        assert response.status_code == 200, response.text
        self.model.follow(event)
        self._compare(before, {event.id})

    @precondition(lambda self: len(self.model.active()) > 2)
    @rule(index=indexes)
    def detach(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        response = self.request(EDITOR, "POST", f"/events/{event.id}/detach")
        assert response.status_code == 200, response.text
        self.model.detach(event)
        self._compare(before)

    @precondition(lambda self: len(self.model.active()) > 2)
    @rule(index=indexes)
    def remove_date(self, index: int) -> None:
        event, before = self._pick(index), self._before()
        if event.slot not in self.model.dates():
            return
        body = {"remove": [str(event.slot)]}
        response = self.request(EDITOR, "POST", f"/series/{self.model.id}/dates", json=body)
        assert response.status_code == 200, response.text
        self.model.trash_one(event)
        self._compare(before, {event.id})

    @rule(index=indexes, days=st.integers(3, 60), clock=clocks, is_removed=st.booleans())
    def add_date(self, index: int, days: int, clock: str, is_removed: bool) -> None:
        before, removed = self._before(), sorted(self.model.removed)
        slot = datetime.combine(self.now.date() + timedelta(days=days), datetime.strptime(clock, "%H:%M").time())
        if is_removed and removed:
            slot = removed[index % len(removed)]
        if slot in self.model.dates() or slot in {event.slot for event in self.model.active()}:
            return
        response = self.request(EDITOR, "POST", f"/series/{self.model.id}/dates", json={"add": [str(slot)]})
        assert response.status_code == 200, response.text
        self.model.add_date(slot)
        self._adopt_new_events()
        ids = {event.id for event in self.model.events.values() if event.slot == slot}
        self._compare(before, ids)

    # Others ------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.active())
    @rule(index=indexes, stranger=st.sampled_from(STRANGERS), scope=st.sampled_from(["this", "following", "all"]))
    def be_refused(self, index: int, stranger: tuple[Actor, int], scope: str) -> None:
        event, before = self._pick(index), self._before()
        path = f"/events/{event.id}?scope={scope}"
        response = self.request(stranger[0], "PATCH", path, json={"title": "Mine"})
        assert response.status_code == stranger[1], response.text
        stale = {"If-Match": f'"{before.rows[event.id]["revision"] - 1}-0"'}
        response = self.request(EDITOR, "PATCH", path, json={"title": "Stale"}, headers=stale)
        assert response.status_code == 412, response.text
        assert read_revision(self.site.database_url, self.site.id) == before.revision

    @rule(days=st.sampled_from([1, 8, 40]))
    def let_time_pass(self, days: int) -> None:
        self.now += timedelta(days=days)
        self.undoable = None

    @rule(twice=st.booleans())
    def run_job(self, twice: bool) -> None:
        before = self._before()
        for _ in range(1 + twice):
            self.runner.run(self._extend())
        self.model.extend(self.now)
        self._adopt_new_events()
        self._compare(before)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert_consistent(self.site.database_url, self.site.id)

    # Helpers -----------------------------------------------------------------------------------

    def request(self, actor: Actor, method: str, path: str, **options: Any) -> httpx.Response:
        with patch("kalends.asgi.utc_now", lambda: self.now):
            return self.site.request(actor, method, f"{EXTENSION}{path}", **options)

    async def _extend(self) -> None:
        horizon = compute_horizon(self.now, self.now)
        while True:
            async with self.database.transaction(self.site.id, self.now, writing=True) as tx:
                await extend_batch(tx, [self.model.id])
            (row,) = self._sql("SELECT created_until FROM series WHERE site_id = %s AND id = %s", self.model.id)
            if row["created_until"] is None or row["created_until"] >= horizon:
                return

    def _edit(self, event: Occurrence, scope: str, edit: ScopeEdit, body: dict[str, Any], *, dry: bool) -> None:
        before, since = self._before(), event.slot if scope == "following" else None
        path = f"/events/{event.id}?scope={scope}" + ("&overrides=replace" if edit.replaces else "")
        preview = self.request(EDITOR, "PATCH", f"{path}&dry_run=true", json=body) if dry else None
        assert read_revision(self.site.database_url, self.site.id) == before.revision
        response = self.request(EDITOR, "PATCH", path, json=body)
        changed = self.model.copy()
        try:
            changed.edit_scope(replace(edit, since=since, reference=event.slot), self.now)
        except Refused as refusal:
            expected = (refusal.status, refusal.code)
            assert (response.status_code, response.json()["code"]) == expected, response.text
            assert preview is None or preview.status_code == expected[0]
            self._compare(before)
            return
        assert response.status_code == 200, response.text
        self.undoable = (self.model, before.revision)
        if preview is not None:
            written = {name: value for name, value in response.json().items() if name not in ("series", "dry_run")}
            previewed = {name: value for name, value in preview.json().items() if name != "dry_run"}
            assert written == previewed
        self.model = changed
        self._adopt_new_events()
        self._compare(before)

    def _pick(self, index: int) -> Occurrence:
        active = self.model.active()
        return active[index % len(active)]

    def _adopt_new_events(self) -> None:
        """Give the new events of the model the IDs that the site has given them."""
        rows = self._rows()
        new = {row["slot"]: event_id for event_id, row in rows.items() if event_id not in self.model.events}
        self.model.add_missing(new, self.now)

    def _before(self) -> Before:
        self.undoable = None
        return Before(read_revision(self.site.database_url, self.site.id), self._rows())

    def _compare(self, before: Before, edited: set[int] | None = None) -> None:
        rows = self._rows()
        expected = {event.id: self._describe(event) for event in self.model.events.values()}
        assert not _find_differences({event_id: self._read(row) for event_id, row in rows.items()}, expected)
        for event_id, row in rows.items():
            identity = row["slug"].removesuffix("__trashed"), row["uid"]
            assert self.identities.setdefault(event_id, identity) == identity
            old = before.rows.get(event_id)
            if old and old["end_utc"] < self.now and event_id not in (edited or ()):
                ignored = ("slot", "revision", "modified_utc") if row["slot"] != old["slot"] else ()
                assert _without(row, ignored) == _without(old, ignored), "a date that has taken place was changed"
        assert len({row["uid"] for row in rows.values()}) == len(rows)
        missing = [slot for slot in self.model.dates() if slot not in {e.slot for e in self.model.active()}]
        assert all(slot.replace(tzinfo=UTC) < self.now + timedelta(days=1) for slot in missing), missing
        (series,) = self._sql("SELECT created_until FROM series WHERE site_id = %s AND id = %s", self.model.id)
        assert series["created_until"] == self.model.created_until

    def _describe(self, event: Occurrence) -> dict[str, Any]:
        times = {"slot": event.slot, "start": event.start, "end": event.end, "zone": event.zone}
        fields = {name: event.fields[name] for name in FIELDS}
        if event.trashed:
            return {"id": event.id, "status": "trash"}
        return {**times, **fields, "own": sorted(event.own)}

    @staticmethod
    def _read(row: dict[str, Any]) -> dict[str, Any]:
        if row["status"] == "trash":
            return {"id": row["id"], "status": "trash"}
        times = {"slot": row["slot"], "start": row["start_local"], "end": row["end_local"], "zone": row["timezone"]}
        return {**times, **{name: row[name] for name in FIELDS}, "own": sorted(row["own_fields"] or [])}

    def _rows(self) -> dict[int, dict[str, Any]]:
        rows = self._sql(
            """SELECT e.*, e.uid::text AS uid, ARRAY(
                   SELECT t.name FROM event_tags l JOIN tags t ON t.site_id = l.site_id AND t.id = l.tag_id
                   WHERE l.site_id = e.site_id AND l.event_id = e.id ORDER BY l.position) AS tags
               FROM events e WHERE e.site_id = %s AND e.series_id = %s ORDER BY e.id""",
            self.model.id,
        )
        return {row["id"]: row for row in rows}

    def _sql(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.site.database_url) as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(text.encode(), [self.site.id, *values]).fetchall()


def _find_differences(found: dict[int, dict[str, Any]], expected: dict[int, dict[str, Any]]) -> list[str]:
    """Name what differs: the event, its slot, the field, its value and the expected one."""
    return [
        f"{event_id} at {other.get('slot')}: {name} is {one.get(name)!r}, not {other.get(name)!r}"
        for event_id in sorted({*found, *expected})
        for one, other in [(found.get(event_id, {}), expected.get(event_id, {}))]
        for name in {*one, *other}
        if one.get(name) != other.get(name)
    ]


def _without(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.fixture
def new_machine(database_url: str) -> Iterator[Callable[[], SeriesComparison]]:
    with asyncio.Runner() as runner:
        started = run_application(database_url, pool_size=2)
        transport = runner.run(started.__aenter__())
        database = runner.run(Database.open(Options(url=database_url)))
        yield lambda: SeriesComparison(ComparedSite(database_url, runner, transport, path=""), database, runner)
        runner.run(database.close())
        runner.run(started.__aexit__(None, None, None))


def test_any_sequence_of_edits_matches_the_model(new_machine: Callable[[], SeriesComparison]) -> None:
    machine: Any = new_machine
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(12, 2000),
            stateful_step_count=scaled(15, 50),
            deadline=None,
            # A sequence takes seconds, and shrinking would need hundreds of them.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
