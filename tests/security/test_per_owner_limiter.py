"""Turns go round: nobody who keeps asking has all of them, and whoever gives up leaves nothing behind (H2, H3)."""

import asyncio
import random

import pytest

from kalends.core.errors import ApiError
from kalends.core.limiter import ConcurrencyLimits, PerOwnerLimiter

FEEDS = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=2, waiting=20)


def test_greedy_owner_does_not_starve_others() -> None:
    async def play() -> tuple[int, int]:
        turns, greedy = PerOwnerLimiter(FEEDS), 0

        async def keep_asking() -> None:
            nonlocal greedy
            while True:
                async with turns.slot("greedy"):
                    greedy += 1
                    await asyncio.sleep(0.001)

        asking = [asyncio.create_task(keep_asking()) for _ in range(3)]
        await asyncio.sleep(0.01)
        modest = 0
        for _ in range(10):
            async with turns.slot("modest", patience=1):
                modest += 1
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        return modest, greedy

    modest, greedy = asyncio.run(play())
    assert modest == 10
    assert greedy >= 10


@pytest.mark.parametrize("seed", range(5))
def test_cancelled_waits_release_their_slots(seed: int) -> None:
    """Many owners, each of whose requests may be cancelled or lose patience at any moment."""
    chance = random.Random(seed)
    shares = ConcurrencyLimits(per_owner=2, total=3, waiting_per_owner=5, waiting=12)

    async def play() -> None:
        turns, running, most = PerOwnerLimiter(shares), 0, 0

        async def work(owner: int) -> None:
            nonlocal running, most
            try:
                async with turns.slot(owner, patience=chance.choice([None, 0.001, 0.005])):
                    running += 1
                    most = max(most, running)
                    try:
                        await asyncio.sleep(chance.random() / 500)
                    finally:
                        running -= 1
            except ApiError:
                return

        tasks: list[asyncio.Task[None]] = []
        for _ in range(400):
            tasks.append(asyncio.create_task(work(chance.randrange(6))))
            if chance.random() < 0.5:
                chance.choice(tasks).cancel()
            await asyncio.sleep(chance.random() / 2000)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert most == shares.total
        # All of them are free again, at once and for anybody.
        async with turns.slot("a", 0.1), turns.slot("a", 0.1), turns.slot("b", 0.1):
            with pytest.raises(ApiError):
                async with turns.slot("c", 0.01):
                    pass

    asyncio.run(play())
