"""Comparison of the sites in the cells with the directory."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kalends.store.directory_changes import DirectorySite
from kalends.store.problems import connect_owner
from kalends.store.sites import fetch_sites


@dataclass(frozen=True, slots=True)
class CellContents:
    """The name of a database as a cell, the sites that it serves with their hosts, and its unserved sites."""

    name: str | None
    hosts: Mapping[int, tuple[str, ...]]
    unserved: Mapping[int, str]  # the state by site ID


async def read_contents(owner_url: str) -> CellContents:
    async with (
        connect_owner(owner_url) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        name: str | None = await connection.fetchval("SELECT name FROM cell")
        served = await fetch_sites(connection)
        unserved = await connection.fetch("SELECT site_id, state FROM unserved_sites")
    return CellContents(
        name, {site.id: site.hosts for site in served}, {row["site_id"]: row["state"] for row in unserved}
    )


def compare(
    sites: Iterable[DirectorySite], cells: Mapping[str, CellContents], moving: set[int], missing: Iterable[str] = ()
) -> Iterator[str]:
    """Yield what is wrong with the cells that could be read; `missing` are those that could not."""
    expected = {site.location.site_id: site for site in sites}
    for name, contents in cells.items():
        if contents.name != name:
            yield f"The database of the cell {name} has the name {contents.name}: run `kalends cell add {name}`."
        for site_id, state in contents.unserved.items():
            if site_id not in moving:
                yield (
                    f"Site {site_id}: rows are left in the cell {name} ({state}), but no move is under way. "
                    f"{_describe_removal(site_id, [name])}"
                )
        for site_id in contents.hosts.keys() - expected.keys():
            yield (
                f"Site {site_id} is in the cell {name}, but not in the directory. `kalends cell add {name}` adds it. "
                f"{_describe_removal(site_id, [name])}"
            )
    unread = set(missing)
    for site_id, site in expected.items():
        serving = [name for name, contents in cells.items() if site_id in contents.hosts]
        yield from _judge_site(site_id, site, serving, cells, unread, is_moving=site_id in moving)


def _judge_site(
    site_id: int,
    site: DirectorySite,
    serving: list[str],
    cells: Mapping[str, CellContents],
    unread: set[str],
    *,
    is_moving: bool,
) -> Iterator[str]:
    if len(serving) > 1:
        others = [name for name in sorted(serving) if name not in site.location.cells]
        yield (
            f"Site {site_id} is in several cells: {', '.join(sorted(serving))}; the directory names the cell "
            f"{site.location.cell}. {_describe_removal(site_id, others)}"
        )
    elif not serving:
        if unread.isdisjoint(site.location.cells) and not is_moving:
            yield f"Site {site_id} is in no cell; the directory names the cell {site.location.cell}."
    elif serving[0] not in site.location.cells:
        yield f"Site {site_id} is in the cell {serving[0]}; the directory names the cell {site.location.cell}."
    elif (found := cells[serving[0]].hosts[site_id]) != site.hosts:
        in_cell, in_directory = ", ".join(found) or "none", ", ".join(site.hosts) or "none"
        yield f"Site {site_id}: the cell {serving[0]} has the hosts {in_cell}, the directory has {in_directory}."


def _describe_removal(site_id: int, cells: Iterable[str]) -> str:
    commands = ", ".join(f"`kalends site remove {site_id} --cell {cell}`" for cell in cells)
    return f"To remove that copy: {commands}."
