"""Check archive rows before they are stored. Error messages name the member and line, and the column if any."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from kalends.accounts.operations.user_accounts import read_login
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.series_kind import CONTENT_FIELDS, TIMES
from kalends.calendar.operations.site_options import MEDIA_PATH, SITE_KEYS
from kalends.core.credentials import is_uuid
from kalends.core.errors import InvalidValue
from kalends.core.image_types import BY_EXTENSION, BY_MIME, is_file_name, read_key
from kalends.core.messages import find_language
from kalends.core.params import MAX_ID
from kalends.core.sanitize import clean_plain, read_custom_css
from kalends.core.urls import read_ascii_email, read_email, read_website
from kalends.fleet.adapters import ArchiveRefused
from kalends.fleet.storage.move_tables import OWN_MEDIA, Column
from kalends.imports.operations.sources import read_source_url
from kalends.series.storage import decode_definition

# PostgreSQL would also accept "5" as a number, "now" as a date and 5 as text, so these checks are stricter.

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP: Final = _DATE + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def _is_integer(value: Any, maximum: int) -> bool:
    # These tables contain no negative numbers.
    return type(value) is int and 0 <= value <= maximum


def _matches(pattern: str) -> Callable[[Any], bool]:
    expression = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and expression.fullmatch(value) is not None


# For each PostgreSQL type, a function that checks a value, and a description of valid values.
TYPES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "bigint": (lambda value: _is_integer(value, MAX_ID), f"an integer from 0 to {MAX_ID}"),
    "integer": (lambda value: _is_integer(value, 2**31 - 1), "an integer from 0 to 2147483647"),
    "smallint": (lambda value: _is_integer(value, 2**15 - 1), "an integer from 0 to 32767"),
    "double precision": (lambda value: type(value) in (int, float), "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "timestamp with time zone": (
        _matches(_TIMESTAMP + r"\+00:00"),
        "a time in UTC such as 2027-04-01T19:30:00+00:00",
    ),
    "timestamp without time zone": (_matches(_TIMESTAMP), "a time such as 2027-04-01T19:30:00"),
    "bytea": (_matches(r"\\x([0-9a-f]{2})*"), r"bytes such as \x00ff"),
    "jsonb": (lambda value: value is not None, "a value"),
    "uuid": (lambda value: isinstance(value, str) and is_uuid(value), "a UUID"),
    "date": (_matches(_DATE), "a date such as 2027-04-01"),
}


def check_type(column: Column, value: Any) -> None:
    if value is None:
        if column.is_nullable:
            return
        raise InvalidValue("must not be null.")
    of_array = column.type.removesuffix("[]")
    has_type, words = TYPES[of_array]
    if of_array == column.type:
        if not has_type(value):
            raise InvalidValue("must be {words}.", words=words)
    elif not isinstance(value, list) or not all(map(has_type, value)):  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("must be a list, and each entry {words}.", words=words)
    if _has_nul(value):
        raise InvalidValue("contains a NUL character, which no text can have.")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(name) or _has_nul(entry) for name, entry in value.items())  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, list) and any(map(_has_nul, value))  # pyright: ignore[reportUnknownArgumentType]


# Text in archives must follow the same rules as text in API writes and settings.

type Rule = Callable[[Any], Any]
type Rules = Mapping[str, Rule]

# Parameters whose rules do not fit the column of the same name. Database constraints check statuses.
_NOT_TEXTS: Final = frozenset({"slug", "status"})
_UNSAFE_IN_SLUG: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f<>\"'`&/\\?#]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OWN_FIELDS: Final = {*CONTENT_FIELDS.values(), TIMES}


def _require(is_valid: Callable[[Any], object], problem: str) -> Rule:
    def read(value: Any) -> Any:
        if not is_valid(value):
            raise InvalidValue(problem)
        return value

    return read


_read_slug: Final = _require(lambda value: not _UNSAFE_IN_SLUG.search(value), "contains characters that no slug has.")
_read_line: Final = _require(lambda value: not _CONTROL.search(value), "contains control characters.")
_read_file_name: Final = _require(is_file_name, "is not the name of an image file.")
_read_css_hash: Final = _require(_matches("([0-9a-f]{12})?"), "is not the hash of custom CSS.")
_read_own_fields: Final = _require(lambda value: {*value} <= _OWN_FIELDS, "contains a field that no event has.")


def _read_logo(value: str) -> str:
    """Accept a website URL, or a path to one of the site's images with a placeholder for the site ID."""
    if value.startswith(OWN_MEDIA):
        if read_key(f"1/{value.removeprefix(OWN_MEDIA)}") is None:
            raise InvalidValue("is not the path of an image file.")
        return value
    if value.startswith(MEDIA_PATH):
        raise InvalidValue("is the path of an image of another site.")
    return read_website(value)


def _read_known(known: Mapping[str, object]) -> Rule:
    def read(value: str) -> str:
        if value and value not in known:
            raise InvalidValue("must be one of {values}.", values=", ".join(known))
        return value

    return read


