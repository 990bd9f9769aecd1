"""Parameter declarations: parsing, meaning and description in one place.

A `Param` is one row in the API description's tables; its `Type` parses a raw value from JSON, a form or the query
string. Nothing here depends on the record kind.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import isclass, signature
from typing import Any, Final, LiteralString

from kalends.core import errors
from kalends.core.cost import MAX_SYMBOL_LENGTH, read_cost, read_currency_code, read_currency_symbol
from kalends.core.date_forms import MAX_LENGTH, read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.statuses import STATUSES, SYNONYMS, WRITABLE
from kalends.core.urls import MAX_EMAIL_LENGTH, MAX_WEBSITE_LENGTH, read_email, read_website
from kalends.core.words import suggest
from kalends.core.zones import read_zone

# Accepted spellings of booleans. The original API accepts fewer.

SPELLINGS: Final = {
    "true": True, "1": True, "yes": True, "on": True,
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


def parse_bool(value: object) -> bool:
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    parsed = SPELLINGS.get(value.lower()) if isinstance(value, str) else None
    if parsed is None:
        raise InvalidValue("must be a boolean: true/false, 1/0, yes/no or on/off.")
    return parsed


MAX_ID: Final = 2**53 - 1
MIN_PASSWORD_LENGTH: Final = 6  # characters in a new event password
# Common mistakes in enumerations such as `order`, `orderby` and `mime_type`.
CHOICE_SYNONYMS: Final = {
    "ascending": "asc", "descending": "desc", "start": "start_date", "end": "end_date", "event_date": "start_date",
    "publish_date": "date", "name": "title", "updated": "modified", "near": "distance", "image/jpg": "image/jpeg",
    "canceled": "cancelled", "confirmed": "scheduled", "delayed": "postponed", "rescheduled": "postponed",
    "online": "moved_online", "virtual": "moved_online", "soldout": "sold_out", "full": "sold_out",
}  # fmt: skip
NOT_NULLABLE: Final = object()


def parse_id(text: str) -> int | None:
    """Return an ID or a revision from a form field or URL; None if it is not a number or is too large."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < len(str(MAX_ID)) else None


class RepeatedValues(list[object]):
    """The values of a repeated query parameter. Lists use all of them; other types use the last one."""


def read_form_text(form: Mapping[str, Any], name: str) -> str:
    """Return a text field from a form: the last value if there are several, "" if there is none."""
    value = form.get(name, "")
    value = value[-1] if isinstance(value, RepeatedValues) else value
    # PostgreSQL cannot store U+0000.
    return value.replace("\0", "") if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Type:
    """Parses and describes a parameter's values."""

    schema: Mapping[str, object]
    read: Callable[[Any], Any]
    null_value: object = NOT_NULLABLE  # what null means on update; NOT_NULLABLE rejects null
    accepts_lists: bool = False
    exact_schema: Mapping[str, object] | None = None  # a more precise schema for /doc
    # Corrects a query value that would otherwise be rejected; returns None to ignore the parameter.
    correct: Callable[[str], str | None] | None = None
    is_text: bool = False  # accepts any text; only limits and sanitizes it
    note: str = ""  # a sentence about the type that /doc adds to the description of each parameter

    @property
    def doc_schema(self) -> Mapping[str, object]:
        return self.schema if self.exact_schema is None else self.exact_schema


@dataclass(frozen=True, slots=True)
class Param:
    name: LiteralString
    type: Type
    description: str
    required: bool = False
    default: object = None
    has_default: bool = False
    is_extension: bool = False


def param(name: LiteralString, value_type: Type, description: str, **options: Any) -> Param:
    """Declare a parameter. An explicit `default` also appears in the description."""
    return Param(name, value_type, description, has_default="default" in options, **options)


def read_params(params: Iterable[Param], raw: Mapping[str, object], *, update: bool = False) -> dict[str, Any]:
    """Parse the given parameters. Raise one ApiError that names all missing or all invalid parameters."""
    declared = list(params)
    if missing := find_missing(declared, raw, update=update):
        raise errors.missing_params(missing)
    values: dict[str, Any] = {}
    problems: dict[str, Message] = {}
    for p in declared:
        if p.name not in raw:
            continue
        value = raw[p.name]
        if isinstance(value, RepeatedValues) and not p.type.accepts_lists:
            value = value[-1]
        if value is None:
            if not update:
                continue
            if p.type.null_value is NOT_NULLABLE:
                problems[p.name] = Message("`{name}` cannot be null.", name=p.name)
            else:
                values[p.name] = p.type.null_value
            continue
        try:
            values[p.name] = p.type.read(value)
        except InvalidValue as error:
            problems[p.name] = errors.for_param(p.name, error.message)
    if problems:
        raise errors.invalid_params(problems)
    return values


