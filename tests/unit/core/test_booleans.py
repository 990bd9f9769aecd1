"""Booleans."""

from typing import Any

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.params import parse_bool
from tests.unit.core.vector_rows import load_rows, row_id

VECTOR_ROWS = [row for row in load_rows("booleans") if next(iter(row["input"].values())) is not None]


@pytest.mark.parametrize("row", VECTOR_ROWS, ids=row_id)
def test_booleans_match_conformance_vectors(row: dict[str, Any]) -> None:
    ((name, value),) = row["input"].items()
    if "error" in row:
        with pytest.raises(InvalidValue):
            parse_bool(value)
    else:
        assert parse_bool(value) is row["output"][name]


@pytest.mark.parametrize(
    "value", [None, 2, -1, 1.0, 0.0, [], [True], {}, "", " ", "y", "enabled", " true ", "2", b"1"]
)
def test_other_values_are_rejected(value: object) -> None:
    with pytest.raises(InvalidValue):
        parse_bool(value)


@pytest.mark.parametrize("value", ["TRUE", "Yes", "oN", "1", 1, True])
def test_words_are_case_insensitive(value: object) -> None:
    assert parse_bool(value) is True
