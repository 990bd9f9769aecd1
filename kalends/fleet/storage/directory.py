"""The directory, which maps sites to cells: lookups by servers, and changes by owners."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from kalends.fleet.storage.move_tables import find_tables
from kalends.store import sites
from kalends.store.database import LOOKUP_TIMEOUT, Database, Options
from kalends.store.problems import connect, connect_owner
from kalends.store.site_revisions import BatchedLookup
from kalends.store.sites import HostedSite, SiteConflict
from kalends.store.sql import Sql

# A site's host or ID.
type SiteKey = str | int

FIND_SITES: Final = """
    SELECT h.host AS key_host, s.id, s.cell, s.target
    FROM kalends_directory.hosts h JOIN kalends_directory.sites s ON s.id = h.site_id WHERE h.host = ANY(?::text[])
    UNION ALL
    SELECT NULL, s.id, s.cell, s.target FROM kalends_directory.sites s WHERE s.id = ANY(?::bigint[])
"""
SAMPLE_HOSTS: Final = """
    SELECT (SELECT h.host FROM kalends_directory.sites s JOIN kalends_directory.hosts h ON h.site_id = s.id
        WHERE s.cell = c.name LIMIT 1) AS host
    FROM kalends_directory.cells c ORDER BY c.name
"""


@dataclass(frozen=True, slots=True)
class Location:
    """A site's location. During a move, requests try `cell` first and then `target`."""

    site_id: int
    cell: str
    target: str | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,) if self.target is None else (self.cell, self.target)


class Directory:
    """A server's directory lookups. All requests share one connection. After a timeout, they use another one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lookup = BatchedLookup(self._fetch)
        self.lookups = 0

    @classmethod
    async def open(cls, options: Options) -> Self:
        # Lookups in the directory use only the connections that this database reserves for lookups.
        return cls(await Database.open(options))

    async def close(self) -> None:
        await self._database.close()

    async def find(self, key: SiteKey) -> Location | None:
        """Return a site's current location; None if there is none. Raise 503 if the directory is unavailable."""
        return await self._lookup.find(key)

    async def sample_hosts(self) -> list[str]:
        """Return one host from each cell that has at least one."""
        rows = await self._database.fetch_unscoped(Sql(SAMPLE_HOSTS), seconds=LOOKUP_TIMEOUT)
        return [row["host"] for row in rows if row["host"]]

    async def _fetch(self, keys: Iterable[SiteKey]) -> Mapping[SiteKey, Location]:
        self.lookups += 1
        hosts = [key for key in keys if isinstance(key, str)]
        site_ids = [key for key in keys if isinstance(key, int)]
        rows = await self._database.fetch_unscoped(Sql(FIND_SITES, hosts, site_ids), seconds=LOOKUP_TIMEOUT)
        found: dict[SiteKey, Location] = {}
        for row in rows:
            key = row["id"] if row["key_host"] is None else row["key_host"]
            found[key] = Location(row["id"], row["cell"], row["target"])
        return found


# Changes to the directory and the matching rows in cells, made as the table owner.

SCHEMA: Final = Path(__file__).with_name("directory.sql")
# Arbitrary lock number that serializes directory migrations.
SCHEMA_LOCK: Final = 5_254_637_102

LIST_CELLS: Final = """
    SELECT c.name, c.accepts_new, (SELECT count(*) FROM kalends_directory.sites s WHERE s.cell = c.name) AS sites
    FROM kalends_directory.cells c ORDER BY c.name
"""
# Free capacity is measured by the number of sites, including arriving sites.
CHOOSE_CELL: Final = """
    SELECT c.name FROM kalends_directory.cells c WHERE c.accepts_new AND c.name = ANY($1)
    ORDER BY (SELECT count(*) FROM kalends_directory.sites s WHERE coalesce(s.target, s.cell) = c.name), c.name
    LIMIT 1
"""
# IDs of removed sites must not be reused, so the maximum includes the value of the cell's sequence.
RAISE_IDS: Final = """
    SELECT setval(pg_get_serial_sequence('kalends_directory.sites', 'id'),
        greatest($1, (SELECT max(s.id) FROM kalends_directory.sites s), q.last_value))
    FROM kalends_directory.sites_id_seq q
"""
LOCK_SITE: Final = "SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', $1))"


@dataclass(frozen=True, slots=True)
class CellEntry:
    name: str
    accepts_new: bool
    sites: int


