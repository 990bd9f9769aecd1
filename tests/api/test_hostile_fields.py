"""No value of any field makes a fault of the server: each is stored or refused, and what is stored can be read.

BUG, still open: dates at both ends of the years, a NUL in the address of an image, a NUL in a search for terms.

One test for each kind, over every field that the kind declares: a new field is covered by being declared.
"""

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.core.params import DATE_TIME, Param
from tests.api.hostile_values import ALL_VALUES, EXTREME_DATES, HOSTILE_DATES, HOSTILE_TEXTS, WORST_VALUES
from tests.api.running_app import Caller, RunningApp
from tests.api.sample_records import Sample
from tests.soak import SOAK


def describe_server_error(response: httpx.Response, *context: object) -> str | None:
    """What to print of an answer that no request may get."""
    if response.status_code < 500 and not (response.status_code >= 400 and "code" not in response.json()):
        return None
    return f"{response.status_code} for {', '.join(ascii(part)[:60] for part in context)}"


def assert_no_errors(errors: list[str | None]) -> None:
    messages = [text for text in errors if text]
    assert not messages, f"{len(messages)} faults\n" + "\n".join(messages)


def choose(values: Sequence[Any], number: int, *, is_first: bool) -> Sequence[Any]:
    """Return the values for a field or filter: all for the first that is read by a rule, the worst for the others.

    A normal run takes a third of them, in turn; the first always gets the worst.
    """
    if SOAK:
        return values if is_first else WORST_VALUES
    return [*WORST_VALUES, *values[number % 3 :: 3]] if is_first else WORST_VALUES[number % 3 :: 3]


def test_hostile_field_values_cause_no_server_error(editor: Caller, sample: Sample) -> None:
    errors: list[str | None] = []
    path = f"/{sample.kind}/{editor.create(sample.kind, **sample.body())['id']}"
    first = first_param_per_parser()
    for number, field in enumerate(BY_NAME[sample.kind].fields):
        values = choose(ALL_VALUES, number, is_first=first[parser_identity(field)] is field)
        for value in values if field.type is not DATE_TIME else (*values, *HOSTILE_DATES):
            if field.required:
                record = send(editor, "POST", f"/{sample.kind}", {**sample.body(), field.name: value})
                errors.append(describe_server_error(record, "create", field.name, value))
            changed = send(editor, "PATCH", path, {field.name: value})
            errors.append(describe_server_error(changed, "update", field.name, value))
        errors.append(describe_server_error(editor.get(path), "read", field.name))
    assert_no_errors(errors)


def first_param_per_parser() -> dict[object, Param]:
    result: dict[object, Param] = {}
    for kind in KINDS:
        for field in kind.fields:
            result.setdefault(parser_identity(field), field)
    return result


def parser_identity(param: Param) -> object:
    """The function that reads a parameter, with what it was made for."""
    read = param.type.read
    return read.__code__, tuple(id(cell.cell_contents) for cell in read.__closure__ or ())


def send(caller: Caller, method: str, path: str, body: object) -> httpx.Response:
    """As JSON of the most liberal kind: numbers beyond 64 bits are written out."""
    headers = {"Content-Type": "application/json"}
    return caller.request(method, path, content=json.dumps(body), headers=headers)


def test_lists_display_hostile_values(editor: Caller, sample: Sample) -> None:
    for value in ("\x1b[31m", "<b>x", "&amp;lt; ", "\ufdfa", "\U0001f600", "%", "'"):
        editor.create(sample.kind, **sample.body(**{sample.name_param: f"{value}{sample.body()[sample.name_param]}"}))
    page = 1
    while True:
        response = editor.get(
            f"/{sample.kind}", {"hide_empty": 0, "per_page": 50, "page": page, "start_date": "0002-01-01"}
        )
        assert response.status_code == 200
        if page >= response.json()["total_pages"]:
            break
        page += 1


def test_hostile_list_parameters_cause_no_server_error(editor: Caller, anonymous: Caller, sample: Sample) -> None:
    errors: list[str | None] = []
    rules: set[object] = set()
    for number, row in enumerate(BY_NAME[sample.kind].filters):
        name, rule = row.param.name, parser_identity(row.param)
        texts = [
            text
            for text in choose(HOSTILE_TEXTS, number, is_first=rule not in rules)
            if isinstance(text, str) and len(text) < 5_000
        ]
        rules.add(rule)
        for value in texts:
            errors.append(describe_server_error(editor.get(f"/{sample.kind}", {name: value}), name, value))
        for query in (
            f"{name}[]=1&{name}[]=x",
            f"{name}[a][b]=1",
            f"{name}=1&{name}[]=2&{name}=3",
            f"{name}[=",
            name,
        ):
            errors.append(describe_server_error(anonymous.get(f"/{sample.kind}?{query}"), query))
    assert_no_errors(errors)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_extreme_dates_cause_no_server_error_in_any_timezone(app: RunningApp, editor: Caller, zone: str) -> None:
    app.set_site("timezone", zone)
    errors: list[str | None] = []
    event = editor.create("events", title="Far", start_date="2027-01-01", end_date="2027-01-02")
    for value in EXTREME_DATES:
        for name in ("date", "date_utc", "start_date", "end_date"):
            changed = editor.patch(f"/events/{event['id']}", {name: value})
            errors.append(describe_server_error(changed, "update", name, value))
        for row in BY_NAME["events"].filters:
            if row.param.type is DATE_TIME:
                for strict in ("0", "1"):
                    query = {row.param.name: value, "strict_dates": strict}
                    errors.append(
                        describe_server_error(editor.get("/events", query), row.param.name, value, f"strict={strict}")
                    )
        errors.append(
            describe_server_error(editor.post("/venues", {"venue": "Far", "date_utc": value}), "venue", value)
        )
    app.set_site("timezone", "UTC")
    assert_no_errors(errors)
