"""How large a run is: small in every one, at length with `KALENDS_SOAK=1` (`just soak`)."""

import os

SOAK = bool(os.environ.get("KALENDS_SOAK"))


def scaled(small: int, large: int) -> int:
    """A number for every run, and the larger one for a soak."""
    return large if SOAK else small
