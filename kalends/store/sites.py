"""Sites with their settings and host names."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

import asyncpg
from asyncpg import Record


@dataclass(frozen=True, slots=True)
class Site:
    """A site as of the beginning of the transaction."""

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
    # The theme of the public pages.
    logo_url: str
    accent: str
    first_weekday: int
    default_view: str
    imprint_url: str
    privacy_url: str
    parent_url: str
    second_accent: str
    fonts: str
    custom_css_hash: str

    @classmethod
    def from_row(cls, row: Record) -> Self:
        return cls(
            id=row["id"],
            name=row["name"],
            base_url=row["base_url"] or "",
            timezone=row["timezone"],
            language=row["language"],
            currency_symbol=row["currency_symbol"],
            currency_position=row["currency_position"],
            currency_code=row["currency_code"],
            per_page=row["per_page"],
            revision=row["revision"],
            trimmed_revision=row["trimmed_revision"],
            secret=row["secret"],
            created_at=row["created_at"],
            logo_url=row["logo_url"],
            accent=row["accent"],
            first_weekday=row["first_weekday"],
            default_view=row["default_view"],
            imprint_url=row["imprint_url"],
            privacy_url=row["privacy_url"],
            parent_url=row["parent_url"],
            second_accent=row["second_accent"],
            fonts=row["fonts"],
            custom_css_hash=row["custom_css_hash"],
        )


async def add_site(database_url: str, host: str, name: str) -> int:
    """Add a site as the owner of the tables, because the role of the server is confined to one site."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE sites IN SHARE ROW EXCLUSIVE MODE")
            site_id: int = await connection.fetchval(
                "INSERT INTO sites (id, name) SELECT max(id) + 1, $1 FROM sites RETURNING id", name
            )
            await connection.execute("INSERT INTO site_hosts (host, site_id) VALUES ($1, $2)", host.lower(), site_id)
        return site_id
    finally:
        await connection.close()


async def add_host(database_url: str, host: str, site_id: int) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "INSERT INTO site_hosts (host, site_id) VALUES ($1, $2) "
            "ON CONFLICT (host) DO UPDATE SET site_id = excluded.site_id",
            host.lower(),
            site_id,
        )
    finally:
        await connection.close()
