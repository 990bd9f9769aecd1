"""The values of the form: from a stored event, from a submitted form, and as parameters of the API."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final

from kalends.console.event_form.when import combine, end_of, find_offset, split_date
from kalends.console.series.repeat import RepeatValues, read_repeat
from kalends.core.event_states import SCHEDULED
from kalends.core.html.sanitize import fold, to_paragraphs
from kalends.core.times import local_of
from kalends.kinds.events import FLAGS
from kalends.operations.event_choices import Choice
from kalends.store import Row
from kalends.store.sites import Site

# Fields of the form that are a parameter of the API with the same name and a single text.
TEXTS: Final = (
    *("title", "timezone", "description", "excerpt", "slug", "cost", "currency_symbol", "currency_code"),
    *("currency_position", "website", "ticket_url", "event_status", "status_reason", "online_url", "author", "tags"),
    *("image", "start_day", "start_time", "start_offset", "end_day", "end_time", "end_offset"),
    *("publish_day", "publish_time", "new_password", "image_alt", "focus_x", "focus_y"),
)
BOOLEANS: Final = ("all_day", "clear_password", *FLAGS)
# Long texts are compared by their hash, because the form need not contain them twice.
HASHED: Final = frozenset(["description", "excerpt"])
# Parameters that describe the image instead of the event.
IMAGE_PARAMS: Final = {"image_alt": "alt_text", "focus_x": "focus_x", "focus_y": "focus_y"}
DEFAULT_TIMES: Final = ("19:00", "21:00")
CENTER: Final = "0.5"


@dataclass(slots=True)
class Pick:
    """A venue or organizer in the form: its name as typed, and the ID if it is known."""

    name: str = ""
    id: int = 0

    @property
    def reference(self) -> str:
        """Return the hidden value that identifies the record as long as the name is not changed."""
        return f"{self.id}|{self.name}" if self.id else ""


@dataclass(slots=True, kw_only=True)
class EventValues:
    """The values of all fields of the form."""

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
    excerpt: str = ""
    slug: str = ""
    cost: str = ""
    currency_symbol: str = ""
    currency_code: str = ""
    currency_position: str = ""
    website: str = ""
    ticket_url: str = ""
    event_status: str = SCHEDULED
    status_reason: str = ""
    online_url: str = ""
    show_map: bool = True
    show_map_link: bool = True
    hide_from_listings: bool = False
    sticky: bool = False
    featured: bool = False
    author: str = ""
    publish_day: str = ""
    publish_time: str = ""
    new_password: str = ""
    clear_password: bool = False
    image: str = ""
    image_alt: str = ""
    focus_x: str = CENTER
    focus_y: str = CENTER
    categories: list[int] = field(default_factory=list[int])
    tags: str = ""
    tag_entries: list[int | str] | None = None  # IDs of known tags, and names of new ones
    venue: list[Pick] = field(default_factory=list[Pick])
    organizer: list[Pick] = field(default_factory=list[Pick])
    new_venue: dict[str, str] = field(default_factory=dict[str, str])
    new_organizer: dict[str, str] = field(default_factory=dict[str, str])
    repeat: RepeatValues = field(default_factory=RepeatValues)


@dataclass(frozen=True, slots=True)
class Linked:
    """The records that an event links to, as the form shows them."""

    venues: Sequence[Choice] = ()
    organizers: Sequence[Choice] = ()
    tag_names: Sequence[str] = ()
    image: Mapping[str, Any] | None = None


def make_new_values(site: Site) -> EventValues:
    return EventValues(timezone=site.timezone, start_time=DEFAULT_TIMES[0], end_time=DEFAULT_TIMES[1])


def make_values(row: Row, linked: Linked, site: Site) -> EventValues:
    """Return the values of a stored event."""
    published = local_of(row["published_at"], site.timezone)
    values = EventValues(
        title=row["title"],
        **_split_times(row),
        timezone=row["timezone"],
        description=to_paragraphs(row["description"]),
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
    for name in (*_STORED_TEXTS, *FLAGS):
        setattr(values, name, "" if row[name] is None else row[name])
    if linked.image:
        values.image_alt = linked.image["alt_text"]
        values.focus_x, values.focus_y = f"{linked.image['focus_x']:g}", f"{linked.image['focus_y']:g}"
    return values


_STORED_TEXTS: Final = (
    *("excerpt", "slug", "cost", "currency_symbol", "currency_code", "currency_position", "website", "ticket_url"),
    *("event_status", "status_reason", "online_url"),
)


def _split_times(row: Row) -> dict[str, Any]:
    times: dict[str, Any] = {"all_day": row["all_day"]}
    for side in ("start", "end"):
        wall: datetime = row[f"{side}_local"]
        times[f"{side}_day"] = wall.date().isoformat()
        times[f"{side}_time"] = "" if row["all_day"] else f"{wall:%H:%M:%S}".removesuffix(":00")
        times[f"{side}_offset"] = find_offset(wall, row["timezone"], row[f"{side}_utc"])
    return times


def shift_days(values: EventValues, days: int) -> None:
    """Move an event by days; its local times stay the same."""
    for name in ("start_day", "end_day"):
        day = date.fromisoformat(getattr(values, name)) + timedelta(days=days)
        setattr(values, name, day.isoformat())
    values.start_offset = values.end_offset = ""


def make_copy(values: EventValues) -> EventValues:
    """Remove from the values of an event what a copy does not share with it."""
    values.slug = values.author = values.publish_day = values.publish_time = values.new_password = ""
    values.event_status, values.status_reason = SCHEDULED, ""
    return values


def overlay(values: EventValues, form: Mapping[str, Any]) -> None:
    """Replace the values by those that a form contains; others stay as they are."""
    for name in TEXTS:
        if name in form:
            setattr(values, name, _last_text(form[name]))
    for name in BOOLEANS:
        if name in form:
            setattr(values, name, _last_text(form[name]) in ("true", "1", "on"))
    if "categories" in form:
        values.categories = sorted({int(entry) for entry in _texts(form["categories"]) if entry.isdecimal()})
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


def _read_pick(name: str, reference: str) -> Pick:
    record_id, _, known_name = reference.partition("|")
    is_known = known_name.strip() == name.strip() and record_id.isdecimal()
    return Pick(name.strip(), int(record_id) if is_known else 0)


def _overlay_params(values: EventValues, form: Mapping[str, Any]) -> None:
    """Accept parameters of the API as the page about conflicts sends them."""
    for side in ("start", "end"):
        if f"{side}_date" in form:
            parts = split_date(_last_text(form[f"{side}_date"]))
            for part, text in zip(("day", "time", "offset"), parts, strict=True):
                setattr(values, f"{side}_{part}", text)
    for name in ("venue", "organizer"):
        if name in form:
            ids = [int(entry) for entry in _texts(form[name]) if entry.isdecimal()]
            setattr(values, name, [Pick(f"#{entry}", entry) for entry in ids])
    if "date" in form:
        values.publish_day, values.publish_time, _ = split_date(_last_text(form["date"]))
    if isinstance(form.get("tags"), list):
        values.tags = ", ".join(_texts(form["tags"]))


def _texts(value: object) -> list[str]:
    """Return the texts of a field that may be repeated; numbers and objects with an ID count as their ID."""
    entries: list[object] = list(value) if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownArgumentType]
    texts: list[str] = []
    for entry in entries:
        identifier: object = entry.get("id", "") if isinstance(entry, dict) else entry  # pyright: ignore
        texts += str(identifier).split(",") if len(entries) == 1 and _is_id_list(identifier) else [str(identifier)]  # pyright: ignore[reportUnknownArgumentType]
    return texts


def _is_id_list(value: object) -> bool:
    return isinstance(value, str) and "," in value and value.replace(",", "").isdecimal()


def _last_text(value: object) -> str:
    """Return the value of a field that must be single; line ends are those of stored texts."""
    if isinstance(value, list):
        value = value[-1] if value else ""  # pyright: ignore[reportUnknownVariableType]
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


# Parameters ----------------------------------------------------------------------------------


def to_params(values: EventValues) -> dict[str, Any]:
    """Return the raw parameters of the API. Names of venues, organizers and tags have been resolved before."""
    params: dict[str, Any] = {
        "title": values.title,
        "all_day": values.all_day,
        "timezone": values.timezone,
        "description": values.description,
        **{name: getattr(values, name) for name in (*_STORED_TEXTS, *FLAGS)},
        "categories": values.categories,
        "tags": values.tag_entries if values.tag_entries is not None else values.tags,
        "venue": _linked_params(values.venue, values.new_venue, "venue"),
        "organizer": _linked_params(values.organizer, values.new_organizer, "organizer"),
        "image": int(values.image) if values.image.isdecimal() else 0,
        **_time_params(values),
    }
    if values.publish_day:
        params["date"] = f"{values.publish_day} {values.publish_time or '00:00'}"
    if values.author.isdecimal():
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
    """Return the IDs, followed by the data of a new record. A typed name that the new record has is the new one."""
    new_name = fold(new.get(name, ""))
    ids: list[Any] = [pick.id for pick in picks if pick.id]
    return [*dict.fromkeys(ids), *([dict(new)] if new_name else [])]


def make_originals(values: EventValues) -> dict[str, Any]:
    """Return the parameters that the form is rendered from, to find those that the user changed."""
    params = {**to_params(values), **{name: getattr(values, name) for name in IMAGE_PARAMS}}
    return {name: digest(value) if name in HASHED else value for name, value in params.items() if value}


def find_changes(params: Mapping[str, Any], originals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from those the form was rendered from, which lack empty ones."""
    return {
        name: value
        for name, value in params.items()
        # An empty password removes the stored one, which the form does not contain.
        if name == "new_password"
        or (digest(value) if value and name in HASHED else value or None) != (originals.get(name) or None)
    }


def digest(text: str) -> str:
    return hashlib.blake2b(text.strip().encode(errors="surrogatepass"), digest_size=12).hexdigest()
