"""Whatever is read, the answer is no fault: list parameters × hostile texts, odd paths, the ends of time."""

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from kalends.api.routes import EXTENSION, INTERFACE
from tests.api.hostile_values import DATES, TEXTS
from tests.api.test_hostile_requests import FORGED, SLUGS
from tests.pages.test_hostile_page_requests import ODD_PATHS, PATHS, QUERIES
from tests.security.instance import Place, Tell, first, some
from tests.security.wire_client import NS, Ask

# Longer ones do not fit into an address.
VALUES = [text for text in (*TEXTS, *DATES, *FORGED.values()) if len(text.encode()) < 2_000]
# What an answer of any operation reads besides its own parameters.
COMMON = ("_fields", "_envelope", "lang")
SHAPES = ("{n}", "{n}[=", "{n}[]=1&{n}[]=x", "{n}[a][b]=1", "{n}=1&{n}[]=2&{n}=3")
ENDS = (
    "0001-01-01",
    "0001-01-02",
    "0001-12-31",
    "9998-12-31",
    "9999-01-01",
    "9999-12-31",
    "0000-01-01",
    "2031-02-30",
)


def parameters(place: Place) -> Iterator[tuple[str, str]]:
    """Path and name of every parameter of every read."""
    records = {kind: str(record_id) for kind, record_id in fill(place).items()}
    for interface in (INTERFACE, EXTENSION):
        for route in interface.routes:
            endpoint = route.endpoint("GET")
            if endpoint is None:
                continue
            kind = route.pattern.split("/")[1]
            path = re.sub(r"\(\?P<id>.*?\)", records.get(kind, "1"), route.pattern)
            path = f"/api/{interface.namespace}" + re.sub(r"\(\?P<slug>.*?\)", "concert", path)
            yield from ((path, row.name) for row in endpoint.params)
            yield from ((path, name) for name in COMMON if "(" not in route.pattern)


def fill(place: Place) -> dict[str, int]:
    """One record of each kind, so that there is something to filter and to show."""
    tag, music = place.create("tags", name="Free"), place.create("categories", name="Music")
    event = place.create("events", title="Concert", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00",
                         venue={"venue": "Hall", "geo_lat": 1, "geo_lng": 1}, organizer={"organizer": "Verein"},
                         categories=[music["id"]], tags=[tag["id"]])  # fmt: skip
    return {"events": event["id"], "venues": event["venue"]["id"], "organizers": event["organizer"][0]["id"]}


def reads(place: Place) -> Iterator[Ask]:
    """The editor sees more, so that more of each query is run; others are led elsewhere earlier."""
    editor = place.logins["editor"]
    for number, (path, name) in enumerate(parameters(place)):
        for value in VALUES:
            ask = Ask("GET", f"{path}?{name}={quote(value, safe='')}")
            yield ask if number % 2 else ask.by(editor)
        for shape in SHAPES:
            yield Ask("GET", f"{path}?{shape.format(n=name)}")
    for path in PATHS:
        for query in QUERIES:
            yield Ask("GET", f"{path}?{query.decode('latin-1')}", {"accept": "text/html"})
    for path in ODD_PATHS:
        for method in ("GET", "HEAD", "POST"):
            yield Ask(method, quote(path, safe="/%"), {"accept": "text/html"})
    for kind in ("events", "venues", "organizers"):
        for slug in SLUGS:
            yield Ask("GET", quote(f"{NS}/{kind}/by-slug/{slug}", safe="/%?"))
    for day in ENDS:
        for view, place_in_time in (("month", day[:7]), ("week", day), ("day", day)):
            for front in ("", "/embed"):
                yield Ask("GET", f"{front}/events/{view}/{place_in_time}/")


@pytest.mark.slow
def test_hostile_reads_cause_no_server_error(place: Place, tell: Tell) -> None:
    asks = list(reads(place))
    tried = some(asks, 700)
    answers = place.ask_all(tried)
    faults = [
        f"{got.status} {ask.method} {ask.target[:200]}"
        for ask, got in zip(tried, answers, strict=True)
        if is_fault(got.status)
    ]
    assert faults == [], f"{len(faults)} of {len(tried)}\n" + "\n".join(first(faults, 40))
    statuses = Counter(got.status for got in answers)
    assert statuses[200] > len(tried) / 10
    assert statuses[400] > len(tried) / 10
    assert '"event":"fault"' not in place.server.read_log()
    assert len(asks) >= 7090
    tell(
        f"{len(tried):,} of {len(asks):,} odd reads, {len(tried):,} without a fault: {dict(sorted(statuses.items()))}"
    )


def is_fault(status: int) -> bool:
    """No answer at all is one too, and so is being slowed down: nothing would have been tried then."""
    return status in (0, 429) or status >= 500
