"""The expander gives the dates that python-dateutil gives, for all rules that both define in the same way."""

from datetime import datetime, timedelta
from itertools import islice, takewhile
from random import Random

import pytest
from dateutil.rrule import rrulestr

from kalends.core.recurrence import expand, format_rule, read_rule
from tests.soak import scaled
from tests.unit.core.random_rules import make_rule

HORIZON = datetime(2034, 1, 1)
MAX_DATES = 60
BATCHES = 10


def make_start(random: Random) -> datetime:
    return datetime(random.randint(2015, 2030), 1, 1, 19, 30) + timedelta(days=random.randrange(366))


def find_dates(text: str, start: datetime) -> list[datetime]:
    return [*islice(expand(read_rule(text, "UTC"), start, HORIZON), MAX_DATES)]


def find_dates_of_dateutil(text: str, start: datetime) -> list[datetime]:
    # Without an end, dateutil searches rules that give few dates up to the year 9999.
    rule = rrulestr(text if "COUNT" in text else f"{text};UNTIL=20340101T000000", dtstart=start)
    return [*islice(takewhile(lambda moment: moment <= HORIZON, rule), MAX_DATES)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_dates_equal_those_of_dateutil(batch: int) -> None:
    random, compared = Random(batch), 0
    while compared < scaled(30, 1000):
        text, start = make_rule(random), make_start(random)
        dates = find_dates(text, start)
        if len(dates) < 2:  # Of rules without dates dateutil would take half a second each.
            continue
        assert dates == find_dates_of_dateutil(text, start), (text, start)
        assert dates == find_dates(format_rule(read_rule(text, "UTC")), start), (text, start)
        compared += 1
