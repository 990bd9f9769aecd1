"""All public URLs of a site in stable parts: posts by ranges of IDs, then terms."""

from typing import Final, LiteralString

from kalends.kinds import BY_NAME
from kalends.operations.context import OperationContext
from kalends.store.sql import Sql

# IDs per part. Events, venues and organizers share one sequence of IDs.
PART_SIZE: Final = 10_000
MAX_TERMS: Final = 20_000
POSTS: Final[tuple[tuple[LiteralString, LiteralString], ...]] = (
    ("events", "AND r.listed AND r.password_hash IS NULL"),
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
    for name, visible in POSTS:
        rows = await context.transaction.fetch_all(
            Sql(
                "SELECT r.slug, r.modified_utc FROM " + name + " r WHERE r.site_id = ? AND r.id >= ? AND r.id < ? "
                "AND r.slug <> '' " + visible + " ORDER BY r.id",
                context.transaction.site.id,
                part * PART_SIZE,
                (part + 1) * PART_SIZE,
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
