"""Parameters are declared once: how each is read, what it means, how the interface describes it.

A `Param` is one row of the interface's tables; its `Type` reads a raw value from JSON, a form or
the query string. Nothing here knows which record a parameter belongs to.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kalends.core import errors
from kalends.core.booleans import read_switch
from kalends.core.cost import read_cost
from kalends.core.errors import Invalid
from kalends.core.messages import Sentence
from kalends.core.statuses import STATUSES, WRITABLE
from kalends.core.times import read_moment, read_zone
from kalends.core.urls import read_email, read_website

LARGEST_ID: Final = 2**53 - 1
MIN_PASSWORD: Final = 6  # characters of a new event password
KEEP: Final = object()  # the value of a parameter that null does not clear


class Repeated(list[object]):
    """A plain query parameter that was sent several times: a list for lists, else its last value."""


@dataclass(frozen=True, slots=True)
class Type:
    """How a value is read and how it is described."""

    schema: Mapping[str, object]
    read: Callable[[Any], Any]
    cleared: object = KEEP  # what null means on update; KEEP: null is refused
    takes_lists: bool = False
    exact: Mapping[str, object] | None = None  # for /doc, where the tables of the interface say less

    @property
    def described(self) -> Mapping[str, object]:
        return self.schema if self.exact is None else self.exact


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: Type
    description: str
    required: bool = False
    default: object = None
    has_default: bool = False
    ours: bool = False  # not in the interface: an extension of this server


def param(name: str, kind: Type, description: str, **more: Any) -> Param:
    """A parameter; a `default` that is given is also shown in the description."""
    return Param(name, kind, description, has_default="default" in more, **more)


def read_params(params: Iterable[Param], raw: Mapping[str, object], *, update: bool = False) -> dict[str, Any]:
    """The parameters that were sent, read. All that is missing or wrong is named at once."""
    declared = list(params)
    missing = [p.name for p in declared if p.required and not update and raw.get(p.name) is None]
    if missing:
        raise errors.missing_params(missing)
    values: dict[str, Any] = {}
    problems: dict[str, Sentence] = {}
    for p in declared:
        if p.name not in raw:
            continue
        value = raw[p.name]
        if isinstance(value, Repeated) and not p.type.takes_lists:
            value = value[-1]
        if value is None:
            if not update:
                continue
            if p.type.cleared is KEEP:
                problems[p.name] = Sentence("`{name}` cannot be null.", name=p.name)
            else:
                values[p.name] = p.type.cleared
            continue
        try:
            values[p.name] = p.type.read(value)
        except Invalid as problem:
            problems[p.name] = errors.problem_of(p.name, problem.sentence)
    if problems:
        raise errors.invalid_params(problems)
    return values


# Types ---------------------------------------------------------------------------------------

_ID: Final = {"type": "integer", "minimum": 1, "maximum": LARGEST_ID}
_MOMENT: Final = {
    "type": "string",
    "pattern": r"^(\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?|@-?\d{1,12})$",
    "examples": ["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00"],
}
_STATUSES: Final = {"type": "array", "items": {"type": "string", "enum": list(STATUSES)}, "minItems": 1}
_COSTS: Final = {"type": "array", "items": {"type": ["number", "string"]}, "maxItems": 50}


def text(clean: Callable[[str], str], *, empty: bool = True) -> Type:
    """A string that `clean` bounds and filters; `empty` says whether "" is a value."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise Invalid("this must be a string.")
        cleaned = clean(value)
        if not cleaned and not empty:
            raise Invalid("this must be a string that is not empty.")
        return cleaned

    exact = {"type": "string"} if empty else {"type": "string", "minLength": 1}
    return Type({"type": "string"}, read, cleared="" if empty else KEEP, exact=exact)


def integer(*, least: int = 0, most: int = LARGEST_ID, cleared: object = KEEP) -> Type:
    def read(value: object) -> int:
        number = whole_number(value)
        if not least <= number <= most:
            raise Invalid("this must be a whole number from {least} to {most}.", least=least, most=most)
        return number

    return Type({"type": "integer"}, read, cleared, exact={"type": "integer", "minimum": least, "maximum": most})


def number(least: float, most: float, *, cleared: object = None) -> Type:
    def read(value: object) -> float:
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise Invalid("this must be a number from {least} to {most}.", least=f"{least:g}", most=f"{most:g}")
        return float(value)

    return Type({"type": "number"}, read, cleared, exact={"type": "number", "minimum": least, "maximum": most})


def whole_number(value: object) -> int:
    """5, "5", 5.0, "+5" and "1e1" are whole numbers; 1.5, true and "five" are not."""
    if isinstance(value, str) and len(value) <= 32:
        if re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return int(value)
        if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?([eE]\d{1,2})?\s*", value):
            value = float(value)
    if isinstance(value, float) and value.is_integer() and math.fabs(value) < 2**63:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Invalid("this must be a whole number.")