@dataclass(frozen=True, slots=True)
class DirectorySite:
    location: Location
    hosts: tuple[str, ...]


async def apply_schema(directory_url: str) -> None:
    async with connect(directory_url) as connection, connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
        # Suppress notices about existing tables.
        await connection.execute("SET LOCAL client_min_messages = warning")
        await connection.execute(SCHEMA.read_text(encoding="utf-8"))


async def list_cells(directory_url: str) -> list[CellEntry]:
    async with connect(directory_url) as connection:
        return [CellEntry(**row) for row in await connection.fetch(LIST_CELLS)]


async def list_sites(directory_url: str, cell: str = "") -> list[DirectorySite]:
    async with connect(directory_url) as connection:
        query = """
            SELECT s.id, s.cell, s.target,
                ARRAY(SELECT h.host FROM kalends_directory.hosts h WHERE h.site_id = s.id ORDER BY 1) AS hosts
            FROM kalends_directory.sites s WHERE $1 IN ('', s.cell) ORDER BY s.id
        """
        rows = await connection.fetch(query, cell)
    return [DirectorySite(Location(row["id"], row["cell"], row["target"]), tuple(row["hosts"])) for row in rows]


async def find_site(directory_url: str, key: SiteKey) -> Location:
    """Return a site's location; raise SiteConflict if there is no such site."""
    async with connect(directory_url) as connection:
        return await _find_site(connection, key)


async def set_accepts_new(directory_url: str, cell: str, *, accepts_new: bool) -> None:
    async with _change_directory(directory_url) as connection:
        sql = "UPDATE kalends_directory.cells SET accepts_new = $2 WHERE name = $1"
        if await connection.execute(sql, cell, accepts_new) == "UPDATE 0":
            raise SiteConflict(f"There is no cell {cell} in the directory.")


async def add_cell(directory_url: str, owner_url: str, name: str) -> list[HostedSite]:
    """Add a database to the directory as a cell, with its sites and hosts; return the sites."""
    async with _change_directory(directory_url) as directory, connect_owner(owner_url) as cell, cell.transaction():
        await directory.execute("LOCK TABLE kalends_directory.sites IN SHARE ROW EXCLUSIVE MODE")
        await cell.execute("LOCK TABLE sites IN SHARE ROW EXCLUSIVE MODE")
        await _name_cell(cell, name)
        found = await sites.fetch_sites(cell)
        if [(site.id, site.hosts) for site in found] == [(1, ())] and await _is_unused(cell, 1):
            # Migrations create one site in every new database.
            await cell.execute("DELETE FROM sites WHERE id = 1")
            found = []
        await directory.execute("INSERT INTO kalends_directory.cells (name) VALUES ($1) ON CONFLICT DO NOTHING", name)
        for site in found:
            await _register(directory, name, site)
        if found:
            await directory.execute(RAISE_IDS, await cell.fetchval("SELECT last_value FROM site_ids"))
    return found


async def add_site(
    directory_url: str, owner_urls: Mapping[str, str], host: str, name: str, cell: str = ""
) -> Location:
    """Add a site to a cell, and publish its host last. By default, choose the cell with the fewest sites."""
    async with place_site(directory_url, owner_urls, [host.lower()], cell) as place:
        async with connect_owner(owner_urls[place.cell]) as connection, connection.transaction():
            await sites.create_site(connection, place.site_id, name)
            await sites.add_new_host(connection, host, place.site_id)
        return place


@asynccontextmanager
async def place_site(
    directory_url: str, owner_urls: Mapping[str, str], hosts: Sequence[str], cell: str = ""
) -> AsyncIterator[Location]:
    """Choose the cell and ID of a new site.

    Its lowercase hosts become visible after the caller has stored the site's rows.
    """
    async with _change_directory(directory_url) as directory:
        cell = await _choose_cell(directory, owner_urls, cell)
        async with connect_owner(owner_urls[cell]) as connection:
            await _require_cell(connection, cell)
        site_id: int = await directory.fetchval(
            "INSERT INTO kalends_directory.sites (cell) VALUES ($1) RETURNING id", cell
        )
        for host in hosts:
            await _require_new_host(directory, host)
            await directory.execute("INSERT INTO kalends_directory.hosts VALUES ($1, $2)", host, site_id)
        yield Location(site_id, cell)