def _read_sizes(value: Any) -> Any:
    """Accept what `make_sizes` stores: dimensions and files by size name."""
    try:
        for size in value.values():
            if not all(type(size[name]) is int and size[name] > 0 for name in ("width", "height", "filesize")):
                raise InvalidValue("contains a size without its dimensions.")
            if size["mime-type"] not in BY_MIME or type(size["webp"]["filesize"]) is not int:
                raise InvalidValue("contains a size of an unknown type.")
            for name in (size["url"], size["webp"]["url"]):
                _read_file_name(name)
    except (AttributeError, KeyError, TypeError):
        raise InvalidValue("is not a description of image sizes.") from None
    return value


def _read_path(value: str) -> Any:
    if not value.startswith("/") or value.startswith("//"):
        raise InvalidValue("must be a path.")
    return _read_line(value)


def _read_language(value: str) -> str:
    return (value and find_language(value)) or ""


def _rules_of_kind(kind: Kind) -> dict[str, Rule]:
    columns = {param.name: param.name for param in kind.fields if param.name not in _NOT_TEXTS}
    if kind.title_param != "name":  # Terms have a `name` column, other records a `title` column.
        columns[kind.title_param] = "title"
    return {columns[param.name]: param.type.read for param in kind.fields if param.name in columns}


_POST: Final[dict[str, Rule]] = {"slug": _read_slug, "uid": _read_line, "feed_guid": _read_line}
_KINDS: Final = {kind.name: {**_rules_of_kind(kind), **_POST} for kind in (*KINDS, MEDIA)}
_SERIES: Final[dict[str, Rule]] = {**_KINDS["events"]}
RULES: Final[Mapping[str, Rules]] = {
    **_KINDS,
    "events": {**_KINDS["events"], "own_fields": _read_own_fields},
    "series": _SERIES,
    "media": {
        **_KINDS["media"],
        "url": lambda value: value if is_file_name(value) else read_website(value),
        "extension": _read_known(BY_EXTENSION),
        "mime_type": _read_known(BY_MIME),
        "sizes": _read_sizes,
        "source_url": read_website,
    },
    "media_files": {"name": _read_file_name, "size": _read_line},
    "legacy_files": {"path": _read_line},
    "prefix_redirects": {"old": _read_path, "new": _read_path},
    "slug_redirects": {"kind": _read_known(BY_NAME), "slug": _read_slug},
    "site_styles": {"css": read_custom_css},
    "import_sources": {
        "url": lambda value: value and read_source_url(value),
        "name": lambda value: clean_plain(value, 200),
    },
    "users": {
        "login": read_login,
        "email": read_email,
        "display_name": lambda value: clean_plain(value, 100),
        "language": _read_language,
    },
    "submitters": {"email": read_email, "language": _read_language},
    "followers": {"email": read_ascii_email, "language": _read_language, "refusal_code": _read_line},
    "follows": {"query": _read_line},
    "proposals": {
        "values": _require(lambda value: isinstance(value, dict), "must be an object."),
        "submitter_name": lambda value: clean_plain(value, 100),
        "program": lambda value: clean_plain(value, 100),
    },
    "sites": {
        **{name: SITE_KEYS[name] for name in ("name", "timezone", "language", "currency_symbol", "currency_code")},
        **{name: SITE_KEYS[name] for name in ("imprint_url", "privacy_url", "parent_url")},
        **{name: SITE_KEYS[name] for name in ("reply_to", "mail_footer")},
        "logo_url": _read_logo,
        "custom_css_hash": _read_css_hash,
        "former_host": _read_line,
    },
}
# The history stores JSON columns as text.
LOGGED_RULES: Final[Mapping[str, Rules]] = {
    kind: {name: rule for name, rule in rules.items() if name != "sizes"} for kind, rules in RULES.items()
}


def check_definition(row: Mapping[str, Any]) -> None:
    encoded = {name: orjson.dumps(row[name]).decode() for name in ("parts", "template", "content_changes")}
    try:
        definition = decode_definition({"added": [], "removed": [], **encoded})
        for content in (definition.template, *(change.values for change in definition.content_changes)):
            if not set(content) <= set(CONTENT_FIELDS):
                raise InvalidValue("contains a field that no event has.")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue("is not the definition of a series.") from error


# Archives record whether an event has a password, but omit the password's hash.

KEY: Final = "password_hash"
# Placeholders for hashes in a bytes column and in JSON. No password has a one-byte hash.
LOCKED_BYTES: Final = "\\x00"
LOCKED: Final = "00"


def hide_hashes(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (value and LOCKED_BYTES) if name == KEY else _hide_nested(value, is_hash=False)
        for name, value in row.items()
    }


