"""Random changes of a data set, made through the interface, and the data set as it is afterwards."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.lists.dataset import STATUSES, Dataset, Event, Place, Post, Term
from tests.lists.event_model import ancestor_ids
from tests.lists.list_site import ListSite, format_datetime
from tests.lists.random_datasets import POINTS, with_random_times
from tests.lists.zone_model import to_local

type Change = Callable[[ListSite, Dataset, Random], Dataset]


def change_dataset(site: ListSite, dataset: Dataset, seed: int) -> Dataset:
    """Make one change, unless nothing can be changed."""
    rng = Random(seed)
    return rng.choice(CHANGES)(site, dataset, rng)


def _send_checked(
    site: ListSite, method: str, path: str, values: dict[str, Any] | None = None, status: int = 200
) -> None:
    response = site.send(method, path, "editor", json=values or {})
    assert response.status_code == status, f"{method} {path} {values}: {response.status_code} {response.text}"


# Events --------------------------------------------------------------------------------------


def _reschedule(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    """New dates, and with them perhaps a new zone; start and end are sent together."""

    def change(event: Event) -> tuple[Event, dict[str, Any]]:
        moved = with_random_times(rng, dataset, event)
        fields = {"start_date": format_datetime(moved.start_local), "end_date": format_datetime(moved.end_local)}
        return moved, {**fields, "timezone": moved.zone, "all_day": moved.all_day}

    return _update_event(site, dataset, rng, change)


def _set_status(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    status = rng.choice((*STATUSES, "publish", "publish", "trash"))
    return _update_event(site, dataset, rng, lambda event: (with_status(event, status, dataset), {"status": status}))


def _set_flags(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    hidden, featured = rng.random() < 0.5, rng.random() < 0.5
    fields = {"hide_from_listings": hidden, "featured": featured}
    return _update_event(site, dataset, rng, lambda event: (replace(event, hidden=hidden, featured=featured), fields))


def _change_links(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    """Links to other venues and terms; nothing can be linked to what is in the trash."""
    venues = _choose(rng, [venue.id for venue in dataset.venues if venue.status != "trash"])
    categories, tags = (_choose(rng, [term.id for term in dataset.terms(kind)]) for kind in ("categories", "tags"))
    fields = {"venue": list(venues), "categories": list(categories), "tags": list(tags)}

    def change(event: Event) -> tuple[Event, dict[str, Any]]:
        return replace(event, venues=venues, categories=categories, tags=tags), fields

    return _update_event(site, dataset, rng, change)


def _choose(rng: Random, ids: list[int]) -> tuple[int, ...]:
    return tuple(rng.sample(ids, k=rng.randint(0, min(2, len(ids)))))


def _set_author(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    author = rng.randint(1, 5)
    return _update_event(site, dataset, rng, lambda event: (replace(event, author=author), {"author": author}))


def _update_event(
    site: ListSite, dataset: Dataset, rng: Random, change: Callable[[Event], tuple[Event, dict[str, Any]]]
) -> Dataset:
    if not dataset.events:
        return dataset
    event = rng.choice(dataset.events)
    changed, fields = change(event)
    _send_checked(site, rng.choice(("PUT", "PATCH", "POST")), f"/events/{event.id}", fields)
    dataset = _replace_events(dataset, lambda other: changed if other is event else other)
    return _publish_linked(dataset, changed) if changed.status == "publish" else dataset


def _publish_linked(dataset: Dataset, event: Event) -> Dataset:
    """What a public event is linked to becomes public with it; a date in the future becomes now."""

    def publish(place: Place) -> Place:
        if place.id not in (*event.venues, *event.organizers) or place.status not in ("draft", "pending", "future"):
            return place
        published = min(place.published, dataset.now)
        return replace(place, status="publish", published=published, modified=dataset.now)

    venues, organizers = (tuple(map(publish, places)) for places in (dataset.venues, dataset.organizers))
    return replace(dataset, venues=venues, organizers=organizers)


def _delete_event(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    if not dataset.events:
        return dataset
    event = rng.choice(dataset.events)
    _send_checked(site, "DELETE", f"/events/{event.id}", status=410 if event.status == "trash" else 200)
    return _replace_events(dataset, lambda other: with_status(other, "trash", dataset) if other is event else other)


def _delete_permanently(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    if not dataset.events:
        return dataset
    gone = rng.choice(dataset.events)
    site.delete_permanently(gone.id)
    return replace(dataset, events=tuple(event for event in dataset.events if event is not gone))


def _replace_events(dataset: Dataset, change: Callable[[Event], Event]) -> Dataset:
    return replace(dataset, events=tuple(_with_modified(event, change(event), dataset) for event in dataset.events))


# Venues and terms ----------------------------------------------------------------------------


def _change_venue(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    if not dataset.venues:
        return dataset
    venue = rng.choice(dataset.venues)
    status, point = rng.choice(("publish", "publish", "draft", "trash")), rng.choice(POINTS)
    _send_checked(site, "PATCH", f"/venues/{venue.id}", {"status": status, "geo_lat": point[0], "geo_lng": point[1]})
    changed: Place = replace(with_status(venue, status, dataset), point=point)
    changed = _with_modified(venue, changed, dataset)
    return replace(dataset, venues=tuple(changed if other is venue else other for other in dataset.venues))


def _delete_term(site: ListSite, dataset: Dataset, rng: Random) -> Dataset:
    """Delete a term permanently, which changes its events; children of a category move up."""
    kind = rng.choice(("categories", "tags"))
    if not dataset.terms(kind):
        return dataset
    gone = rng.choice(dataset.terms(kind))
    _send_checked(site, "DELETE", f"/{kind}/{gone.id}")
    left = tuple(_reparented(term, gone) for term in dataset.terms(kind) if term is not gone)
    if kind == "tags":
        dataset = replace(dataset, tags=left)
        return _replace_events(dataset, lambda event: replace(event, tags=_remove_id(event.tags, gone)))
    # The events of all that was below it are found by other categories now, so they change too.
    below = {term.id for term in dataset.categories if gone.id in ancestor_ids(term, dataset.categories)}
    touched = [
        replace(event, modified=dataset.now, categories=_remove_id(event.categories, gone))
        if below & set(event.categories)
        else event
        for event in dataset.events
    ]
    return replace(dataset, categories=left, events=tuple(touched))


def _reparented(term: Term, gone: Term) -> Term:
    return replace(term, parent=gone.parent) if term.parent == gone.id else term


def _remove_id(ids: tuple[int, ...], gone: Term) -> tuple[int, ...]:
    return tuple(entry for entry in ids if entry != gone.id)


# Effects of a change on a post ---------------------------------------------------------------


def with_status[P: Post](post: P, requested: str, dataset: Dataset) -> P:
    """An editor's wish, except that a date in the future schedules what is to be published."""
    status = requested
    if requested in ("publish", "future"):
        status = "future" if post.published > dataset.now else "publish"
    if status != "trash":
        return replace(post, status=status, status_before_trash="")
    return post if post.status == "trash" else replace(post, status="trash", status_before_trash=post.status)


def _with_modified[P: Post](before: P, after: P, dataset: Dataset) -> P:
    """What changes nothing is no change. Of an event that lasts all day only the days count."""
    is_same = _normalized(before) == _normalized(after)
    return after if is_same else replace(after, modified=dataset.now)


def _normalized(post: Post) -> Post:
    if not isinstance(post, Event):
        return post
    return replace(post, start_local=to_local(post.start, post.zone), end_local=to_local(post.end, post.zone))


CHANGES: tuple[Change, ...] = (
    _reschedule, _reschedule, _set_status, _set_status, _set_flags, _change_links, _set_author, _delete_event,
    _delete_permanently,
    _change_venue, _delete_term,
)  # fmt: skip
