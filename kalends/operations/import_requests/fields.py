"""The parameters of sources and runs of imports."""

from dataclasses import replace
from typing import Any, Final

from kalends.core import params
from kalends.core.egress import read_target
from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_text
from kalends.core.params import BOOLEAN, ZONE, Param, Type, param

MAX_NAME_LENGTH: Final = 200
MAX_URL_LENGTH: Final = 2000
MAX_COLUMNS: Final = 200
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
KINDS: Final = ("ical", "table")
STATUSES: Final = ("publish", "draft", "pending", "private")
AUTHORITIES: Final = ("source", "local", "new_only")
# A source of the kind `tec` is closed when the site has moved; nobody else closes sources.
STATES: Final = ("active", "paused")
ACTIONS: Final = ("new", "changed", "moved", "unchanged", "gone", "rejected", "duplicate", "linked")
ROW_STATES: Final = ("pending", "waiting", "applied", "skipped", "failed")
RUN_STATES: Final = ("planning", "planned", "applying", "applied", "unchanged", "failed", "discarded")
CALENDAR_SCHEMES: Final = ("webcal://", "webcals://")


def read_name(value: str, limit: int = MAX_NAME_LENGTH) -> str:
    return clean_text(value, limit)


def read_source_url(value: str, limit: int = MAX_URL_LENGTH) -> str:
    """Validate the URL of a calendar or a table. `webcal:`, which many calendars offer, becomes https."""
    text = value.strip()
    scheme = next((row for row in CALENDAR_SCHEMES if text.lower().startswith(row)), "")
    text = f"https://{text[len(scheme) :]}" if scheme else text
    if not text:
        return ""
    if len(text) > limit:
        raise InvalidValue("must have at most {limit} characters.", limit=limit)
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise InvalidValue("must not contain a user name or a password, because they would be stored.")
    read_target(text)
    return text


def _read_columns(value: object) -> dict[str, str]:
    """Parse what the columns of a table mean: the field of each column, by its header; empty: not imported."""
    if not isinstance(value, dict) or len(value) > MAX_COLUMNS:  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("must be an object with at most {limit} columns.", limit=MAX_COLUMNS)
    columns: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
    for header, field in columns.items():
        if not isinstance(header, str) or not isinstance(field, str) or "\0" in header or "\0" in field:
            raise InvalidValue("must be an object with the field of each column, by the header of the column.")
    return {str(header)[:1000]: str(field)[:100] for header, field in columns.items()}


def read_rows(value: object) -> list[int]:
    """Parse the numbers of rows of a plan."""
    numbers = [params.read_integer(entry) for entry in params.read_list(value)]
    if not numbers or any(not 0 < number <= params.MAX_ID for number in numbers) or len(numbers) > MAX_ROWS:
        raise InvalidValue("must be 1 to {limit} numbers of rows.", limit=MAX_ROWS)
    return numbers


MAX_ROWS: Final = 5000
COLUMNS: Final = Type(
    {"type": "object"},
    _read_columns,
    null_value={},
    exact_schema={"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MAX_COLUMNS},
)
ROW_NUMBERS: Final = Type(
    {"type": "array", "items": {"type": "integer"}},
    read_rows,
    accepts_lists=True,
    exact_schema={
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": params.MAX_ID},
        "minItems": 1,
        "maxItems": MAX_ROWS,
    },
)
INTERVAL: Final = params.integer(minimum=15, maximum=10080, null_value=None)
CATEGORY: Final = params.integer(minimum=1, null_value=None)
KIND: Final = param("kind", params.one_of(*KINDS), "ical: an iCalendar; table: a CSV file or a spreadsheet")
CHANGES: Final[tuple[Param, ...]] = (
    param("name", params.text(read_name, allow_empty=False), "The name of the source for people"),
    param("url", params.text(read_source_url), "The URL from which the source is fetched; empty: files are uploaded"),
    param("interval", INTERVAL, "Minutes between two fetches; null: only on request"),
    param("default_status", params.one_of(*STATUSES), "The status of new events that have none in the source"),
    param("default_category", CATEGORY, "The ID of the category of new events; null: none"),
    param(
        "authority",
        params.one_of(*AUTHORITIES),
        "Which value counts if the source and a person have both changed a field: that of the source, that of the "
        "person (local), or always the stored one, so that only new events are imported (new_only)",
    ),
    param(
        "timezone",
        ZONE,
        "The time zone of times that have none in the source; empty: such events of calendars are rejected, those of "
        "tables have the time zone of the site",
    ),
    param("columns", COLUMNS, "What the columns of a table mean: the field of each column, by its header"),
    param(
        "trust_rank",
        params.integer(minimum=0, maximum=1000),
        "Of several sources of an event, the one with the lowest rank supplies a field",
    ),
    param(
        "allow_mass_deletion", BOOLEAN, "Remove many events at once if they vanish from the source, without asking"
    ),
    param(
        "organizer_emails",
        BOOLEAN,
        "Import the e-mail addresses of organizers in calendars; they are public, as those of all organizers",
    ),
    param("state", params.one_of(*STATES), "paused: the source is not fetched at its interval"),
)
DEFAULTS: Final = {
    "default_status": "draft",
    "authority": "local",
    "trust_rank": 100,
    "allow_mass_deletion": False,
    "organizer_emails": False,
    "state": "active",
}


def _make_new(row: Param) -> Param:
    """Return a parameter of a new source, with its default."""
    if row.name in DEFAULTS:
        return replace(row, default=DEFAULTS[row.name], has_default=True)
    return replace(row, required=row.name == "name")


NEW: Final = (replace(KIND, required=True), *map(_make_new, CHANGES))
SOURCE: Final = param("source", params.integer(minimum=1), "Only runs of this source")
BEFORE: Final = param("before", params.integer(minimum=1), "Only runs before this ID, or a `next_before`")
RUNS_PER_PAGE: Final = param("per_page", params.integer(minimum=1, maximum=100), "Maximum number of runs", default=20)
APPLY: Final = param("apply", BOOLEAN, "Apply the plan without a review, except for rows that wait", default=False)
ACTION: Final = param("action", params.several_of(*ACTIONS), "Only rows with these actions")
STATE: Final = param("state", params.several_of(*ROW_STATES), "Only rows in these states")
CURSOR: Final = param("cursor", params.integer(), "Only rows behind this number, or a `next_cursor`", default=0)
ROWS_PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=500), "Maximum number of rows", default=100
)
ROW: Final = param("row", params.integer(minimum=1), "The number of a row that may be a duplicate", required=True)
SAME: Final = param("same", BOOLEAN, "Whether it is the record that the plan names", required=True)
CONFIRM: Final = param("confirm", BOOLEAN, "Apply the plan although it asks a question", default=False)
ROWS: Final = param("rows", ROW_NUMBERS, "Apply only these rows; rows that wait are applied only if they are named")
