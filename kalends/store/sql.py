"""SQL is composed from fragments: literal text with its values. A value is only ever an argument."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import LiteralString


class Sql:
    """A fragment such as `Sql("start_utc < ?", moment)`; fragments add up."""

    __slots__ = ("text", "values")

    def __init__(self, text: LiteralString, *values: object) -> None:
        self.text: LiteralString = text
        self.values = values

    def __add__(self, other: "Sql") -> "Sql":
        return Sql(self.text + " " + other.text, *self.values, *other.values)

    def numbered(self) -> str:
        """The text as PostgreSQL reads it, with $1, $2 … for the values."""
        return _number(self.text, len(self.values))


def join(separator: LiteralString, fragments: Iterable[Sql]) -> Sql:
    listed = list(fragments)
    values = [value for fragment in listed for value in fragment.values]
    return Sql(separator.join([fragment.text for fragment in listed]), *values)


def all_of(clauses: Iterable[Sql]) -> Sql:
    listed = [clause for clause in clauses if clause.text]
    return join(" AND ", listed) if listed else Sql("true")


def places(count: int) -> LiteralString:
    """As many question marks, for a list of values."""
    marks: list[LiteralString] = ["?"] * count
    return ", ".join(marks)


@lru_cache(maxsize=2048)
def _number(text: str, count: int) -> str:
    parts = text.split("?")
    if len(parts) != count + 1:
        raise AssertionError(f"{len(parts) - 1} places for {count} values: {re.sub(r'\s+', ' ', text)}")
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))
