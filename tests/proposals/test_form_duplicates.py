"""How many duplicates the public form shows, on the labelled pairs of tests/unit/imports."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR
from kalends.calendar.rules.similarity import EventFacts
from kalends.proposals.operations.submissions import find_published
from kalends.proposals.pages.submission_fields import make_params, read_entry
from kalends.store.database import Transaction
from tests.api.running_app import RunningApp
from tests.unit.imports.labelled_pairs import Pair, list_pairs

pytestmark = pytest.mark.exhaustive


def publish(app: RunningApp, facts: EventFacts, day: timedelta) -> str:
    """Publish an event, with all that an editor knows."""
    start = facts.start_local + day
    point = {"geo_lat": facts.coordinates[0][0], "geo_lng": facts.coordinates[0][1]} if facts.coordinates else {}
    event = app.caller("editor").create(
        "events", title=facts.title, start_date=f"{start}", end_date=f"{start}", all_day=facts.all_day,
        venue=[{"venue": name, **point} for name in facts.venue_names],
        organizer=[{"organizer": name} for name in facts.organizer_names], website=facts.website,
    )  # fmt: skip
    slug: str = event["slug"]
    return slug


def fill_in(facts: EventFacts, day: timedelta) -> dict[str, Any]:
    """Return the form of a person who enters the other event."""
    start = facts.start_local + day
    return {
        "title": facts.title, "start_day": f"{start:%Y-%m-%d}", "start_time": f"{start:%H:%M}",
        "all_day": "1" if facts.all_day else "", "venue": next(iter(facts.venue_names), ""),
        "organizer": next(iter(facts.organizer_names), ""), "website": facts.website,
    }  # fmt: skip


def test_form_shows_duplicates_and_little_else(
    start_app: Callable[[], RunningApp], report: Callable[[object], None]
) -> None:
    app, pairs = start_app(), list_pairs()
    app.set_site("timezone", "Europe/Berlin")
    shown = [is_shown(app, pair, timedelta(weeks=5 * number)) for number, pair in enumerate(pairs)]
    labels = [(found, is_same) for found, (_, _, is_same) in zip(shown, pairs, strict=True)]
    same, different = ([found for found, is_same in labels if is_same is wanted] for wanted in (True, False))
    report(f"{sum(same)} of {len(same)} equal pairs shown, {sum(different)} of {len(different)} different ones")
    assert sum(same) >= 0.9 * len(same)
    assert sum(different) < 0.03 * len(different)


def is_shown(app: RunningApp, pair: Pair, day: timedelta) -> bool:
    first, second, _ = pair
    slug, form = publish(app, first, day), fill_in(second, day)

    async def find(tx: Transaction) -> list[str]:
        params = await make_params(OperationContext(tx, ANONYMOUS_ACTOR, "", ""), read_entry(form))
        return [row["slug"] for row in await find_published(tx, params)]

    return slug in app.run_operation(find)
