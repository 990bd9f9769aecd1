"""What an event costs: kept as it was written, shown as a range with a currency sign (behaviour 4.11)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import DATES


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", title="Priced", **DATES, **fields)


@pytest.mark.quick("10-$10---values0", "raw_value16----values16")
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


@pytest.mark.quick("True", "wrong8")
@pytest.mark.parametrize("wrong", [True, -5, "-5", {"a": 1}, [[1]], [None], [True], 1e16, "x" * 251])
def test_invalid_cost_is_rejected(editor: Caller, wrong: object) -> None:
    assert_error(editor.post("/events", {"title": "x", **DATES, "cost": wrong}), 400, "rest_invalid_param", "cost")


def test_currency_is_configured_per_site(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    record = app.caller("editor").create("events", title="x", cost=5, **DATES)
    app.set_site("currency_symbol", "€")
    app.set_site("currency_position", "postfix")
    assert (record["cost"], app.caller().read("events", record["id"])["cost"]) == ("$5", "5€")


def read_currency(record: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    return record["currency_symbol"], record["currency_code"], record["currency_position"]


@pytest.mark.quick("$15-\\xa3-GBP-prefix-\\xa315-15", "Donation-\\xa3-GBP-prefix-Donation-donation")
@pytest.mark.parametrize(
    ("raw_cost", "symbol", "code", "position", "cost", "value"),
    [
        # As The Events Calendar shows them.
        ("$15", "£", "GBP", "prefix", "£15", "15"),
        ("£7.50", "€", "EUR", "postfix", "7.50€", "7.50"),
        ("10", "€", "EUR", "postfix", "10€", "10"),
        ("Free", "€", "EUR", "postfix", "Free", "free"),
        ("Donation", "£", "GBP", "prefix", "Donation", "donation"),
    ],
)
def test_event_has_own_currency(
    editor: Caller, raw_cost: str, symbol: str, code: str, position: str, cost: str, value: str
) -> None:
    currency = {"currency_symbol": symbol, "currency_code": code, "currency_position": position}
    event = create_event(editor, cost=raw_cost, **currency)
    assert (event["cost"], event["cost_details"]) == (cost, {**currency, "values": [value]})
    assert {name: event[name] for name in currency} == currency
    json_ld = editor.read("events", event["id"])["json_ld"]
    assert json_ld.get("offers", {}).get("priceCurrency", code) == code
    cleared = editor.change("events", event["id"], **dict.fromkeys(currency, "" if code == "EUR" else None))
    assert read_currency(cleared) == (None, None, None)
    plain = create_event(editor, cost=raw_cost)
    assert read_currency(plain) == (None, None, None)
    assert (cleared["cost"], cleared["cost_details"]) == (plain["cost"], plain["cost_details"])


def test_parts_of_currency_are_independent(editor: Caller) -> None:
    event = create_event(editor, cost="10 - 20", currency_symbol="zł")
    assert (event["cost"], event["cost_details"]["currency_symbol"]) == ("zł10 – zł20", "zł")
    changed = editor.change("events", event["id"], currency_position="postfix", currency_symbol=None)
    assert (changed["cost"], changed["cost_details"]["currency_position"]) == ("10$ – 20$", "postfix")
    coded = editor.change("events", event["id"], currency_code="pln")
    assert (coded["currency_code"], coded["cost_details"]["currency_code"]) == ("PLN", "PLN")


@pytest.mark.quick("currency_symbol-xxxxxxxxxxxxxxxxx", "currency_position-True")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("currency_symbol", "x" * 17), ("currency_symbol", 5), ("currency_code", "EURO"), ("currency_code", "€"),
        ("currency_code", 7), ("currency_position", "left"), ("currency_position", True),
    ],
)  # fmt: skip
def test_invalid_currency_is_rejected(editor: Caller, name: str, wrong: object) -> None:
    response = editor.post("/events", {"title": "x", **DATES, name: wrong})
    assert_error(response, 400, "rest_invalid_param", name)
