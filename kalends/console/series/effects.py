"""The effect of an edit of a series, from the summary of a dry run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kalends.console.series.texts import format_wall, name_fields
from kalends.website.models.page_locale import PageLocale

MAX_DATES: Final = 60  # dates that the page lists


@dataclass(frozen=True, slots=True)
class DateChange:
    """A date with its time before and after; an empty one means that it is created or goes to the trash."""

    before: str
    after: str
    event: int


@dataclass(frozen=True, slots=True)
class OwnDate:
    """A date with changes of its own."""

    event: int
    day: str
    fields: str


@dataclass(frozen=True, slots=True)
class Effect:
    """How many dates an edit changes, creates and moves to the trash, and which ones have changes of their own."""

    changed: int
    created: int
    trashed: int
    first: str
    last: str
    kept_own: Sequence[OwnDate]
    lost_own: Sequence[OwnDate]
    moved: Sequence[DateChange]
    more: int  # dates that are not listed

    @property
    def count(self) -> int:
        return self.changed + self.created + self.trashed


def describe_effect(summary: dict[str, Any], locale: PageLocale) -> Effect:
    """Return the effect of an edit in the language of the user."""
    dates: list[dict[str, Any]] = summary["dates"]
    days = sorted(entry["after"] or entry["before"] for entry in dates)
    moved = [entry for entry in dates if entry["before"] != entry["after"]]
    return Effect(
        changed=summary["changed"],
        created=summary["created"],
        trashed=summary["trashed"],
        first=format_wall(days[0], locale, all_day=True) if days else "",
        last=format_wall(days[-1], locale, all_day=True) if days else "",
        kept_own=[describe_own(entry, locale) for entry in summary["kept_own"]],
        lost_own=[describe_own(entry, locale) for entry in summary["lost_own"]],
        moved=[_describe_date(entry, locale) for entry in moved[:MAX_DATES]],
        more=max(len(moved) - MAX_DATES, 0),
    )


def describe_own(entry: dict[str, Any], locale: PageLocale) -> OwnDate:
    return OwnDate(entry["event"], format_wall(entry["slot"], locale), name_fields(entry["fields"], locale))


def _describe_date(entry: dict[str, Any], locale: PageLocale) -> DateChange:
    return DateChange(format_wall(entry["before"], locale), format_wall(entry["after"], locale), entry["event"])
