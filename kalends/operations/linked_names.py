"""Names of the records that parameters refer to by ID, for pages that show the parameters to people."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kalends.kinds import BY_NAME
from kalends.kinds.kind import Actor, Kind
from kalends.operations import permissions
from kalends.store.database import Transaction
from kalends.store.sql import Sql

Names = dict[str, dict[int, str]]  # by parameter and ID
# Parameters whose value is the ID of a user.
USER_PARAMS: Final = ("author",)


async def find_names(tx: Transaction, actor: Actor, kind: Kind, versions: Iterable[Mapping[str, Any]]) -> Names:
    """Return the names of the records in some versions of a record, as far as the user may read them."""
    values = list(versions)
    names: Names = {}
    for link in kind.links:
        if ids := _collect_ids(values, link.param):
            rows = await tx.fetch_all(_select_names(BY_NAME[link.kind], actor, tx.site.id, ids))
            names[link.param] = {row["id"]: row["name"] for row in rows}
    for param in USER_PARAMS:
        if ids := _collect_ids(values, param):
            users = Sql("SELECT id, coalesce(nullif(display_name, ''), login) AS name FROM users")
            rows = await tx.fetch_all(users + Sql("WHERE site_id = ? AND id = ANY(?)", tx.site.id, ids))
            names[param] = {row["id"]: row["name"] for row in rows}
    return names


def _select_names(kind: Kind, actor: Actor, site_id: int, ids: list[int]) -> Sql:
    condition = Sql("WHERE r.site_id = ? AND r.id = ANY(?)", site_id, ids)
    if not kind.is_post:
        return Sql("SELECT r.id, r.name FROM " + kind.name + " r") + condition
    visible = Sql("AND") + permissions.readable_condition(actor)
    return Sql("SELECT r.id, r.title AS name FROM " + kind.name + " r") + condition + visible


def _collect_ids(versions: Iterable[Mapping[str, Any]], param: str) -> list[int]:
    found: set[int] = set()
    for version in versions:
        value = version.get(param)
        entries: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        found.update(entry for entry in entries if isinstance(entry, int) and not isinstance(entry, bool))
    return sorted(found)
