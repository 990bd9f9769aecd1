"""Dates, zones and whole days as the conformance kit expects them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kalends.core.date_forms import make_absolute, read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.params import parse_bool
from kalends.core.times import abbreviation, event_span, format_datetime, local_of, resolve, to_utc
from kalends.core.zones import normalize_zone, read_zone
from tests.unit.core.vector_rows import SITE_ZONE, load_rows, may_be_accepted, may_be_rejected, row_id

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
EVENT_ROWS = [row for table in ("dates", "dst", "all_day", "timezones") for row in load_rows(table)]

# Held to be wrong in the kit: legacy names are read, and come back as today's names.
CANONICAL_NAMES = {
    "events.create.timezone_old_alias": "Asia/Kolkata",
    "events.create.timezone_us_eastern": "America/New_York",
}
# The kit rejects it, but clients send it.
ACCEPTED = {"events.create.timezone_offset_colon"}


def resolve_event_dates(fields: dict[str, Any]) -> dict[str, Any]:
    """The part of creating an event that concerns dates; types and absence are the parameters' business."""
    if not all(isinstance(fields[name], str) for name in ("start_date", "end_date")):
        raise InvalidValue("not text")
    if not isinstance(fields.get("timezone") or "", str):
        raise InvalidValue("not text")
    zone = read_zone(fields.get("timezone") or SITE_ZONE)
    all_day = parse_bool(False if fields.get("all_day") is None else fields["all_day"])
    start, end = (make_absolute(read_datetime(fields[name]), NOW, zone) for name in ("start_date", "end_date"))
    span = event_span(start, end, zone, all_day)
    return {
        "start_date": format_datetime(span.start.wall),
        "end_date": format_datetime(span.end.wall),
        "utc_start_date": format_datetime(span.start.utc),
        "utc_end_date": format_datetime(span.end.utc),
        "timezone": zone,
        "timezone_abbr": abbreviation(span.start.utc, zone),
        "all_day": all_day,
    }


@pytest.mark.parametrize("row", EVENT_ROWS, ids=row_id)
def test_event_dates_match_conformance_vectors(row: dict[str, Any]) -> None:
    try:
        created = resolve_event_dates(row["input"])
    except InvalidValue:
        assert may_be_rejected(row)
        return
    assert may_be_accepted(row) or row["step"] in ACCEPTED
    expected = dict(row.get("output", {}))
    if row["step"] in CANONICAL_NAMES:
        expected["timezone"] = CANONICAL_NAMES[row["step"]]
    assert {name: created[name] for name in expected} == expected


@pytest.mark.parametrize("name", CANONICAL_NAMES)
def test_legacy_timezone_names_can_be_preserved(name: str) -> None:
    (row,) = [row for row in load_rows("timezones") if row["step"] == name]
    assert normalize_zone(row["input"]["timezone"].upper()) == row["output"]["timezone"]


@pytest.mark.parametrize("row", load_rows("publication_dates"), ids=row_id)
def test_publication_dates_match_conformance_vectors(row: dict[str, Any]) -> None:
    fields = row["input"]
    if "error" in row:
        with pytest.raises(InvalidValue):
            read_datetime(fields["date"])
        return
    if "date_utc" in fields:
        utc = to_utc(read_datetime(fields["date_utc"]), "UTC")
    else:
        utc = resolve(read_datetime(fields["date"]), SITE_ZONE).utc
    assert format_datetime(utc) == row["output"]["date_utc"]
    assert format_datetime(local_of(utc, SITE_ZONE)) == row["output"]["date"]
