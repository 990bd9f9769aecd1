"""What the tests of the life of a record share."""

import os

from tests.api.interface import HOST

EXTENSION_PATH = "/api/kalends/v1"
EXTENSION = f"http://{HOST}{EXTENSION_PATH}"
SOAK = bool(os.environ.get("KALENDS_SOAK"))


def tell(text: str) -> None:
    """Figures for who reads along; pytest shows them with -s or -rP."""
    print(text)  # noqa: T201


def scaled(small: int, large: int) -> int:
    """A number for every run, and the larger one for `KALENDS_SOAK=1`."""
    return large if SOAK else small