def _hide_nested(value: Any, *, is_hash: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: _hide_nested(entry, is_hash=is_hash or name == KEY)
            for name, entry in value.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(value, list):
        return [_hide_nested(entry, is_hash=is_hash) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    return (value and LOCKED) if is_hash else _hide_encoded(value)


def _hide_encoded(text: str) -> str:
    """Hide hashes in a string that contains JSON. The history stores series definitions as such strings."""
    if KEY not in text:
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return _encode(_hide_nested(value, is_hash=False))


def find_hashes(row: dict[str, Any]) -> Iterator[str]:
    """Yield the names of columns that contain a password hash. Archives must not contain any password hashes."""
    hidden = hide_hashes(row)
    yield from (name for name in row if row[name] != hidden[name])


MAX_SHOWN: Final = 60
# Series columns that hold event contents.
CONTENTS: Final = ("template", "content_changes")


class RowChecker:
    """Checks one table's rows. `sanitize` corrects texts that this version would store differently."""

    def __init__(self, table: str, columns: Sequence[Column], *, sanitize: bool) -> None:
        self._table = table
        self._columns = {column.name: column for column in columns}
        self._sanitize = sanitize

    def read(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._refuse(number, "", InvalidValue("is not valid JSON: {error}.", error=error)) from None
        if not isinstance(row, dict):
            raise self._refuse(number, "", InvalidValue("is not an object."))
        for name in row.keys() ^ self._columns.keys():  # pyright: ignore[reportUnknownMemberType]
            problem = "is not a column of the archive." if name in row else "is missing."
            raise self._refuse(number, name, InvalidValue(problem))
        self._check_values(number, row)  # pyright: ignore[reportUnknownArgumentType]
        return row  # pyright: ignore[reportUnknownVariableType]

    def _check_values(self, number: int, row: dict[str, Any]) -> None:
        for name, column in self._columns.items():
            try:
                check_type(column, row[name])
            except InvalidValue as error:
                raise self._refuse(number, name, error) from None
        for name in find_hashes(row):
            raise self._refuse(number, name, InvalidValue("contains the hash of a password."))
        for place, values, rules in self._find_texts(row):
            self._apply(number, place, values, rules)
        if self._table == "changes" and row["kind"] == "series":
            for name in ("before", "after"):
                self._check_logged_series(number, name, row[name])
        if self._table == "series":
            try:
                check_definition(row)
            except InvalidValue as error:
                raise self._refuse(number, "parts, template or content_changes", error) from None

    def _find_texts(self, row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Rules]]:
        """Yield a row and its nested objects that contain record columns, each with its place and rules."""
        yield "", row, RULES.get(self._table, {})
        if self._table == "changes":
            for name in ("before", "after"):
                yield from _find_object(f"{name}.", row[name], LOGGED_RULES.get(row["kind"], {}))
        elif self._table == "series":
            yield from _find_contents(row, "")

    def _check_logged_series(self, number: int, place: str, columns: Any) -> None:
        """Check a series' contents in the history, which stores them as JSON text."""
        if not isinstance(columns, dict):
            return
        try:
            encoded: dict[str, str] = {name: columns[name] for name in CONTENTS if name in columns}
            decoded = {name: orjson.loads(text) for name, text in encoded.items()}
        except (orjson.JSONDecodeError, TypeError):
            raise self._refuse(number, place, InvalidValue("is not the definition of a series.")) from None
        for inner, values, rules in _find_contents(decoded, f"{place}."):
            self._apply(number, inner, values, rules)
        columns |= {name: _encode(decoded[name]) for name in encoded if decoded[name] != orjson.loads(encoded[name])}

    def _apply(self, number: int, place: str, values: dict[str, Any], rules: Rules) -> None:
        for name in values.keys() & rules.keys():
            value = values[name]
            if value is None or value == "":
                continue
            try:
                stored = rules[name](value)
            except InvalidValue as error:
                raise self._refuse(number, place + name, error) from None
            except (AttributeError, TypeError):
                raise self._refuse(number, place + name, InvalidValue("has the wrong type.")) from None
            if stored == value:
                continue
            if not self._sanitize:
                raise self._refuse(
                    number,
                    place + name,
                    InvalidValue("is not as this version stores it: {value}", value=_show(value)),
                )
            values[name] = stored

    def _refuse(self, number: int, column: str, error: InvalidValue) -> ArchiveRefused:
        place = f"{self._table}.jsonl, line {number:,}" + (f", {_show(column, quoted=False)}" if column else "")
        return ArchiveRefused("{place}: {problem}", place=place, problem=error.message)


def _find_object(place: str, value: Any, rules: Rules) -> Iterator[tuple[str, dict[str, Any], Rules]]:
    if isinstance(value, dict):
        yield place, value, rules  # pyright: ignore[reportUnknownVariableType]


def _find_contents(series: Mapping[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any], Rules]]:
    """Yield a series' contents. They have the same columns as events."""
    yield from _find_object(f"{place}template.", series.get("template"), RULES["events"])
    changes = series.get("content_changes")
    for change in changes if isinstance(changes, list) else ():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(change, dict):
            yield from _find_object(f"{place}content_changes.set.", change.get("set"), RULES["events"])  # pyright: ignore[reportUnknownMemberType]


def _encode(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _show(value: object, *, quoted: bool = True) -> str:
    """Shorten a value to one line for use in a message."""
    text = ascii(value)[:MAX_SHOWN]
    return text if quoted else text.strip("'\"")
