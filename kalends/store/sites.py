"""Sites with their settings and host names."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, Final, Self

from asyncpg import Record

from kalends.core.errors import InvalidValue
from kalends.store.problems import connect_owner


@dataclass(frozen=True, slots=True)
class Site:
    id: int
    name: str
    base_url: str
    timezone: str
    language: str
    currency_symbol: str
    currency_position: str
    currency_code: str
    per_page: int
    revision: int
    trimmed_revision: int
    secret: bytes
    created_at: datetime
    # Theme and links of the public pages.
    logo_url: str
    accent: str
    first_weekday: int
    default_view: str
    start_page: str
    imprint_url: str
    privacy_url: str
    parent_url: str
    second_accent: str
    fonts: str
    custom_css_hash: str
    submissions: bool  # whether anyone can propose events in the public form
    follow_by_email: bool  # whether anyone can follow lists by email
    reply_to: str  # address for answers to emails to followers
    mail_footer: str  # the end of emails to followers
    # The former host and highest original ID, if the site was imported with its IDs; otherwise empty.
    former_host: str
    former_last_id: int

    @property
    def settings(self) -> tuple[object, ...]:
        """Return all fields except the revisions, for use in cache keys."""
        values: tuple[object, ...] = _read_settings(self)
        return values

    @classmethod
    def from_row(cls, row: Record) -> Self:
        site_id, name, base_url, *others = _read_row(row)
        return cls(site_id, name, base_url or "", *others)


_read_settings: Final = attrgetter(
    *(field.name for field in fields(Site) if field.name not in ("revision", "trimmed_revision"))
)
_read_row: Final = itemgetter(*(field.name for field in fields(Site)))
SITE_COLUMNS: Final = ", ".join(field.name for field in fields(Site))
RECORD_TABLES: Final = ("events", "series", "venues", "organizers", "media", "categories", "tags")


class SiteConflict(InvalidValue):
    """Raised if a change conflicts with the existing sites or hosts."""


@dataclass(frozen=True, slots=True)
class HostedSite:
    id: int
    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteSize:
    """A site's record counts, and the total size of its images in bytes, excluding generated copies."""

    id: int
    name: str
    hosts: tuple[str, ...]
    revision: int
    events: int
    venues: int
    organizers: int
    users: int
    images: int
    image_bytes: int


@dataclass(frozen=True, slots=True)
class SiteTotals:
    sites: int
    events: int
    venues: int
    organizers: int
    users: int
    images: int
    image_bytes: int


@asynccontextmanager
async def _change_sites(database_url: str) -> AsyncIterator[Any]:
    """Open a transaction as the table owner, because the server's role is confined to one site."""
    async with connect_owner(database_url) as connection, connection.transaction():
        await connection.execute("LOCK TABLE sites IN SHARE ROW EXCLUSIVE MODE")
        await require_no_directory(connection)
        yield connection


async def require_no_directory(connection: Any) -> None:
    """Refuse to change a cell's sites directly, because the directory assigns their IDs and stores their hosts."""
    if name := await connection.fetchval("SELECT name FROM cell"):
        raise SiteConflict(
            f"This database is the cell {name} of a directory. Set KALENDS_DIRECTORY_URL and KALENDS_CELLS."
        )


async def list_sites(database_url: str, search: str = "", limit: int | None = None) -> list[HostedSite]:
    """Return the sites whose name or host contains `search`, ordered by ID."""
    async with connect_owner(database_url) as connection:
        return await fetch_sites(connection, search, limit)