async def add_host(
    directory_url: str, owner_urls: Mapping[str, str], host: str, key: SiteKey, *, move: bool = False
) -> Location:
    """Add a host to a site. Refuse a host that belongs to another site unless `move` is set.

    A moved host is unknown until the directory transaction is committed.
    """
    host = host.lower()
    async with _change_directory(directory_url) as directory:
        site = await _lock_site(directory, key)
        owner: int | None = await directory.fetchval(
            "SELECT site_id FROM kalends_directory.hosts WHERE host = $1", host
        )
        sites.require_movable(host, owner, site.site_id, move=move)
        if owner is not None and owner != site.site_id:
            former = await _lock_site(directory, owner)
            async with connect_owner(_get_owner_url(owner_urls, former.cell)) as cell:
                await cell.execute("DELETE FROM site_hosts WHERE host = $1", host)
        upsert = "ON CONFLICT (host) DO UPDATE SET site_id = excluded.site_id"
        async with connect_owner(_get_owner_url(owner_urls, site.cell)) as cell:
            await cell.execute(f"INSERT INTO site_hosts VALUES ($1, $2) {upsert}", host, site.site_id)
        await directory.execute(f"INSERT INTO kalends_directory.hosts VALUES ($1, $2) {upsert}", host, site.site_id)
    return site


async def remove_host(directory_url: str, owner_urls: Mapping[str, str], host: str) -> int:
    """Remove a host and return its site's ID.

    Refuse to remove the last host, because then no request could reach the site.
    """
    host = host.lower()
    async with _change_directory(directory_url) as directory:
        owner: int | None = await directory.fetchval(
            "SELECT site_id FROM kalends_directory.hosts WHERE host = $1", host
        )
        if owner is None:
            raise SiteConflict(f"No site has the host name {host}.")
        site = await _lock_site(directory, owner)
        if await directory.fetchval("SELECT count(*) FROM kalends_directory.hosts WHERE site_id = $1", owner) == 1:
            raise sites.last_host_error(host, owner)
        async with connect_owner(_get_owner_url(owner_urls, site.cell)) as cell:
            await cell.execute("DELETE FROM site_hosts WHERE host = $1", host)
        await directory.execute("DELETE FROM kalends_directory.hosts WHERE host = $1", host)
    return owner


async def remove_site(directory_url: str, owner_urls: Mapping[str, str], site_id: int) -> None:
    """Remove a site and all its records from its cell, then from the directory."""
    async with _change_directory(directory_url) as directory:
        site = await _lock_site(directory, site_id)
        async with connect_owner(_get_owner_url(owner_urls, site.cell)) as cell, cell.transaction():
            await cell.execute(LOCK_SITE, site_id)
            await sites.delete_site(cell, site_id)
        await directory.execute("DELETE FROM kalends_directory.sites WHERE id = $1", site_id)


async def remove_copy(directory_url: str, owner_urls: Mapping[str, str], site_id: int, cell: str) -> None:
    """Remove a site's rows from a cell other than the one in the directory."""
    async with _change_directory(directory_url) as directory:
        # The row lock prevents anyone from starting to move the site to this cell.
        row = await directory.fetchrow(
            "SELECT cell, target FROM kalends_directory.sites WHERE id = $1 FOR UPDATE", site_id
        )
        if row is not None and cell in (row["cell"], row["target"]):
            raise SiteConflict(
                f"The cell {cell} is the one that the directory names for site {site_id}. Without --cell, the site "
                "is removed as a whole."
            )
        async with connect_owner(_get_owner_url(owner_urls, cell)) as connection, connection.transaction():
            await _require_cell(connection, cell)
            await connection.execute(LOCK_SITE, site_id)
            existed = await sites.delete_site(connection, site_id)
            mark = await connection.execute("DELETE FROM unserved_sites WHERE site_id = $1", site_id)
            if not existed and mark == "DELETE 0":
                raise SiteConflict(f"There is no site {site_id} in the cell {cell}.")


@asynccontextmanager
async def _change_directory(directory_url: str) -> AsyncIterator[Any]:
    async with connect_owner(directory_url, "kalends_directory.sites") as connection, connection.transaction():
        yield connection


