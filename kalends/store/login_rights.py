"""Check of the database login of the server: rights beyond those that it needs."""

import asyncpg

from kalends.store.database_errors import UNAVAILABLE_ERRORS


async def find_excess_rights(database_url: str) -> str:
    """Describe rights of the login beyond the role `kalends_app`; "" if none or the database is unavailable."""
    try:
        connection = await asyncpg.connect(database_url, timeout=2, command_timeout=2)
    except UNAVAILABLE_ERRORS:
        return ""
    try:
        row = await connection.fetchrow(
            """
            SELECT r.rolsuper, EXISTS (
                SELECT FROM pg_tables t
                WHERE t.tablename = 'sites' AND pg_has_role(current_user, t.tableowner, 'USAGE')) AS owner
            FROM pg_roles r WHERE r.rolname = current_user
            """
        )
    except UNAVAILABLE_ERRORS:
        return ""
    finally:
        connection.terminate()
    if row is None:
        return ""
    if row["rolsuper"]:
        return "is a superuser"
    return "owns the tables" if row["owner"] else ""
