"""The size of a run: small by default, large with `KALENDS_SOAK=1` (`just soak`)."""

import os

SOAK = bool(os.environ.get("KALENDS_SOAK"))


def scaled(small: int, large: int) -> int:
    """Return the first number in a normal run and the second in a soak."""
    return large if SOAK else small


def some[T](cases: list[T], count: int = 1) -> list[T]:
    """Return the first cases in a normal run and all of them in a soak."""
    return cases if SOAK else cases[:count]
