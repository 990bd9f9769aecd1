"""Rows of the conformance kit's tables, copied beside this file, and what these tests share."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import settings

TABLES = Path(__file__).parent / "tables"
SITE_ZONE = "America/New_York"

quick = settings(deadline=None, max_examples=150)


@cache
def rows(table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((TABLES / f"{table}.json").read_text(encoding="utf-8"))["rows"]
    assert found
    return found


def step(row: dict[str, Any]) -> str:
    return str(row["step"])


def may_be_refused(row: dict[str, Any]) -> bool:
    return "error" in row or any(other["status"] == 400 for other in row.get("also", ()))


def may_be_accepted(row: dict[str, Any]) -> bool:
    return "output" in row or any(other["status"] == 201 for other in row.get("also", ()))
