"""Reads without credentials leave connections for everybody else."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.store.database import Database, Options

HOST = "calendar.example"
SIZE, PUBLIC, PUBLIC_PER_CLIENT = 10, 4, 2


@pytest.fixture
def options(database_url: str) -> Options:
    return Options(database_url, size=SIZE, pool_timeout=1, max_per_client=4)


async def count_reads(database: Database, stack: AsyncExitStack, addresses: list[str], *, anonymous: bool) -> int:
    """Open reads, one for each address, until one is refused; return their number."""
    for count, address in enumerate(addresses):
        transaction = database.transaction(HOST, utc_now(), writing=False, anonymous=anonymous, client_ip=address)
        try:
            async with asyncio.timeout(5):
                await stack.enter_async_context(transaction)
        except ApiError:
            return count
    return len(addresses)


async def test_public_reads_of_many_clients_leave_connections(options: Options) -> None:
    database = await Database.open(options)
    try:
        async with AsyncExitStack() as stack:
            strangers = [f"192.0.2.{n}" for n in range(SIZE)]
            assert await count_reads(database, stack, strangers, anonymous=True) == PUBLIC
            people = [f"198.51.100.{n}" for n in range(SIZE - PUBLIC)]
            assert await count_reads(database, stack, people, anonymous=False) == SIZE - PUBLIC
    finally:
        await database.close()


@pytest.mark.parametrize(("max_per_client", "expected"), [(4, PUBLIC_PER_CLIENT), (0, PUBLIC)])
async def test_public_reads_of_one_client_leave_connections_to_others(
    options: Options, max_per_client: int, expected: int
) -> None:
    database = await Database.open(replace(options, max_per_client=max_per_client))
    try:
        async with AsyncExitStack() as stack:
            assert await count_reads(database, stack, ["192.0.2.1"] * SIZE, anonymous=True) == expected
    finally:
        await database.close()
