"""Compare the lists of the site with those of the model: records, order, totals and links."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.lists.dataset import Dataset, Event, Place, Query, RejectedQuery, Term
from tests.lists.event_model import is_locked, list_events
from tests.lists.list_site import BASE, ListSite
from tests.lists.place_and_term_models import list_places, list_terms

MAX_PER_PAGE = 50

type Records = Sequence[Event | Place | Term]


def compare_with_model(site: ListSite, dataset: Dataset, query: Query) -> None:
    __tracebackhide__ = True
    try:
        expected = expected_list(dataset, query)
    except RejectedQuery as error:
        _compare_error(site, dataset, query, error)
        return
    if query.paging == "pages":
        _walk_by_page(site, dataset, query, expected)
    elif query.paging == "cursors":
        _walk_by_cursor(site, dataset, query, expected)
    else:
        response = site.get_list(f"/{query.kind}", query.role, query.params)
        _compare_page(_ListResponse(dataset, query, response), expected, int(query.last_value("page") or 1))


def expected_list(dataset: Dataset, query: Query) -> Records:
    if query.kind == "events":
        return list_events(dataset, query)
    return list_places(dataset, query) if query.kind in ("venues", "organizers") else list_terms(dataset, query)


class _ListResponse:
    """A response with its request, for messages about differences."""

    def __init__(self, dataset: Dataset, query: Query, response: Any) -> None:
        self.world = dataset
        self.query = query
        self.status: int = response.status_code
        self.headers = response.headers
        self.body: dict[str, Any] = response.json()
        self.query_pairs = parse_qsl(response.request.url.query.decode(), keep_blank_values=True)

    def check(self, subject: str, actual: object, expected: object) -> None:
        __tracebackhide__ = True
        request_line = f"GET /{self.query.kind} as {self.query.role}: {self.query_pairs}"
        when = f"now {self.world.now}, site {self.world.zone}"
        assert actual == expected, f"{subject}: {actual!r}, but the model says {expected!r}\n{request_line}\n{when}"


def _compare_error(site: ListSite, dataset: Dataset, query: Query, error: RejectedQuery) -> None:
    response = _ListResponse(dataset, query, site.get_list(f"/{query.kind}", query.role, query.params))
    response.check("status", response.status, 400)
    response.check("code", response.body["code"], "rest_invalid_param")
    named = set(response.body["data"]["params"])
    # All that is wrong, or the first of it, is named; nothing else is.
    response.check("refused", sorted(named & set(error.params)), sorted(named))


def _walk_by_page(site: ListSite, dataset: Dataset, query: Query, expected: Records) -> None:
    """Follow the links to the end, and the one link back from there."""
    response = _ListResponse(dataset, query, site.get_list(f"/{query.kind}", query.role, query.params))
    page = 1
    _compare_page(response, expected, page)
    while next_url := response.body.get("next_rest_url"):
        page += 1
        response = _ListResponse(dataset, query, site.get_list(next_url, query.role))
        _compare_page(response, expected, page)
    if previous_url := response.body.get("previous_rest_url"):
        _compare_page(_ListResponse(dataset, query, site.get_list(previous_url, query.role)), expected, page - 1)


def _walk_by_cursor(site: ListSite, dataset: Dataset, query: Query, expected: Records) -> None:
    response = _ListResponse(dataset, query, site.get_list(f"/{query.kind}", query.role, query.params))
    page = 1
    _compare_page(response, expected, page)
    while cursor := response.body["next_cursor"]:
        page += 1
        params = (*query.params, ("cursor", cursor))
        response = _ListResponse(dataset, query, site.get_list(f"/{query.kind}", query.role, params))
        _compare_page(response, expected, page, by_cursor=True)


def _compare_page(response: _ListResponse, expected: Records, page: int, *, by_cursor: bool = False) -> None:
    __tracebackhide__ = True
    query, body = response.query, response.body
    per_page = min(int(query.last_value("per_page") or response.world.per_page), MAX_PER_PAGE)
    page_records = expected[(page - 1) * per_page : page * per_page]
    pages = -(-len(expected) // per_page)
    is_post = query.kind in ("events", "venues", "organizers")
    if page > 1 and not page_records and is_post:
        response.check("status", response.status, 404)
        response.check("code", body["code"], f"{query.kind[:-1]}-archive-page-not-found")
        return
    response.check("status", response.status, 200)
    response.check("records", [record["id"] for record in body[query.kind]], [record.id for record in page_records])
    totals = [body["total"], body["total_pages"]]
    response.check("totals", totals, [len(expected), pages])
    for prefix in ("X-TEC", "X-WP"):
        header_totals = [int(response.headers[f"{prefix}-{name}"]) for name in ("Total", "TotalPages")]
        response.check(f"totals in {prefix}", header_totals, totals)
    has_next, has_previous = page < pages and not by_cursor, page > 1 and not by_cursor
    _compare_links(response, page, has_next=has_next, has_previous=has_previous)
    if query.kind == "events":
        response.check("next_cursor", bool(body["next_cursor"]), page < pages)
        locked = [is_locked(query, event) for event in page_records if isinstance(event, Event)]
        response.check("protected", [event["all_day"] is None for event in body["events"]], locked)


def _compare_links(response: _ListResponse, page: int, *, has_next: bool, has_previous: bool) -> None:
    """Links are there exactly when there is such a page, and keep every parameter that was sent.

    `per_page` is reduced to the maximum.
    """
    __tracebackhide__ = True
    # Tags have no parents: there the parameter is unknown, and means nothing.
    dropped = ("page", "parent") if response.query.kind == "tags" else ("page",)
    pairs = sorted((pair for pair in response.query_pairs if pair[0] not in dropped), key=lambda pair: pair[0])
    pairs = [(name, str(min(int(value), MAX_PER_PAGE)) if name == "per_page" else value) for name, value in pairs]
    expected_pages = {"rest_url": page if not any(name == "cursor" for name, _ in pairs) else 1}
    if has_next:
        expected_pages["next_rest_url"] = page + 1
    if has_previous:
        expected_pages["previous_rest_url"] = page - 1
    for name in ("rest_url", "next_rest_url", "previous_rest_url"):
        response.check(f"{name} present", name in response.body, name in expected_pages)
        if name not in expected_pages:
            continue
        link = urlsplit(response.body[name])
        link_url = f"{link.scheme}://{link.netloc}{link.path}"
        response.check(f"address of {name}", link_url, f"{BASE}/{response.query.kind}/")
        number = [("page", str(expected_pages[name]))] if expected_pages[name] > 1 else []
        link_pairs = parse_qsl(link.query, keep_blank_values=True)
        response.check(f"parameters of {name}", link_pairs, [*pairs, *number])
    header = [part for part in response.headers["Link"].split(", ") if "api.w.org" not in part]
    links = {"prev": response.body.get("previous_rest_url"), "next": response.body.get("next_rest_url")}
    response.check("Link", header, [f'<{url}>; rel="{rel}"' for rel, url in links.items() if url])
