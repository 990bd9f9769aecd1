"""SQL fragments: literal text, and values that are always passed as statement arguments."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import LiteralString


class Sql:
    """A fragment such as `Sql("start_utc < ?", now)`. Fragments are concatenated with `+`."""

    __slots__ = ("text", "values")

    def __init__(self, text: LiteralString, *values: object) -> None:
        self.text: LiteralString = text
        self.values = values

    def __add__(self, other: "Sql") -> "Sql":
        # A list query joins dozens of fragments, and skipping `__init__` is faster.
        joined = _new_sql(Sql)
        joined.text, joined.values = self.text + " " + other.text, self.values + other.values
        return joined

    def render(self) -> str:
        """Return the text for PostgreSQL, with $1, $2 … in place of the values."""
        return _render(self.text, len(self.values))


_new_sql = Sql.__new__


def join(separator: LiteralString, fragments: Iterable[Sql]) -> Sql:
    parts = list(fragments)
    values = [value for fragment in parts for value in fragment.values]
    return Sql(separator.join([fragment.text for fragment in parts]), *values)


def and_(clauses: Iterable[Sql]) -> Sql:
    nonempty = [clause for clause in clauses if clause.text]
    return join(" AND ", nonempty) if nonempty else Sql("true")


# Parameters hidden from the planner. PostgreSQL compares the estimated costs of a plan for specific values and a
# stored plan for all values. For a short list or period, the specific plan seems cheaper. PostgreSQL would then plan
# the statement for every request, and planning takes longer than executing it.
UNSEEN_INSTANT: LiteralString = "(SELECT ?::timestamptz)"
UNSEEN_DAY: LiteralString = "(SELECT ?::date)"
UNSEEN_IDS: LiteralString = "(SELECT ?::bigint[])::bigint[]"
UNSEEN_TEXTS: LiteralString = "(SELECT ?::text[])::text[]"
# Common page sizes are literals, because a stored plan for any size would assume many rows.
USUAL_LIMITS: dict[int, LiteralString] = {
    1: "LIMIT 1", 5: "LIMIT 5", 10: "LIMIT 10", 12: "LIMIT 12", 20: "LIMIT 20", 25: "LIMIT 25", 30: "LIMIT 30",
    50: "LIMIT 50", 100: "LIMIT 100",
}  # fmt: skip


def any_of(ids: list[int]) -> Sql:
    """Return `ANY(ids)` for a comparison with `=`. The planner does not see the list's length."""
    return Sql("ANY(" + UNSEEN_IDS + ")", ids)


def limit(count: int, offset: int = 0) -> Sql:
    """Return LIMIT and OFFSET. For the first page of a common size, the limit is a literal."""
    if offset:
        return Sql("LIMIT ? OFFSET ?", count, offset)
    return Sql(USUAL_LIMITS[count]) if count in USUAL_LIMITS else Sql("LIMIT ?", count)


def placeholders(count: int) -> LiteralString:
    markers: list[LiteralString] = ["?"] * count
    return ", ".join(markers)


@lru_cache(maxsize=2048)
def _render(text: str, count: int) -> str:
    parts = text.split("?")
    if len(parts) != count + 1:
        raise AssertionError(f"{len(parts) - 1} placeholders for {count} values: {re.sub(r'\s+', ' ', text)}")
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))
