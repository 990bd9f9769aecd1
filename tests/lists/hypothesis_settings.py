"""How many examples are tried: a few in every run, more with KALENDS_SOAK=1; and the numbers they grow from."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.strategies import SearchStrategy

from tests.soak import SOAK

seed = st.integers(0, 2**32)


def seed_lists(minimum: int, maximum: int) -> SearchStrategy[list[int]]:
    """So many numbers. One that is 0 is left out, so that what fails shrinks to the few that matter."""
    return st.lists(seed, min_size=minimum, max_size=maximum).map(
        lambda drawn: [number for number in drawn if number]
    )


def list_settings(examples: int, soak_factor: int = 10) -> Callable[[Any], Any]:
    """Return the settings of a test with one data set per example; `just soak` multiplies the examples."""
    return settings(
        deadline=None,
        max_examples=examples * soak_factor if SOAK else max(1, examples // 2),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
