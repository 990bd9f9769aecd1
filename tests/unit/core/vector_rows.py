"""Rows of the conformance kit's tables, copied beside this file, and what these tests share."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import settings

VECTOR_DIRECTORY = Path(__file__).parent / "conformance_vectors"
SITE_ZONE = "America/New_York"

quick_settings = settings(deadline=None, max_examples=150)


@cache
def load_rows(table: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads((VECTOR_DIRECTORY / f"{table}.json").read_text(encoding="utf-8"))[
        "rows"
    ]
    assert result
    return result


def row_id(row: dict[str, Any]) -> str:
    return str(row["step"])


def may_be_rejected(row: dict[str, Any]) -> bool:
    return "error" in row or any(other["status"] == 400 for other in row.get("also", ()))


def may_be_accepted(row: dict[str, Any]) -> bool:
    return "output" in row or any(other["status"] == 201 for other in row.get("also", ()))