async def measure_sites(database_url: str, *, most: int, largest: int) -> tuple[list[SiteSize], SiteTotals]:
    """Count records in total and per site; list only the `largest` sites if there are more than `most`.

    A site's last ID serves as an estimate of its size.
    """
    async with connect_owner(database_url) as connection:
        totals = SiteTotals(
            **await connection.fetchrow(
                """
                SELECT (SELECT count(*) FROM sites s
                        WHERE NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.id)) AS sites,
                    (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM venues) AS venues,
                    (SELECT count(*) FROM organizers) AS organizers, (SELECT count(*) FROM users) AS users,
                    (SELECT count(*) FROM media) AS images,
                    (SELECT coalesce(sum(filesize), 0)::bigint FROM media) AS image_bytes
                """
            )
        )
        query = """
            SELECT s.id, s.name, s.revision,
                ARRAY(SELECT h.host FROM site_hosts h WHERE h.site_id = s.id ORDER BY 1) AS hosts,
                (SELECT count(*) FROM events e WHERE e.site_id = s.id) AS events,
                (SELECT count(*) FROM venues v WHERE v.site_id = s.id) AS venues,
                (SELECT count(*) FROM organizers o WHERE o.site_id = s.id) AS organizers,
                (SELECT count(*) FROM users u WHERE u.site_id = s.id) AS users,
                (SELECT count(*) FROM media m WHERE m.site_id = s.id) AS images,
                (SELECT coalesce(sum(m.filesize), 0)::bigint FROM media m WHERE m.site_id = s.id) AS image_bytes
            FROM (SELECT * FROM sites s WHERE NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.id)
                ORDER BY CASE WHEN $1 THEN -s.last_post_id ELSE s.id END, s.id LIMIT $2) s
        """
        rows = await connection.fetch(query, totals.sites > most, largest if totals.sites > most else most)
    return [SiteSize(**{**row, "hosts": tuple(row["hosts"])}) for row in rows], totals


async def add_site(database_url: str, host: str, name: str, first_host: str = "") -> int:
    """Add a site and return its ID. If exactly one site has no host, it gets `first_host`.

    Raise SiteConflict if a site would be left without a host, because requests could not reach it.
    """
    async with _change_sites(database_url) as connection:
        await prepare_hosts(connection, first_host, [host])
        site_id = await take_site_id(connection)
        await create_site(connection, site_id, name)
        await add_new_host(connection, host, site_id)
    return site_id


async def prepare_hosts(connection: Any, first_host: str, new_hosts: Sequence[str]) -> None:
    """Check that a site with these hosts can be added. If exactly one site has no host, it gets `first_host`."""
    homeless = [site for site in await fetch_sites(connection) if not site.hosts]
    if first_host and len(homeless) != 1:
        raise SiteConflict("--first-host is for the one site without a host name, and there is none or several.")
    if homeless and not first_host:
        names = ", ".join(f"{site.id} ({site.name})" for site in homeless)
        raise SiteConflict(
            f"Site {names} has no host name and could not be reached any more. Pass --first-host with its host "
            "name, or run `kalends site add-host` first."
        )
    if first_host:
        await add_new_host(connection, first_host, homeless[0].id)
    for host in new_hosts:
        await _require_new_host(connection, host)


async def take_site_id(connection: Any) -> int:
    # Use a sequence to avoid reusing IDs of removed sites; imported sites may have higher IDs.
    site_id: int = await connection.fetchval(
        "SELECT setval('site_ids', greatest(nextval('site_ids'), max(s.id) + 1)) FROM sites s"
    )
    return site_id


async def create_site(connection: Any, site_id: int, name: str) -> None:
    await connection.execute("INSERT INTO sites (id, name) VALUES ($1, $2)", site_id, name)


async def add_host(database_url: str, host: str, site_id: int, *, move: bool = False) -> None:
    """Add a host to a site. Refuse a host that belongs to another site unless `move` is set."""
    async with _change_sites(database_url) as connection:
        if not await connection.fetchval("SELECT true FROM sites WHERE id = $1", site_id):
            raise SiteConflict(f"There is no site {site_id}.")
        owner: int | None = await connection.fetchval("SELECT site_id FROM site_hosts WHERE host = $1", host.lower())
        require_movable(host, owner, site_id, move=move)
        await connection.execute(
            "INSERT INTO site_hosts (host, site_id) VALUES ($1, $2) "
            "ON CONFLICT (host) DO UPDATE SET site_id = excluded.site_id",
            host.lower(),
            site_id,
        )


