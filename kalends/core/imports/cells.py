"""Cells of tables: texts, flags, numbers, lists and addresses, as people write them in eight languages."""

import re
from datetime import date, datetime, time, timedelta
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import fold
from kalends.core.imports.cell_words import FLAGS

Cell = str | int | float | bool | date | datetime | time | timedelta | None

MAX_CELL_LENGTH: Final = 256_000
_SEPARATORS: Final = re.compile(r"[,;|\n]")
# Texts that a spreadsheet would read as formulas; apostrophes before them keep it from doing so.
FORMULA: Final = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
_PLAIN_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


def to_text(cell: Cell) -> str:
    """Return a cell as text: dates as ISO 8601, whole numbers without a fraction."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    return str(cell).strip()


def guard_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would read as a formula. Negative numbers are none."""
    return f"'{text}" if FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text) else text


def unguard_formula(text: str) -> str:
    """Remove the apostrophe that `guard_formula` has added."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def read_flag(cell: Cell) -> bool | None:
    """Read yes or no; None if the cell is empty."""
    text = fold(to_text(cell))
    if not text:
        return None
    if text not in FLAGS:
        raise InvalidValue("must be yes or no.")
    return FLAGS[text]


def read_word(cell: Cell, words: dict[str, str]) -> str:
    """Return the value that a word stands for, or the word itself, which the API may know."""
    text = to_text(cell)
    return words.get(fold(text), text)


def read_number(cell: Cell) -> float | str:
    """Read a number with a decimal point or comma."""
    if isinstance(cell, int | float):
        return float(cell)
    text = to_text(cell).replace(",", ".").replace("−", "-")
    if not text:
        return ""
    if not re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        raise InvalidValue("must be a number.")
    return float(text)


def read_list(cell: Cell) -> list[str]:
    """Read a list that is separated by commas, semicolons, bars or line breaks."""
    return [part.strip() for part in _SEPARATORS.split(to_text(cell)) if part.strip()]


def read_names(cell: Cell) -> list[str]:
    """Read names, which may contain commas: one per line, or separated by semicolons if there is one line."""
    text = cell if isinstance(cell, str) else to_text(cell)
    parts = text.split("\n") if "\n" in text else text.split(";")
    return [part.strip() for part in parts if part.strip()]


def read_address(cell: Cell) -> str:
    """Read a URL, which may lack its scheme."""
    text = to_text(cell)
    return f"https://{text}" if re.match(r"www\.", text, re.IGNORECASE) else text
