"""The columns of tables by kind and field, and the meanings of column headers in eight languages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from kalends.calendar.rules import column_headers as headers
from kalends.calendar.rules.column_headers import ORDER
from kalends.calendar.rules.fields import EVENT_FIELDS, ORGANIZER_FIELDS, VENUE_FIELDS, Field, in_group, pick
from kalends.core.messages import DEFAULT
from kalends.core.sanitize import fold

# The column that identifies a record in its source.
IDENTITY: Final = "uid"


def _columns(fields: Iterable[Field]) -> dict[str, Sequence[str]]:
    return {row.name: row.headers for row in fields if row.headers}


def _name_columns(texts: Sequence[str]) -> Sequence[str]:
    return tuple(f"{names}|{name}" for names, name in zip(texts, headers.NAME, strict=True))


# Fields in the order of exported columns. Plain fields that are not listed here come last.
EVENTS: Final[Mapping[str, Sequence[str]]] = {
    IDENTITY: headers.UID,
    "title": headers.TITLE,
    "start_date": headers.START_DATE,
    "start_time": headers.START_TIME,
    "end_date": headers.END_DATE,
    "end_time": headers.END_TIME,
    "all_day": headers.ALL_DAY,
    "timezone": headers.TIME_ZONE,
    **_columns(in_group(EVENT_FIELDS, "text")),
    "description": headers.DESCRIPTION,
    "categories": headers.CATEGORIES,
    "tags": headers.TAGS,
    "venue": headers.VENUE,
    **{
        f"venue.{name}": texts
        for name, texts in _columns(
            pick(VENUE_FIELDS, "address", "zip", "city", "province", "state", "country")
        ).items()
    },
    "organizer": headers.ORGANIZER,
    **_columns(in_group(EVENT_FIELDS, "cost")),
    **_columns(in_group(EVENT_FIELDS, "links")),
    "image": headers.IMAGE,
    "status": headers.STATUS,
    **_columns(in_group(EVENT_FIELDS, "state")),
    **_columns(pick(EVENT_FIELDS, "featured", "sticky", "hide_from_listings")),
    **_columns(EVENT_FIELDS),
    "slug": headers.SLUG,
}
VENUES: Final[Mapping[str, Sequence[str]]] = {
    IDENTITY: headers.UID,
    "venue": _name_columns(headers.VENUE),
    **_columns(pick(VENUE_FIELDS, "address", "zip", "city", "province", "state", "country", "geo_lat", "geo_lng")),
    **_columns(in_group(VENUE_FIELDS, "contact")),
    "description": headers.DESCRIPTION,
    "image": headers.IMAGE,
    "status": headers.STATUS,
    **_columns(VENUE_FIELDS),
}
ORGANIZERS: Final[Mapping[str, Sequence[str]]] = {
    IDENTITY: headers.UID,
    "organizer": _name_columns(headers.ORGANIZER),
    **_columns(pick(ORGANIZER_FIELDS, "phone", "email")),
    **_columns(ORGANIZER_FIELDS),
    "description": headers.DESCRIPTION,
    "image": headers.IMAGE,
    "status": headers.STATUS,
}
TABLE_KINDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "events": EVENTS,
    "venues": VENUES,
    "organizers": ORGANIZERS,
}
FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    kind: {row.name: row for row in rows}
    for kind, rows in (("events", EVENT_FIELDS), ("venues", VENUE_FIELDS), ("organizers", ORGANIZER_FIELDS))
}


# The meanings of table headers.

# Marks a column that is not imported.
IGNORED: Final = ""
# The Events Calendar's headers begin with the kind of the records.
PREFIXES: Final = {"events": "event ", "venues": "venue ", "organizers": "organizer "}
# Fields that can have several columns in a table.
REPEATABLE: Final = frozenset({"categories", "tags", "organizer"})


def normalize(header: str) -> str:
    """Return a header in lower case, without accents and punctuation."""
    return " ".join(re.sub(r"[\W_]+", " ", fold(header)).split())


@cache
def list_synonyms(kind: str) -> Mapping[str, tuple[str, frozenset[str]]]:
    """Return the field and the languages for each normalized header. If several fields match, use the first one."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for field, texts in TABLE_KINDS[kind].items():
        for language, names in zip(ORDER, texts, strict=True):
            for name in names.split("|"):
                _add(found, normalize(name), field, language)
    for field in TABLE_KINDS[kind]:
        _add(found, normalize(field), field, DEFAULT)
    return found


def _add(found: dict[str, tuple[str, frozenset[str]]], name: str, field: str, language: str) -> None:
    known, languages = found.get(name, (field, frozenset[str]()))
    if known == field:
        found[name] = (field, languages | {language})


def find_field(kind: str, header: str) -> tuple[str, frozenset[str]]:
    """Return a header's field and the languages in which it has this meaning. IGNORED means no field."""
    synonyms, name = list_synonyms(kind), normalize(header)
    unknown = (IGNORED, frozenset[str]())
    return synonyms.get(name) or synonyms.get(name.removeprefix(PREFIXES[kind])) or unknown


def get_header(kind: str, field: str, language: str) -> str:
    """Return a field's header in exports."""
    return TABLE_KINDS[kind][field][ORDER.index(language if language in ORDER else DEFAULT)].partition("|")[0]


def guess_kind(texts: Iterable[str]) -> str:
    """Guess a table's kind. A start date means events; otherwise, count prefixed headers, then known headers."""
    names = list(texts)
    fields = {kind: {find_field(kind, name)[0] for name in names} - {IGNORED} for kind in TABLE_KINDS}
    if "start_date" in fields["events"]:
        return "events"
    prefixed = {kind: sum(normalize(name).startswith(prefix) for name in names) for kind, prefix in PREFIXES.items()}
    return max(TABLE_KINDS, key=lambda kind: (prefixed[kind], len(fields[kind])))


def guess_language(kind: str, texts: Iterable[str]) -> str:
    """Guess the language of most headers. In a tie, use the first language in `ORDER`, which begins with English."""
    languages = [language for text in texts for language in find_field(kind, text)[1]]
    return max(ORDER, key=languages.count)
