"""The end of a move-in: no later run can overwrite what people edit here."""

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from kalends.core.clock import utc_now
from kalends.operations.move_in.verify import Difference
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

CHECKLIST: Final = (
    "Point DNS or the proxy to this server, and set KALENDS_API_ALIASES=/wp-json/tribe/events/v1.",
    "Set the URL of the site: kalends site set base_url https://HOST",
    "Invite the people: kalends import tec invite",
    "Watch what is requested and not found for a week: kalends import tec missing LOGFILE",
    "Delete copies of the snapshot; it contains e-mail addresses and event passwords.",
)
MAX_PATHS: Final = 100
ACCEPTED_FIELDS: Final = ("kind", "identity", "field", "expected", "found")


async def close_source(database: SiteDatabase, site_id: int, run: Row, accepted: Sequence[Difference]) -> None:
    """Close the source of a run, which keeps the accepted differences. UIDs stay as they are from now on."""
    entries = [{name: getattr(entry, name) for name in ACCEPTED_FIELDS} for entry in accepted]
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        if entries:
            options = {**orjson.loads(run["options"]), "accepted_differences": entries}
            await imports.change_run(tx, run["id"], {"options": imports.encode(options)})
        await imports.change_source(tx, run["source_id"], {"state": "closed"})


async def list_uninvited(tx: Transaction) -> list[tuple[int, str, str]]:
    """Return ID, login and e-mail address of the imported accounts that cannot sign in yet."""
    rows = await tx.fetch_all(
        Sql(
            """
            SELECT DISTINCT u.id, u.login, u.email FROM users u
            JOIN import_items i ON i.site_id = u.site_id AND i.kind = 'users' AND i.record_id = u.id
                AND i.fingerprint = 'created'
            WHERE u.site_id = ? AND u.disabled_at IS NULL AND coalesce(u.password_hash, '') = ''
                AND u.last_signed_in_at IS NULL
            ORDER BY u.id
            """,
            tx.site.id,
        )
    )
    return [(row["id"], row["login"], row["email"]) for row in rows]


def count_missing(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return the paths that were requested and not found, by count, from the lines of the access log."""
    counts: dict[str, int] = {}
    for line in lines:
        path = _read_missing(line)
        if path:
            counts[path] = counts.get(path, 0) + 1
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(number, path) for path, number in ordered[:MAX_PATHS]]


def _read_missing(line: str) -> str:
    """Return the path of a request that was not found; empty for other lines. Lines may have a prefix."""
    try:
        fields = orjson.loads(line[line.index("{") :])
    except ValueError:
        return ""
    is_missing = isinstance(fields, dict) and fields.get("event") == "request" and fields.get("status") == 404
    return str(fields.get("path") or "") if is_missing else ""
