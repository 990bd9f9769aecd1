"""Two servers on one database, sixteen clients at once: nothing is taken twice, nothing is lost."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import httpx
import pytest

from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.site_fixtures import DATES, Tenant, add_tenant, create_client
from tests.servers import Server
from tests.soak import scaled

CLIENTS = 16
ROUNDS = scaled(4, 50)


@pytest.fixture(scope="module")
def servers(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    directory = tmp_path_factory.mktemp("race")
    with ExitStack() as running:
        yield [running.enter_context(Server.start(module_database_url, log=directory / f"{n}.log")) for n in range(2)]


@pytest.fixture
def tenant(module_database_url: str) -> Tenant:
    return add_tenant(module_database_url)


@pytest.fixture
async def clients(servers: list[Server], tenant: Tenant) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Half of them ask one server, half the other."""
    addresses = itertools.islice(itertools.cycle(server.base_url for server in servers), CLIENTS)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(create_client(url, tenant.login, host=tenant.host)) for url in addresses
        ]


@pytest.fixture
def check_revision(module_database_url: str, tenant: Tenant) -> Callable[[], int]:
    """Audits the site and gives its revision."""

    def check() -> int:
        assert_consistent(module_database_url, tenant.id)
        return read_revision(module_database_url, tenant.id)

    return check


async def test_concurrent_equal_names_get_distinct_slugs_and_gapless_revisions(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    async def create(client: httpx.AsyncClient) -> list[tuple[str, httpx.Response]]:
        responses = []
        for _ in range(ROUNDS):
            for kind, body in (
                # Without a date, a venue with the same data is not created again.
                ("venues", {"venue": "The Same", "date": "2026-01-01"}),
                ("tags", {"name": "The Same", "slug": "the-same"}),
                ("events", {"title": "The Same", "slug": "the-same", **DATES}),
            ):
                responses.append((kind, await client.post(f"/{kind}", json=body)))
        return responses

    replies = [response for batch in await asyncio.gather(*map(create, clients)) for response in batch]
    assert Counter((kind, response.status_code) for kind, response in replies) == {
        (kind, 201): CLIENTS * ROUNDS for kind in ("venues", "tags", "events")
    }
    slugs = Counter((kind, response.json()["slug"]) for kind, response in replies)
    # Nobody had to skip a number: the first is bare, the others count up.
    assert slugs == {
        (kind, "the-same" if n == 1 else f"the-same-{n}"): 1
        for kind in ("venues", "tags", "events")
        for n in range(1, CLIENTS * ROUNDS + 1)
    }
    assert check_revision() == len(replies)


async def test_concurrent_equal_tags_create_one(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    for n in range(ROUNDS):
        body = {"name": f"Tag {n}"}
        responses = await asyncio.gather(*(client.post("/tags", json=body) for client in clients))
        record = [response.json()["id"] for response in responses if response.status_code == 201]
        assert Counter(response.status_code for response in responses) == {201: 1, 400: CLIENTS - 1}
        assert {a.json()["data"]["term_id"] for a in responses if a.status_code == 400} == {record[0]}
    assert check_revision() == ROUNDS


async def test_concurrent_equal_venues_create_one(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    responses = await asyncio.gather(*(client.post("/venues", json={"venue": "One"}) for client in clients))
    assert Counter(response.status_code for response in responses) == {201: 1, 200: CLIENTS - 1}
    assert len({response.json()["id"] for response in responses}) == 1
    assert check_revision() == 1


async def test_concurrent_requests_with_same_key_create_one_record(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    for n in range(ROUNDS):
        body, headers = {"venue": f"Venue {n}"}, {"Idempotency-Key": f"key-{n}"}
        responses = await asyncio.gather(*(client.post("/venues", json=body, headers=headers) for client in clients))
        assert {response.status_code for response in responses} <= {201, 409}
        assert len({response.text for response in responses if response.status_code == 201}) == 1
        assert all("retry-after" in response.headers for response in responses if response.status_code == 409)
    assert check_revision() == ROUNDS


async def test_if_match_prevents_lost_updates(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    event = await _create_counter(clients[0])

    async def count_up(client: httpx.AsyncClient) -> Counter[int]:
        statuses: Counter[int] = Counter()
        for _ in range(ROUNDS):
            read = await client.get(event)
            raised = {"title": str(int(read.json()["title"]) + 1)}
            response = await client.patch(event, json=raised, headers={"If-Match": read.headers["etag"]})
            statuses[response.status_code] += 1
        return statuses

    statuses = sum(await asyncio.gather(*map(count_up, clients)), Counter[int]())
    assert set(statuses) == {200, 412}, "others were refused, or they never met and nothing was shown"
    assert (await clients[0].get(event)).json()["title"] == str(statuses[200])
    assert check_revision() == 1 + statuses[200]


async def test_concurrent_updates_are_atomic(
    clients: list[httpx.AsyncClient], check_revision: Callable[[], int]
) -> None:
    event = await _create_counter(clients[0])

    async def overwrite(client: httpx.AsyncClient, writer: int) -> list[dict[str, Any]]:
        bodies = []
        for n in range(ROUNDS):
            word = f"w{writer}-{n}"
            body = {"title": word, "excerpt": word, "tags": [word], "venue": {"venue": word}}
            response = await client.put(event, json=body)
            assert response.status_code == 200, response.text
            bodies.append(response.json())
        return bodies

    results = await asyncio.gather(*(overwrite(client, n) for n, client in enumerate(clients)))
    current = (await clients[0].get(event)).json()
    for body in (current, *(body for bodies in results for body in bodies)):
        words = {body["title"], *(tag["name"] for tag in body["tags"]), body["venue"]["venue"]}
        assert words == {body["title"]}
        assert body["title"] in body["excerpt"]
    # Each update is one change and makes a tag and a venue.
    assert check_revision() == 1 + 3 * CLIENTS * ROUNDS


async def test_acknowledged_write_is_visible_on_other_server(
    clients: list[httpx.AsyncClient], servers: list[Server], tenant: Tenant
) -> None:
    """Also to the public, whose answers are kept in the memory of each server."""
    event = await _create_counter(clients[0])
    async with create_client(servers[1].base_url, host=tenant.host) as public:
        for number in range(1, ROUNDS * 10):
            body = {"title": str(number)}
            assert (await clients[0].patch(event, json=body)).status_code == 200
            read, listed = await asyncio.gather(public.get(event), public.get("/events"))
            assert (read.json()["title"], listed.json()["events"][0]["title"]) == (str(number), str(number))


async def _create_counter(client: httpx.AsyncClient) -> str:
    response = await client.post("/events", json={"title": "0", **DATES})
    assert response.status_code == 201, response.text
    return f"/events/{response.json()['id']}"
