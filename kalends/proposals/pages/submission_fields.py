"""The fields of the public form: what people type, and the parameters of an event that it becomes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final, Literal

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.event_queries import find_by_name, find_choices
from kalends.calendar.rules.when import combine, end_of, split_date
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id
from kalends.website.form_visits import read_text

Control = Literal["text", "textarea", "date", "time", "checkbox", "url", "email", "file", "categories"]


@dataclass(frozen=True, slots=True)
class FormField:
    """A field, and the parameter that its value and its errors belong to."""

    name: str
    label: str  # a message ID
    control: Control = "text"
    param: str = ""  # if empty, the name
    hint: str = ""
    max_length: int = 200
    is_required: bool = False
    is_half: bool = False  # beside another one
    autocomplete: str = "off"
    choices: str = ""  # the list of suggestions


@dataclass(frozen=True, slots=True)
class FieldGroup:
    title: str
    fields: tuple[FormField, ...]


END: Final = (
    FormField("end_day", N_("End date"), "date", "end_date", N_("If it ends on another day"), is_half=True),
    FormField("end_time", N_("End time"), "time", "end_date", is_half=True),
)
WHEN: Final = (
    FormField("start_day", N_("Date"), "date", "start_date", is_required=True, is_half=True),
    FormField("start_time", N_("Time"), "time", "start_date", is_half=True),
    *END,
    FormField("all_day", N_("All day"), "checkbox"),
)
NEW_VENUE: Final = ("address", "zip", "city")  # parameters of a venue that is not in the list
WHERE: Final = (
    FormField("venue", N_("Venue"), hint=N_("Choose one from the list, or enter a new one."), choices="venues"),
    FormField("address", N_("Street and number"), param="venue", hint=N_("Only for a new venue")),
    FormField("zip", N_("Postal code"), param="venue", max_length=20, is_half=True),
    FormField("city", N_("Town"), param="venue", is_half=True),
    FormField("organizer", N_("Organizer"), choices="organizers"),
)
DETAILS: Final = (
    FormField("categories", N_("Categories"), "categories"),
    FormField("description", N_("Description"), "textarea", max_length=10_000),
    FormField("cost", N_("Price"), hint=N_("Such as 12 or “free”"), max_length=100),
    FormField("website", N_("Website"), "url", max_length=500),
    FormField("ticket_url", N_("Tickets"), "url", max_length=500),
)
PICTURE: Final = (
    FormField("file", N_("Picture"), "file", "picture", N_("Up to 8 MB, and one that you may publish")),
    FormField("picture_alt", N_("What does the picture show?"), param="alt_text"),
)
NOTE: Final = FormField("note", N_("Note for the editors"), "textarea", hint=N_("Not published"), max_length=2000)
SENDER: Final = (
    FormField("name", N_("Your name"), max_length=100, autocomplete="name"),
    FormField(
        "email",
        N_("Your email address"),
        "email",
        hint=N_("Not published. We’ll send you a link to confirm."),
        max_length=254,
        is_required=True,
        autocomplete="email",
    ),
    NOTE,
)
TITLE: Final = FormField("title", N_("Title"), is_required=True)
EVENT: Final = (
    FieldGroup(N_("What and when"), (TITLE, *WHEN)),
    FieldGroup(N_("Where"), WHERE),
    FieldGroup(N_("Details"), DETAILS),
)
NEW_FORM: Final = (*EVENT[:2], FieldGroup(N_("Details"), (*DETAILS, *PICTURE)), FieldGroup(N_("About you"), SENDER))
CHANGE_FORM: Final = (*EVENT, FieldGroup(N_("Note"), (NOTE,)))
ALL_FIELDS: Final = {row.name: row for group in NEW_FORM for row in group.fields}
DATES: Final = frozenset({"start_date", "end_date", "all_day"})


@dataclass(frozen=True, slots=True)
class Entry:
    """The texts that a person has typed, by field, and the IDs of the chosen categories."""

    texts: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(ALL_FIELDS, ""))
    categories: Sequence[int] = ()

    def encode(self) -> str:
        return orjson.dumps({**self.texts, "categories": list(self.categories)}).decode()


def read_entry(form: Mapping[str, Any]) -> Entry:
    """Read a form as it was sent, or as `Entry.encode` returned it."""
    chosen = form.get("categories", [])
    entries: list[Any] = chosen if isinstance(chosen, list) else [chosen]
    ids = [parse_id(str(entry)) for entry in entries]
    return Entry({name: read_text(form, name) for name in ALL_FIELDS}, [entry for entry in ids if entry is not None])


def decode_entry(text: str) -> Entry:
    """Decode the hidden field with the values that a form was rendered with."""
    try:
        decoded: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        decoded = {}
    return read_entry(decoded if isinstance(decoded, dict) else {})  # pyright: ignore[reportUnknownArgumentType]


# From the form to parameters -----------------------------------------------------------------------


async def make_params(context: OperationContext, entry: Entry) -> dict[str, Any]:
    """Return all parameters of the event that a form describes."""
    texts, all_day = entry.texts, bool(entry.texts["all_day"])
    day, start_time = texts["start_day"], "" if all_day else texts["start_time"]
    end_day, end_time = end_of(day, start_time, texts["end_day"], texts["end_time"], all_day=all_day)
    zone = context.transaction.site.timezone
    return {
        "title": texts["title"],
        "start_date": combine(day, start_time, "", zone),
        "end_date": combine(end_day, end_time, "", zone),
        "all_day": all_day,
        "venue": await _find_or_describe(VENUES, context, texts["venue"], {name: texts[name] for name in NEW_VENUE}),
        "organizer": await _find_or_describe(ORGANIZERS, context, texts["organizer"], {}),
        "categories": list(entry.categories),
        "description": escape(texts["description"], quote=False),
        **{name: texts[name] for name in ("cost", "website", "ticket_url")},
    }


async def make_changed_params(context: OperationContext, entry: Entry, original: Entry) -> dict[str, Any]:
    """Return the parameters whose fields differ from the values that the form was rendered with."""
    changed = {row.param or name for name, row in ALL_FIELDS.items() if entry.texts[name] != original.texts[name]}
    if sorted(entry.categories) != sorted(original.categories):
        changed.add("categories")
    if changed & DATES:
        changed |= DATES
    return {name: value for name, value in (await make_params(context, entry)).items() if name in changed}


async def _find_or_describe(
    kind: Kind, context: OperationContext, name: str, more: Mapping[str, str]
) -> list[int | dict[str, str]]:
    """Return the ID of the published venue or organizer with this name, or the parameters of a new one."""
    if not name:
        return []
    city = more.get("city", "")
    try:
        choice = await find_by_name(kind, context, f"{name} ({city})" if city else name)
    except InvalidValue:
        choice = None  # The check of the parameters explains what is wrong with the name.
    if choice is not None:
        return [choice.id]
    return [{kind.title_param: name, **{param: text for param, text in more.items() if text}}]


# From parameters to the form -----------------------------------------------------------------------


async def make_entry(context: OperationContext, values: Mapping[str, Any]) -> Entry:
    """Return a form with the parameters of an event."""
    all_day = values.get("all_day") in (True, "true", "1")
    start_day, start_time, _ = split_date(str(values.get("start_date", "")))
    end_day, end_time, _ = split_date(str(values.get("end_date", "")))
    texts = {
        **dict.fromkeys(ALL_FIELDS, ""),
        **{name: str(values.get(name) or "") for name in ("cost", "website", "ticket_url")},
        "title": to_plain_text(values.get("title", "")),
        "description": to_plain_lines(values.get("description") or ""),
        "start_day": start_day,
        "end_day": "" if end_day == start_day else end_day,
        "start_time": "" if all_day else start_time,
        "end_time": "" if all_day or (end_day, end_time) == (start_day, start_time) else end_time,
        "all_day": "1" if all_day else "",
        **await _describe_linked(VENUES, context, "venue", values.get("venue")),
        **await _describe_linked(ORGANIZERS, context, "organizer", values.get("organizer")),
    }
    return Entry(texts, list(values.get("categories") or ()))


async def _describe_linked(kind: Kind, context: OperationContext, name: str, value: Any) -> dict[str, str]:
    first = next(iter(value if isinstance(value, list) else [value]), None)  # pyright: ignore
    if isinstance(first, Mapping):
        return {
            name: first.get(kind.title_param, ""),
            **{param: first[param] for param in NEW_VENUE if param in first},
        }
    choices = await find_choices(kind, context, [first]) if isinstance(first, int) else []
    return {name: choices[0].label} if choices else {}


def find_field(param: str, fields: Iterable[FormField]) -> FormField | None:
    """Return the field that shows an error about a parameter, such as the date for `start_date`."""
    name = param.partition(".")[0]
    return next((row for row in fields if name in (row.param, row.name)), None)


def check_entry(entry: Entry, groups: Iterable[FieldGroup]) -> dict[str, Message]:
    """Return what is missing or too long, by parameter."""
    problems: dict[str, Message] = {}
    for row in (row for group in groups for row in group.fields):
        text, param = entry.texts.get(row.name, ""), row.param or row.name
        if row.is_required and not text:
            problems[param] = Message("This field is required.")
        elif len(text) > row.max_length:
            problems[param] = Message("must have at most {maximum} characters.", maximum=row.max_length)
    if not entry.texts["start_time"] and not entry.texts["all_day"]:
        problems.setdefault("start_date", Message("Enter a time, or check “All day”."))
    return problems
