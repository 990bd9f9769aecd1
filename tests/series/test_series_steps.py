"""The triggers keep `series_steps` and `series_days` equal to what they would be if computed anew."""

from random import Random

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.series.random_dates import SERIES, add_events, add_series
from tests.soak import scaled

_STEPS = "SELECT site_id, id, series_id, start_utc, end_utc, published_at, previous_start FROM series_steps"
_RECOUNTED = """
    SELECT site_id, id, series_id, start_utc, end_utc, published_at,
        coalesce(lag(start_utc) OVER (PARTITION BY site_id, series_id ORDER BY start_utc, id), '-infinity')
    FROM events WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL"""
_DAYS = "SELECT day, starts, ends FROM series_days WHERE starts <> 0 OR ends <> 0"
_RECOUNTED_DAYS = """
    SELECT day, sum(starts)::bigint, sum(ends)::bigint FROM (
        SELECT (start_utc AT TIME ZONE 'UTC')::date AS day, 1 AS starts, 0 AS ends FROM series_steps
        UNION ALL SELECT (end_utc AT TIME ZONE 'UTC')::date, 0, 1 FROM series_steps) d GROUP BY day"""
# Each changes a random part of the events; {some} are the IDs.
WRITES = (
    "UPDATE events SET start_utc = start_utc + interval '7 days', end_utc = end_utc + interval '7 days' WHERE {some}",
    "UPDATE events SET start_utc = date_trunc('day', start_utc), end_utc = end_utc + interval '1 day' WHERE {some}",
    "UPDATE events SET status = CASE status WHEN 'publish' THEN 'trash' ELSE 'publish' END WHERE {some}",
    "UPDATE events SET hide_from_listings = NOT hide_from_listings WHERE {some}",
    "UPDATE events SET password_hash = CASE WHEN password_hash IS NULL THEN '\\x00'::bytea END WHERE {some}",
    "UPDATE events SET series_id = NULL, slot = NULL WHERE {some}",
    "UPDATE events SET series_id = {series}, slot = '1990-01-01'::timestamp + make_interval(days => id::int)"
    " WHERE {some}",
    "UPDATE events SET published_at = published_at + interval '1 day' WHERE {some}",
    "UPDATE events SET title = title || '!' WHERE {some}",
    "DELETE FROM events WHERE {some}",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(scaled(2, 20)))
def test_steps_equal_a_recount_after_every_write(start_app: StartApp, seed: int) -> None:
    app, random = start_app(), Random(seed)
    add_series(app)
    for step in range(scaled(25, 100)):
        if random.random() < 0.3 or not step:
            add_events(app, random, 1 + step * 100, random.choice((1, 3, 60)))
        else:
            some = f"id % {random.choice((1, 2, 7, 40))} = 0 AND series_id IS DISTINCT FROM {random.choice(SERIES)}"
            app.sql(random.choice(WRITES).format(some=some, series=random.choice(SERIES)))
        assert_recounted(app)


def assert_recounted(app: RunningApp) -> None:
    for kept, recounted in ((_STEPS, _RECOUNTED), (_DAYS, _RECOUNTED_DAYS)):
        assert app.sql(f"({kept} EXCEPT {recounted}) UNION ALL ({recounted} EXCEPT {kept})") == []
