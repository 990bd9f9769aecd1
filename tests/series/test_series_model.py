"""Any sequence of edits of a series by any people leaves the events that a model in plain Python has."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from kalends.store.database import Database, Options
from tests.robustness.compared_site import ComparedSite
from tests.robustness.site_fixtures import run_application
from tests.series.series_comparison import SeriesComparison
from tests.soak import scaled


@pytest.fixture
def new_machine(database_url: str) -> Iterator[Callable[[], SeriesComparison]]:
    with asyncio.Runner() as runner:
        started = run_application(database_url, pool_size=2)
        transport = runner.run(started.__aenter__())
        database = runner.run(Database.open(Options(url=database_url)))
        connection = runner.run(asyncpg.connect(database_url))
        yield lambda: SeriesComparison(
            ComparedSite(database_url, runner, transport, path=""), database, connection, runner
        )
        runner.run(connection.close())
        runner.run(database.close())
        runner.run(started.__aexit__(None, None, None))


# The sequences of a soak are divided among the workers of pytest-xdist; each part has a random seed of its own.
@pytest.mark.parametrize("part", range(scaled(1, 8)))
def test_any_sequence_of_edits_matches_the_model(new_machine: Callable[[], SeriesComparison], part: int) -> None:
    machine: Any = new_machine
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(7, 250),
            stateful_step_count=scaled(15, 50),
            deadline=None,
            # A sequence takes seconds, and shrinking would need hundreds of them.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


# Sequences that were found by chance ---------------------------------------------------------


def create(machine: SeriesComparison, text: str, day: int = 4) -> None:
    machine.create_series(
        text=text, day=day, clock="21:00", length=timedelta(minutes=90), zone="Asia/Tokyo", more={}, repeats=False
    )


def list_trashed(machine: SeriesComparison) -> list[datetime]:
    return sorted(event.slot for event in machine.model.list_trashed())


@pytest.fixture
def machine(new_machine: Callable[[], SeriesComparison]) -> Iterator[SeriesComparison]:
    machine = new_machine()
    yield machine
    machine.teardown()


def test_a_new_rule_leaves_dates_in_the_trash_that_are_over(machine: SeriesComparison) -> None:
    text = "FREQ=WEEKLY;INTERVAL=2;UNTIL=20270801"
    create(machine, text)
    machine.trash_following(index=2, dry=False)
    for _ in range(3):
        machine.let_time_pass(days=40)
    trashed = list_trashed(machine)
    machine.edit_rule(index=0, scope="all", text=text, dry=True, replaces=False, more={})
    now = machine.now.replace(tzinfo=None)
    assert list_trashed(machine) == [slot for slot in trashed if slot < now] != trashed


def test_a_series_is_split_behind_dates_that_were_added_before_its_first_one(machine: SeriesComparison) -> None:
    create(machine, "FREQ=YEARLY;BYMONTH=5,6;BYMONTHDAY=1")
    for days in (17, 24):
        machine.add_date(index=0, days=days, clock="02:30", is_removed=False, dry=False)
    machine.split(index=2, is_planned=False, dry=True)
    assert [event.slot.month for event in machine.model.active()] == [3, 4]
    machine.edit_times(index=1, scope="all", clock="18:00", length=timedelta(minutes=60), dry=True, replaces=False)
    machine.merge(index=0, dry=True)
    machine.trash_following(index=2, dry=True)
    machine.edit_rule(index=0, scope="all", text="FREQ=WEEKLY;COUNT=8", dry=True, replaces=False, more={})


def test_dates_that_an_undo_creates_stay_when_it_is_undone(machine: SeriesComparison) -> None:
    create(machine, "FREQ=MONTHLY;BYMONTHDAY=15")
    machine.let_time_pass(days=40)
    count = len(machine.model.active())
    machine.add_date(index=0, days=3, clock="09:00", is_removed=False, dry=False)
    machine.undo(twice=True, dry=True)
    assert len(machine.model.active()) > count + 1


def test_following_dates_do_not_move_to_the_slot_of_an_earlier_one(machine: SeriesComparison) -> None:
    create(machine, "FREQ=WEEKLY;COUNT=8")
    machine.add_date(index=0, days=4, clock="02:30", is_removed=False, dry=False)
    slots = [event.slot for event in machine.model.active()]
    assert slots[0].date() == slots[1].date()
    machine.edit_times(
        index=1, scope="following", clock="02:30", length=timedelta(minutes=60), dry=True, replaces=False
    )
    assert [event.slot for event in machine.model.active()] == slots
