"""The calendars in `ical_corpus`, each with the result that is expected of it.

They are written after the habits of the programs that they are named after. `python -m tests.imports.ical_corpus`
writes the results anew; review the difference.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kalends.core.errors import InvalidValue
from kalends.imports.rules.ical_calendar import read_calendar
from kalends.imports.rules.import_records import ImportedRecord, Rejection

FOLDER = Path(__file__).with_name("ical_corpus")
NAMES = sorted(path.stem for path in FOLDER.glob("*.ics"))
NOW = "2026-11-16T12:00:00+00:00"
# Values of parameters that are left out of the results, so that these show what a calendar says.
DEFAULTS: Mapping[str, Any] = {
    "description": "",
    "website": "",
    "online_url": "",
    "event_status": "scheduled",
    "categories": [],
    "all_day": False,
    "add_dates": [],
    "remove_dates": [],
    "address": "",
    "email": "",
}


def read_expected(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def parse(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a calendar in the form of the expected one."""
    try:
        parsed = read_calendar(
            (FOLDER / f"{name}.ics").read_bytes(), {"now": NOW, "organizer_emails": True, **options}
        )
    except InvalidValue as error:
        return {"options": options, "refused": str(error)}
    return {
        "options": options,
        "name": parsed.name,
        "span": [instant.isoformat() for instant in parsed.span] if parsed.span else None,
        "records": [describe_record(record) for record in parsed.records],
        "rejections": [describe_rejection(rejection) for rejection in parsed.rejections],
    }


def describe_record(record: ImportedRecord) -> dict[str, Any]:
    missing = [name for name in ("title", "start_date", "end_date") if name not in record.values]
    assert record.kind in ("venues", "organizers") or not missing
    return {
        "line": record.line,
        "kind": record.kind,
        "identity": record.identity,
        **({"recurrence_id": record.recurrence_id} if record.recurrence_id else {}),
        "values": {name: value for name, value in record.values.items() if DEFAULTS.get(name) != value},
        **{name: list(entries) for name, entries in record.links.items() if entries},
        **({"warnings": [str(warning) for warning in record.warnings]} if record.warnings else {}),
    }


def describe_rejection(rejection: Rejection) -> dict[str, Any]:
    fields = {"line": rejection.line, "identity": rejection.identity, "recurrence_id": rejection.recurrence_id}
    return {name: value for name, value in fields.items() if value} | {
        "title": rejection.title,
        "reason": str(rejection.reason),
    }


def write_expected() -> None:
    for name in NAMES:
        result = parse(name, read_expected(name).get("options", {}))
        text = json.dumps(result, indent=2, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    write_expected()
