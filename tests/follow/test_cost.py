"""What followers cost others: idle ones nothing, and writers neither statements nor locks."""

import json
from typing import Any

import psycopg

from kalends.store.database import Database
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import acting, add_event, add_people, in_days, make_sender, make_times
from tests.soak import scaled

SITES = scaled(200, 1_000_000)
FOLLOWS = scaled(2_000, 1_000_000)
PEOPLE = scaled(120, 10_000)


def test_idle_follows_cost_nothing(site: RunningApp) -> None:
    add_people(site, FOLLOWS, due=False)
    with psycopg.connect(site.database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO sites (id) SELECT n FROM generate_series(2, %s) n", [SITES])
        connection.execute("VACUUM ANALYZE follows, followers, sites")
        buffers: list[int] = []
        for _ in range(8):  # after five executions, the plan of the function stays
            statement = "EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM due_follows(now(), 500)"
            [(plans,)] = connection.execute(statement).fetchall()
            plan: Any = (json.loads(plans) if isinstance(plans, str) else plans)[0]["Plan"]
            assert plan["Actual Rows"] == 0
            buffers.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        assert buffers[-1] <= 10, buffers


def test_writes_run_the_same_statements_with_followers(site: RunningApp, statements: list[str]) -> None:
    event = add_event(site, "Concert")["id"]

    def record(days: int) -> list[str]:
        statements.clear()
        site.caller("editor").change("events", event, **make_times(in_days(days)))
        return list(statements)

    record(3)  # the first change of an event has another plan
    without = record(4)
    add_people(site, PEOPLE, due=True)
    assert record(5) == without
    assert not any("follow" in statement for statement in without)


def test_writes_do_not_wait_for_the_sender(site: RunningApp) -> None:
    event = add_event(site, "Concert")["id"]
    add_people(site, 10, due=True)
    with psycopg.connect(site.database_url) as connection:
        connection.execute("SELECT * FROM follows JOIN followers USING (site_id) FOR UPDATE")
        connection.execute("INSERT INTO mail_days (site_id, day, sent) VALUES (1, current_date, 1)")
        site.caller("editor").change("events", event, **make_times(in_days(5)))


async def send_all(database: Database, smtp: SmtpServer) -> tuple[int, int]:
    """Send all that is due, in runs of seconds; return the numbers of emails and of renderings."""
    sender, sent = make_sender(database, smtp.url), 0
    while more := (await sender.send_due())["sent"]:
        sent += more
    return sent, sender.cache.number


def test_one_rendering_for_all_and_few_per_write(site: RunningApp, smtp: SmtpServer) -> None:
    add_event(site, "Concert")
    add_people(site, PEOPLE, due=True)

    assert site.run_with_database(lambda database: send_all(database, smtp)) == (PEOPLE + 1, 1)


def test_each_write_costs_at_most_four_renderings(site: RunningApp, smtp: SmtpServer) -> None:
    event = add_event(site, "Concert")["id"]
    add_people(site, PEOPLE, due=True)
    asked: list[str] = []

    def edit(twin: RunningApp, address: str) -> None:
        asked.append(address)
        if len(asked) % 30 == 0:
            twin.caller("editor").change("events", event, title=f"Concert {len(asked)}")

    with acting(site, smtp, edit):
        sent, renderings = site.run_with_database(lambda database: send_all(database, smtp))
    assert sent == PEOPLE + 1
    assert 1 < renderings <= 1 + 4 * (len(asked) // 30)