def find_missing(params: Iterable[Param], raw: Mapping[str, object], *, update: bool = False) -> list[str]:
    """Return the names of required parameters that are missing. On update, none is required."""
    return [p.name for p in params if p.required and not update and raw.get(p.name) is None]


_ID: Final = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
_DATE_TIME: Final = {
    "type": "string",
    "maxLength": MAX_LENGTH,
    "examples": ["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
}
_STATUSES: Final = {"type": "array", "items": {"type": "string", "enum": list(STATUSES)}, "minItems": 1}
_COSTS: Final = {"type": "array", "items": {"type": ["number", "string"]}, "maxItems": 50}


def text(clean: Callable[[str], str], *, allow_empty: bool = True) -> Type:
    """Return a type for strings that `clean` limits and sanitizes; `allow_empty` permits "".

    If `clean` has a `limit` parameter, /doc gives its default as the maximum length.
    """

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise InvalidValue("must be a string.")
        cleaned = clean(value)
        if not cleaned and not allow_empty:
            raise InvalidValue("must be a non-empty string.")
        return cleaned

    limit = _find_limit(clean)
    exact = {
        "type": "string",
        **({} if allow_empty else {"minLength": 1}),
        **({} if limit is None else {"maxLength": limit}),
    }
    return Type(
        {"type": "string"}, read, null_value="" if allow_empty else NOT_NULLABLE, exact_schema=exact, is_text=True
    )


def _find_limit(clean: Callable[[str], str]) -> int | None:
    if isclass(clean):
        return None
    parameter = signature(clean).parameters.get("limit")
    return None if parameter is None else parameter.default


def integer(
    *, minimum: int = 0, maximum: int = MAX_ID, null_value: object = NOT_NULLABLE, reduce: bool = False
) -> Type:
    """Return an integer type.

    With `reduce`, values above the maximum become the maximum instead of being rejected.
    """

    def read(value: object) -> int:
        number = read_integer(value)
        if reduce and maximum < number <= MAX_ID:
            return maximum
        if not minimum <= number <= maximum:
            raise InvalidValue("must be an integer from {minimum} to {maximum}.", minimum=minimum, maximum=maximum)
        return number

    return Type(
        {"type": "integer"},
        read,
        null_value,
        exact_schema={"type": "integer", "minimum": minimum, "maximum": maximum},
        correct=_reduce_to(maximum) if reduce else None,
    )


def _reduce_to(maximum: int) -> Callable[[str], str]:
    def correct(value: str) -> str:
        try:
            # Most values are plain digits and need no regular expression.
            number = int(value) if value.isdecimal() and len(value) <= 16 else read_integer(value)
        except InvalidValue:
            return value  # parsing will reject it
        return str(maximum) if maximum < number <= MAX_ID else value

    return correct


def number(minimum: float, maximum: float, *, null_value: object = None) -> Type:
    def read(value: object) -> float:
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise InvalidValue(
                "must be a number from {minimum} to {maximum}.", minimum=f"{minimum:g}", maximum=f"{maximum:g}"
            )
        return float(value)

    return Type(
        {"type": "number"}, read, null_value, exact_schema={"type": "number", "minimum": minimum, "maximum": maximum}
    )


def read_integer(value: object) -> int:
    """Parse an integer: 5, "5", 5.0, "+5" and "1e1", but not 1.5, true or "five"."""
    if isinstance(value, str) and len(value) <= 32:
        if re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return int(value)
        if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?([eE]\d{1,2})?\s*", value):
            value = float(value)
    if isinstance(value, float) and value.is_integer() and math.fabs(value) < 2**63:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidValue("must be an integer.")


def read_list(value: object) -> list[object]:
    """Parse a list from [1, 2], "1,2" or 1; drop empty entries."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list):
        entries: list[object] = []
        for entry in value:  # pyright: ignore[reportUnknownVariableType]
            entries += read_list(entry) if isinstance(entry, str) else [entry]
        return entries
    return [value]


def ids(*, allow_empty: bool = False) -> Type:
    def read(value: object) -> list[int]:
        record_ids = [read_integer(entry) for entry in read_list(value)]
        if any(not 0 < entry <= MAX_ID for entry in record_ids) or not (record_ids or allow_empty):
            raise InvalidValue("must be one or more IDs, as a list or comma-separated.")
        if len(record_ids) > 500:
            raise InvalidValue("must have at most 500 IDs.")
        return record_ids

    exact = {"type": "array", "items": _ID, "minItems": 0 if allow_empty else 1, "maxItems": 500}
    return Type({"type": "array", "items": {"type": "integer"}}, read, accepts_lists=True, exact_schema=exact)


def terms(*, allow_empty: bool = False) -> Type:
    """Return a type for term IDs, slugs or names, given as a list or comma-separated."""

    def read(value: object) -> list[int | str]:
        if isinstance(value, bool | dict):
            raise InvalidValue("must be a list of IDs, slugs or names.")
        values: list[int | str] = []
        for entry in read_list(value):
            if isinstance(entry, bool | dict | list) or entry is None:
                raise InvalidValue("must contain only IDs, slugs or names.")
            if isinstance(entry, str) and not entry.isdecimal():
                values.append(entry)
                continue
            term_id = read_integer(entry)
            if not 0 < term_id <= MAX_ID:
                raise InvalidValue("must contain only positive term IDs.")
            values.append(term_id)
        if not values and not allow_empty:
            raise InvalidValue("must be one or more IDs or slugs.")
        if len(values) > 200:
            raise InvalidValue("must have at most 200 terms.")
        return list(dict.fromkeys(values))

    entry = {"anyOf": [_ID, {"type": "string", "minLength": 1}]}
    exact = {"type": "array", "items": entry, "minItems": 0 if allow_empty else 1, "maxItems": 200}
    return Type(
        {"type": "array", "items": {"type": "integer"}}, read, null_value=[], accepts_lists=True, exact_schema=exact
    )


def _read_linked(value: object) -> list[int | dict[str, object]]:
    """Parse links: IDs (which may be comma-separated), or objects with an ID or data; alone or in a list."""
    if value in ("", 0, "0", False):
        return []
    entries: list[int | dict[str, object]] = []
    for entry in read_list(value):
        if isinstance(entry, dict):
            if entry:
                entries.append(entry)  # pyright: ignore[reportUnknownArgumentType]
            continue
        record_id = read_integer(entry)
        if not 0 < record_id <= MAX_ID:
            raise InvalidValue("must contain only positive record IDs.")
        if record_id not in entries:
            entries.append(record_id)
    if len(entries) > 50:
        raise InvalidValue("must have at most 50 records.")
    return entries


def _read_image(value: object) -> int | str | None:
    """Parse an image ID or URL; "", 0 and false mean none."""
    if value in ("", 0, "0", False):
        return None
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return read_website(value)
    media_id = read_integer(value)
    if not 0 < media_id <= MAX_ID:
        raise InvalidValue("must be an image ID.")
    return media_id


def _string(read: Callable[[str], Any]) -> Callable[[object], Any]:
    def read_string(value: object) -> Any:
        if not isinstance(value, str):
            raise InvalidValue("must be a string.")
        return read(value)

    return read_string


def _read_status(value: str) -> str:
    if value not in WRITABLE:
        raise InvalidValue(
            "must be one of {values}.", values=", ".join(WRITABLE), suggestion=suggest(value, WRITABLE, SYNONYMS)
        )
    return value


def _read_statuses(value: object) -> list[str]:
    if value == "":
        return ["publish", "private"]  # as existing clients expect
    statuses = [str(entry) for entry in read_list(value)]
    unknown = [entry for entry in statuses if entry not in STATUSES]
    if unknown or not statuses:
        suggestion = suggest(unknown[0], STATUSES, SYNONYMS) if unknown else None
        raise InvalidValue("must be one or more of {values}.", values=", ".join(STATUSES), suggestion=suggestion)
    return list(dict.fromkeys(statuses))


def one_of(*choices: str, null_value: object = NOT_NULLABLE, ignore_others: bool = False) -> Type:
    """Return an enumeration type. With `ignore_others`, other query values are ignored instead of rejected."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in choices:
            suggestion = suggest(value, choices, CHOICE_SYNONYMS) if isinstance(value, str) else None
            raise InvalidValue("must be one of {values}.", values=", ".join(choices), suggestion=suggestion)
        return value.lower()

    def correct(value: str) -> str | None:
        return value if value.lower() in choices else None

    return Type(
        {"type": "string", "enum": list(choices)}, read, null_value, correct=correct if ignore_others else None
    )


def several_of(*choices: str, allow_empty: bool = False) -> Type:
    def read(value: object) -> list[str]:
        values = [str(entry).lower() for entry in read_list(value)]
        unknown = [entry for entry in values if entry not in choices]
        if unknown or not (values or allow_empty):
            suggestion = suggest(unknown[0], choices, CHOICE_SYNONYMS) if unknown else None
            raise InvalidValue("must be one or more of {values}.", values=", ".join(choices), suggestion=suggestion)
        return list(dict.fromkeys(values))

    exact = {"type": "array", "items": {"type": "string", "enum": list(choices)}, "minItems": 0 if allow_empty else 1}
    return Type({"type": "string"}, read, accepts_lists=True, exact_schema=exact)


def _read_password(value: str) -> str:
    if not 0 < len(value) <= 255:
        raise InvalidValue("must have 1 to 255 characters.")
    return value


def _read_new_password(value: str) -> str:
    """Check a new event password. Existing passwords may be shorter."""
    if value and not MIN_PASSWORD_LENGTH <= len(value) <= 255:
        raise InvalidValue(
            "must have {minimum} to 255 characters, or be empty to clear the password.", minimum=MIN_PASSWORD_LENGTH
        )
    return value


def _limited(read: Callable[[Any], Any], null_value: object, **limits: object) -> Type:
    return Type({"type": "string"}, read, null_value, exact_schema={"type": "string", **limits})


BOOLEAN = Type({"type": "boolean"}, parse_bool)
DATE_TIME = Type(
    {"type": "string"},
    _string(read_datetime),
    exact_schema=_DATE_TIME,
    note=N_(
        "ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a "
        "time and a time zone"
    ),
)
ZONE = Type({"type": "string"}, _string(lambda value: read_zone(value) if value else None), null_value=None)
STATUS = Type({"type": "string"}, _string(_read_status), exact_schema={"type": "string", "enum": list(WRITABLE)})
STATUS_LIST = Type({"type": "string"}, _read_statuses, accepts_lists=True, exact_schema=_STATUSES)
COST = Type(
    {}, read_cost, null_value="", accepts_lists=True, exact_schema={"anyOf": [{"type": ["string", "number"]}, _COSTS]}
)
CURRENCY_SYMBOL = _limited(read_currency_symbol, None, maxLength=MAX_SYMBOL_LENGTH)
CURRENCY_CODE = _limited(read_currency_code, None, pattern="^([A-Za-z]{3})?$")
_POSITION = one_of("prefix", "postfix", "")
CURRENCY_POSITION = Type(_POSITION.schema, lambda value: _POSITION.read(value) or None, null_value=None)
WEBSITE = _limited(read_website, "", maxLength=MAX_WEBSITE_LENGTH)
EMAIL = _limited(_string(read_email), "", maxLength=MAX_EMAIL_LENGTH)
IMAGE = Type({"type": "string"}, _read_image, null_value=None, exact_schema={"type": ["integer", "string"]})
LINKED_RECORDS = Type(
    {"type": "array", "items": {"type": "integer"}}, _read_linked, null_value=[], accepts_lists=True
)
NEW_PASSWORD = _limited(_string(_read_new_password), "", maxLength=255)
PASSWORD = _limited(_string(_read_password), "", minLength=1, maxLength=255)


def _read_token(value: object) -> tuple[int, int | None]:
    """Parse a revision; between two pages, also the revision after which deletions are reported."""
    match = re.fullmatch(r"(\d{1,16})(?:\.(\d{1,16}))?", str(value))
    if match is None:
        raise InvalidValue("must be 0, a revision or a `next_since` from a response.")
    return int(match[1]), int(match[2]) if match[2] else None


TOKEN = Type({"type": "string"}, _read_token)
