"""Slowing down: what is free, what is forgiven, and clocks that go back."""

from datetime import UTC, datetime, timedelta

import pytest

from kalends.core.limits import Limit, rate_limit_key, remaining_count, seconds_to_wait

LIMIT = Limit(burst=3, seconds=10)
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def seconds_after_noon(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_burst_is_free_then_attempts_are_delayed() -> None:
    assert [seconds_to_wait(LIMIT, count, NOON, NOON) for count in (0, 2, 3, 4)] == [0, 0, 10, 20]
    assert [seconds_to_wait(LIMIT, 3, NOON, seconds_after_noon(n)) for n in (9, 10)] == [1, 0]


def test_attempts_are_forgiven_gradually() -> None:
    assert [remaining_count(LIMIT, 3, NOON, seconds_after_noon(n)) for n in (0, 10, 25, 1000)] == [3, 2, 0.5, 0]


def test_backward_time_adjustment_adds_no_delay() -> None:
    assert remaining_count(LIMIT, 1, NOON, seconds_after_noon(-3600)) == 1
    assert seconds_to_wait(LIMIT, 1, NOON, seconds_after_noon(-3600)) == 0


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("guest-7", "guest-7"),
        ("x" * 200, "x" * 100),
    ],
)
def test_ipv6_clients_are_counted_by_network(address: str, counted: str) -> None:
    assert rate_limit_key(address) == counted
