"""Durations of the steps of a tool."""

import time
from collections.abc import Callable


def timed[T](name: str, work: Callable[[], T]) -> T:
    """Do some work, and print how long it took."""
    started = time.monotonic()
    result = work()
    print(f"{time.monotonic() - started:8.2f} s  {name}", flush=True)
    return result
