"""The form of a source: its choices, and its values as parameters of the API."""

from collections.abc import Mapping
from typing import Any, Final

from kalends.console.field_texts import STATUS_NAMES
from kalends.console.imports.texts import INTERVALS
from kalends.console.request import ConsoleRequest
from kalends.console.settings_options import list_zones
from kalends.http.language import translator
from kalends.operations.category_tree import list_tree
from kalends.operations.import_requests.fields import DEFAULTS, STATUSES
from kalends.store.database import Transaction

Options = list[tuple[str, str]]
FIELDS: Final = (
    *("name", "kind", "url", "interval", "default_status", "default_category", "authority", "timezone"),
    *("trust_rank", "allow_mass_deletion", "organizer_emails"),
)
# Fields whose empty value means none.
NULLABLE: Final = ("interval", "default_category")


def read_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the submitted fields as parameters of the API."""
    sent = {name: _read_text(form[name]) for name in FIELDS if name in form}
    return {name: None if name in NULLABLE and not value else value for name, value in sent.items()}


def _read_text(value: object) -> str:
    """Return the last of several values; a checkbox has a hidden field before it."""
    last: object = value[-1] if isinstance(value, list) and value else value  # pyright: ignore[reportUnknownVariableType]
    return last.replace("\0", "") if isinstance(last, str) else ""


def make_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the fields, from a source or a submitted form."""
    given = {"kind": "ical", "timezone": "", **DEFAULTS, **values}
    return {name: _make_text(given.get(name)) for name in FIELDS}


def _make_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


async def read_choices(
    console_request: ConsoleRequest, tx: Transaction, texts: Mapping[str, str]
) -> dict[str, Options]:
    """Return the choices of the form. A current value that is not among them is added."""
    translate = translator(console_request.language)
    intervals = [(value, translate(text)) for value, text in INTERVALS.items()]
    if texts["interval"] not in INTERVALS:
        intervals.append((texts["interval"], texts["interval"]))
    tree = await list_tree(tx)
    return {
        "interval": intervals,
        "default_status": [(name, translate(STATUS_NAMES[name])) for name in STATUSES],
        "default_category": [(str(row.row["id"]), "– " * row.depth + row.row["name"]) for row in tree],
        "timezone": [(name, name.replace("_", " ")) for name in list_zones()],
    }
