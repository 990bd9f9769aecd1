"""The stored values of a record by the fields of an import, to notice edits by people."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from kalends.core.imports.fields import COLUMN_PREFIX, TIME_FIELDS
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.series import SERIES
from kalends.kinds.snapshots import to_public
from kalends.store import Row
from kalends.store.history import encode_columns

# Parameters of a series by the column that changes with them; its content is in the template.
# Added and removed dates are missing, because those of people and of the source are merged.
SERIES_COLUMNS: Final[Mapping[str, str]] = dict.fromkeys(TIME_FIELDS, "parts")
# Parameters that set the same column as another one.
ALIASES: Final[Mapping[str, str]] = {"date": "date_utc"}


def read_stored_fields(kind: Kind, row: Row, names: Iterable[str]) -> dict[str, Any]:
    """Return the stored values of these fields as JSON; fields that are not stored are left out."""
    columns: dict[str, Any] = orjson.loads(encode_columns(dict(row)))
    public = _read_series(columns) if kind is SERIES else to_public(kind, columns)
    values = {**public, **{COLUMN_PREFIX + name: value for name, value in columns.items()}}
    return {name: values[ALIASES.get(name, name)] for name in names if ALIASES.get(name, name) in values}


def _read_series(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a series by parameter, and its definition for the parameters of times."""
    content = to_public(EVENTS, orjson.loads(columns["template"]))
    definition = {name: columns[column] for name, column in SERIES_COLUMNS.items()}
    return {**content, "slug": columns["slug"], **definition}
