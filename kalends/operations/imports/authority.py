"""Which value counts, field by field: that of the source, that of a person, or that of another source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kalends.core.imports.fields import group_of

SOURCE: Final = "source"  # the new value of the source is written
LOCAL: Final = "local"  # the value that a person has set stays
OTHER_SOURCE: Final = "other_source"  # a source that is trusted more supplies the field

# Stored values that nobody has entered.
EMPTY: Final[tuple[Any, ...]] = (None, "", [], False)

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that the source has changed."""

    stored: Any
    before: Any
    now: Any
    decision: str

    def to_json(self) -> dict[str, Any]:
        return {"stored": self.stored, "before": self.before, "now": self.now, "decision": self.decision}


@dataclass(frozen=True, slots=True)
class RecordState:
    """A record as the source sent it last, as it sends it now, and as it is stored."""

    before: Fields  # empty: the source did not know the record
    now: Fields
    stored: Fields
    # The values that imports have stored, one mapping per source; others are edits by people.
    written: Sequence[Fields] = ()
    reserved: Collection[str] = ()  # fields that a source supplies that is trusted more


def compare(mode: str, state: RecordState) -> dict[str, FieldChange]:
    """Return the fields that the source has changed, with the decision on each; `mode` is that of the source."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys([*state.now, *state.before]):
        groups.setdefault(group_of(name), []).append(name)
    changes: dict[str, FieldChange] = {}
    for names in groups.values():
        if _is_changed(state, names):
            decision = _decide(mode, state, names)
            changes.update({name: _describe(state, name, decision) for name in names})
    return changes


def list_taken(changes: Mapping[str, FieldChange]) -> set[str]:
    """Return the fields that are written."""
    return {name for name, change in changes.items() if change.decision == SOURCE}


def _is_changed(state: RecordState, names: Collection[str]) -> bool:
    if all(state.before.get(name) == state.now.get(name) for name in names):
        return False
    # A person may have entered the same value already.
    return any(name not in state.stored or state.stored[name] != state.now.get(name) for name in names)


def _decide(mode: str, state: RecordState, names: Collection[str]) -> str:
    if any(name in state.reserved for name in names):
        return OTHER_SOURCE
    if mode == "new_only":
        return LOCAL
    if mode == "source" or not any(_is_edited(state, name) for name in names):
        return SOURCE
    return LOCAL


def _is_edited(state: RecordState, name: str) -> bool:
    """Return whether a person has set a field. Without a value of an import to compare with, any value counts."""
    if name not in state.stored:
        return False
    written = [values[name] for values in state.written if name in values]
    return state.stored[name] not in (written or EMPTY)


def _describe(state: RecordState, name: str, decision: str) -> FieldChange:
    return FieldChange(state.stored.get(name), state.before.get(name), state.now.get(name), decision)
