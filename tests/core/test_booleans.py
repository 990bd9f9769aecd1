"""Booleans."""

from typing import Any

import pytest

from kalends.core.booleans import parse_bool
from kalends.core.errors import InvalidValue
from tests.core.vector_rows import rows, step

SENT = [row for row in rows("booleans") if next(iter(row["input"].values())) is not None]


@pytest.mark.parametrize("row", SENT, ids=step)
def test_booleans_match_conformance_vectors(row: dict[str, Any]) -> None:
    ((name, sent),) = row["input"].items()
    if "error" in row:
        with pytest.raises(InvalidValue):
            parse_bool(sent)
    else:
        assert parse_bool(sent) is row["output"][name]


@pytest.mark.parametrize(
    "sent", [None, 2, -1, 1.0, 0.0, [], [True], {}, "", " ", "y", "enabled", " true ", "2", b"1"]
)
def test_other_values_are_rejected(sent: object) -> None:
    with pytest.raises(InvalidValue):
        parse_bool(sent)


@pytest.mark.parametrize("sent", ["TRUE", "Yes", "oN", "1", 1, True])
def test_words_are_case_insensitive(sent: object) -> None:
    assert parse_bool(sent) is True
