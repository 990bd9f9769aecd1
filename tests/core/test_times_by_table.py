"""Dates, zones and whole days as the conformance kit expects them."""

from typing import Any

import pytest

from kalends.core.booleans import read_switch
from kalends.core.errors import Invalid
from kalends.core.times import (
    abbreviation,
    event_span,
    instant,
    local_of,
    read_moment,
    read_zone,
    settle,
    spell_zone,
    stamp,
)
from tests.core.kit import SITE_ZONE, may_be_accepted, may_be_refused, rows, step

EVENT_ROWS = [row for table in ("dates", "dst", "all_day", "timezones") for row in rows(table)]

# Held to be wrong in the kit: legacy names are read, and come back as today's names.
TODAYS_NAMES = {
    "events.create.timezone_old_alias": "Asia/Kolkata",
    "events.create.timezone_us_eastern": "America/New_York",
}


def create(sent: dict[str, Any]) -> dict[str, Any]:
    """The part of creating an event that concerns dates; types and absence are the parameters' business."""
    if not all(isinstance(sent[name], str) for name in ("start_date", "end_date")):
        raise Invalid("not text")
    if not isinstance(sent.get("timezone") or "", str):
        raise Invalid("not text")
    zone = read_zone(sent.get("timezone") or SITE_ZONE)
    all_day = read_switch(False if sent.get("all_day") is None else sent["all_day"])
    span = event_span(read_moment(sent["start_date"]), read_moment(sent["end_date"]), zone, all_day)
    return {
        "start_date": stamp(span.start.wall),
        "end_date": stamp(span.end.wall),
        "utc_start_date": stamp(span.start.utc),
        "utc_end_date": stamp(span.end.utc),
        "timezone": zone,
        "timezone_abbr": abbreviation(span.start.utc, zone),
        "all_day": all_day,
    }


@pytest.mark.parametrize("row", EVENT_ROWS, ids=step)
def test_an_event_gets_the_dates_of_the_table(row: dict[str, Any]) -> None:
    try:
        created = create(row["input"])
    except Invalid:
        assert may_be_refused(row)
        return
    assert may_be_accepted(row)
    expected = dict(row.get("output", {}))
    if row["step"] in TODAYS_NAMES:
        expected["timezone"] = TODAYS_NAMES[row["step"]]
    assert {name: created[name] for name in expected} == expected


@pytest.mark.parametrize("name", TODAYS_NAMES)
def test_a_legacy_name_can_also_be_kept(name: str) -> None:
    (row,) = [row for row in rows("timezones") if row["step"] == name]
    assert spell_zone(row["input"]["timezone"].upper()) == row["output"]["timezone"]


@pytest.mark.parametrize("row", rows("publication_dates"), ids=step)
def test_a_publication_date_is_that_of_the_table(row: dict[str, Any]) -> None:
    sent = row["input"]
    if "error" in row:
        with pytest.raises(Invalid):
            read_moment(sent["date"])
        return
    if "date_utc" in sent:
        utc = instant(read_moment(sent["date_utc"]), "UTC")
    else:
        utc = settle(read_moment(sent["date"]), SITE_ZONE).utc
    assert stamp(utc) == row["output"]["date_utc"]
    assert stamp(local_of(utc, SITE_ZONE)) == row["output"]["date"]
