"""What holds for every zone and every year from 1970 to 2100, above all where clocks change."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import given, strategies as st

from kalends.core.times import (
    DateTimeInput,
    day_begins,
    day_ends,
    event_span,
    in_zone,
    local_of,
    offset_of,
    resolve,
    utc_of,
)
from kalends.core.zones import zone_names
from tests.unit.core.vector_rows import quick_settings

SECOND = timedelta(seconds=1)

zones = st.sampled_from(sorted(zone_names()))


@st.composite
def zones_and_instants(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and an instant, mostly within some hours of a change of its clocks."""
    zone = draw(zones)
    year_start = datetime(draw(st.integers(1970, 2099)), 1, 1, tzinfo=UTC)
    months = [year_start + timedelta(days=31 * n) for n in range(12)]
    changes = [m for m in months if offset_of(m, zone) != offset_of(m + timedelta(days=31), zone)]
    if not changes:
        return zone, year_start + draw(st.integers(0, 366 * 86400)) * SECOND
    change = find_offset_change(draw(st.sampled_from(changes)), zone)
    return zone, change + draw(st.integers(-4 * 3600, 4 * 3600) | st.sampled_from([-1, 0, 1])) * SECOND


def find_offset_change(month: datetime, zone: str) -> datetime:
    low, high = month, month + timedelta(days=31)
    while high - low > SECOND:
        middle = low + (high - low) // 2 // SECOND * SECOND
        low, high = (middle, high) if offset_of(middle, zone) == offset_of(low, zone) else (low, middle)
    return high


@quick_settings
@given(zones_and_instants())
def test_instants_round_trip_through_local_time(place: tuple[str, datetime]) -> None:
    zone, instant = place
    assert utc_of(local_of(instant, zone), zone, in_zone(instant, zone).fold) == instant


@quick_settings
@given(zones_and_instants(), st.integers(-3 * 3600, 3 * 3600))
def test_resolved_time_exists_and_is_stable(place: tuple[str, datetime], shift: int) -> None:
    zone, instant = place
    wall = local_of(instant, zone) + shift * SECOND
    resolved = resolve(DateTimeInput(wall, None, is_date_only=False), zone)
    assert local_of(resolved.utc, zone) == resolved.wall
    assert resolved.fold == 0
    assert resolve(DateTimeInput(resolved.wall, None, is_date_only=False), zone) == resolved


@quick_settings
@given(zones_and_instants(), st.integers(-3 * 3600, 3 * 3600))
def test_time_moves_only_out_of_gap_and_by_its_size(place: tuple[str, datetime], shift: int) -> None:
    zone, instant = place
    wall = local_of(instant, zone) + shift * SECOND
    resolved = resolve(DateTimeInput(wall, None, is_date_only=False), zone)
    before, after = utc_of(wall, zone, fold=1), utc_of(wall, zone, fold=0)
    is_in_gap = after > before
    assert resolved.wall - wall == (after - before if is_in_gap else timedelta(0))


@quick_settings
@given(zones_and_instants())
def test_first_of_ambiguous_times_is_chosen(place: tuple[str, datetime]) -> None:
    zone, instant = place
    is_second = in_zone(instant, zone).fold == 1
    resolved = resolve(DateTimeInput(local_of(instant, zone), None, is_date_only=False), zone)
    assert resolved.wall == local_of(instant, zone)
    assert resolved.utc < instant if is_second else resolved.utc == instant


@quick_settings
@given(zones_and_instants(), st.integers(-23 * 60, 23 * 60))
def test_explicit_offset_is_converted_exactly(place: tuple[str, datetime], minutes: int) -> None:
    zone, instant = place
    offset = timedelta(minutes=minutes)
    parsed = DateTimeInput((instant + offset).replace(tzinfo=None), offset, is_date_only=False)
    resolved = resolve(parsed, zone)
    assert resolved.utc == instant
    assert resolved.wall == local_of(instant, zone)
    assert utc_of(resolved.wall, zone, resolved.fold) == instant


@quick_settings
@given(zones_and_instants(), st.integers(0, 8 * 3600), st.integers(-12, 14))
def test_equal_offsets_preserve_order(place: tuple[str, datetime], later: int, hours: int) -> None:
    zone, instant = place
    offset = timedelta(hours=hours)
    wall = (instant + offset).replace(tzinfo=None)
    first = resolve(DateTimeInput(wall, offset, is_date_only=False), zone)
    second = resolve(DateTimeInput(wall + later * SECOND, offset, is_date_only=False), zone)
    assert second.utc - first.utc == later * SECOND


@quick_settings
@given(zones_and_instants())
def test_all_day_event_covers_exactly_one_day(place: tuple[str, datetime]) -> None:
    zone, instant = place
    day = local_of(instant, zone).date()
    noon = DateTimeInput(datetime.combine(day, time(12)), None, is_date_only=False)
    span = event_span(noon, noon, zone, all_day=True)
    assert span.start.utc <= instant <= span.end.utc
    assert (span.start.wall.date(), span.end.wall.date()) == (day, day)
    assert (day_begins(noon, zone), day_ends(noon, zone)) == (span.start.utc, span.end.utc)
    assert local_of(span.end.utc + SECOND, zone).date() > day
    # St. John's put its clocks back at one minute past midnight, so that a day could begin twice.
    if in_zone(span.start.utc - SECOND, zone).fold == 0:
        assert local_of(span.start.utc - SECOND, zone).date() < day


@quick_settings
@given(zones_and_instants(), st.integers(0, 3))
def test_multi_day_events_cover_consecutive_days(place: tuple[str, datetime], days: int) -> None:
    zone, instant = place
    first = DateTimeInput(local_of(instant, zone), None, is_date_only=False)
    last = DateTimeInput(first.wall + timedelta(days=days), None, is_date_only=False)
    span = event_span(first, last, zone, all_day=True)
    assert span.start.utc < span.end.utc
    assert timedelta(days=days, hours=18) < span.end.utc - span.start.utc < timedelta(days=days + 1, hours=6) or (
        crosses_date_line(span.start.utc, span.end.utc, zone)
    )


def crosses_date_line(start: datetime, end: datetime, zone: str) -> bool:
    """Zones that went to the other side of the date line."""
    around = timedelta(days=2)
    return abs(offset_of(start - around, zone) - offset_of(end + around, zone)) > timedelta(hours=20)