def listed(value: object) -> list[object]:
    """[1, 2], "1,2" and 1 as a list; empty entries are dropped."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list):
        entries: list[object] = []
        for entry in value:  # pyright: ignore[reportUnknownVariableType]
            entries += listed(entry) if isinstance(entry, str) else [entry]
        return entries
    return [value]


def ids(*, empty: bool = False) -> Type:
    """IDs as a list or separated by commas."""

    def read(value: object) -> list[int]:
        found = [whole_number(entry) for entry in listed(value)]
        if any(not 0 < entry <= LARGEST_ID for entry in found) or not (found or empty):
            raise Invalid("this must be one or more IDs, as a list or separated by commas.")
        if len(found) > 500:
            raise Invalid("at most 500 IDs are taken at once.")
        return found

    exact = {"type": "array", "items": _ID, "minItems": 0 if empty else 1, "maxItems": 500}
    return Type({"type": "array", "items": {"type": "integer"}}, read, takes_lists=True, exact=exact)


def terms(*, empty: bool = False) -> Type:
    """IDs, slugs or names of terms, as a list or separated by commas."""

    def read(value: object) -> list[int | str]:
        if isinstance(value, bool | dict):
            raise Invalid("this must be IDs, slugs or names.")
        found: list[int | str] = []
        for entry in listed(value):
            if isinstance(entry, bool | dict | list) or entry is None:
                raise Invalid("every entry must be an ID, a slug or a name.")
            if isinstance(entry, str) and not entry.isdecimal():
                found.append(entry)
                continue
            wanted = whole_number(entry)
            if not 0 < wanted <= LARGEST_ID:
                raise Invalid("0 is not the ID of a term.")
            found.append(wanted)
        if not found and not empty:
            raise Invalid("this must be one or more IDs or slugs.")
        if len(found) > 200:
            raise Invalid("at most 200 terms are taken at once.")
        return list(dict.fromkeys(found))

    entry = {"anyOf": [_ID, {"type": "string", "minLength": 1}]}
    exact = {"type": "array", "items": entry, "minItems": 0 if empty else 1, "maxItems": 200}
    return Type({"type": "array", "items": {"type": "integer"}}, read, cleared=[], takes_lists=True, exact=exact)


def _read_linked(value: object) -> list[int | dict[str, object]]:
    """One ID, a list, a comma list, an object with an ID or with data, and lists that mix them."""
    if value in ("", 0, "0", False):
        return []
    found: list[int | dict[str, object]] = []
    for entry in listed(value):
        if isinstance(entry, dict):
            if entry:
                found.append(entry)  # pyright: ignore[reportUnknownArgumentType]
            continue
        wanted = whole_number(entry)
        if not 0 < wanted <= LARGEST_ID:
            raise Invalid("0 is not the ID of a record.")
        if wanted not in found:
            found.append(wanted)
    if len(found) > 50:
        raise Invalid("at most 50 records can be linked.")
    return found


def _read_image(value: object) -> int | str | None:
    """An image is named by its ID, a number or digits, or by its address; "", 0 and false mean none."""
    if value in ("", 0, "0", False):
        return None
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return read_website(value)
    wanted = whole_number(value)
    if not 0 < wanted <= LARGEST_ID:
        raise Invalid("this must be the ID of an image.")
    return wanted


def _string(read: Callable[[str], Any]) -> Callable[[object], Any]:
    def checked(value: object) -> Any:
        if not isinstance(value, str):
            raise Invalid("this must be a string.")
        return read(value)

    return checked


def _read_status(value: str) -> str:
    if value not in WRITABLE:
        raise Invalid("this must be one of {values}.", values=", ".join(WRITABLE))
    return value


def _read_statuses(value: object) -> list[str]:
    if value == "":
        return ["publish", "private"]  # what an empty status means to existing clients
    found = [str(entry) for entry in listed(value)]
    if not found or any(entry not in STATUSES for entry in found):
        raise Invalid("this must be one or more of {values}.", values=", ".join(STATUSES))
    return list(dict.fromkeys(found))


def _read_any_zone(value: str) -> str | None:
    return read_zone(value) if value else None


def one_of(*words: str) -> Type:
    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in words:
            raise Invalid("this must be one of {values}.", values=", ".join(words))
        return value.lower()

    return Type({"type": "string", "enum": list(words)}, read)


def _read_password(value: str) -> str:
    if not 0 < len(value) <= 255:
        raise Invalid("this must be a password of 1 to 255 characters.")
    return value


def _read_new_password(value: str) -> str:
    """Shorter passwords that were set before still open their events."""
    if value and not MIN_PASSWORD <= len(value) <= 255:
        raise Invalid("must have {least} to 255 characters, or be empty to clear the password.", least=MIN_PASSWORD)
    return value


SWITCH = Type({"type": "boolean"}, read_switch)
MOMENT = Type({"type": "string"}, _string(read_moment), exact=_MOMENT)
ZONE = Type({"type": "string"}, _string(_read_any_zone), cleared=None)
STATUS = Type({"type": "string"}, _string(_read_status), exact={"type": "string", "enum": list(WRITABLE)})
STATUS_LIST = Type({"type": "string"}, _read_statuses, takes_lists=True, exact=_STATUSES)
COST = Type({}, read_cost, cleared="", takes_lists=True, exact={"anyOf": [{"type": ["string", "number"]}, _COSTS]})
WEBSITE = Type({"type": "string"}, read_website, cleared="")
EMAIL = Type({"type": "string"}, _string(read_email), cleared="")
IMAGE = Type({"type": "string"}, _read_image, cleared=None, exact={"type": ["integer", "string"]})
LINKED = Type({"type": "array", "items": {"type": "integer"}}, _read_linked, cleared=[], takes_lists=True)
NEW_PASSWORD = Type({"type": "string"}, _string(_read_new_password), cleared="")
PASSWORD = Type(
    {"type": "string"},
    _string(_read_password),
    cleared="",
    exact={"type": "string", "minLength": 1, "maxLength": 255},
)


def _token(value: object) -> tuple[int, int | None]:
    """A revision, or the position between two pages with the revision that the copy was settled at."""
    match = re.fullmatch(r"(\d{1,16})(?:\.(\d{1,16}))?", str(value))
    if match is None:
        raise Invalid("this must be 0, a revision or a `next_since` of an answer.")
    return int(match[1]), int(match[2]) if match[2] else None


TOKEN = Type({"type": "string"}, _token)
