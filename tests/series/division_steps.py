"""Steps of the state machine that involve more than one series, or events without one."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.series.series_division_model import merge, split
from tests.series.series_machine import SeriesMachine
from tests.series.series_model import SeriesModel
from tests.series.series_model_values import Occurrence, Refused, Segment

MOST_SERIES = 3
# Rules that give every date.
CONVERSION_RULES = ("FREQ=WEEKLY;COUNT=4", "FREQ=DAILY;INTERVAL=5;COUNT=3", "FREQ=WEEKLY;INTERVAL=8")

indexes = st.integers(0, 20)


def active(*, more_than: int = 0) -> Callable[[Any], Any]:
    """Require that the series is not in the trash and has more dates than this."""
    return precondition(lambda self: not self.model.trashed and len(self.model.active()) > more_than)


class DivisionSteps(SeriesMachine):
    @precondition(lambda self: self.others and not self.model.trashed)
    @rule(index=indexes)
    def edit_another_series(self, index: int) -> None:
        self.undoable = None
        other = self._pop_other(index)
        self.others[self.model.id] = self.model
        self.model = other

    @active(more_than=2)
    @rule(index=indexes, dry=st.booleans())
    def detach(self, index: int, dry: bool) -> None:
        event, before, world = self.pick(index), self.before(), self.world()
        self.write("POST", f"/events/{event.id}/detach", dry=dry)
        self.singles[event.id] = self.model.leave_out(event)
        self.compare(before)
        self.undoable = (world, before.revision)

    @precondition(lambda self: self.singles and len(self.others) < MOST_SERIES - 1)
    @active(more_than=-1)
    @rule(index=indexes, text=st.sampled_from(CONVERSION_RULES), dry=st.booleans())
    def convert(self, index: int, text: str, dry: bool) -> None:
        """Make a series of an event that has left another one."""
        before, event = self.before(), self.singles.pop(sorted(self.singles)[index % len(self.singles)])
        body = self.write("POST", f"/events/{event.id}/series", dry=dry, rule=text)
        self.others[self.model.id] = self.model
        segment = Segment(text, event.start, event.end - event.start, event.zone)
        self.model = SeriesModel(body["series"]["id"], [segment], dict(event.fields))
        self.model.create_until(self.model.horizon(self.now))
        event.slot, event.own = event.start, set()
        self.model.events[event.id] = event
        self.adopt_new_events()
        self.compare(before)

    @precondition(lambda self: len(self.others) < MOST_SERIES - 1)
    @active(more_than=1)
    @rule(index=indexes, is_planned=st.booleans(), dry=st.booleans())
    def split(self, index: int, is_planned: bool, dry: bool) -> None:
        before, world, slot = self.before(), self.world(), self.pick(index).slot
        if is_planned and (planned := self.model.find_planned()) is not None:
            slot = planned
        elif slot not in self.model.dates():
            return
        head, tail = split(self.model, slot, 0)
        if not head.segments:
            refusal = Refused(400, "rest_invalid_param")
            self.write("POST", f"/series/{self.model.id}/split", dry=dry, expected=refusal, **{"from": str(slot)})
            return
        body = self.write("POST", f"/series/{self.model.id}/split", dry=dry, **{"from": str(slot)})
        tail.id = body["new_series"]["id"]
        self.model, self.others[tail.id] = head, tail
        self.compare(before)
        self.undoable = (world, before.revision)

    @precondition(lambda self: self.others)
    @active(more_than=-1)
    @rule(index=indexes, dry=st.booleans())
    def merge(self, index: int, dry: bool) -> None:
        before, world, other = self.before(), self.world(), self._pop_other(index)
        path = f"/series/{self.model.id}/merge"
        try:
            joint = merge(self.model, other)
        except Refused as refusal:
            self.write("POST", path, dry=dry, expected=refusal, series=other.id)
            self.others[other.id] = other
            return
        self.write("POST", path, dry=dry, series=other.id)
        self.model = joint
        self.compare(before)
        self.undoable = (world, before.revision)

    @active()
    @rule(keep=st.sampled_from(["all", "upcoming", "next"]), is_undone=st.booleans(), dry=st.booleans())
    def dissolve(self, keep: str, is_undone: bool, dry: bool) -> None:
        before, world = self.before(), self.world()
        self.write("POST", f"/series/{self.model.id}/dissolve", dry=dry, keep=keep)
        self._keep(self.model.dissolve(keep, self.now))
        self.compare(before, {*before.rows})
        if is_undone or not self.others:
            before = self.before()
            self.write("POST", f"/series/{self.model.id}/restore", dry=dry)
            self.return_to(world)
            self.compare(before, {*before.rows})
        else:
            self.model = self._pop_other(0)

    @active(more_than=-1)
    @rule(dry=st.booleans())
    def trash_series(self, dry: bool) -> None:
        before, self.before_trash, self.last_date = self.before(), self.world(), None
        self.write("DELETE", f"/series/{self.model.id}", dry=dry)
        self.model.trash_all(self.now)
        self.compare(before)

    @precondition(lambda self: self.model.trashed)
    @rule(dry=st.booleans())
    def restore_series(self, dry: bool) -> None:
        before = self.before()
        refusal = Refused(410, "series-is-in-trash")
        self.write("PATCH", f"/series/{self.model.id}", expected=refusal, title="Trash")
        self.write("POST", f"/series/{self.model.id}/restore", dry=dry)
        self.return_to(self.before_trash)
        self.compare(before, {*before.rows})

    def _pop_other(self, index: int) -> SeriesModel:
        return self.others.pop(sorted(self.others)[index % len(self.others)])

    def _keep(self, events: list[Occurrence]) -> None:
        self.singles |= {event.id: event for event in events}
