"""The lists of venues, organizers, categories and tags, slow and obvious (behaviour 8.5)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.lists.dataset import Place, Query, Refused, Term, World, gather, links_of
from tests.lists.permission_model import is_listed, may_edit, may_read, statuses_of
from tests.lists.search_words import is_found, plain

type PlaceCondition = Callable[[Place], bool]
type TermCondition = Callable[[Term], bool]


def list_places(world: World, query: Query) -> list[Place]:
    """Venues or organizers, newest first."""
    conditions = gather((_visible, _place_words, _of_event, _used), world, query)
    found = [place for place in world.places(query.kind) if all(condition(place) for condition in conditions)]
    return sorted(found, key=lambda place: (place.published, place.id), reverse=True)


def list_terms(world: World, query: Query) -> list[Term]:
    parts = (_term_words, _in_event, _included, _excluded, _children)
    conditions = gather(parts, world, query)
    found = [term for term in world.terms(query.kind) if all(condition(term) for condition in conditions)]
    return _ordered(found, query, term_counts(world, query.kind))


def term_counts(world: World, kind: str) -> dict[int, int]:
    """How many published events each term has, hidden ones included."""
    return {
        term.id: sum(event.status == "publish" and term.id in links_of(event, kind) for event in world.events)
        for term in world.terms(kind)
    }


# Venues and organizers -----------------------------------------------------------------------


def _visible(_: World, query: Query) -> list[PlaceCondition]:
    statuses_of(query)
    return [lambda place: is_listed(query, place)]


def _place_words(_: World, query: Query) -> list[PlaceCondition]:
    """Name, description and all that tells where it is, except the country."""
    search = query.last("search")
    if search is None:
        return []
    return [lambda p: is_found(search, [p.title, *(text for name, text in p.texts if name != "country")])]


def _of_event(world: World, query: Query) -> list[PlaceCondition]:
    sent = query.last("event")
    if sent is None:
        return []
    linked = _links_of_event(world, query, sent, "event")
    return [lambda place: place.id in linked]


def _links_of_event(world: World, query: Query, sent: str, name: str) -> tuple[int, ...]:
    """Of any event that exists; what it links to is told to those who may read all of it."""
    event = world.event(int(sent))
    if event is None:
        raise Refused(name)
    is_open = may_read(query.role, event) and (not event.password or may_edit(query.role, event))
    return links_of(event, query.kind) if is_open else ()


def _used(world: World, query: Query) -> list[PlaceCondition]:
    published = [event for event in world.events if event.status == "publish"]
    used = {entry for event in published for entry in links_of(event, query.kind)}
    upcoming = {e for event in published if event.start >= world.now for e in links_of(event, query.kind)}
    conditions: list[PlaceCondition] = []
    if (has_events := query.is_on("has_events")) is not None:
        conditions.append(lambda place: (place.id in used) == has_events)
    if query.is_on("only_with_upcoming"):
        conditions.append(lambda place: place.id in upcoming)
    return conditions


# Categories and tags -------------------------------------------------------------------------


def _term_words(_: World, query: Query) -> list[TermCondition]:
    conditions: list[TermCondition] = []
    if (search := query.last("search")) is not None:
        conditions.append(lambda term: plain(search) in plain(term.name) or plain(search) in term.slug)
    if (slug := query.last("slug")) is not None:
        conditions.append(lambda term: slug.lower() in (term.slug, unquote(term.slug)))
    return conditions


def _in_event(world: World, query: Query) -> list[TermCondition]:
    """The terms of one event, used or not; `event` wins over `post`. Else those that are in use."""
    name = "event" if query.last("event") is not None else "post"
    if (sent := query.last(name)) is not None:
        linked = _links_of_event(world, query, sent, name)
        return [lambda term: term.id in linked]
    counts = term_counts(world, query.kind)
    return [] if query.is_on("hide_empty") is False else [lambda term: counts[term.id] > 0]


def _included(world: World, query: Query) -> list[TermCondition]:
    sent = _known(world, query, "include")
    return [] if sent is None else [lambda term: str(term.id) in sent]


def _excluded(world: World, query: Query) -> list[TermCondition]:
    sent = _known(world, query, "exclude")
    return [] if sent is None else [lambda term: str(term.id) not in sent]


def _known(world: World, query: Query, name: str) -> list[str] | None:
    sent = query.all(name)
    if set(sent or []) - {str(term.id) for term in world.terms(query.kind)}:
        raise Refused(name)
    return sent


def _children(world: World, query: Query) -> list[TermCondition]:
    parent = query.last("parent")
    if parent is None or query.kind == "tags":
        return []
    if parent not in {"0", *(str(term.id) for term in world.categories)}:
        raise Refused("parent")
    return [lambda term: (term.parent or 0) == int(parent)]


def _ordered(found: list[Term], query: Query, counts: dict[int, int]) -> list[Term]:
    orderby, descending = query.last("orderby") or "name", query.last("order") == "desc"
    if orderby == "include":
        # By the given list; what is equal stays in the order of names, in both directions.
        given = query.all("include") or []
        named = sorted(found, key=lambda term: (plain(term.name), term.id))
        return sorted(named, key=lambda term: given.index(str(term.id)) if given else 0, reverse=descending)
    keys: dict[str, Callable[[Term], Any]] = {
        "name": lambda term: plain(term.name),
        "id": lambda term: term.id,
        "term_id": lambda term: term.id,
        "slug": lambda term: term.slug,
        "description": lambda term: term.description,
        "count": lambda term: counts[term.id],
    }
    key = keys.get(orderby, keys["name"])
    return sorted(found, key=lambda term: (key(term), term.id), reverse=descending)
