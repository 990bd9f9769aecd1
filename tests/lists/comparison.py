"""Asks the site what the model was asked, and compares all that a list says: records, order, totals, links."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.lists.dataset import Event, Place, Query, Refused, Term, World
from tests.lists.event_model import is_shut, list_events
from tests.lists.list_site import BASE, Site
from tests.lists.place_and_term_models import list_places, list_terms

MOST_PER_PAGE = 50

type Found = Sequence[Event | Place | Term]


def compare(site: Site, world: World, query: Query) -> None:
    __tracebackhide__ = True
    try:
        expected = expected_list(world, query)
    except Refused as refused:
        _compare_refusal(site, world, query, refused)
        return
    if query.walk == "pages":
        _walk_by_page(site, world, query, expected)
    elif query.walk == "cursors":
        _walk_by_cursor(site, world, query, expected)
    else:
        answer = site.ask(f"/{query.kind}", query.role, query.params)
        _compare_page(_Answer(world, query, answer), expected, int(query.last("page") or 1))


def expected_list(world: World, query: Query) -> Found:
    if query.kind == "events":
        return list_events(world, query)
    return list_places(world, query) if query.kind in ("venues", "organizers") else list_terms(world, query)


class _Answer:
    """An answer with what it answers, so that a difference can be told."""

    def __init__(self, world: World, query: Query, response: Any) -> None:
        self.world = world
        self.query = query
        self.status: int = response.status_code
        self.headers = response.headers
        self.body: dict[str, Any] = response.json()
        self.sent = parse_qsl(response.request.url.query.decode(), keep_blank_values=True)

    def check(self, what: str, found: object, expected: object) -> None:
        __tracebackhide__ = True
        asked = f"GET /{self.query.kind} as {self.query.role}: {self.sent}"
        when = f"now {self.world.now}, site {self.world.zone}"
        assert found == expected, f"{what}: {found!r}, but the model says {expected!r}\n{asked}\n{when}"


def _compare_refusal(site: Site, world: World, query: Query, refused: Refused) -> None:
    answer = _Answer(world, query, site.ask(f"/{query.kind}", query.role, query.params))
    answer.check("status", answer.status, 400)
    answer.check("code", answer.body["code"], "rest_invalid_param")
    named = set(answer.body["data"]["params"])
    # All that is wrong, or the first of it, is named; nothing else is.
    answer.check("refused", sorted(named & set(refused.params)), sorted(named))


def _walk_by_page(site: Site, world: World, query: Query, expected: Found) -> None:
    """Follows the links to the end, and the one link back from there."""
    answer = _Answer(world, query, site.ask(f"/{query.kind}", query.role, query.params))
    page = 1
    _compare_page(answer, expected, page)
    while following := answer.body.get("next_rest_url"):
        page += 1
        answer = _Answer(world, query, site.ask(following, query.role))
        _compare_page(answer, expected, page)
    if previous := answer.body.get("previous_rest_url"):
        _compare_page(_Answer(world, query, site.ask(previous, query.role)), expected, page - 1)


def _walk_by_cursor(site: Site, world: World, query: Query, expected: Found) -> None:
    answer = _Answer(world, query, site.ask(f"/{query.kind}", query.role, query.params))
    page = 1
    _compare_page(answer, expected, page)
    while cursor := answer.body["next_cursor"]:
        page += 1
        params = (*query.params, ("cursor", cursor))
        answer = _Answer(world, query, site.ask(f"/{query.kind}", query.role, params))
        _compare_page(answer, expected, page, by_cursor=True)


def _compare_page(answer: _Answer, expected: Found, page: int, *, by_cursor: bool = False) -> None:
    __tracebackhide__ = True
    query, body = answer.query, answer.body
    per_page = min(int(query.last("per_page") or answer.world.per_page), MOST_PER_PAGE)
    shown = expected[(page - 1) * per_page : page * per_page]
    pages = -(-len(expected) // per_page)
    is_post = query.kind in ("events", "venues", "organizers")
    if page > 1 and not shown and is_post:
        answer.check("status", answer.status, 404)
        answer.check("code", body["code"], f"{query.kind[:-1]}-archive-page-not-found")
        return
    answer.check("status", answer.status, 200)
    answer.check("records", [record["id"] for record in body[query.kind]], [record.id for record in shown])
    totals = [body["total"], body["total_pages"]]
    answer.check("totals", totals, [len(expected), pages])
    for prefix in ("X-TEC", "X-WP"):
        found = [int(answer.headers[f"{prefix}-{name}"]) for name in ("Total", "TotalPages")]
        answer.check(f"totals in {prefix}", found, totals)
    has_next, has_previous = page < pages and not by_cursor, page > 1 and not by_cursor
    _compare_links(answer, page, has_next=has_next, has_previous=has_previous)
    if query.kind == "events":
        answer.check("next_cursor", bool(body["next_cursor"]), page < pages)
        shut = [is_shut(query, event) for event in shown if isinstance(event, Event)]
        answer.check("protected", [event["all_day"] is None for event in body["events"]], shut)


def _compare_links(answer: _Answer, page: int, *, has_next: bool, has_previous: bool) -> None:
    """Links are there exactly when there is such a page, and keep every parameter that was sent."""
    __tracebackhide__ = True
    # Tags have no parents: there the parameter is unknown, and means nothing.
    dropped = ("page", "parent") if answer.query.kind == "tags" else ("page",)
    kept = sorted((pair for pair in answer.sent if pair[0] not in dropped), key=lambda pair: pair[0])
    wanted = {"rest_url": page if not any(name == "cursor" for name, _ in kept) else 1}
    if has_next:
        wanted["next_rest_url"] = page + 1
    if has_previous:
        wanted["previous_rest_url"] = page - 1
    for name in ("rest_url", "next_rest_url", "previous_rest_url"):
        answer.check(f"{name} present", name in answer.body, name in wanted)
        if name not in wanted:
            continue
        link = urlsplit(answer.body[name])
        address = f"{link.scheme}://{link.netloc}{link.path}"
        answer.check(f"address of {name}", address, f"{BASE}/{answer.query.kind}/")
        number = [("page", str(wanted[name]))] if wanted[name] > 1 else []
        found = parse_qsl(link.query, keep_blank_values=True)
        answer.check(f"parameters of {name}", found, [*kept, *number])
    header = [part for part in answer.headers["Link"].split(", ") if "api.w.org" not in part]
    links = {"prev": answer.body.get("previous_rest_url"), "next": answer.body.get("next_rest_url")}
    answer.check("Link", header, [f'<{url}>; rel="{rel}"' for rel, url in links.items() if url])
