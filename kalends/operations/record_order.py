"""The kinds as the tables of the console order them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kalends.kinds.kind import Kind, ListQuery
from kalends.store.sql import Sql

# The orders of a table of posts, and their columns.
ORDERS: Final[Mapping[str, Sql]] = {
    "modified": Sql("r.modified_utc DESC, r.id DESC"),
    "name": Sql("lower(r.title), r.id"),
}


def sort_by(kind: Kind, order: str) -> Kind:
    """Return a variant of a kind of posts whose lists have this order."""

    def make_order(_: ListQuery) -> Sql:
        return ORDERS[order]

    return replace(kind, reads=replace(kind.reads, order=make_order))
