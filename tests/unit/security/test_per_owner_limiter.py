"""Turns go round: nobody who keeps asking has all of them, and whoever gives up leaves nothing behind (H2, H3)."""

import asyncio
import random

import pytest

from kalends.core.errors import ApiError
from kalends.core.limits import ConcurrencyLimits, PerOwnerLimiter

FEED_LIMITS = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=2, waiting=20)


def test_greedy_owner_does_not_starve_others() -> None:
    async def run() -> tuple[int, int]:
        limiter, greedy = PerOwnerLimiter(FEED_LIMITS), 0

        async def request_slots() -> None:
            nonlocal greedy
            while True:
                async with limiter.slot("greedy"):
                    greedy += 1
                    await asyncio.sleep(0.001)

        tasks = [asyncio.create_task(request_slots()) for _ in range(3)]
        await asyncio.sleep(0.01)
        modest = 0
        for _ in range(10):
            async with limiter.slot("modest", max_wait=1):
                modest += 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return modest, greedy

    modest, greedy = asyncio.run(run())
    assert modest == 10
    assert greedy >= 10


@pytest.mark.parametrize("seed", range(5))
def test_cancelled_waits_release_their_slots(seed: int) -> None:
    """Many owners, each of whose requests may be cancelled or time out at any moment."""
    rng = random.Random(seed)
    shares = ConcurrencyLimits(per_owner=2, total=3, waiting_per_owner=5, waiting=12)

    async def run() -> None:
        limiter, running, maximum = PerOwnerLimiter(shares), 0, 0

        async def work(owner: int) -> None:
            nonlocal running, maximum
            try:
                async with limiter.slot(owner, max_wait=rng.choice([None, 0.001, 0.005])):
                    running += 1
                    maximum = max(maximum, running)
                    try:
                        await asyncio.sleep(rng.random() / 500)
                    finally:
                        running -= 1
            except ApiError:
                return

        tasks: list[asyncio.Task[None]] = []
        for _ in range(400):
            tasks.append(asyncio.create_task(work(rng.randrange(6))))
            if rng.random() < 0.5:
                rng.choice(tasks).cancel()
            await asyncio.sleep(rng.random() / 2000)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert maximum == shares.total
        # All of them are free again, at once and for anybody.
        async with limiter.slot("a", 0.1), limiter.slot("a", 0.1), limiter.slot("b", 0.1):
            with pytest.raises(ApiError):
                async with limiter.slot("c", 0.01):
                    pass

    asyncio.run(run())
