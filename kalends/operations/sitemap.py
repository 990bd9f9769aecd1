"""All public URLs of a site in stable parts: posts by ranges of IDs, then terms."""

from datetime import timedelta
from typing import Final, LiteralString

from kalends.core import times
from kalends.kinds import BY_NAME
from kalends.operations.context import OperationContext
from kalends.store.sql import Sql

# IDs per part. Events, series, venues and organizers share one sequence of IDs.
PART_SIZE: Final = 10_000
MAX_TERMS: Final = 20_000
# The period from today whose dates of series are listed; the page of a series links to the others.
DATES_PERIOD: Final = timedelta(days=92)
POSTS: Final[tuple[tuple[LiteralString, LiteralString], ...]] = (
    (
        "events",
        "AND r.listed AND r.password_hash IS NULL AND (r.series_id IS NULL OR r.end_utc >= ? AND r.start_utc < ?)",
    ),
    (
        "series",
        "AND r.status = 'publish' AND r.template ->> 'password_hash' IS NULL AND NOT r.hide_from_listings",
    ),
    ("venues", "AND r.status = 'publish'"),
    ("organizers", "AND r.status = 'publish'"),
)


async def count_parts(context: OperationContext) -> int:
    last_id: int = await context.transaction.fetch_value(
        Sql("SELECT last_post_id FROM sites WHERE id = ?", context.transaction.site.id)
    )
    return last_id // PART_SIZE + 1


async def list_posts(context: OperationContext, part: int) -> list[tuple[str, str]]:
    """List the URLs of one part with the dates of their last change."""
    entries: list[tuple[str, str]] = []
    today = times.next_midnight(context.transaction.now, context.transaction.site.timezone) - timedelta(days=1)
    period = (today, today + DATES_PERIOD)
    for name, visible in POSTS:
        rows = await context.transaction.fetch_all(
            Sql(
                "SELECT r.slug, r.modified_utc FROM " + name + " r WHERE r.site_id = ? AND r.id >= ? AND r.id < ? "
                "AND r.slug <> '' " + visible + " ORDER BY r.id",
                context.transaction.site.id,
                part * PART_SIZE,
                (part + 1) * PART_SIZE,
                *(period if name == "events" else ()),
            )
        )
        singular = BY_NAME[name].singular
        entries += [
            (f"{context.base_url}/{singular}/{row['slug']}/", f"{row['modified_utc']:%Y-%m-%d}") for row in rows
        ]
    return entries


async def list_terms(context: OperationContext) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for name in ("categories", "tags"):
        kind = BY_NAME[name]
        condition = Sql("r.site_id = ? AND r.count > 0 ORDER BY r.id LIMIT ?", context.transaction.site.id, MAX_TERMS)
        rows = await context.transaction.fetch_all(kind.select(condition))
        entries += [(kind.reads.from_row(row, context.render_context).url, "") for row in rows]
    return entries
