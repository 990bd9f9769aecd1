"""Which tables and columns an archive of one site contains, and why the others are left out.

A test compares this with the catalog of the database, so that a new table or column cannot be forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the archive. Expressions are SQL; `r` is the row of the archive, $1 the ID of the site."""

    name: str
    # Columns that are not in the archive. Those without a default get their value from `stored`.
    left_out: frozenset[str] = frozenset()
    # Values that the archive contains instead of those of a column, and values that an import stores instead of them.
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    stored: Mapping[str, str] = field(default_factory=dict[str, str])
    # A column that refers to another row of the same table, which may come later.
    parent: str = ""
    # The only columns that an archive contains; empty: all that are not left out.
    only: tuple[str, ...] = ()
    # Whether the rows belong to persons, so that they are in archives with accounts only.
    is_personal: bool = False
    # Whether `stored` refers to the event of the row as `e`.
    joins_event: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # as PostgreSQL names it
    is_nullable: bool


# The placeholder for the ID of the site in the path of its logo.
OWN_MEDIA: Final = "/media/{site}/"
# Copies of columns of the event, which triggers keep equal.
_EVENT_COPIES: Final = {"start_utc": "e.start_utc", "listed": "e.listed", "published": "e.status = 'publish'"}


def _link(name: str) -> Table:
    return Table(name, left_out=frozenset(_EVENT_COPIES), stored=_EVENT_COPIES, joins_event=True)


# The row of the site. Host names and the base URL are in the manifest, because an import may change them.
SITES: Final = Table(
    "sites",
    left_out=frozenset({"id", "secret", "base_url"}),
    written={
        "logo_url": "CASE WHEN starts_with(logo_url, '/media/' || id || '/') "
        "THEN '/media/{site}/' || substr(logo_url, length('/media/' || id || '/') + 1) ELSE logo_url END"
    },
    stored={"logo_url": "replace(r.logo_url, '/media/{site}/', '/media/' || $1::bigint || '/')"},
)
USERS: Final = Table("users", left_out=frozenset({"password_hash"}))
# Authors in an archive without accounts: an ID, so that records keep their author. They cannot sign in.
AUTHORS: Final = Table(
    "users",
    only=("id",),
    stored={"login": "'author-' || r.id", "role": "'subscriber'", "disabled_at": "now()"},
)
# In the order of their foreign keys, after the site and its users.
TABLES: Final = (
    Table("media"),
    # Triggers count the events of terms.
    Table("categories", left_out=frozenset({"count"}), parent="parent"),
    Table("tags", left_out=frozenset({"count"})),
    Table("series"),
    Table("venues", left_out=frozenset({"unsettled"})),
    Table("organizers"),
    # `placed` is derived, too, but a trigger would have to write each event a second time.
    Table("events", parent="post_parent"),
    _link("event_venues"),
    _link("event_organizers"),
    _link("event_categories"),
    _link("event_tags"),
    Table(
        "changes",
        written={"record_id": "CASE kind WHEN 'sites' THEN 0 ELSE record_id END"},
        stored={"record_id": "CASE r.kind WHEN 'sites' THEN $1::bigint ELSE r.record_id END"},
    ),
    Table("slug_redirects"),
    Table("prefix_redirects"),
    Table("media_files"),
    Table("legacy_files"),
    Table("not_duplicates"),
    Table("site_styles"),
    Table("import_sources"),
    Table("import_files"),
    Table("import_items"),
    Table("import_runs"),
    Table("import_rows"),
    Table("drafts", is_personal=True),
    Table("saved_filters", is_personal=True),
)
LEFT_OUT_TABLES: Final[Mapping[str, str]] = {
    "site_hosts": "in the manifest",
    "unserved_sites": "the state of a move between cells",
    "application_passwords": "credentials",
    "application_password_uses": "belongs to credentials",
    "passkeys": "credentials",
    "sessions": "credentials",
    "one_time_tokens": "credentials",
    "login_failures": "addresses of clients, forgotten within hours",
    "idempotency": "responses to repeated requests, forgotten within a day",
    "daily_records": "counts the new records of one day per account",
    "orphan_files": "files that are about to be deleted",
    "event_days": "counted by triggers",
    "link_days": "counted by triggers",
    "series_days": "counted by triggers",
    "series_steps": "computed by triggers",
}


def list_tables(*, accounts: bool) -> tuple[Table, ...]:
    """Return the tables of an archive in the order in which their rows can be inserted."""
    users = USERS if accounts else AUTHORS
    return (SITES, users, *(table for table in TABLES if accounts or not table.is_personal))


async def read_columns(connection: Any, table: Table) -> tuple[Column, ...]:
    """Return the columns of a table that an archive contains, without generated ones."""
    rows = await connection.fetch(
        """
        SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS is_nullable
        FROM pg_attribute a
        WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        ORDER BY a.attnum
        """,
        table.name,
    )
    left_out = table.left_out | {"site_id"}
    return tuple(
        Column(row["attname"], row["type"], row["is_nullable"])
        for row in rows
        if (row["attname"] in table.only if table.only else row["attname"] not in left_out)
    )


async def read_order(connection: Any, table: Table) -> str:
    """Return the columns of the primary key, which is the order of the rows in the archive."""
    columns: str = await connection.fetchval(
        """
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.place)
        FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = $1::text::regclass AND i.indisprimary
        """,
        table.name,
    )
    return columns