async def _find_site(directory: Any, key: SiteKey) -> Location:
    column = "s.id" if isinstance(key, int) else "h.host"
    row = await directory.fetchrow(
        "SELECT s.id, s.cell, s.target FROM kalends_directory.sites s "
        f"LEFT JOIN kalends_directory.hosts h ON h.site_id = s.id WHERE {column} = $1 LIMIT 1",
        key,
    )
    if row is None:
        raise SiteConflict(f"There is no site {key}." if key else "There are several sites: choose one with --site.")
    return Location(row["id"], row["cell"], row["target"])


async def _lock_site(directory: Any, key: SiteKey) -> Location:
    """Lock a site's directory row and return its location; raise SiteConflict if the site is being moved."""
    site_id = (await _find_site(directory, key)).site_id
    await directory.execute("SELECT FROM kalends_directory.sites WHERE id = $1 FOR UPDATE", site_id)
    site = await _find_site(directory, site_id)
    if site.target is not None:
        raise SiteConflict(f"Site {site_id} is being moved to the cell {site.target}; try again after the move.")
    return site


def _get_owner_url(owner_urls: Mapping[str, str], cell: str) -> str:
    if cell not in owner_urls:
        raise SiteConflict(f"The directory names the cell {cell}, which is not in KALENDS_CELLS.")
    return owner_urls[cell]


async def _choose_cell(directory: Any, owner_urls: Mapping[str, str], wanted: str) -> str:
    """Return the wanted cell, which must be in the directory, or the cell with the most free capacity."""
    if not wanted:
        chosen: str | None = await directory.fetchval(CHOOSE_CELL, list(owner_urls))
        if chosen is None:
            raise SiteConflict("No cell accepts new sites: run `kalends cell add` or `kalends cell fill`.")
        return chosen
    if not await directory.fetchval("SELECT true FROM kalends_directory.cells WHERE name = $1", wanted):
        raise SiteConflict(f"There is no cell {wanted} in the directory: run `kalends cell add {wanted}`.")
    _get_owner_url(owner_urls, wanted)
    return wanted


async def _require_new_host(directory: Any, host: str) -> None:
    owner = await directory.fetchval("SELECT site_id FROM kalends_directory.hosts WHERE host = $1", host)
    if owner is not None:
        raise SiteConflict(f"The host name {host} belongs to site {owner}.")


async def _require_cell(connection: Any, name: str) -> None:
    found = await connection.fetchval("SELECT name FROM cell")
    if found != name:
        raise SiteConflict(f"The database of the cell {name} is {f'the cell {found}' if found else 'not a cell'}.")


async def _name_cell(cell: Any, name: str) -> None:
    """Store the cell's name in its database. A database without a name serves its only site for any host."""
    await cell.execute("INSERT INTO cell (name) VALUES ($1) ON CONFLICT DO NOTHING", name)
    await _require_cell(cell, name)


async def _is_unused(cell: Any, site_id: int) -> bool:
    """Return whether a site is still as the migrations created it."""
    for table in await find_tables(cell):
        if table.name != "sites" and await cell.fetchval(
            f'SELECT true FROM "{table.name}" WHERE site_id = $1 LIMIT 1', site_id
        ):
            return False
    return bool(await cell.fetchval("SELECT revision = 0 FROM sites WHERE id = $1", site_id))


async def _register(directory: Any, cell: str, site: HostedSite) -> None:
    """Add an existing site with its ID and hosts. Adding the same site again has no effect."""
    if not site.hosts:
        raise SiteConflict(
            f"Site {site.id} ({site.name}) has no host name and could not be reached any more. Run `kalends site "
            "add-host` first, without KALENDS_DIRECTORY_URL."
        )
    known = await directory.fetchval("SELECT cell FROM kalends_directory.sites WHERE id = $1", site.id)
    if known is not None and known != cell:
        raise SiteConflict(
            f"Site {site.id} ({site.name}) has the ID of a site of the cell {known}. A cell can be added only if its "
            "site IDs are not in use."
        )
    await directory.execute(
        "INSERT INTO kalends_directory.sites (id, cell) VALUES ($1, $2) ON CONFLICT DO NOTHING", site.id, cell
    )
    for host in site.hosts:
        owner = await directory.fetchval("SELECT site_id FROM kalends_directory.hosts WHERE host = $1", host.lower())
        if owner is not None and owner != site.id:
            raise SiteConflict(f"The host name {host} of site {site.id} ({site.name}) belongs to site {owner}.")
        await directory.execute(
            "INSERT INTO kalends_directory.hosts VALUES ($1, $2) ON CONFLICT DO NOTHING", host.lower(), site.id
        )