def require_movable(host: str, owner: int | None, site_id: int, *, move: bool) -> None:
    """Refuse to take a host from another site unless `move` is set."""
    if owner is not None and owner != site_id and not move:
        raise SiteConflict(f"The host name {host.lower()} belongs to site {owner}. To move it, pass --move.")


async def remove_host(database_url: str, host: str) -> int:
    """Remove a host and return the ID of its site. Refuse to remove the last host of one of several sites."""
    async with _change_sites(database_url) as connection:
        query = """
            SELECT h.site_id, (SELECT count(*) FROM site_hosts o WHERE o.site_id = h.site_id) AS hosts,
                (SELECT count(*) FROM (SELECT FROM sites LIMIT 2) s) AS sites
            FROM site_hosts h WHERE h.host = $1
        """
        row = await connection.fetchrow(query, host.lower())
        if row is None:
            raise SiteConflict(f"No site has the host name {host.lower()}.")
        site_id: int = row["site_id"]
        if row["hosts"] == 1 and row["sites"] > 1:
            raise last_host_error(host, site_id)
        await connection.execute("DELETE FROM site_hosts WHERE host = $1", host.lower())
    return site_id


def last_host_error(host: str, site_id: int) -> SiteConflict:
    return SiteConflict(
        f"{host.lower()} is the last host name of site {site_id}, which nobody could reach then. Add another first."
    )


async def remove_site(database_url: str, site_id: int) -> None:
    async with _change_sites(database_url) as connection:
        if await connection.fetchval("SELECT count(*) FROM sites") == 1:
            raise SiteConflict("The only site of a server cannot be removed.")
        if not await delete_site(connection, site_id):
            raise SiteConflict(f"There is no site {site_id}.")


async def delete_site(connection: Any, site_id: int) -> bool:
    """Delete a site and all its rows; return whether it existed."""
    await connection.execute("DELETE FROM procrastinate_jobs WHERE args ->> 'site_id' = $1", str(site_id))
    # Triggers count the site's remaining records, so delete the site's own row last.
    for table in RECORD_TABLES:
        await connection.execute(f"DELETE FROM {table} WHERE site_id = $1", site_id)
    deleted: str = await connection.execute("DELETE FROM sites WHERE id = $1", site_id)
    return deleted != "DELETE 0"


async def count_records(database_url: str, site_id: int) -> int:
    async with connect_owner(database_url) as connection:
        query = """
            SELECT sum(n)::bigint FROM (
                SELECT count(*) FROM events WHERE site_id = $1 UNION ALL
                SELECT count(*) FROM venues WHERE site_id = $1 UNION ALL
                SELECT count(*) FROM organizers WHERE site_id = $1 UNION ALL
                SELECT count(*) FROM media WHERE site_id = $1) AS c (n)
        """
        count: int = await connection.fetchval(query, site_id)
        return count


async def _require_new_host(connection: Any, host: str) -> None:
    owner: int | None = await connection.fetchval("SELECT site_id FROM site_hosts WHERE host = $1", host.lower())
    if owner is not None:
        raise SiteConflict(f"The host name {host} belongs to site {owner}.")


async def add_new_host(connection: Any, host: str, site_id: int) -> None:
    await _require_new_host(connection, host)
    await connection.execute("INSERT INTO site_hosts (host, site_id) VALUES ($1, $2)", host.lower(), site_id)


async def fetch_sites(connection: Any, search: str = "", limit: int | None = None) -> list[HostedSite]:
    query = """
        SELECT s.id, s.name, array_remove(array_agg(h.host ORDER BY h.host), NULL) AS hosts
        FROM sites s LEFT JOIN site_hosts h ON h.site_id = s.id
        WHERE NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.id)
            AND ($1 = '' OR strpos(lower(s.name), lower($1)) > 0 OR EXISTS (
                SELECT FROM site_hosts n WHERE n.site_id = s.id AND strpos(n.host, lower($1)) > 0))
        GROUP BY s.id ORDER BY s.id LIMIT $2
    """
    rows = await connection.fetch(query, search, limit)
    return [HostedSite(row["id"], row["name"], tuple(row["hosts"])) for row in rows]
