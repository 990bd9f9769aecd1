"""Steps of the state machine that involve one series, and the creation of the first one."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.robustness.compared_site import ACTORS
from tests.robustness.model_records import Actor
from tests.series.division_steps import DivisionSteps, active, indexes
from tests.series.series_machine import BEGIN, EDITOR
from tests.series.series_model import SeriesModel
from tests.series.series_model_values import ScopeEdit, Segment, to_utc
from tests.series.site_snapshot import Snapshot

# People who may not edit the series of the editor, with the status that they get.
STRANGERS = [(ACTORS["au1"], 403), (ACTORS["co1"], 403), (ACTORS["su"], 403), (Actor("", 0, None), 401)]
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

rules = st.sampled_from(RULES)
zones = st.sampled_from(ZONES)
# On some nights 02:30 does not exist, or comes twice.
clocks = st.sampled_from(["02:30", "02:30", "09:00", "18:00", "19:30", "21:00"])
# Days after BEGIN; 14 and 28 March 2027, when the clocks of New York and Berlin change, more often than others.
days = st.one_of(st.integers(-60, 30), st.sampled_from([4, 18]))
lengths = st.sampled_from([timedelta(minutes=60), timedelta(minutes=90)])
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


class SeriesComparison(DivisionSteps):
    @initialize(text=rules, day=days, clock=clocks, length=lengths, zone=zones, more=contents,
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
        self.adopt_new_events()
        self.compare(Snapshot(0, {}, {}))

    # One date ----------------------------------------------------------------------------------

    @active()
    @rule(index=indexes, more=contents)
    def edit_this(self, index: int, more: dict[str, Any]) -> None:
        event, before = self.pick(index), self.before()
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}?scope=this", json=more)
        assert response.status_code == 200, response.text
        self.model.edit_this(event, more)
        self.compare(before, {event.id})

    @active()
    @rule(
        index=indexes,
        hours=st.one_of(st.integers(-30, 30), st.just(-10)),
        minutes=st.sampled_from([0, 45]),
        length=st.sampled_from([timedelta(minutes=30), timedelta(minutes=60), timedelta(minutes=90)]),
    )
    def move_this(self, index: int, hours: int, minutes: int, length: timedelta) -> None:
        event, before = self.pick(index), self.before()
        start = datetime.combine(event.slot.date(), datetime.min.time()) + timedelta(
            hours=12 + hours, minutes=minutes
        )
        body = {"start_date": str(start), "end_date": str(start + length)}
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}", json=body)
        if to_utc(start + length, event.zone) < to_utc(start, event.zone):
            # 02:45 moves to 03:45 on the night of a clock change, behind 03:15.
            assert response.status_code == 400, response.text
        else:
            assert response.status_code == 200, response.text
            self.model.edit_this(event, {}, start, start + length)
        self.compare(before, {event.id})

    @active()
    @rule(index=indexes)
    def move_back(self, index: int) -> None:
        event, before = self.pick(index), self.before()
        segment = self.model.segment_at(event.slot)
        end = event.slot + segment.length
        body = {"start_date": str(event.slot), "end_date": str(end), "timezone": event.zone}
        response = self.request(EDITOR, "PATCH", f"/events/{event.id}", json=body)
        assert response.status_code == 200, response.text
        self.model.edit_this(event, {}, event.slot, end)
        self.compare(before, {event.id})

    @active()
    @rule(index=indexes)
    def trash_this(self, index: int) -> None:
        event, before, world = self.pick(index), self.before(), self.world()
        response = self.request(EDITOR, "DELETE", f"/events/{event.id}?scope=this")
        assert response.status_code == 200, response.text
        if self.model.is_last(event):
            self.before_trash, self.last_date = world, event.id
            self.model.trashed = event.trashed = True
        else:
            self.model.trash_one(event)
        self.compare(before, {event.id})
        self.note_change_of_dates(world, before)

    @precondition(lambda self: self.model.trashed and self.last_date is not None)
    @rule()
    def restore_last_date(self) -> None:
        """A series that went to the trash with its last date comes back with it, if both have the same status."""
        before, event = self.before(), self.model.events[self.last_date or 0]
        if event.fields["status"] != self.model.template["status"]:
            return
        response = self.request(EDITOR, "POST", f"/events/{event.id}/restore")
        assert response.status_code == 200, response.text
        self.model.trashed = event.trashed = False
        # A date that has taken place keeps its times when those of its series change.
        self.model.find_own_fields(event)
        self.compare(before, {event.id})

    @precondition(lambda self: not self.model.trashed and self.model.list_trashed())
    @rule(index=indexes)
    def restore_this(self, index: int) -> None:
        before, world, trashed = self.before(), self.world(), self.model.list_trashed()
        event = trashed[index % len(trashed)]
        response = self.request(EDITOR, "POST", f"/events/{event.id}/restore")
        assert response.status_code == 200, response.text
        self.model.restore_one(event)
        self.compare(before, {event.id})
        self.note_change_of_dates(world, before)

    @precondition(lambda self: not self.model.trashed and self.model.list_trashed())
    @rule(index=indexes)
    def delete_this_permanently(self, index: int) -> None:
        before, trashed = self.before(), self.model.list_trashed()
        event = trashed[index % len(trashed)]
        self.delete_permanently(event.id)
        self.model.leave_out(event)
        self.compare(before)

    # Scopes ------------------------------------------------------------------------------------

    @active()
    @rule(index=indexes, scope=scopes, more=contents, replaces=st.booleans(), past=st.booleans(), dry=st.booleans())
    def edit_content(
        self, index: int, scope: str, more: dict[str, Any], replaces: bool, past: bool, dry: bool
    ) -> None:
        edit = ScopeEdit(None, fields=more, replaces=replaces, past=past)
        self.edit_scope(self.pick(index), scope, edit, more, dry=dry)

    @active()
    @rule(index=indexes, scope=scopes, clock=clocks, length=lengths, dry=st.booleans(), replaces=st.booleans())
    def edit_times(self, index: int, scope: str, clock: str, length: timedelta, dry: bool, replaces: bool) -> None:
        start = datetime.strptime(clock, "%H:%M")
        body = {"start_date": clock, "end_date": f"{start + length:%H:%M}"}
        edit = ScopeEdit(None, time_of_day=start, length=length, replaces=replaces)
        self.edit_scope(self.pick(index), scope, edit, body, dry=dry)

    @active()
    @rule(index=indexes, scope=scopes, zone=zones, dry=st.booleans())
    def edit_zone(self, index: int, scope: str, zone: str, dry: bool) -> None:
        self.edit_scope(self.pick(index), scope, ScopeEdit(None, zone=zone), {"timezone": zone}, dry=dry)

    @active()
    @rule(index=indexes, scope=scopes, text=rules, dry=st.booleans(), replaces=st.booleans(), more=contents)
    def edit_rule(self, index: int, scope: str, text: str, dry: bool, replaces: bool, more: dict[str, Any]) -> None:
        edit = ScopeEdit(None, fields=more, rule=text, replaces=replaces)
        self.edit_scope(self.pick(index), scope, edit, {"rule": text, **more}, dry=dry)

    @active(more_than=3)
    @rule(index=st.integers(2, 20), dry=st.booleans())
    def trash_following(self, index: int, dry: bool) -> None:
        event, before, world = self.pick(index), self.before(), self.world()
        earlier = [segment.first for segment in self.model.segments] + [*self.model.added]
        if min(earlier) >= event.slot:
            return
        self.write("DELETE", f"/events/{event.id}?scope=following", dry=dry)
        assert not self.model.trash_following(event.slot, self.now)
        self.model.refresh_until()
        self.compare(before)
        self.undoable = (world, before.revision)

    @precondition(lambda self: self.undoable is not None)
    @rule(twice=st.booleans(), dry=st.booleans())
    def undo(self, twice: bool, dry: bool) -> None:
        """Undo the last change of the series; undo of undo brings it back."""
        assert self.undoable is not None
        (earlier, revision), later, before = self.undoable, self.world(), self.before()
        for target, number in [(earlier, revision), (later, before.revision)][: 1 + twice]:
            current = self.before()
            self.write("POST", f"/series/{self.model.id}/restore", dry=dry, revision=number)
            self.return_to(target)
            self.compare(current, {*current.rows})

    @active()
    @rule(index=indexes, dry=st.booleans())
    def follow(self, index: int, dry: bool) -> None:
        event, before = self.pick(index), self.before()
        self.write("POST", f"/events/{event.id}/follow", dry=dry)
        self.model.follow(event)
        self.compare(before, {event.id})

    @active(more_than=2)
    @rule(index=indexes, dry=st.booleans())
    def remove_date(self, index: int, dry: bool) -> None:
        event, before, world = self.pick(index), self.before(), self.world()
        if event.slot not in self.model.dates():
            return
        self.write("POST", f"/series/{self.model.id}/dates", dry=dry, remove=[str(event.slot)])
        self.model.trash_one(event)
        self.model.refresh_until()
        self.compare(before, {event.id})
        self.undoable = (world, before.revision)

    @active(more_than=-1)
    @rule(index=indexes, days=st.integers(3, 60), clock=clocks, is_removed=st.booleans(), dry=st.booleans())
    def add_date(self, index: int, days: int, clock: str, is_removed: bool, dry: bool) -> None:
        before, world, removed = self.before(), self.world(), sorted(self.model.removed)
        slot = datetime.combine(self.now.date() + timedelta(days=days), datetime.strptime(clock, "%H:%M").time())
        if is_removed and removed:
            slot = removed[index % len(removed)]
        if slot in self.model.dates() or slot in {event.slot for event in self.model.active()}:
            return
        self.write("POST", f"/series/{self.model.id}/dates", dry=dry, add=[str(slot)])
        self.model.add_date(slot)
        self.model.refresh_until()
        self.adopt_new_events()
        ids = {event.id for event in self.model.events.values() if event.slot == slot}
        self.compare(before, ids)
        self.undoable = (world, before.revision)

    # Others ------------------------------------------------------------------------------------

    @active()
    @rule(index=indexes, stranger=st.sampled_from(STRANGERS), scope=st.sampled_from(["this", "following", "all"]))
    def be_refused(self, index: int, stranger: tuple[Actor, int], scope: str) -> None:
        event, before = self.pick(index), self.before()
        path = f"/events/{event.id}?scope={scope}"
        response = self.request(stranger[0], "PATCH", path, json={"title": "Mine"})
        assert response.status_code == stranger[1], response.text
        stale = {"If-Match": f'"{before.rows[event.id]["revision"] - 1}-0"'}
        response = self.request(EDITOR, "PATCH", path, json={"title": "Stale"}, headers=stale)
        assert response.status_code == 412, response.text
        assert self.reader.read_revision() == before.revision

    @rule(days=st.sampled_from([1, 8, 40]))
    def let_time_pass(self, days: int) -> None:
        self.now += timedelta(days=days)
        self.undoable = None

    @rule(count=st.integers(0, 1))
    def synchronize(self, count: int) -> None:
        """Let a copy of the events follow the changes so far."""
        self.mirrors[count].synchronize()

    @rule()
    def subscribe(self) -> None:
        """Let a calendar that subscribes to the feed read it."""
        self.read_feed()

    @rule()
    def change_time_zone_data(self) -> None:
        """Local times stay; the instants are those of the new data, also of dates that have taken place."""
        before = self.before()
        self.refresh_time_zones()
        self.compare(before, {*before.rows})

    @rule(twice=st.booleans())
    def run_job(self, twice: bool) -> None:
        before = self.before()
        for _ in range(1 + twice):
            self.extend()
        if not self.model.trashed:
            self.model.extend(self.now)
            self.adopt_new_events()
        self.compare(before)
