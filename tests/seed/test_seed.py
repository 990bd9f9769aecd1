"""`kalends seed`: lifelike records, the same for the same seed, with books that add up."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import psycopg
import pytest

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.storage import bulk_load
from kalends.core.cost import FREE_COSTS
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.params import read_params
from kalends.core.sanitize import fold
from kalends.core.slugs import make_slug
from kalends.core.times import event_span
from kalends.demo.seed import DemoCounts, DemoOptions, parse_upcoming, resolve_counts, seed
from tests.robustness.consistency import assert_consistent
from tests.servers import Server, make_environment

TODAY = date(2026, 3, 14)
SMALL_OPTIONS = DemoOptions(events=500, venues=20, organizers=10, categories=20, tags=40, seed=7, today=TODAY)


def create_demo_data(database_url: str, options: DemoOptions = SMALL_OPTIONS) -> DemoCounts:
    return asyncio.run(seed(database_url, "", options, lambda *_: None))


def rows(database_url: str, query: str) -> list[tuple]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query).fetchall()


def column(database_url: str, query: str) -> list:
    return [row[0] for row in rows(database_url, query)]


def test_command_fills_site(database_url: str, start_server: Callable[..., Server]) -> None:
    command = [sys.executable, "-m", "kalends", "seed", "--events", "500", "--venues", "20", "--organizers", "10"]
    more = ["--categories", "20", "--tags", "40", "--upcoming", "60%", "--seed", "7", "--site", "1"]
    result = subprocess.run(
        [*command, *more], env=make_environment(database_url), capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith(
        "Created 500 events, 300 of them upcoming; 20 venues, 10 organizers, 20 categories, 40 tags, in "
    )
    with start_server(database_url).client() as client:
        base = "/api/calendar/events/v1"
        listed = client.get(f"{base}/events", params={"per_page": 50}).raise_for_status().json()
        listed_count = column(database_url, "SELECT count(*) FROM events WHERE listed AND start_utc >= current_date")
        assert listed["total"] == pytest.approx(listed_count[0], abs=2)
        assert 280 <= listed["total"] <= 300
        event = next(event for event in listed["events"] if event["venue"])
        assert client.get(f"{base}/events/by-slug/{event['slug']}").raise_for_status().json()["id"] == event["id"]
        assert client.get(f"{base}/events", params={"venue": event["venue"]["id"]}).json()["total"] >= 1
        for kind, number in (("venues", 20), ("organizers", 10)):
            assert client.get(f"{base}/{kind}").raise_for_status().json()["total"] == number
        for kind, number in (("categories", 20), ("tags", 40)):
            response = client.get(f"{base}/{kind}", params={"hide_empty": "false"}).raise_for_status().json()
            assert response["total"] == number


def test_same_seed_creates_same_records(database_url: str, other_database_url: str, third_database_url: str) -> None:
    for url, number in ((database_url, 7), (other_database_url, 7), (third_database_url, 8)):
        create_demo_data(
            url, DemoOptions(events=200, venues=9, organizers=5, categories=14, tags=20, seed=number, today=TODAY)
        )
    tables = ("events", "venues", "organizers", "categories", "tags", "event_tags", "event_venues", "event_days")
    for table in tables:
        query = f"SELECT * FROM {table} ORDER BY 1, 2, 3"
        assert rows(database_url, query) == rows(other_database_url, query)
    titles = "SELECT title FROM events ORDER BY id"
    assert column(database_url, titles) != column(third_database_url, titles)


def test_counters_are_consistent_after_repeated_runs(database_url: str) -> None:
    create_demo_data(database_url)
    assert_consistent(database_url)
    create_demo_data(database_url)
    assert_consistent(database_url)
    assert column(database_url, "SELECT count(*) FROM events") == [1000]
    assert column(database_url, "SELECT count(*) FROM venues") == [40]
    # Terms are used again, accounts too.
    assert column(database_url, "SELECT count(*) FROM categories") == [20]
    assert column(database_url, "SELECT count(*) FROM users") == [1]


def test_bulk_load_restores_indexes_and_foreign_keys(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = """
        SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        ORDER BY 1"""
    before = column(database_url, schema)
    monkeypatch.setattr(bulk_load, "MIN_EVENTS_TO_DROP_INDEXES", 100)
    create_demo_data(database_url)
    assert column(database_url, schema) == before
    assert_consistent(database_url)


def test_stored_values_match_api_validation(database_url: str) -> None:
    """Every text passes through cleaning unchanged, and what is derived is derived from it."""
    create_demo_data(database_url)
    names = ("title", "description", "excerpt", "timezone", "cost", "website", "ticket_url", "all_day")
    derived = "slug, start_local, end_local, start_utc, end_utc, search_text, is_free"
    for *written, slug, start, end, start_utc, end_utc, search_text, is_free in rows(
        database_url, f"SELECT {', '.join(names)}, {derived} FROM events"
    ):
        values = dict(zip(names, written, strict=True))
        read = read_params(EVENTS.fields, {**values, "start_date": str(start), "end_date": str(end)})
        assert {name: read[name] for name in names} == values
        span = event_span(read["start_date"], read["end_date"], read["timezone"], read["all_day"])
        assert (span.start.wall, span.end.wall) == (start, end)
        assert (span.start.utc, span.end.utc) == (start_utc, end_utc)
        texts = [to_plain_text(read[name]) for name in ("title", "excerpt", "description")]
        assert search_text == "\n".join(fold(text) for text in texts if text)
        assert is_free == (read["cost"] in FREE_COSTS)
        assert slug.startswith(make_slug(read["title"])) or slug == ""


def test_events_are_varied(database_url: str) -> None:
    create_demo_data(database_url, DemoOptions(events=3000, venues=30, organizers=10, seed=3, today=TODAY))
    (count,) = rows(
        database_url,
        """SELECT count(*) FILTER (WHERE all_day), count(*) FILTER (WHERE end_utc - start_utc > interval '10 days'),
            count(*) FILTER (WHERE featured), count(*) FILTER (WHERE ticket_url <> ''),
            count(*) FILTER (WHERE status <> 'publish'), count(DISTINCT timezone), count(DISTINCT slug)
            FROM events""",
    )
    assert all(number >= minimum for number, minimum in zip(count, (100, 10, 20, 500, 20, 5, 2900), strict=True)), (
        count
    )
    words = column(database_url, "SELECT array_length(regexp_split_to_array(description, '\\s+'), 1) FROM events")
    assert 35 <= min(words) <= max(words) <= 150
    assert column(database_url, "SELECT count(*) FROM events WHERE start_local >= '2026-03-14'") == [500]


def test_counts_are_derived_from_number_of_events() -> None:
    assert resolve_counts(DemoOptions(events=1000)) == DemoCounts(1000, 500, 38, 25, 22, 50)
    assert resolve_counts(DemoOptions(events=2_000_000)) == DemoCounts(2_000_000, 100_000, 4000, 2000, 60, 300)
    with pytest.raises(InvalidValue):
        resolve_counts(DemoOptions(events=10, upcoming=11))


@pytest.mark.parametrize(("text", "number"), [("", None), ("12", 12), ("0.05", 50), ("5%", 50)])
def test_upcoming_is_number_or_share(text: str, number: int | None) -> None:
    assert parse_upcoming(text, 1000) == number


def test_invalid_upcoming_is_rejected() -> None:
    with pytest.raises(InvalidValue):
        parse_upcoming("many", 1000)


@pytest.mark.parametrize("threshold", [100, 100_000])
def test_series_have_their_dates(database_url: str, monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    monkeypatch.setattr(bulk_load, "MIN_EVENTS_TO_DROP_INDEXES", threshold)
    create_demo_data(database_url, replace(SMALL_OPTIONS, events=100, series=30))
    assert_consistent(database_url)
    assert column(database_url, "SELECT count(*) FROM series") == [30]
    (dates,) = column(database_url, "SELECT count(*) FROM events WHERE series_id IS NOT NULL")
    assert 30 * 15 < dates < 30 * 25
    members = "events WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL"
    steps = "SELECT (SELECT count(*) FROM series_steps) - (SELECT count(*) FROM " + members + ")"
    assert column(database_url, steps) == [0]
    weekly = "SELECT count(*) FROM series_steps WHERE gap_class <> 99 AND start_utc - previous_start < '6 days'"
    assert column(database_url, weekly) == [0]
    assert column(database_url, "SELECT count(*) FROM series_steps WHERE gap_class = 99") == column(
        database_url, "SELECT count(DISTINCT series_id) FROM " + members
    )
