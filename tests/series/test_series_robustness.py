"""Scope edits under pressure: many writers, PostgreSQL killed in the middle, and two sites with the same IDs."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psycopg

from kalends.store.migrations import migrate
from tests.robustness.consistency import assert_consistent
from tests.robustness.process_control import kill_cluster, restart_cluster
from tests.robustness.site_fixtures import PatientAuth, add_editor, add_tenant, run_application, wait_until
from tests.series.series_client import WEEKLY
from tests.servers import Server
from tests.soak import scaled
from tools import postgres

EXTENSION = "/api/kalends/v1"
WRITERS, EDITS = 16, scaled(3, 40)


async def create_series(client: httpx.AsyncClient, **fields: object) -> Any:
    response = await client.post(f"{EXTENSION}/series", json={**WEEKLY, **fields})
    assert response.status_code == 201, response.text
    return response.json()


def read_events(database_url: str, series_id: int, site_id: int = 1) -> list[tuple[Any, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT id, slot, start_local, title, cost FROM events "
            "WHERE site_id = %s AND series_id = %s AND status <> 'trash' ORDER BY slot",
            [site_id, series_id],
        ).fetchall()


async def test_sixteen_writers_of_one_series_lose_nothing(database_url: str) -> None:
    login = add_editor(database_url)
    outcomes: Counter[int] = Counter()
    async with (
        run_application(database_url, pool_size=4, pool_timeout=30) as transport,
        httpx.AsyncClient(
            transport=transport, base_url="http://calendar.test", auth=PatientAuth(*login), timeout=120
        ) as client,
    ):
        series = await create_series(client, title="Crowd")
        events = [row[0] for row in read_events(database_url, series["id"])]

        async def write(number: int) -> None:
            for turn in range(EDITS):
                event = events[(number * 5 + turn) % len(events)]
                scope = ("this", "following", "all")[(number + turn) % 3]
                fields = [
                    {"title": f"Crowd {number}"},
                    {"cost": str(number)},
                    {"start_date": f"{10 + number % 8}:00", "end_date": f"{11 + number % 8}:00"},
                ][(number + turn) // 2 % 3]
                if scope == "this" and "start_date" in fields:
                    fields = {"cost": "1"}
                response = await client.patch(f"{EXTENSION}/events/{event}?scope={scope}", json=fields)
                outcomes[response.status_code] += 1

        await asyncio.gather(*[write(number) for number in range(WRITERS)])
        rows = read_events(database_url, series["id"])
        # One more edit of all dates shows that the series and its events agree on every slot.
        final = await client.patch(
            f"{EXTENSION}/series/{series['id']}?overrides=replace",
            json={"title": "Silence", "cost": "", "start_date": "12:00", "end_date": "13:00"},
        )
        assert final.status_code == 200, final.text
    assert outcomes == {200: WRITERS * EDITS}
    assert [row[0] for row in rows] == events
    assert {(row[3], row[4]) for row in read_events(database_url, series["id"])} == {("Silence", "")}
    assert_consistent(database_url)


async def test_killed_postgresql_leaves_a_scope_edit_whole_or_undone(tmp_path: Path) -> None:
    with postgres.throwaway(postgres.PERSISTENT) as cluster:
        migrate(cluster.url)
        login, running = add_editor(cluster.url), cluster
        with Server.start(cluster.url, log=tmp_path / "server.log") as server:
            async with httpx.AsyncClient(base_url=server.base_url, auth=login, timeout=60, trust_env=False) as client:
                series = await create_series(client, rule="FREQ=DAILY;COUNT=300")
                titles = {"Yoga"}
                for number in range(scaled(3, 40)):
                    title = f"Killed {number}"
                    edit = asyncio.create_task(_edit(client, series["id"], title))
                    await asyncio.sleep(0.03 * (number % 10))
                    kill_cluster(running)
                    status = await edit
                    running = await asyncio.to_thread(restart_cluster, running)
                    await wait_until(lambda: httpx.get(f"{server.base_url}/readyz").status_code == 200, 60)
                    rows = read_events(cluster.url, series["id"])
                    found = {row[3] for row in rows}
                    assert len(rows) == 300
                    assert found == {title} if status == 200 else found in ({title}, titles), (status, found)
                    titles = found
        assert_consistent(cluster.url)


async def _edit(client: httpx.AsyncClient, series_id: int, title: str) -> int:
    response = await client.patch(f"{EXTENSION}/series/{series_id}", json={"title": title})
    assert response.status_code in (200, 503), response.text
    return response.status_code


async def test_two_sites_with_the_same_ids_do_not_touch_each_other(database_url: str) -> None:
    tenants = [add_tenant(database_url), add_tenant(database_url)]
    async with run_application(database_url, pool_size=2) as transport:
        first, second = [
            httpx.AsyncClient(transport=transport, base_url=f"http://{tenant.host}", auth=tenant.login)
            for tenant in tenants
        ]
        series = await create_series(first, title="First")
        twin = await create_series(second, title="Second")
        assert series["id"] == twin["id"]
        event = read_events(database_url, series["id"], tenants[0].id)[4][0]
        untouched = read_events(database_url, series["id"], tenants[1].id)
        edits: list[dict[str, object]] = [
            {"title": "Changed"},
            {"start_date": "18:00", "end_date": "19:00"},
            {"rule": "FREQ=WEEKLY;INTERVAL=2;COUNT=3"},
        ]
        for edit in edits:
            response = await first.patch(f"{EXTENSION}/events/{event}?scope=following", json=edit)
            assert response.status_code == 200, response.text
        response = await first.delete(f"{EXTENSION}/series/{series['id']}")
        assert response.status_code == 200, response.text
        assert read_events(database_url, series["id"], tenants[1].id) == untouched
        assert (await second.get(f"{EXTENSION}/series/{twin['id']}")).json()["total"] == twin["total"]
    assert_consistent(database_url, tenants[0].id)
    assert_consistent(database_url, tenants[1].id)
