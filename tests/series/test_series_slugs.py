"""Slugs of dates: a number is added where several dates share a day, with few statements under the site lock."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp
from tests.api.sample_records import DATES, unique
from tests.series.series_client import SeriesClient

# A slug has at most 200 characters, so this title leaves no room for the day and a number.
LONG = "Tour of the river " * 12


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def create_tours(client: SeriesClient, title: str, count: int, per_day: int) -> Any:
    """Create a series with `per_day` dates on each of its days."""
    first = datetime(2027, 1, 5, 8)
    starts = [first + timedelta(days=n // per_day, minutes=30 * (n % per_day)) for n in range(count)]
    further = [f"{start:%Y-%m-%d %H:%M:%S}" for start in starts[1:]]
    times = {"start_date": f"{first:%Y-%m-%d %H:%M:%S}", "end_date": "2027-01-05 08:20:00"}
    return client.create(title=title, rule=None, add_dates=further, **times)


def read_slugs(app: RunningApp, series_id: int) -> list[str]:
    rows = app.sql("SELECT slug FROM events WHERE series_id = $1 ORDER BY slot", series_id)
    return [row["slug"] for row in rows]


def count_by_slug(statements: list[str]) -> int:
    return sum("slug = ANY" in statement or "slug = $" in statement for statement in statements)


def test_number_of_statements_does_not_depend_on_dates_per_day(client: SeriesClient, statements: list[str]) -> None:
    totals: dict[int, int] = {}
    for per_day in (1, 4, 15):
        statements.clear()
        create_tours(client, unique("Tour"), 120, per_day)
        locked = next(n for n, statement in enumerate(statements) if statement.endswith("FOR NO KEY UPDATE"))
        totals[per_day] = len(statements) - locked
        assert count_by_slug(statements) <= 8, statements
    assert len(set(totals.values())) == 1, totals


def test_long_slugs_need_few_statements(client: SeriesClient, app: RunningApp, statements: list[str]) -> None:
    """The number of a long slug replaces its last characters, so the dates of different days compete for it."""
    series = create_tours(client, LONG, 480, 15)
    assert len(set(read_slugs(app, series["id"]))) == 480
    assert count_by_slug(statements) <= 8, statements


def test_dates_of_a_day_are_numbered_in_order(client: SeriesClient, app: RunningApp) -> None:
    series = create_tours(client, "Numbered", 5, 3)
    assert read_slugs(app, series["id"]) == [
        "numbered-2027-01-05",
        "numbered-2027-01-05-2",
        "numbered-2027-01-05-3",
        "numbered-2027-01-06",
        "numbered-2027-01-06-2",
    ]


def test_slugs_of_other_events_are_skipped(
    client: SeriesClient, app: RunningApp, editor: Caller, statements: list[str]
) -> None:
    """Many numbers may be in use; each number that is still free is used."""
    slugs = ["taken-2027-01-05-4", *(f"taken-2027-01-05-{n}" for n in range(6, 3000))]
    app.sql(
        """INSERT INTO events (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc, title,
                start_local, end_local, start_utc, end_utc, timezone)
            SELECT site_id, 100000 + n, 'taken' || n, -n, author_id, 'draft', s.slug, published_at, modified_utc,
                title, start_local, end_local, start_utc, end_utc, timezone
            FROM events, unnest($1::text[]) WITH ORDINALITY AS s (slug, n) WHERE id = $2""",
        slugs,
        editor.create("events", title="Taken", **DATES)["id"],
    )
    statements.clear()
    series = create_tours(client, "Taken", 7, 7)
    numbers = ["", "-2", "-3", "-5", "-3000", "-3001", "-3002"]
    assert read_slugs(app, series["id"]) == [f"taken-2027-01-05{number}" for number in numbers]
    assert count_by_slug(statements) <= 8, statements


def test_trash_and_restore_need_few_statements(
    client: SeriesClient, app: RunningApp, editor: Caller, statements: list[str]
) -> None:
    series = create_tours(client, "Back and forth", 60, 15)
    slugs = read_slugs(app, series["id"])
    address = f"//api/kalends/v1/series/{series['id']}"
    statements.clear()
    assert editor.delete(f"{address}?scope=all").status_code == 200
    assert read_slugs(app, series["id"]) == [f"{slug}__trashed" for slug in slugs]
    assert count_by_slug(statements) <= 8, statements
    # Another series takes the slugs in the meantime.
    other = create_tours(client, "Back and forth", 60, 15)
    assert read_slugs(app, other["id"]) == slugs
    statements.clear()
    client.restore(series["id"], revision=client.history(series["id"])[1])
    restored = read_slugs(app, series["id"])
    assert len({*restored, *slugs}) == 120
    assert all(new.startswith(slug) for new, slug in zip(restored, slugs, strict=True)), restored
    assert count_by_slug(statements) <= 8, statements
