"""The size of a run, small by default, large with `KALENDS_SOAK=1` (`just soak`), and the speed of the machine."""

import os
import time

SOAK = bool(os.environ.get("KALENDS_SOAK"))


def scaled(small: int, large: int) -> int:
    """Return the first number in a normal run and the second in a soak."""
    return large if SOAK else small


def some[T](cases: list[T], count: int = 1) -> list[T]:
    """Return the first cases in a normal run and all of them in a soak."""
    return cases if SOAK else cases[:count]


# CPU seconds of the loop in `slowdown` on the machine that the limits of tests were chosen on.
QUIET_SECONDS = 0.04


def slowdown() -> float:
    """Return how many times slower this machine computes at the moment than that one, at least 1.

    Processes that share a core or its caches also slow down the CPU time of others.
    """
    started = time.process_time()
    counts: dict[str, int] = {}
    for number in range(60_000):
        word = f"word {number % 997}"
        counts[word] = counts.get(word, 0) + len(word)
    return max(1.0, (time.process_time() - started) / QUIET_SECONDS)
