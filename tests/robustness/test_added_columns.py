"""A later version adds a column to every table while this one is running: each route responds as before."""

from collections.abc import Callable

import psycopg
from psycopg import sql

from tests.robustness.two_sites import IsolationRequest, SitePair, all_requests, site_tables

# Pages, feeds and the account pages of the console.
PAGES = (
    "/",
    "/events/",
    "/events/month/",
    "/events/list/",
    "/events.ics",
    "/events.json",
    "/sitemap.xml",
    "/console/",
)
# Triggers build rows of this table, so a migration that changes it also replaces their functions.
BUILT_BY_TRIGGERS = {"series_steps"}


async def test_added_columns_do_not_disturb_a_running_server(
    pair: SitePair, report: Callable[[object], None]
) -> None:
    requests = [*all_requests(pair), *[IsolationRequest("GET", path, False) for path in PAGES]]
    # Prepares the statements in the connection that requests take one after the other.
    before = await send_all(pair, [request for request in requests if request.method != "DELETE"])
    with psycopg.connect(pair.database_url) as connection:
        for table in set(site_tables(connection)) - BUILT_BY_TRIGGERS:
            statement = sql.SQL("ALTER TABLE {} ADD COLUMN later text NOT NULL DEFAULT 'later'")
            connection.execute(statement.format(sql.Identifier(table)))
    after = await send_all(pair, requests)
    failed = [str(request) for request, status in after if status >= 500]
    assert failed == []
    assert len(before) > 100
    report(f"{len(after)} requests after the change, 0 failures")


async def send_all(pair: SitePair, requests: list[IsolationRequest]) -> list[tuple[IsolationRequest, int]]:
    editor = pair.b.users["ed"]
    responses = [(one, await pair.b.request(one.method, one.path, editor, json=one.body)) for one in requests]
    return [(one, response.status_code) for one, response in responses]
