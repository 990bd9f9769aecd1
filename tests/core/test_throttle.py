"""Slowing down: what is free, what is forgiven, and clocks that go back."""

from datetime import UTC, datetime, timedelta

from kalends.core.throttle import Limit, Throttle, forgiven, seconds_to_wait

LIMIT = Limit(burst=3, seconds=10)
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_so_many_tries_are_free_then_one_in_a_while() -> None:
    throttle = Throttle(LIMIT)
    for _ in range(3):
        assert throttle.wait("a", NOON) == 0
        throttle.note("a", NOON)
    assert throttle.wait("a", NOON) == 10
    assert throttle.wait("b", NOON) == 0
    assert throttle.wait("a", after(9)) == 1
    assert throttle.wait("a", after(10)) == 0


def test_tries_are_forgiven_one_by_one() -> None:
    assert [forgiven(LIMIT, 3, NOON, after(n)) for n in (0, 10, 25, 1000)] == [3, 2, 0.5, 0]


def test_a_clock_that_was_set_back_adds_nothing() -> None:
    assert forgiven(LIMIT, 1, NOON, after(-3600)) == 1
    assert seconds_to_wait(LIMIT, 1, NOON, after(-3600)) == 0


def test_the_oldest_keys_are_forgotten() -> None:
    throttle = Throttle(Limit(burst=1, seconds=10), most_keys=2)
    for key in "abc":
        throttle.note(key, NOON)
    assert [throttle.wait(key, NOON) > 0 for key in "abc"] == [False, True, True]
