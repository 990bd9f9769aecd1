"""What an event costs: kept as it was written, shown as a range with a currency sign (behaviour 4.11)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import DATES


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", title="Priced", **DATES, **fields)


@pytest.mark.parametrize(
    ("raw_value", "cost", "symbol", "position", "values"),
    [
        (10, "$10", "", "", ["10"]),
        (10.5, "$10.5", "", "", ["10.5"]),
        ("10.50", "$10.50", "", "", ["10.50"]),
        (0, "Free", "", "", ["0"]),
        ("0", "Free", "", "", ["0"]),
        ("20-10", "$10 – $20", "", "", ["10", "20"]),
        ([10, 20, 5], "$5 – $20", "", "", ["5", "10", "20"]),
        ([0, 10], "Free – $10", "", "", ["0", "10"]),
        ("€15", "€15", "€", "prefix", ["15"]),
        ("15 €", "15€", "€", "postfix", ["15"]),
        ("1,000.50", "$1,000.50", "", "", ["1000.50"]),
        ("1.000,50", "$1.000,50", "", "", ["1000.50"]),
        ("Donation", "Donation", "", "", ["donation"]),
        ("Free", "Free", "", "", ["free"]),
        ("", "", "", "", []),
        (False, "", "", "", []),
        ([], "", "", "", []),
    ],
)  # fmt: skip
def test_cost_is_formatted(
    editor: Caller, raw_value: object, cost: str, symbol: str, position: str, values: list[str]
) -> None:
    record = create_event(editor, cost=raw_value)
    assert record["cost"] == cost
    assert record["cost_details"] == {
        "currency_symbol": symbol, "currency_code": "", "currency_position": position, "values": values
    }  # fmt: skip
    offers = editor.read("events", record["id"]).get("json_ld", {}).get("offers")
    assert (offers is None) == (not any(value[:1].isdigit() or value == "free" for value in values))


@pytest.mark.parametrize("wrong", [True, -5, "-5", {"a": 1}, [[1]], [None], [True], 1e16, "x" * 251])
def test_invalid_cost_is_rejected(editor: Caller, wrong: object) -> None:
    assert_error(editor.post("/events", {"title": "x", **DATES, "cost": wrong}), 400, "rest_invalid_param", "cost")


def test_currency_is_configured_per_site(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    record = app.caller("editor").create("events", title="x", cost=5, **DATES)
    app.set_site("currency_symbol", "€")
    app.set_site("currency_position", "postfix")
    assert (record["cost"], app.caller().read("events", record["id"])["cost"]) == ("$5", "5€")
