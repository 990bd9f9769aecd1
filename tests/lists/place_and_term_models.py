"""The lists of venues, organizers, categories and tags, slow and obvious (behaviour 8.5)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.lists.dataset import Dataset, Place, Query, RejectedQuery, Term, collect_conditions, linked_ids
from tests.lists.permission_model import is_listed, may_edit, may_read, requested_statuses
from tests.lists.search_words import fold_text, matches_search

type PlaceCondition = Callable[[Place], bool]
type TermCondition = Callable[[Term], bool]


def list_places(dataset: Dataset, query: Query) -> list[Place]:
    """Venues or organizers, newest first."""
    conditions = collect_conditions(
        (_visibility_conditions, _place_search_conditions, _event_conditions, _usage_conditions), dataset, query
    )
    matches = [place for place in dataset.places(query.kind) if all(condition(place) for condition in conditions)]
    return sorted(matches, key=lambda place: (place.published, place.id), reverse=True)


def list_terms(dataset: Dataset, query: Query) -> list[Term]:
    parts = (
        _term_search_conditions,
        _term_event_conditions,
        _include_conditions,
        _exclude_conditions,
        _parent_conditions,
    )
    conditions = collect_conditions(parts, dataset, query)
    matches = [term for term in dataset.terms(query.kind) if all(condition(term) for condition in conditions)]
    return _sort_terms(matches, query, term_counts(dataset, query.kind))


def term_counts(dataset: Dataset, kind: str) -> dict[int, int]:
    """How many published events each term has, hidden ones included."""
    return {
        term.id: sum(event.status == "publish" and term.id in linked_ids(event, kind) for event in dataset.events)
        for term in dataset.terms(kind)
    }


# Venues and organizers -----------------------------------------------------------------------


def _visibility_conditions(_: Dataset, query: Query) -> list[PlaceCondition]:
    requested_statuses(query)
    return [lambda place: is_listed(query, place)]


def _place_search_conditions(_: Dataset, query: Query) -> list[PlaceCondition]:
    """Name, description and all that tells where it is, except the country."""
    search = query.last_value("search")
    if search is None:
        return []
    return [lambda p: matches_search(search, [p.title, *(text for name, text in p.texts if name != "country")])]


def _event_conditions(dataset: Dataset, query: Query) -> list[PlaceCondition]:
    event_id = query.last_value("event")
    if event_id is None:
        return []
    linked = _event_links(dataset, query, event_id, "event")
    return [lambda place: place.id in linked]


def _event_links(dataset: Dataset, query: Query, event_id: str, name: str) -> tuple[int, ...]:
    """Match any existing event. Only callers who may read all of it see its links."""
    event = dataset.event(int(event_id))
    if event is None:
        raise RejectedQuery(name)
    is_open = may_read(query.role, event) and (not event.password or may_edit(query.role, event))
    return linked_ids(event, query.kind) if is_open else ()


def _usage_conditions(dataset: Dataset, query: Query) -> list[PlaceCondition]:
    published = [event for event in dataset.events if event.status == "publish"]
    used = {entry for event in published for entry in linked_ids(event, query.kind)}
    upcoming = {e for event in published if event.start >= dataset.now for e in linked_ids(event, query.kind)}
    conditions: list[PlaceCondition] = []
    if (has_events := query.boolean("has_events")) is not None:
        conditions.append(lambda place: (place.id in used) == has_events)
    if query.boolean("only_with_upcoming"):
        conditions.append(lambda place: place.id in upcoming)
    return conditions


# Categories and tags -------------------------------------------------------------------------


def _term_search_conditions(_: Dataset, query: Query) -> list[TermCondition]:
    conditions: list[TermCondition] = []
    if (search := query.last_value("search")) is not None:
        conditions.append(lambda term: fold_text(search) in fold_text(term.name) or fold_text(search) in term.slug)
    if (slug := query.last_value("slug")) is not None:
        conditions.append(lambda term: slug.lower() in (term.slug, unquote(term.slug)))
    return conditions


def _term_event_conditions(dataset: Dataset, query: Query) -> list[TermCondition]:
    """The terms of one event, used or not; `event` wins over `post`. Else those that are in use."""
    name = "event" if query.last_value("event") is not None else "post"
    if (event_id := query.last_value(name)) is not None:
        linked = _event_links(dataset, query, event_id, name)
        return [lambda term: term.id in linked]
    counts = term_counts(dataset, query.kind)
    return [] if query.boolean("hide_empty") is False else [lambda term: counts[term.id] > 0]


def _include_conditions(dataset: Dataset, query: Query) -> list[TermCondition]:
    values = _check_ids(dataset, query, "include")
    return [] if values is None else [lambda term: str(term.id) in values]


def _exclude_conditions(dataset: Dataset, query: Query) -> list[TermCondition]:
    values = _check_ids(dataset, query, "exclude")
    return [] if values is None else [lambda term: str(term.id) not in values]


def _check_ids(dataset: Dataset, query: Query, name: str) -> list[str] | None:
    values = query.all_values(name)
    if set(values or []) - {str(term.id) for term in dataset.terms(query.kind)}:
        raise RejectedQuery(name)
    return values


def _parent_conditions(dataset: Dataset, query: Query) -> list[TermCondition]:
    parent = query.last_value("parent")
    if parent is None or query.kind == "tags":
        return []
    if parent not in {"0", *(str(term.id) for term in dataset.categories)}:
        raise RejectedQuery("parent")
    return [lambda term: (term.parent or 0) == int(parent)]


def _sort_terms(terms: list[Term], query: Query, counts: dict[int, int]) -> list[Term]:
    orderby, descending = query.last_value("orderby") or "name", query.last_value("order") == "desc"
    if orderby == "include":
        # By the given list; what is equal stays in the order of names, in both directions.
        order = query.all_values("include") or []
        terms_by_name = sorted(terms, key=lambda term: (fold_text(term.name), term.id))
        return sorted(terms_by_name, key=lambda term: order.index(str(term.id)) if order else 0, reverse=descending)
    keys: dict[str, Callable[[Term], Any]] = {
        "name": lambda term: fold_text(term.name),
        "id": lambda term: term.id,
        "term_id": lambda term: term.id,
        "slug": lambda term: term.slug,
        "description": lambda term: term.description,
        "count": lambda term: counts[term.id],
    }
    key = keys.get(orderby, keys["name"])
    return sorted(terms, key=lambda term: (key(term), term.id), reverse=descending)
