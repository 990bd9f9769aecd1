"""Nobody sees an event that is not theirs to see, on any way: 5 callers × 6 statuses × all ways to ask."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

import pytest

from kalends.kinds.event_filters import PASSWORD_GUARDED_FILTERS
from tests.security.instance import Place, Tell, first, some
from tests.security.wire_client import EX, NS, Ask, Got, form, get, send

CALLERS = ("anonymous", "subscriber", "contributor", "contributor2", "author2")
STATUSES = ("draft", "pending", "private", "future", "trash", "protected")
PASSWORD = "open sesame"
DAY = "2031-05-07"
DATES = {"start_date": f"{DAY} 10:00:00", "end_date": f"{DAY} 12:00:00"}
WINDOW = {"start_date": "2031-01-01", "end_date": "2031-12-31"}
LINKS = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}


# Ways that show the public nothing of a public event either: they are for others, or for another month.
UNSEEN = ("status=", "post_parent=", "/history", "/media")


@dataclass(frozen=True)
class Hidden:
    """An event of the author. `secret` stands in all that it says, `slug` in its address, `linked` in the names
    of public records that only it is linked to."""

    id: int
    status: str
    slug: str
    secret: str
    linked: str
    links: dict[str, int]


@dataclass(frozen=True)
class Way:
    ask: Ask
    guarded: bool = False  # asks by what a protected event does not show either
    links: bool = False  # asks what the event is linked to


def hide(place: Place, status: str) -> Hidden:
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
        "status": {"protected": "publish", "trash": "draft"}.get(status, status),
        "featured": True,
        **DATES,
        **{param: [record_id] for param, record_id in links.items()},
        **({"new_password": PASSWORD} if status == "protected" else {}),
        **({"date_utc": "2098-01-01 10:00:00"} if status == "future" else {}),
    }
    made = place.create("events", "author", **body)
    if status == "trash":
        place.write("DELETE", f"/events/{made['id']}", "author")
    return Hidden(made["id"], status, slug, secret, linked, links)


def ways(event: Hidden) -> Iterator[Way]:
    """Every way to ask for an event, or for what would tell of it."""
    one, by_slug = f"{NS}/events/{event.id}", f"{NS}/events/by-slug/{event.slug}"
    for path in (one, by_slug):
        yield Way(get(path))
        for query in (
            {"context": "edit"},
            {"password": "wrong"},
            {"_envelope": "1"},
            {"_fields": "title,description"},
        ):
            yield Way(get(path, **query))
        for method in ("PUT", "PATCH", "POST"):
            yield Way(send(method, path, {"excerpt": "changed"}))
        yield Way(Ask("DELETE", path))
        yield Way(send("POST", f"{path}?_method=PATCH", {"excerpt": "changed"}))
    yield Way(Ask("HEAD", one))
    yield Way(Ask("OPTIONS", one))
    yield from _lists(event)
    yield from _beside(event)
    yield from _pages(event)


def _lists(event: Hidden) -> Iterator[Way]:
    path = f"{NS}/events"
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
        yield Way(get(path, **WINDOW, **query))
    for status in ("draft", "pending", "private", "future", "trash", "any", "publish,draft"):
        yield Way(get(path, **WINDOW, status=status))
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
    ):
        yield Way(get(path, **WINDOW, **query), guarded=True)
    for kind in LINKS.values():
        yield Way(get(f"{NS}/{kind}", event=event.id), links=True)
    for kind in ("categories", "tags"):
        yield Way(get(f"{NS}/{kind}", post=event.id), links=True)


def _beside(event: Hidden) -> Iterator[Way]:
    ours = f"{EX}/events/{event.id}"
    yield Way(get(f"{ours}/history"))
    yield Way(send("POST", f"{ours}/restore", {}))
    yield Way(send("POST", f"{ours}/restore", {"revision": 1}))
    yield Way(get(f"{EX}/changes", since=0, per_page=500))
    yield Way(get(f"{EX}/changes", since=0, kind="events", per_page=500))
    yield Way(get(f"{EX}/changes", since=0, per_page=500, venue=event.links["venue"]))
    yield Way(get(f"{EX}/media"))
    operations = [{"method": "PATCH", "path": f"/events/{event.id}", "body": {"excerpt": "changed"}}]
    for atomic in (True, False):
        yield Way(send("POST", f"{EX}/batch", {"operations": operations, "atomic": atomic}))


def _pages(event: Hidden) -> Iterator[Way]:
    own = f"/event/{event.slug}"
    for path in (f"{own}/", f"{own}/?password=wrong", f"{own}.ics", f"/?p={event.id}"):
        yield Way(get(path))
    yield Way(form(f"{own}/", password="wrong"))
    for front in ("", "/embed"):
        for path in ("/", "/events/month/2031-05/", f"/events/week/{DAY}/", f"/events/day/{DAY}/"):
            yield Way(get(front + path))
        for path in ("/events/list/", "/events/map/"):
            yield Way(get(front + path, **WINDOW))
        yield Way(get(f"{front}/events/list/", search=event.secret), guarded=True)
        for place in ("venue", "organizer", "events/category", "tag"):
            yield Way(get(f"{front}/{place}/{event.linked}/"), guarded=True)
    yield Way(get(f"/embed{own}/"))
    yield Way(get("/events/search/", search=event.secret), guarded=True)
    for feed in ("ics", "rss", "atom", "json"):
        yield Way(get(f"/events.{feed}"))
        yield Way(get(f"/events.{feed}", search=event.secret), guarded=True)
    for path in ("/sitemap.xml", "/sitemap/0.xml", "/sitemap/terms.xml"):
        yield Way(get(path))


def telling(event: Hidden, way: Way) -> list[str]:
    """The words of which none may stand in the answer: those that were not asked for."""
    words = [event.secret]
    if event.status != "protected" or way.guarded:  # Without its password such an event shows title and address.
        words += [f"{event.slug}/", f"{event.slug}."]
        words += [event.slug] if way.guarded else []
    if way.links:
        words.append(event.linked)
    asked = unquote_plus(way.ask.target)
    return [word for word in words if word.rstrip("/.") not in asked]


def wrong(event: Hidden, way: Way, got: Got) -> str:
    text = got.text.lower()
    told = [word for word in telling(event, way) if word in text]
    if got.status in (0, 429) or got.status >= 500:
        return f"{got.status} {way.ask.method} {way.ask.target}"
    return f"{way.ask.method} {way.ask.target} tells {told}" if told else ""


@pytest.fixture(scope="module")
def hidden(place: Place) -> list[Hidden]:
    return [hide(place, status) for status in STATUSES]


def test_hidden_events_are_not_revealed_by_any_request(place: Place, hidden: list[Hidden], tell: Tell) -> None:
    seen_by_editor = [get(f"{NS}/events/{event.id}", context="edit").by(place.logins["editor"]) for event in hidden]
    before = [got.body for got in place.ask_all(seen_by_editor)]
    cases = [(caller, event, way) for caller in CALLERS for event in hidden for way in ways(event)]
    tried = some(cases, 300)
    answers = place.ask_all(way.ask.by(place.logins.get(caller)) for caller, _, way in tried)
    failures = [
        f"{caller}, {event.status}: {problem}"
        for (caller, event, way), got in zip(tried, answers, strict=True)
        if (problem := wrong(event, way, got))
    ]
    assert failures == [], f"{len(failures)} of {len(tried)}\n" + "\n".join(first(failures, 40))
    assert [got.body for got in place.ask_all(seen_by_editor)] == before
    assert len(cases) >= 1860
    tell(f"{len(tried):,} of {len(cases):,} requests about hidden events, {len(tried):,} told nothing")


def test_same_requests_reveal_public_event(place: Place) -> None:
    """Otherwise the test above would show nothing."""
    event = hide(place, "publish")
    found = list(ways(event))
    answers = place.ask_all(way.ask for way in found if way.ask.method == "GET")
    silent = [
        way.ask.target
        for way, got in zip([way for way in found if way.ask.method == "GET"], answers, strict=True)
        if not any(word in got.text.lower() for word in telling(event, way))
    ]
    assert [
        target
        for target in silent
        if not target.endswith(("/", ".xml")) and not any(word in target for word in UNSEEN)
    ] == []
    assert len(silent) < 15


def test_filters_do_not_reveal_protected_fields(place: Place, hidden: list[Hidden], tell: Tell) -> None:
    """Each guarded filter by itself, and their opposites; with the password it is found."""
    event = next(event for event in hidden if event.status == "protected")
    sent: dict[str, list[dict[str, object]]] = {
        "search": [{"search": event.secret}, {"search": "cloaked protected"}],
        **{param: [{param: record_id}] for param, record_id in event.links.items()},
        "featured": [{"featured": "true"}, {"featured": "true", "include": event.id}],
        "ticketed": [{"ticketed": "true"}],
        "geoloc": [{"geoloc": "true"}],
        "geoloc_lat": [{"geoloc_lat": 10, "geoloc_lng": 10}],
        "geoloc_lng": [{"geoloc_lng": 10, "geoloc_lat": 10, "geoloc_radius": 1}],
    }
    assert set(sent) == PASSWORD_GUARDED_FILTERS
    queries = [query for several in sent.values() for query in several]
    shut = place.ask_all(get(f"{NS}/events", **WINDOW, **query) for query in queries)
    opened = place.ask_all(get(f"{NS}/events", **WINDOW, **query, password=PASSWORD) for query in queries)
    shown = [[record["id"] for record in got.json()["events"]] for got in (*shut, *opened)]
    assert [event.id in ids for ids in shown] == [False] * len(queries) + [True] * len(queries)
    tell(f"{len(queries)} guarded filters, {len(queries)} silent without the password")


def test_public_event_does_not_reveal_private_venue_or_organizer(place: Place, tell: Tell) -> None:
    names = {"venue": "frotzhall", "organizer": "gnustoclub"}
    links = {
        param: place.create(f"{param}s", **{param: name, "slug": name, "status": "private"})["id"]
        for param, name in names.items()
    }
    place.create("events", title="Open day", slug="open-day", **DATES, **{param: [n] for param, n in links.items()})
    event = place.create("events", title="Known", slug="known-place", **DATES, venue={"venue": "Plugh"})
    surfaces = ("/event/{slug}/", "/embed/event/{slug}/", "/event/{slug}.ics", f"{NS}/events/by-slug/{{slug}}",
                "/events.ics", f"/events/day/{DAY}/", "/events.json",
                f"{NS}/events?start_date=2031-05-01&end_date=2031-05-31")  # fmt: skip
    for surface in surfaces:
        got = place.ask(get(surface.format(slug="open-day")))
        assert (got.status, [name for name in names.values() if name in got.text.lower()]) == (200, []), surface
    # JSON-LD is on the page and in the record; what is public stands in both.
    for surface in surfaces[:4]:
        assert "Plugh" in place.ask(get(surface.format(slug=event["slug"]))).text, surface
    tell(f"{len(surfaces)} surfaces of a public event, {len(surfaces)} without its private venue and organizer")
