"""Reads values of the event form from stored events and submitted forms, and converts them to API parameters."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final

from kalends.calendar.operations.event_queries import Choice
from kalends.calendar.rules.fields import EVENT_FIELDS, in_group
from kalends.calendar.rules.record_types import SCHEDULED
from kalends.calendar.rules.when import combine, end_of, find_offset, split_date
from kalends.core.html_text import to_paragraphs
from kalends.core.params import parse_id
from kalends.core.sanitize import fold
from kalends.core.times import local_of
from kalends.series.rules.repeat import RepeatValues, read_repeat
from kalends.store import Row
from kalends.store.sites import Site

# Plain event fields in the form, with the defaults for a new event.
PLAIN: Final[Mapping[str, Any]] = {
    **{row.name: "" if row.default is None else row.default for row in EVENT_FIELDS},
    **dict.fromkeys(("show_map", "show_map_link"), True),
}
# Plain fields in form order.
_ORDER: Final = tuple(
    dict.fromkeys(
        row.name
        for fields in (in_group(EVENT_FIELDS, "cost"), EVENT_FIELDS)
        for row in sorted(fields, key=lambda row: row.is_flag)
    )
)
# Other form fields: text inputs and checkboxes.
TEXTS: Final = (
    *("title", "timezone", "description", "slug", "author", "tags", "image", "image_url"),
    *("start_day", "start_time", "start_offset", "end_day", "end_time", "end_offset"),
    *("publish_day", "publish_time", "new_password", "image_alt", "focus_x", "focus_y"),
)
BOOLEANS: Final = ("all_day", "clear_password")
TICKED: Final = ("true", "1", "on")
# Long texts are compared by their hashes, so the form does not contain them twice.
HASHED: Final = frozenset(["description", "excerpt"])
# Parameters that describe the image and not the event.
IMAGE_PARAMS: Final = {"image_alt": "alt_text", "focus_x": "focus_x", "focus_y": "focus_y"}
DEFAULT_TIMES: Final = ("19:00", "21:00")
CENTER: Final = "0.5"


@dataclass(slots=True)
class Pick:
    """A venue or organizer in the form: the name as typed, and the ID if it is known."""

    name: str = ""
    id: int = 0

    @property
    def reference(self) -> str:
        """Return the hidden value that identifies the record as long as the name is unchanged."""
        return f"{self.id}|{self.name}" if self.id else ""


@dataclass(slots=True, kw_only=True)
class EventValues:
    title: str = ""
    start_day: str = ""
    start_time: str = ""
    start_offset: str = ""
    end_day: str = ""
    end_time: str = ""
    end_offset: str = ""
    all_day: bool = False
    timezone: str = ""
    description: str = ""
    slug: str = ""
    plain: dict[str, Any] = field(default_factory=lambda: dict(PLAIN))
    author: str = ""
    publish_day: str = ""
    publish_time: str = ""
    new_password: str = ""
    clear_password: bool = False
    image: str = ""
    image_url: str = ""  # a picture on another site, fetched when the event is saved
    image_alt: str = ""
    focus_x: str = CENTER
    focus_y: str = CENTER
    categories: list[int] = field(default_factory=list[int])
    tags: str = ""
    tag_entries: list[int | str] | None = None  # IDs of existing tags and names of new tags
    venue: list[Pick] = field(default_factory=list[Pick])
    organizer: list[Pick] = field(default_factory=list[Pick])
    new_venue: dict[str, str] = field(default_factory=dict[str, str])
    new_organizer: dict[str, str] = field(default_factory=dict[str, str])
    repeat: RepeatValues = field(default_factory=RepeatValues)

    def __getattr__(self, name: str) -> Any:
        """Return a plain field, for views and templates."""
        if name not in PLAIN:
            raise AttributeError(name)
        return self.plain[name]


@dataclass(frozen=True, slots=True)
class Linked:
    venues: Sequence[Choice] = ()
    organizers: Sequence[Choice] = ()
    tag_names: Sequence[str] = ()
    image: Mapping[str, Any] | None = None


def make_new_values(site: Site) -> EventValues:
    return EventValues(timezone=site.timezone, start_time=DEFAULT_TIMES[0], end_time=DEFAULT_TIMES[1])


def make_values(row: Row, linked: Linked, site: Site) -> EventValues:
    published = local_of(row["published_at"], site.timezone)
    values = EventValues(
        title=row["title"],
        **split_times(row),
        timezone=row["timezone"],
        description=to_paragraphs(row["description"]),
        slug=row["slug"],
        plain={name: "" if row[name] is None else row[name] for name in PLAIN},
        author=str(row["author_id"]),
        publish_day=published.date().isoformat(),
        publish_time=f"{published:%H:%M}",
        image=str(row["image_id"] or ""),
        categories=sorted(row["category_ids"]),
        tags=", ".join(linked.tag_names),
        tag_entries=sorted(row["tag_ids"]),
        venue=[Pick(choice.label, choice.id) for choice in linked.venues],
        organizer=[Pick(choice.label, choice.id) for choice in linked.organizers],
    )
    if linked.image:
        values.image_alt = linked.image["alt_text"]
        values.focus_x, values.focus_y = f"{linked.image['focus_x']:g}", f"{linked.image['focus_y']:g}"
    return values


def split_times(row: Row | Mapping[Any, Any]) -> dict[str, Any]:
    """Return the form's day, time and offset of both dates, from the time columns of an event."""
    times: dict[str, Any] = {"all_day": row["all_day"]}
    for side in ("start", "end"):
        wall: datetime = row[f"{side}_local"]
        times[f"{side}_day"] = wall.date().isoformat()
        times[f"{side}_time"] = "" if row["all_day"] else f"{wall:%H:%M:%S}".removesuffix(":00")
        times[f"{side}_offset"] = find_offset(wall, row["timezone"], row[f"{side}_utc"])
    return times


