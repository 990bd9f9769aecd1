"""What an event costs."""

from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from kalends.core.cost import format_cost, read_cost
from kalends.core.errors import InvalidValue
from tests.unit.core.vector_rows import load_rows, may_be_rejected, quick_settings, row_id


@pytest.mark.parametrize("row", load_rows("cost"), ids=row_id)
def test_costs_match_conformance_vectors(row: dict[str, Any]) -> None:
    try:
        formatted, details = format_cost(read_cost(row["input"]["cost"]), "$", "prefix")
    except InvalidValue:
        assert may_be_rejected(row)
        return
    assert {"cost": formatted, "cost_details": details} == row["output"]


@pytest.mark.parametrize(
    ("value", "formatted", "values", "symbol", "position"),
    [
        ("€10-€20", "€10 – €20", ["10", "20"], "€", "prefix"),
        ("10€ - 20€", "10€ – 20€", ["10", "20"], "€", "postfix"),
        ("20-30 EUR", "20EUR – 30EUR", ["20", "30"], "EUR", "postfix"),
        ("1 000 kr", "1 000kr", ["1000"], "kr", "postfix"),
        ("1'000.50 CHF", "1'000.50CHF", ["1000.50"], "CHF", "postfix"),
        ("1,000,000", "$1,000,000", ["1000000"], "", ""),
        ("10,20,30", "$10 – $30", ["10", "20", "30"], "", ""),
        ("10 per person", "10 per person", ["10"], "", ""),
        ("Adults 10, kids 5", "$5 – $10", ["5", "10"], "", ""),
        ("0 - 10", "Free – $10", ["0", "10"], "", ""),
        ("0-0", "Free", ["0"], "", ""),
        ("early-bird 10", "early-bird 10", ["10"], "", ""),
        (["Free", "10"], "Free – $10", ["0", "10"], "", ""),
        (["$10", "$20"], "$10 – $20", ["10", "20"], "", ""),
        ([10.0, 7.5], "$7.5 – $10", ["7.5", "10"], "", ""),
        (1e-7, "$0.0000001", ["0.0000001"], "", ""),
        ("Pay what you want", "Pay what you want", ["pay-what-you-want"], "", ""),
    ],
)
def test_cost_parsing_and_formatting(
    value: object, formatted: str, values: list[str], symbol: str, position: Literal["prefix", "postfix", ""]
) -> None:
    assert format_cost(read_cost(value), "$", "prefix") == (
        formatted,
        {"currency_symbol": symbol, "currency_code": "", "currency_position": position, "values": values},
    )


def test_site_currency_symbol_may_follow_amount() -> None:
    assert format_cost("10 - 20", "zł", "postfix")[0] == "10zł – 20zł"
    assert format_cost("$10", "zł", "postfix")[0] == "$10"


INVALID_COSTS: list[object] = [
    -1,
    -0.5,
    "-5",
    "−5",
    "-$5",
    "$-5",
    "- 5",
    "10, -5",
    [10, -5],
    ["-5"],
    True,
    {"a": 1},
    [[1]],
    [True],
    [None],
    float("nan"),
    float("inf"),
    10**15,
    10**400,
    "x" * 251,
    [1] * 51,
    "\ud800",
    b"5",
    ("1",),
]


@pytest.mark.parametrize("value", INVALID_COSTS)
def test_invalid_costs_are_rejected(value: object) -> None:
    with pytest.raises(InvalidValue):
        read_cost(value)


@quick_settings
@given(
    st.text(st.sampled_from("0123456789.,'- €$aé%<>&;\u202f"), max_size=40)
    | st.lists(st.integers(0, 10**9) | st.floats(0, 1e9), max_size=8)
)
def test_normalized_cost_is_stable_and_formattable(value: object) -> None:
    try:
        stored = read_cost(value)
    except InvalidValue:
        return
    assert read_cost(stored) == stored
    formatted, details = format_cost(stored, "$", "prefix")
    assert bool(formatted) == bool(stored)
    assert isinstance(details["values"], list)
