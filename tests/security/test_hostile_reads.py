"""Whatever is read, the answer is no fault: list parameters × hostile texts, odd paths, the ends of time."""

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

from kalends.routes import EXTENSION, INTERFACE
from tests.api.hostile_values import HOSTILE_DATES, HOSTILE_TEXTS
from tests.api.test_hostile_requests import FORGED_CURSORS, SLUGS
from tests.pages.test_hostile_page_requests import HOSTILE_PATHS, HOSTILE_QUERIES, PATHS
from tests.security.instance import Instance, Report, sample_evenly, take_first
from tests.security.wire_client import API_PATH, WireRequest

# Longer ones do not fit into an address.
HOSTILE_VALUES = [
    text for text in (*HOSTILE_TEXTS, *HOSTILE_DATES, *FORGED_CURSORS.values()) if len(text.encode()) < 2_000
]
# Parameters that every operation reads besides its own.
COMMON_PARAMS = ("_fields", "_envelope", "lang")
QUERY_SHAPES = ("{n}", "{n}[=", "{n}[]=1&{n}[]=x", "{n}[a][b]=1", "{n}=1&{n}[]=2&{n}=3")
BOUNDARY_DATES = (
    "0001-01-01",
    "0001-01-02",
    "0001-12-31",
    "9998-12-31",
    "9999-01-01",
    "9999-12-31",
    "0000-01-01",
    "2031-02-30",
)


def iter_parameters(place: Instance) -> Iterator[tuple[str, str]]:
    """Path and name of every parameter of every read."""
    records = {kind: str(record_id) for kind, record_id in create_records(place).items()}
    for interface in (INTERFACE, EXTENSION):
        for route in interface.routes:
            endpoint = route.endpoint("GET")
            if endpoint is None:
                continue
            kind = route.pattern.split("/")[1]
            path = re.sub(r"\(\?P<id>.*?\)", records.get(kind, "1"), route.pattern)
            path = f"/api/{interface.namespace}" + re.sub(r"\(\?P<slug>.*?\)", "concert", path)
            yield from ((path, row.name) for row in endpoint.params)
            yield from ((path, name) for name in COMMON_PARAMS if "(" not in route.pattern)


def create_records(place: Instance) -> dict[str, int]:
    """One record of each kind, so that there is something to filter and to show."""
    tag, music = place.create("tags", name="Free"), place.create("categories", name="Music")
    event = place.create("events", title="Concert", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00",
                         venue={"venue": "Hall", "geo_lat": 1, "geo_lng": 1}, organizer={"organizer": "Verein"},
                         categories=[music["id"]], tags=[tag["id"]])  # fmt: skip
    return {"events": event["id"], "venues": event["venue"]["id"], "organizers": event["organizer"][0]["id"]}


def iter_reads(place: Instance) -> Iterator[WireRequest]:
    """The editor sees more, so that more of each query is run; others are led elsewhere earlier."""
    editor = place.logins["editor"]
    for number, (path, name) in enumerate(iter_parameters(place)):
        for value in HOSTILE_VALUES:
            request = WireRequest("GET", f"{path}?{name}={quote(value, safe='')}")
            yield request if number % 2 else request.with_login(editor)
        for shape in QUERY_SHAPES:
            yield WireRequest("GET", f"{path}?{shape.format(n=name)}")
    for path in PATHS:
        for query in HOSTILE_QUERIES:
            yield WireRequest("GET", f"{path}?{query.decode('latin-1')}", {"accept": "text/html"})
    for path in HOSTILE_PATHS:
        for method in ("GET", "HEAD", "POST"):
            yield WireRequest(method, quote(path, safe="/%"), {"accept": "text/html"})
    for kind in ("events", "venues", "organizers"):
        for slug in SLUGS:
            yield WireRequest("GET", quote(f"{API_PATH}/{kind}/by-slug/{slug}", safe="/%?"))
    for day in BOUNDARY_DATES:
        for view, place_in_time in (("month", day[:7]), ("week", day), ("day", day)):
            for front in ("", "/embed"):
                yield WireRequest("GET", f"{front}/events/{view}/{place_in_time}/")


def test_hostile_reads_cause_no_server_error(instance: Instance, report: Report) -> None:
    requests = list(iter_reads(instance))
    tried = sample_evenly(requests, 700)
    responses = instance.request_all(tried)
    errors = [
        f"{response.status} {request.method} {request.target[:200]}"
        for request, response in zip(tried, responses, strict=True)
        if is_server_error(response.status)
    ]
    assert errors == [], f"{len(errors)} of {len(tried)}\n" + "\n".join(take_first(errors, 40))
    statuses = Counter(got.status for got in responses)
    assert statuses[200] > len(tried) / 10
    assert statuses[400] > len(tried) / 10
    assert '"event":"fault"' not in instance.server.read_log()
    assert len(requests) >= 7090
    report(
        f"{len(tried):,} of {len(requests):,} hostile reads without a server error: {dict(sorted(statuses.items()))}"
    )


def is_server_error(status: int) -> bool:
    """No answer at all is one too, and so is being slowed down: nothing would have been tried then."""
    return status in (0, 429) or status >= 500