def shift_days(values: EventValues, days: int) -> None:
    """Move an event by a number of days. Its local times stay the same."""
    for name in ("start_day", "end_day"):
        day = date.fromisoformat(getattr(values, name)) + timedelta(days=days)
        setattr(values, name, day.isoformat())
    values.start_offset = values.end_offset = ""


def make_copy(values: EventValues) -> EventValues:
    """Clear the values that a copy does not take over from the original event."""
    values.slug = values.author = values.publish_day = values.publish_time = values.new_password = ""
    values.plain.update(event_status=SCHEDULED, status_reason="")
    return values


def overlay(values: EventValues, form: Mapping[str, Any]) -> None:
    for name in TEXTS:
        if name in form:
            setattr(values, name, _last_text(form[name]))
    for name in ("image", "author"):
        if name in form and parse_id(getattr(values, name)) is None:
            setattr(values, name, "")
    for name in BOOLEANS:
        if name in form:
            setattr(values, name, _last_text(form[name]) in TICKED)
    for row in EVENT_FIELDS:
        if row.name in form:
            text = _last_text(form[row.name])
            values.plain[row.name] = text in TICKED if row.is_flag else text
    if "categories" in form:
        values.categories = sorted(
            {number for entry in _texts(form["categories"]) if (number := parse_id(entry)) is not None}
        )
    for name in ("venue", "organizer"):
        _overlay_picks(values, name, form)
    if "repeat" in form:
        values.repeat = read_repeat(form)
    _overlay_params(values, form)


def _overlay_picks(values: EventValues, name: str, form: Mapping[str, Any]) -> None:
    if f"{name}_name" in form:
        names, references = _texts(form[f"{name}_name"]), _texts(form.get(f"{name}_ref", ""))
        padded = [*references, *[""] * len(names)]
        setattr(values, name, [_read_pick(text, padded[n]) for n, text in enumerate(names) if text.strip()])
    new = form.get(f"new_{name}")
    if isinstance(new, dict):
        texts: dict[str, str] = {key: value.strip() for key, value in new.items() if isinstance(value, str)}  # pyright: ignore
        setattr(values, f"new_{name}", {key: value for key, value in texts.items() if value})


def _ids(value: object) -> list[int]:
    return [record_id for text in _texts(value) if (record_id := parse_id(text)) is not None]


def _read_pick(name: str, reference: str) -> Pick:
    record_id, _, known_name = reference.partition("|")
    is_known = known_name.strip() == name.strip()
    return Pick(name.strip(), parse_id(record_id) or 0 if is_known else 0)


