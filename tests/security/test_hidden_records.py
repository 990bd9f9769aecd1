"""Nobody sees an event that is not theirs to see, on any way: 5 callers × 6 statuses × all ways to ask."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

import pytest

from kalends.calendar.kinds.event_list import PASSWORD_GUARDED_FILTERS
from tests.security.instance import Instance, Report, sample_evenly, take_first
from tests.security.wire_client import (
    API_PATH,
    EXTENSION_PATH,
    WireRequest,
    WireResponse,
    form_request,
    get_request,
    json_request,
)

CALLERS = ("anonymous", "subscriber", "contributor", "contributor2", "author2")
STATUSES = ("draft", "pending", "private", "future", "trash", "protected")
PASSWORD = "open sesame"
DAY = "2031-05-07"
DATES = {"start_date": f"{DAY} 10:00:00", "end_date": f"{DAY} 12:00:00"}
WINDOW = {"start_date": "2031-01-01", "end_date": "2031-12-31"}
LINKS = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}


# Ways that show the public nothing of a public event either: they are for others, or for another month.
ALWAYS_SILENT = ("status=", "post_parent=", "/history", "/media", "/occurrences")


@dataclass(frozen=True)
class HiddenEvent:
    """An event of the author. `secret` stands in all that it says, `slug` in its address, `linked` in the names
    of public records that only it is linked to. It is the only date of a series."""

    id: int
    status: str
    slug: str
    secret: str
    linked: str
    links: dict[str, int]
    series: int
    series_slug: str


@dataclass(frozen=True)
class Probe:
    request: WireRequest
    is_guarded: bool = False  # asks by what a protected event does not show either
    is_about_links: bool = False  # asks what the event is linked to


def create_hidden_event(place: Instance, status: str) -> HiddenEvent:
    secret, linked, slug = f"frobozz{status}", f"zorkmid{status}", f"walled-{status}"
    links: dict[str, int] = {}
    for param, kind in LINKS.items():
        name = {"venues": "venue", "organizers": "organizer"}.get(kind, "name")
        more = {"geo_lat": 10.0, "geo_lng": 10.0} if kind == "venues" else {}
        links[param] = place.create(kind, **{name: linked, "slug": linked, **more})["id"]
    body: dict[str, Any] = {
        "title": f"Cloaked {status}" if status == "protected" else f"Cloaked {status} {secret}",
        "slug": slug,
        "description": f"<p>Told of {secret}</p>",
        "excerpt": f"In short {secret}",
        "website": f"https://{secret}.example/",
        "ticket_url": f"https://tickets.example/{secret}",
        "cost": f"5 {secret}",
        "event_status": "postponed",
        "status_reason": f"Because of {secret}",
        "online_url": f"https://meet.example/{secret}",
        "status": {"protected": "publish", "trash": "draft"}.get(status, status),
        "featured": True,
        **DATES,
        **{param: [record_id] for param, record_id in links.items()},
        **({"new_password": PASSWORD} if status == "protected" else {}),
        **({"date_utc": "2098-01-01 10:00:00"} if status == "future" else {}),
    }
    record = place.create("events", "author", **body)
    convert = json_request("POST", f"{EXTENSION_PATH}/events/{record['id']}/series", {"rule": "FREQ=WEEKLY;COUNT=1"})
    converted = place.request(convert, "author")
    assert converted.status in (200, 201), converted.text[:2000]
    series_id, series_slug = converted.json()["series"]["id"], f"rows-of-{status}"
    named = json_request("PATCH", f"{EXTENSION_PATH}/series/{series_id}", {"slug": series_slug})
    assert place.request(named, "author").status == 200
    if status == "trash":
        trash = place.request(
            json_request("DELETE", f"{EXTENSION_PATH}/events/{record['id']}", {"scope": "all"}), "author"
        )
        assert trash.status == 200, trash.text[:2000]
    return HiddenEvent(record["id"], status, slug, secret, linked, links, series_id, series_slug)


def iter_probes(event: HiddenEvent) -> Iterator[Probe]:
    """Every way to ask for an event, or for what would tell of it."""
    one, by_slug = f"{API_PATH}/events/{event.id}", f"{API_PATH}/events/by-slug/{event.slug}"
    for path in (one, by_slug):
        yield Probe(get_request(path))
        for query in (
            {"context": "edit"},
            {"password": "wrong"},
            {"_envelope": "1"},
            {"_fields": "title,description"},
        ):
            yield Probe(get_request(path, **query))
        for method in ("PUT", "PATCH", "POST"):
            yield Probe(json_request(method, path, {"excerpt": "changed"}))
        yield Probe(WireRequest("DELETE", path))
        yield Probe(json_request("POST", f"{path}?_method=PATCH", {"excerpt": "changed"}))
    yield Probe(WireRequest("HEAD", one))
    yield Probe(WireRequest("OPTIONS", one))
    yield from _list_probes(event)
    yield from _extension_probes(event)
    yield from _page_probes(event)


def _list_probes(event: HiddenEvent) -> Iterator[Probe]:
    path = f"{API_PATH}/events"
    for query in (
        {},
        {"per_page": 50},
        {"_fields": "events"},
        {"_envelope": "1"},
        {"password": "wrong"},
        {"context": "edit"},
        {"orderby": "title"},
        {"include": event.id},
        {"post_parent": event.id},
    ):
        yield Probe(get_request(path, **WINDOW, **query))
    for status in ("draft", "pending", "private", "future", "trash", "any", "publish,draft"):
        yield Probe(get_request(path, **WINDOW, status=status))
    for query in (
        {"search": event.secret},
        {"search": f"cloaked {event.status}"},
        {"featured": "true"},
        {"ticketed": "true"},
        {"geoloc": "true"},
        {"geoloc_lat": 10, "geoloc_lng": 10},
        {"geoloc_lat": 10, "geoloc_lng": 10, "orderby": "distance"},
        *({param: record_id} for param, record_id in event.links.items()),
        *({param: event.linked} for param in ("categories", "tags")),
        {"series": event.series},
    ):
        yield Probe(get_request(path, **WINDOW, **query), is_guarded=True)
    for kind in LINKS.values():
        yield Probe(get_request(f"{API_PATH}/{kind}", event=event.id), is_about_links=True)
    for kind in ("categories", "tags"):
        yield Probe(get_request(f"{API_PATH}/{kind}", post=event.id), is_about_links=True)


def _extension_probes(event: HiddenEvent) -> Iterator[Probe]:
    extension_url = f"{EXTENSION_PATH}/events/{event.id}"
    yield Probe(get_request(f"{extension_url}/history"))
    yield Probe(json_request("POST", f"{extension_url}/restore", {}))
    yield Probe(json_request("POST", f"{extension_url}/restore", {"revision": 1}))
    yield from _series_probes(event)
    yield Probe(get_request(f"{EXTENSION_PATH}/changes", since=0, per_page=500))
    yield Probe(get_request(f"{EXTENSION_PATH}/changes", since=0, kind="events", per_page=500))
    yield Probe(get_request(f"{EXTENSION_PATH}/changes", since=0, per_page=500, venue=event.links["venue"]))
    yield Probe(get_request(f"{EXTENSION_PATH}/media"))
    operations = [{"method": "PATCH", "path": f"/events/{event.id}", "body": {"excerpt": "changed"}}]
    for atomic in (True, False):
        yield Probe(json_request("POST", f"{EXTENSION_PATH}/batch", {"operations": operations, "atomic": atomic}))


def _series_probes(event: HiddenEvent) -> Iterator[Probe]:
    series_url = f"{EXTENSION_PATH}/series/{event.series}"
    for path in ("", "/occurrences", "/history"):
        yield Probe(get_request(series_url + path))
    yield Probe(get_request(series_url, context="edit"))
    yield Probe(get_request(f"{EXTENSION_PATH}/series", per_page=50))
    yield Probe(get_request(f"{EXTENSION_PATH}/series/by-slug/{event.series_slug}"))
    yield Probe(json_request("PATCH", series_url, {"excerpt": "changed"}))
    for path in ("split", "dissolve", "restore"):
        yield Probe(json_request("POST", f"{series_url}/{path}", {"from": f"{DAY} 00:00:00"}))
    yield Probe(json_request("PATCH", f"{EXTENSION_PATH}/events/{event.id}", {"excerpt": "changed", "scope": "all"}))


def _page_probes(event: HiddenEvent) -> Iterator[Probe]:
    own = f"/event/{event.slug}"
    for path in (f"{own}/", f"{own}/?password=wrong", f"{own}.ics", f"/?p={event.id}"):
        yield Probe(get_request(path))
    yield Probe(form_request(f"{own}/", password="wrong"))
    for path in (f"/series/{event.series_slug}/", f"/series/{event.series_slug}.ics", f"/?p={event.series}"):
        yield Probe(get_request(path))
    for front in ("", "/embed"):
        for path in ("/", "/events/", "/events/month/2031-05/", f"/events/week/{DAY}/", f"/events/day/{DAY}/"):
            yield Probe(get_request(front + path))
        for path in ("/events/list/", "/events/map/"):
            yield Probe(get_request(front + path, **WINDOW))
        yield Probe(get_request(f"{front}/events/list/", search=event.secret), is_guarded=True)
        for place in ("venue", "organizer", "events/category", "tag"):
            yield Probe(get_request(f"{front}/{place}/{event.linked}/"), is_guarded=True)
    yield Probe(get_request(f"/embed{own}/"))
    yield Probe(get_request("/events/search/", search=event.secret), is_guarded=True)
    for feed in ("ics", "rss", "atom", "json"):
        yield Probe(get_request(f"/events.{feed}"))
        yield Probe(get_request(f"/events.{feed}", search=event.secret), is_guarded=True)
    for path in ("/sitemap.xml", "/sitemap/0.xml", "/sitemap/terms.xml"):
        yield Probe(get_request(path))


def secret_words(event: HiddenEvent, probe: Probe) -> list[str]:
    """Return the words that the response must not contain: those that the request does not."""
    words = [event.secret]
    if event.status != "protected" or probe.is_guarded:  # Without its password such an event shows title and address.
        words += [f"{slug}{end}" for slug in (event.slug, event.series_slug) for end in "/."]
        words += [event.slug] if probe.is_guarded else []
    if probe.is_about_links:
        words.append(event.linked)
    target = unquote_plus(probe.request.target)
    return [word for word in words if word.rstrip("/.") not in target]


def find_leak(event: HiddenEvent, probe: Probe, reply: WireResponse) -> str:
    text = reply.text.lower()
    leaked = [word for word in secret_words(event, probe) if word in text]
    if reply.status in (0, 429) or reply.status >= 500:
        return f"{reply.status} {probe.request.method} {probe.request.target}"
    return f"{probe.request.method} {probe.request.target} tells {leaked}" if leaked else ""


@pytest.fixture(scope="module")
def hidden(instance: Instance) -> list[HiddenEvent]:
    return [create_hidden_event(instance, status) for status in STATUSES]


def test_hidden_events_are_not_revealed_by_any_request(
    instance: Instance, hidden: list[HiddenEvent], report: Report
) -> None:
    seen_by_editor = [
        get_request(f"{API_PATH}/events/{event.id}", context="edit").with_login(instance.logins["editor"])
        for event in hidden
    ]
    before = [response.body for response in instance.request_all(seen_by_editor)]
    cases = [(caller, event, probe) for caller in CALLERS for event in hidden for probe in iter_probes(event)]
    tried = sample_evenly(cases, 300)
    responses = instance.request_all(way.request.with_login(instance.logins.get(caller)) for caller, _, way in tried)
    failures = [
        f"{caller}, {event.status}: {problem}"
        for (caller, event, way), response in zip(tried, responses, strict=True)
        if (problem := find_leak(event, way, response))
    ]
    assert failures == [], f"{len(failures)} of {len(tried)}\n" + "\n".join(take_first(failures, 40))
    assert [response.body for response in instance.request_all(seen_by_editor)] == before
    assert len(cases) >= 1860
    report(f"{len(tried):,} of {len(cases):,} requests for hidden events, {len(tried):,} revealed nothing")


def test_same_requests_reveal_public_event(instance: Instance) -> None:
    """Otherwise the test above would show nothing."""
    event = create_hidden_event(instance, "publish")
    requests = list(iter_probes(event))
    responses = instance.request_all(probe.request for probe in requests if probe.request.method == "GET")
    silent = [
        way.request.target
        for way, response in zip([way for way in requests if way.request.method == "GET"], responses, strict=True)
        if not any(word in response.text.lower() for word in secret_words(event, way))
    ]
    assert [
        target
        for target in silent
        if not target.endswith(("/", ".xml")) and not any(word in target for word in ALWAYS_SILENT)
    ] == []
    assert len(silent) < 18


def test_filters_do_not_reveal_protected_fields(
    instance: Instance, hidden: list[HiddenEvent], report: Report
) -> None:
    """Check that each guarded filter and its opposite find the event only with the password."""
    event = next(event for event in hidden if event.status == "protected")
    filters: dict[str, list[dict[str, object]]] = {
        "search": [{"search": event.secret}, {"search": "cloaked protected"}],
        **{param: [{param: record_id}] for param, record_id in event.links.items()},
        "featured": [{"featured": "true"}, {"featured": "true", "include": event.id}],
        "ticketed": [{"ticketed": "true"}],
        "free": [{"free": "false"}],
        "event_status": [{"event_status": "postponed"}, {"event_status": "postponed,scheduled"}],
        "series": [{"series": event.series}],
        "geoloc": [{"geoloc": "true"}],
        "geoloc_lat": [{"geoloc_lat": 10, "geoloc_lng": 10}],
        "geoloc_lng": [{"geoloc_lng": 10, "geoloc_lat": 10, "geoloc_radius": 1}],
    }
    assert set(filters) == PASSWORD_GUARDED_FILTERS
    queries = [query for several in filters.values() for query in several]
    locked = instance.request_all(get_request(f"{API_PATH}/events", **WINDOW, **query) for query in queries)
    unlocked = instance.request_all(
        get_request(f"{API_PATH}/events", **WINDOW, **query, password=PASSWORD) for query in queries
    )
    listed_ids = [[record["id"] for record in response.json()["events"]] for response in (*locked, *unlocked)]
    assert [event.id in ids for ids in listed_ids] == [False] * len(queries) + [True] * len(queries)
    report(f"{len(queries)} filters on protected fields, {len(queries)} without effect unless the password is sent")


def test_public_event_does_not_reveal_private_venue_or_organizer(instance: Instance, report: Report) -> None:
    names = {"venue": "frotzhall", "organizer": "gnustoclub"}
    links = {
        param: instance.create(f"{param}s", **{param: name, "slug": name, "status": "private"})["id"]
        for param, name in names.items()
    }
    instance.create(
        "events", title="Open day", slug="open-day", **DATES, **{param: [n] for param, n in links.items()}
    )
    event = instance.create("events", title="Known", slug="known-place", **DATES, venue={"venue": "Plugh"})
    surfaces = ("/event/{slug}/", "/embed/event/{slug}/", "/event/{slug}.ics", f"{API_PATH}/events/by-slug/{{slug}}",
                "/events.ics", f"/events/day/{DAY}/", "/events.json",
                f"{API_PATH}/events?start_date=2031-05-01&end_date=2031-05-31")  # fmt: skip
    for surface in surfaces:
        response = instance.request(get_request(surface.format(slug="open-day")))
        assert (response.status, [name for name in names.values() if name in response.text.lower()]) == (200, []), (
            surface
        )
    # JSON-LD is on the page and in the record; what is public stands in both.
    for surface in surfaces[:4]:
        assert "Plugh" in instance.request(get_request(surface.format(slug=event["slug"]))).text, surface
    report(
        f"{len(surfaces)} representations of a public event, {len(surfaces)} without its private venue and organizer"
    )
