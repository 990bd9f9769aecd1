"""The values of a form: texts from a row, and the parameters that a submitted form changes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kalends.console.records.forms import FormField, RecordForm
from kalends.console.request import ConsoleRequest
from kalends.core import times
from kalends.kinds.kind import Kind
from kalends.store import Row

# Columns whose parameter has another name.
COLUMNS: Final = {"author": "author_id", "image": "image_id", "date": "published_at"}
# Values of a new record that differ from an empty field.
DEFAULTS: Final = {"show_map": "true", "show_map_link": "true", "parent": "0", "image": "0"}


def read_row(form: RecordForm, row: Row, zone: str) -> dict[str, str]:
    """Return the texts of the fields for a record."""
    return {field.name: show_value(row[find_column(form.kind, field.name)], field, zone) for field in form.fields}


def read_version(form: RecordForm, version: Mapping[str, Any], zone: str) -> dict[str, str]:
    """Return the texts of the fields for a version of a record from the change log."""
    values = dict(version)
    if published := values.get("date_utc"):
        values["date"] = datetime.fromisoformat(published).replace(tzinfo=UTC)
    return {field.name: show_value(values.get(field.name), field, zone) for field in form.fields}


def read_defaults(form: RecordForm, console_request: ConsoleRequest) -> dict[str, str]:
    """Return the texts of the fields for a new record."""
    status = "publish" if console_request.has_role("author") else "draft"
    fixed = {**DEFAULTS, "status": status, "author": str(console_request.actor.user_id)}
    return {field.name: fixed.get(field.name, "") for field in form.fields}


def read_submitted(form: RecordForm, submitted: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the fields that a browser has sent; of a repeated one, the last."""
    texts: dict[str, str] = {}
    for field in form.fields:
        value = submitted.get(field.name)
        if isinstance(value, list) and value:
            value = value[-1]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, str):
            texts[field.name] = value.replace("\r\n", "\n")
    return texts


def find_changes(form: RecordForm, texts: Mapping[str, str], current: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters whose text differs from the current one.

    Unchanged ones are not sent, so that derived values stay derived and nobody else's change is overwritten.
    """
    return {
        field.name: None if field.control == "number" and not texts[field.name].strip() else texts[field.name]
        for field in form.fields
        if field.name in texts and texts[field.name] != current.get(field.name) and not _is_omitted(field, texts)
    }


def _is_omitted(field: FormField, texts: Mapping[str, str]) -> bool:
    """Return whether an empty field stands for no change: a date of publication cannot be cleared."""
    return field.control == "datetime-local" and not texts[field.name].strip()


def find_column(kind: Kind, name: str) -> str:
    return "title" if kind.is_post and name == kind.title_param else COLUMNS.get(name, name)


def show_value(value: object, field: FormField, zone: str) -> str:
    """Return the text of a stored value in its field."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        local = times.in_zone(value, zone)
        return local.replace(tzinfo=None).isoformat(timespec="seconds" if local.second else "minutes")
    if isinstance(value, float):
        return f"{value:.8f}".rstrip("0").rstrip(".")
    if value is None:
        return DEFAULTS.get(field.name, "")
    return str(value)