def _overlay_params(values: EventValues, form: Mapping[str, Any]) -> None:
    """Accept API parameters, because the conflict page sends them."""
    for side in ("start", "end"):
        if f"{side}_date" in form:
            parts = split_date(_last_text(form[f"{side}_date"]))
            for part, text in zip(("day", "time", "offset"), parts, strict=True):
                setattr(values, f"{side}_{part}", text)
    for name in ("venue", "organizer"):
        if name in form:
            setattr(values, name, [Pick(f"#{record_id}", record_id) for record_id in _ids(form[name])])
    if "date" in form:
        values.publish_day, values.publish_time, _ = split_date(_last_text(form["date"]))
    if isinstance(form.get("tags"), list):
        values.tags = ", ".join(_texts(form["tags"]))


def _texts(value: object) -> list[str]:
    """Return the values of a repeatable field as strings. An object counts as its ID."""
    entries: list[object] = list(value) if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownArgumentType]
    texts: list[str] = []
    for entry in entries:
        identifier: object = entry.get("id", "") if isinstance(entry, dict) else entry  # pyright: ignore
        texts += str(identifier).split(",") if len(entries) == 1 and _is_id_list(identifier) else [str(identifier)]  # pyright: ignore[reportUnknownArgumentType]
    return texts


def _is_id_list(value: object) -> bool:
    return isinstance(value, str) and "," in value and value.replace(",", "").isdecimal()


def _last_text(value: object) -> str:
    """Return the last value of a field, with LF line endings."""
    if isinstance(value, list):
        value = value[-1] if value else ""  # pyright: ignore[reportUnknownVariableType]
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


# Parameters ----------------------------------------------------------------------------------


def to_params(values: EventValues) -> dict[str, Any]:
    """Return raw API parameters. Names of venues, organizers and tags must already be resolved."""
    params: dict[str, Any] = {
        "title": values.title,
        "all_day": values.all_day,
        "timezone": values.timezone,
        "description": values.description,
        "excerpt": values.plain["excerpt"],
        "slug": values.slug,
        **{name: values.plain[name] for name in _ORDER},
        "categories": values.categories,
        "tags": values.tag_entries if values.tag_entries is not None else values.tags,
        "venue": _linked_params(values.venue, values.new_venue, "venue"),
        "organizer": _linked_params(values.organizer, values.new_organizer, "organizer"),
        "image": int(values.image or 0),
        **_time_params(values),
    }
    if values.publish_day:
        params["date"] = f"{values.publish_day} {values.publish_time or '00:00'}"
    if values.author:
        params["author"] = int(values.author)
    if values.new_password or values.clear_password:
        params["new_password"] = values.new_password
    return params


def _time_params(values: EventValues) -> dict[str, str]:
    params: dict[str, str] = {}
    if values.start_day:
        zone = values.timezone
        end_day, end_time = end_of(
            values.start_day, values.start_time, values.end_day, values.end_time, all_day=values.all_day
        )
        start_time = "" if values.all_day else values.start_time
        params["start_date"] = combine(values.start_day, start_time, values.start_offset, zone)
        params["end_date"] = combine(end_day, end_time, values.end_offset, zone)
    return params


def _linked_params(picks: Sequence[Pick], new: Mapping[str, str], name: str) -> list[Any]:
    new_name = fold(new.get(name, ""))
    ids: list[Any] = [pick.id for pick in picks if pick.id]
    return [*dict.fromkeys(ids), *([dict(new)] if new_name else [])]


def make_originals(values: EventValues) -> dict[str, Any]:
    """Return the parameters that the form starts with, to detect changes later."""
    params = {**to_params(values), **{name: getattr(values, name) for name in IMAGE_PARAMS}}
    return {name: digest(value) if name in HASHED else value for name, value in params.items() if value}


def find_changes(params: Mapping[str, Any], originals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from the originals. The originals omit empty values."""
    return {
        name: value
        for name, value in params.items()
        # An empty password removes the stored password. The form never contains the stored one.
        if name == "new_password"
        or (digest(value) if value and name in HASHED else value or None) != (originals.get(name) or None)
    }


def digest(text: str) -> str:
    return hashlib.blake2b(text.strip().encode(errors="surrogatepass"), digest_size=12).hexdigest()
