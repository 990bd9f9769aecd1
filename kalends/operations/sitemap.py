"""All public addresses of a site, in parts that do not move: posts by ranges of their IDs, and terms."""

from typing import Final, LiteralString

from kalends.kinds import BY_NAME
from kalends.operations.context import Call
from kalends.store.sql import Sql

# IDs of one part. Events, venues and organizers share one counter.
PART: Final = 10_000
MOST_TERMS: Final = 20_000
POSTS: Final[tuple[tuple[LiteralString, LiteralString], ...]] = (
    ("events", "AND r.listed AND r.password_hash IS NULL"),
    ("venues", "AND r.status = 'publish'"),
    ("organizers", "AND r.status = 'publish'"),
)


async def count_parts(call: Call) -> int:
    last: int = await call.transaction.fetch_value(
        Sql("SELECT last_post_id FROM sites WHERE id = ?", call.transaction.site.id)
    )
    return last // PART + 1


async def list_posts(call: Call, part: int) -> list[tuple[str, str]]:
    """Addresses with the day of the last change."""
    found: list[tuple[str, str]] = []
    for name, visible in POSTS:
        rows = await call.transaction.fetch_all(
            Sql(
                "SELECT r.slug, r.modified_utc FROM " + name + " r WHERE r.site_id = ? AND r.id >= ? AND r.id < ? "
                "AND r.slug <> '' " + visible + " ORDER BY r.id",
                call.transaction.site.id,
                part * PART,
                (part + 1) * PART,
            )
        )
        singular = BY_NAME[name].singular
        found += [(f"{call.base_url}/{singular}/{row['slug']}/", f"{row['modified_utc']:%Y-%m-%d}") for row in rows]
    return found


async def list_terms(call: Call) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name in ("categories", "tags"):
        kind = BY_NAME[name]
        used = Sql("r.site_id = ? AND r.count > 0 ORDER BY r.id LIMIT ?", call.transaction.site.id, MOST_TERMS)
        rows = await call.transaction.fetch_all(kind.select(used))
        found += [(kind.represent(row, call.view)["url"], "") for row in rows]
    return found
