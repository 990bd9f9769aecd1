"""The fields that the headers of tables stand for.

A field has the name of a parameter of the API. In tables of events, `venue.address` is a field of the venue; start
and end may have times in columns of their own.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.imports.table_headers import KINDS, ORDER
from kalends.core.languages import DEFAULT

# The field of a column that is not imported.
IGNORED: Final = ""
# Headers of The Events Calendar begin with the kind of the record.
PREFIXES: Final = {"events": "event ", "venues": "venue ", "organizers": "organizer "}
# Fields of which a table may have several columns.
REPEATABLE: Final = frozenset({"categories", "tags", "organizer"})


def normalize(header: str) -> str:
    """Return a header without case, accents and punctuation."""
    return " ".join(re.sub(r"[\W_]+", " ", fold(header)).split())


@cache
def list_synonyms(kind: str) -> Mapping[str, tuple[str, frozenset[str]]]:
    """Return the field and the languages of each normalized header. Of several fields, the first one counts."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for field, headers in KINDS[kind].items():
        for language, names in zip(ORDER, headers, strict=True):
            for name in names.split("|"):
                _add(found, normalize(name), field, language)
    for field in KINDS[kind]:
        _add(found, normalize(field), field, DEFAULT)
    return found


def _add(found: dict[str, tuple[str, frozenset[str]]], name: str, field: str, language: str) -> None:
    known, languages = found.get(name, (field, frozenset[str]()))
    if known == field:
        found[name] = (field, languages | {language})


def find_field(kind: str, header: str) -> tuple[str, frozenset[str]]:
    """Return the field of a header and the languages in which it has this meaning; without one, IGNORED."""
    synonyms, name = list_synonyms(kind), normalize(header)
    unknown = (IGNORED, frozenset[str]())
    return synonyms.get(name) or synonyms.get(name.removeprefix(PREFIXES[kind])) or unknown


def get_header(kind: str, field: str, language: str) -> str:
    """Return the header of a field in exports."""
    return KINDS[kind][field][ORDER.index(language if language in ORDER else DEFAULT)].partition("|")[0]


def guess_kind(headers: Iterable[str]) -> str:
    """Return the kind of the records of a table: events have a start, otherwise most headers decide."""
    names = list(headers)
    fields = {kind: {find_field(kind, name)[0] for name in names} - {IGNORED} for kind in KINDS}
    if "start_date" in fields["events"]:
        return "events"
    prefixed = {kind: sum(normalize(name).startswith(prefix) for name in names) for kind, prefix in PREFIXES.items()}
    return max(KINDS, key=lambda kind: (prefixed[kind], len(fields[kind])))


def guess_language(kind: str, headers: Iterable[str]) -> str:
    """Return the language of most headers; of several, the first one, which is English if it is among them."""
    languages = [language for header in headers for language in find_field(kind, header)[1]]
    return max(ORDER, key=languages.count)
