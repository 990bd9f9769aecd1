"""Suggestions while visitors type: events, venues and categories whose name contains the words.

The word indexes cover all texts of a record, so another condition keeps only records whose name contains the words.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, LiteralString

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Columns
from kalends.calendar.operations.record_verbs import build_clauses, build_list_query
from kalends.core.html_text import to_plain_text
from kalends.core.sanitize import fold, has_trigram, like_pattern
from kalends.store import Row
from kalends.store.sql import Sql, and_

# More rows than suggestions, because each series is suggested only once.
READ_EVENTS: Final = 30
# The folded name is the first line of the search text.
_TITLE: LiteralString = "split_part(r.search_text, E'\\n', 1)"
_COLUMNS: Final = Columns(
    "id", "title", "slug", "timezone", "start_local", "all_day", "series_id", "event_status",
    computed={
        "venue": "(SELECT v.title FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id "
        "WHERE l.site_id = r.site_id AND l.event_id = r.id AND v.status = 'publish' ORDER BY l.position LIMIT 1)"
    },
)  # fmt: skip


async def find_events(context: OperationContext, words: Sequence[str], limit: int) -> list[Row]:
    """Find the first events in a list whose title contains the words, with only the first date of each series.

    Titles in which words begin with the input come first: "mu" suggests a museum before a community. Omit protected
    events, because their venue and status are not public.
    """
    query = replace(build_list_query(EVENTS, context), page=1, per_page=READ_EVENTS)
    kind = replace(EVENTS, reads=replace(EVENTS.reads, columns=_COLUMNS))
    titles = [Sql(_TITLE + " LIKE ?", like_pattern(word)) for word in words]
    clauses = [*await build_clauses(EVENTS, context, query), Sql("r.password_hash IS NULL"), *titles]
    rows = await context.transaction.fetch_all(kind.reads.page_query(kind, query, clauses))
    first_dates: dict[object, Row] = {}
    for row in sorted(rows, key=lambda row: not _begins_word(row["title"], words)):
        first_dates.setdefault(row["series_id"] or (row["title"], row["venue"]), row)
    return list(first_dates.values())[:limit]


def _begins_word(title: str, words: Sequence[str]) -> bool:
    folded = fold(to_plain_text(title))
    return all(re.search(r"\b" + re.escape(word), folded) for word in words)


async def find_venues(context: OperationContext, words: Sequence[str], limit: int) -> list[Row]:
    """Find venues by name; names that begin with the words come first."""
    return await context.transaction.fetch_all(
        Sql("SELECT r.title AS name, r.slug, r.city FROM venues r WHERE r.site_id = ?", context.transaction.site.id)
        + Sql("AND r.status = 'publish' AND")
        + _match("search_text", _TITLE, words)
        + Sql("ORDER BY r.search_text LIKE ? DESC, lower(r.title), r.id", like_pattern(words[0])[1:])
        + Sql("LIMIT ?", limit)
    )


async def find_categories(context: OperationContext, words: Sequence[str], limit: int) -> list[Row]:
    """Find categories by name; names that begin with the words come first, then categories with more events."""
    return await context.transaction.fetch_all(
        Sql("SELECT r.name, r.slug FROM categories r WHERE r.site_id = ? AND", context.transaction.site.id)
        + _match("name_folded", "r.name_folded", words)
        + Sql("ORDER BY r.name_folded LIKE ? DESC, r.count DESC, r.name_folded, r.id", like_pattern(words[0])[1:])
        + Sql("LIMIT ?", limit)
    )


def _match(column: LiteralString, name: LiteralString, words: Sequence[str]) -> Sql:
    conditions: list[Sql] = []
    for word in words:
        # Without three letters in a row, the trigram index is useless: PostgreSQL would read all of it.
        suffix: LiteralString = "" if has_trigram(word) else " || ''"
        pattern = like_pattern(word)
        conditions.append(Sql("r." + column + suffix + " LIKE ? AND " + name + " LIKE ?", pattern, pattern))
    return and_(conditions)
