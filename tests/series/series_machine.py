"""The site of the state machine of series: its requests, its events, and their comparison with the model."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import asyncpg
import httpx
from hypothesis.stateful import RuleBasedStateMachine

from kalends.calendar.jobs import find_shifted, remove_old_trash, shift_events
from kalends.calendar.operations.site_feeds import WITHDRAWN_PERIOD
from kalends.series.jobs import extend_batch
from kalends.series.operations.series_matching import compute_horizon
from kalends.store.database import Database, Transaction
from tests.feeds.ical_readers import FeedEntry, Subscriber, read_with_icalendar
from tests.robustness.compared_site import ACTORS, ComparedSite
from tests.robustness.consistency import assert_consistent
from tests.robustness.model_records import Actor
from tests.series.changes_mirror import ChangesMirror
from tests.series.series_model import SeriesModel
from tests.series.series_model_values import Occurrence, Refused, ScopeEdit, to_utc
from tests.series.site_snapshot import Row, SiteReader, Snapshot

EXTENSION = "/api/kalends/v1"
EDITOR = ACTORS["ed"]
ANONYMOUS = Actor("", 0, None)
BEGIN = datetime(2027, 3, 10, 12, 0, tzinfo=UTC)
FIELDS = ("title", "cost", "featured", "tags", "status")
# The fields of a past event that change with its slot or its series.
PLACE_COLUMNS = ("slot", "series_id", "own_fields", "revision", "modified_utc")


@dataclass
class World:
    """All series that are not in the trash, and events without a series that once belonged to one."""

    model: SeriesModel
    others: dict[int, SeriesModel]
    singles: dict[int, Occurrence]
    # All events that existed. Those in the trash that have left their series belong to none of the above.
    known: frozenset[int]

    def copy(self) -> "World":
        others = {series_id: model.copy() for series_id, model in self.others.items()}
        singles = {event_id: event.copy() for event_id, event in self.singles.items()}
        return World(self.model.copy(), others, singles, self.known)


class SeriesMachine(RuleBasedStateMachine):
    """`model` is the series that the steps edit; `others` are further ones that have been split off or created."""

    def __init__(
        self,
        site: ComparedSite,
        database: Database,
        connection: "asyncpg.Connection[Any]",
        runner: asyncio.Runner,
    ) -> None:
        super().__init__()
        self.site, self.database, self.runner = site, database, runner
        self.reader = SiteReader(runner, connection, site.id)
        self.now = BEGIN
        self.model: SeriesModel
        self.others: dict[int, SeriesModel] = {}
        self.singles: dict[int, Occurrence] = {}
        self.uids: dict[int, str] = {}
        # The state before the last change of the series, and the revision of the site.
        self.undoable: tuple[World, int] | None = None
        # The state before the series was moved to the trash, and the date with which it was moved.
        self.before_trash: World
        self.last_date: int | None = None
        self.subscriber = Subscriber()
        self.mirrors = [ChangesMirror(self._make_get(actor), page_size=40) for actor in (EDITOR, ANONYMOUS)]

    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert_consistent(self.site.database_url, self.site.id)
            for mirror in self.mirrors:
                mirror.assert_equals_site()
            self.read_feed()

    # Requests ----------------------------------------------------------------------------------

    def request(self, actor: Actor, method: str, path: str, **options: Any) -> httpx.Response:
        self.reader.forget()
        with patch("kalends.asgi.utc_now", lambda: self.now):
            return self.site.request(actor, method, f"{EXTENSION}{path}", **options)

    def _make_get(self, actor: Actor) -> Any:
        def get(path: str, query: dict[str, Any]) -> httpx.Response:
            with patch("kalends.asgi.utc_now", lambda: self.now):
                return self.site.request(actor, "GET", path, params=query)

        return get

    def write(
        self, method: str, path: str, *, dry: bool = False, expected: Refused | None = None, **body: Any
    ) -> Any:
        """Send a request of the editor, before it a dry run, and check that both agree; return the response."""
        before = self.reader.read().revision
        option = f"{'&' if '?' in path else '?'}dry_run=true"
        preview = self.request(EDITOR, method, path + option, json=body or None) if dry else None
        assert not dry or self.reader.read_revision() == before
        response = self.request(EDITOR, method, path, json=body or None)
        if expected is not None:
            found = response.status_code, response.json()["code"]
            assert found == (expected.status, expected.code), response.text
            assert preview is None or preview.status_code == expected.status
            assert self.reader.read_revision() == before
            return None
        assert response.status_code == 200, response.text
        if preview is not None:
            written = {name: value for name, value in response.json().items() if name in preview.json()}
            assert {**written, "dry_run": True} == preview.json()
        return response.json()

    def run_in_transaction(self, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
        """Run a job on the site."""

        async def run() -> Any:
            async with self.database.transaction(self.site.id, self.now, writing=True) as tx:
                return await work(tx)

        self.reader.forget()
        return self.runner.run(run())

    def extend(self) -> None:
        """Run the job that creates dates."""
        horizon = compute_horizon(self.now, self.now)
        while True:
            self.run_in_transaction(lambda tx: extend_batch(tx, [self.model.id]))
            row = self.reader.read().series[self.model.id]
            if row["status"] == "trash" or row["created_until"] is None or row["created_until"] >= horizon:
                return

    def delete_permanently(self, event_id: int) -> None:
        """Run the job that empties the trash for one event."""
        cutoff = self.now + timedelta(days=1)
        assert self.run_in_transaction(lambda tx: remove_old_trash(tx, "events", event_id, cutoff))

    def edit_scope(self, event: Occurrence, scope: str, edit: ScopeEdit, body: dict[str, Any], *, dry: bool) -> None:
        before, since = self.before(), event.slot if scope == "following" else None
        options = ("&overrides=replace" if edit.replaces else "") + ("&past=true" if edit.past else "")
        path = f"/events/{event.id}?scope={scope}{options}"
        changed = self.model.copy()
        try:
            changed.edit_scope(replace(edit, since=since, reference=event.slot), self.now)
        except Refused as refusal:
            self.write("PATCH", path, dry=dry, expected=refusal, **body)
            self.compare(before)
            return
        self.write("PATCH", path, dry=dry, **body)
        self.undoable = (self.world(), before.revision)
        self.model = changed
        self.adopt_new_events()
        self.compare(before, {*before.rows} if edit.past else None)

    def refresh_time_zones(self) -> None:
        """Give all events the instants of older time zone data, and run the job that computes them anew."""
        self.reader.move_instants(timedelta(hours=-1))
        _, ids = self.run_in_transaction(lambda tx: find_shifted(tx, 0))
        self.run_in_transaction(lambda tx: shift_events(tx, ids))
        assert self.run_in_transaction(lambda tx: find_shifted(tx, 0)) == (None, [])

    def read_feed(self) -> None:
        """Update a calendar that subscribes to the public feed, and compare it with the events."""
        response = self._make_get(ANONYMOUS)("/events.ics", {})
        assert response.status_code == 200, response.text
        self.subscriber.update(read_with_icalendar(response.text))
        rows = {row["uid"]: row for row in self.reader.read().rows.values()}
        for uid, entry in self.subscriber.entries.items():
            assert _describe_entry(entry) == _expect_entry(rows[uid])
        announced = {uid for uid, row in rows.items() if self._is_announced(row)}
        assert announced <= self.subscriber.entries.keys()

    def _is_announced(self, row: Row) -> bool:
        """Return whether the feed must have an event: an upcoming one, or one that was withdrawn recently."""
        if row["status"] == "publish":
            return bool(row["end_utc"] >= self.now)
        return row["withdrawn_at"] is not None and row["withdrawn_at"] > self.now - WITHDRAWN_PERIOD

    # The model ---------------------------------------------------------------------------------

    def world(self) -> World:
        return World(self.model, self.others, self.singles, frozenset(self.uids)).copy()

    def return_to(self, world: World) -> None:
        """Note that everything is as it was. Events that were created since are in the trash."""
        created = [event for event in self.model.events.values() if event.id not in world.known]
        self.model = self.model.undo_to(world.model, created, self.now)
        copy = world.copy()
        self.others, self.singles = copy.others, copy.singles
        self.adopt_new_events()

    def note_change_of_dates(self, world: World, before: Snapshot) -> None:
        """Make the last step undoable if it has changed the series and not only an event."""
        model = world.model
        if (model.added, model.removed) != (self.model.added, self.model.removed):
            self.undoable = (world, before.revision)

    def pick(self, index: int) -> Occurrence:
        active = self.model.active()
        return active[index % len(active)]

    def adopt_new_events(self) -> None:
        """Give the new events of the model the IDs that the site has given them."""
        rows = [row for row in self.reader.read().rows.values() if row["series_id"] == self.model.id]
        new = {row["slot"]: row["id"] for row in rows if row["id"] not in self.model.events}
        self.model.add_missing(new, self.now)

    # Comparison --------------------------------------------------------------------------------

    def before(self) -> Snapshot:
        """Return the events before a step, to compare with."""
        self.undoable = None
        return self.reader.read()

    def compare(self, before: Snapshot, edited: set[int] | None = None) -> None:
        """Compare all events with the model. Those that have taken place are as before, except for `edited`."""
        rows, edited = self.reader.read().rows, edited or set()
        for model in (self.model, *self.others.values()):
            self._compare_series(model, {key: row for key, row in rows.items() if row["series_id"] == model.id})
        self._compare_singles(rows)
        for event_id, row in rows.items():
            assert self.uids.setdefault(event_id, row["uid"]) == row["uid"]
            if old := before.rows.get(event_id):
                self._compare_with_old(row, old, is_edited=event_id in edited, is_undo=edited >= before.rows.keys())
        assert len({row["uid"] for row in rows.values()}) == len(rows)

    def _compare_with_old(self, row: Row, old: Row, *, is_edited: bool, is_undo: bool) -> None:
        # The trash makes a slug free for others.
        if "trash" not in (old["status"], row["status"]):
            assert row["slug"] == old["slug"]
        # An undo may also rewrite what it moves to the trash.
        if (old["status"], row["status"]) == ("publish", "trash") and not is_undo:
            assert row["withdrawn_at"] == self.now, "subscribers are not told that a date is cancelled"
        if old["end_utc"] < self.now and not is_edited:
            _assert_kept(row, old)

    def _compare_series(self, model: SeriesModel, rows: dict[int, Row]) -> None:
        expected = {event.id: _describe(event) for event in model.events.values()}
        differences = _find_differences({event_id: _read(row) for event_id, row in rows.items()}, expected)
        assert not differences, differences
        series = self.reader.read().series[model.id]
        assert (series["status"] == "trash") == model.trashed
        if model.trashed:
            return
        missing = [slot for slot in model.dates() if slot not in {event.slot for event in model.active()}]
        assert all(slot.replace(tzinfo=UTC) < self.now + timedelta(days=1) for slot in missing), missing
        assert series["created_until"] == model.created_until

    def _compare_singles(self, rows: dict[int, Row]) -> None:
        """Events without a series are as they were when they left it; all others are in the trash."""
        live = {self.model.id, *self.others}
        outside = {event_id: row for event_id, row in rows.items() if row["series_id"] not in live}
        for event_id, event in self.singles.items():
            row = outside.pop(event_id)
            assert (row["series_id"], row["slot"], row["own_fields"]) == (None, None, None)
            differences = _find_differences(
                {event_id: _without(_read(row), ("slot", "own"))},
                {event_id: _without(_describe(event), ("slot", "own"))},
            )
            assert not differences, differences
        assert {row["status"] for row in outside.values()} <= {"trash"}


def _assert_kept(row: Row, old: Row) -> None:
    is_moved = (row["slot"], row["series_id"]) != (old["slot"], old["series_id"])
    ignored = PLACE_COLUMNS if is_moved else ()
    assert _without(row, ignored) == _without(old, ignored), "a date that has taken place was changed"


def _describe(event: Occurrence) -> dict[str, Any]:
    if event.trashed:
        return {"id": event.id, "status": "trash"}
    times = {"slot": event.slot, "start": event.start, "end": event.end, "zone": event.zone}
    times |= {"start_utc": event.instant(), "end_utc": to_utc(event.end, event.zone)}
    return {**times, **{name: event.fields[name] for name in FIELDS}, "own": sorted(event.own)}


def _read(row: Row) -> dict[str, Any]:
    if row["status"] == "trash":
        return {"id": row["id"], "status": "trash"}
    times = {"slot": row["slot"], "start": row["start_local"], "end": row["end_local"], "zone": row["timezone"]}
    times |= {"start_utc": row["start_utc"], "end_utc": row["end_utc"]}
    return {**times, **{name: row[name] for name in FIELDS}, "own": sorted(row["own_fields"] or [])}


def _describe_entry(entry: FeedEntry) -> tuple[str, ...]:
    return (entry.status, entry.summary, entry.start, entry.end)


def _expect_entry(row: Row) -> tuple[str, ...]:
    """Return what the feed has of an event: one that is no longer public is cancelled."""
    state = ("CONFIRMED", row["title"]) if row["status"] == "publish" else ("CANCELLED", "Cancelled")
    return (*state, *[f"{row[name]:%Y-%m-%dT%H:%M:%SZ}" for name in ("start_utc", "end_utc")])


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
