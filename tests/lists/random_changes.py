"""Random changes of a data set, made through the interface, and the data set as it is afterwards."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.lists.dataset import STATUSES, Event, Place, Post, Term, World
from tests.lists.event_model import line_of
from tests.lists.list_site import Site, stamp
from tests.lists.random_datasets import POINTS, place_in_time
from tests.lists.zone_model import wall_of

type Change = Callable[[Site, World, Random], World]


def change_world(site: Site, world: World, seed: int) -> World:
    """Makes one change; where there is nothing to be changed, none."""
    rng = Random(seed)
    return rng.choice(CHANGES)(site, world, rng)


def _send(site: Site, method: str, address: str, values: dict[str, Any] | None = None, status: int = 200) -> None:
    answer = site.send(method, address, "editor", json=values or {})
    assert answer.status_code == status, f"{method} {address} {values}: {answer.status_code} {answer.text}"


# Events --------------------------------------------------------------------------------------


def _reschedule(site: Site, world: World, rng: Random) -> World:
    """New dates, and with them perhaps a new zone; start and end are sent together."""

    def change(event: Event) -> tuple[Event, dict[str, Any]]:
        moved = place_in_time(rng, world, event)
        sent = {"start_date": stamp(moved.start_wall), "end_date": stamp(moved.end_wall)}
        return moved, {**sent, "timezone": moved.zone, "all_day": moved.all_day}

    return _update_event(site, world, rng, change)


def _set_status(site: Site, world: World, rng: Random) -> World:
    status = rng.choice((*STATUSES, "publish", "publish", "trash"))
    return _update_event(site, world, rng, lambda event: (with_status(event, status, world), {"status": status}))


def _set_flags(site: Site, world: World, rng: Random) -> World:
    hidden, featured = rng.random() < 0.5, rng.random() < 0.5
    sent = {"hide_from_listings": hidden, "featured": featured}
    return _update_event(site, world, rng, lambda event: (replace(event, hidden=hidden, featured=featured), sent))


def _relink(site: Site, world: World, rng: Random) -> World:
    """Links to other venues and terms; nothing can be linked to what is in the trash."""
    venues = _choose(rng, [venue.id for venue in world.venues if venue.status != "trash"])
    categories, tags = (_choose(rng, [term.id for term in world.terms(kind)]) for kind in ("categories", "tags"))
    sent = {"venue": list(venues), "categories": list(categories), "tags": list(tags)}

    def change(event: Event) -> tuple[Event, dict[str, Any]]:
        return replace(event, venues=venues, categories=categories, tags=tags), sent

    return _update_event(site, world, rng, change)


def _choose(rng: Random, ids: list[int]) -> tuple[int, ...]:
    return tuple(rng.sample(ids, k=rng.randint(0, min(2, len(ids)))))


def _set_author(site: Site, world: World, rng: Random) -> World:
    author = rng.randint(1, 5)
    return _update_event(site, world, rng, lambda event: (replace(event, author=author), {"author": author}))


def _update_event(
    site: Site, world: World, rng: Random, change: Callable[[Event], tuple[Event, dict[str, Any]]]
) -> World:
    if not world.events:
        return world
    event = rng.choice(world.events)
    changed, sent = change(event)
    _send(site, rng.choice(("PUT", "PATCH", "POST")), f"/events/{event.id}", sent)
    return _replace_events(world, lambda other: changed if other is event else other)


def _delete_event(site: Site, world: World, rng: Random) -> World:
    if not world.events:
        return world
    event = rng.choice(world.events)
    _send(site, "DELETE", f"/events/{event.id}", status=410 if event.status == "trash" else 200)
    return _replace_events(world, lambda other: with_status(other, "trash", world) if other is event else other)


def _purge_event(site: Site, world: World, rng: Random) -> World:
    parents = {event.parent for event in world.events}
    childless = [event for event in world.events if event.id not in parents]
    if not childless:
        return world
    gone = rng.choice(childless)
    site.purge(gone.id)
    return replace(world, events=tuple(event for event in world.events if event is not gone))


def _replace_events(world: World, change: Callable[[Event], Event]) -> World:
    return replace(world, events=tuple(_touched(event, change(event), world) for event in world.events))


# Venues and terms ----------------------------------------------------------------------------


def _change_venue(site: Site, world: World, rng: Random) -> World:
    if not world.venues:
        return world
    venue = rng.choice(world.venues)
    status, point = rng.choice(("publish", "publish", "draft", "trash")), rng.choice(POINTS)
    _send(site, "PATCH", f"/venues/{venue.id}", {"status": status, "geo_lat": point[0], "geo_lng": point[1]})
    changed: Place = replace(with_status(venue, status, world), point=point)
    changed = _touched(venue, changed, world)
    return replace(world, venues=tuple(changed if other is venue else other for other in world.venues))


def _delete_term(site: Site, world: World, rng: Random) -> World:
    """Terms go for good, and from their events, which change by it; the children of a category move up."""
    kind = rng.choice(("categories", "tags"))
    if not world.terms(kind):
        return world
    gone = rng.choice(world.terms(kind))
    _send(site, "DELETE", f"/{kind}/{gone.id}")
    left = tuple(_moved_up(term, gone) for term in world.terms(kind) if term is not gone)
    if kind == "tags":
        world = replace(world, tags=left)
        return _replace_events(world, lambda event: replace(event, tags=_without(event.tags, gone)))
    # The events of all that was below it are found by other categories now, so they change too.
    below = {term.id for term in world.categories if gone.id in line_of(term, world.categories)}
    touched = [
        replace(event, modified=world.now, categories=_without(event.categories, gone))
        if below & set(event.categories)
        else event
        for event in world.events
    ]
    return replace(world, categories=left, events=tuple(touched))


def _moved_up(term: Term, gone: Term) -> Term:
    return replace(term, parent=gone.parent) if term.parent == gone.id else term


def _without(ids: tuple[int, ...], gone: Term) -> tuple[int, ...]:
    return tuple(entry for entry in ids if entry != gone.id)


# What a change does to a post ----------------------------------------------------------------


def with_status[P: Post](post: P, asked: str, world: World) -> P:
    """An editor's wish, except that a date in the future schedules what is to be published."""
    status = asked
    if asked in ("publish", "future"):
        status = "future" if post.published > world.now else "publish"
    if status != "trash":
        return replace(post, status=status, before_trash="")
    return post if post.status == "trash" else replace(post, status="trash", before_trash=post.status)


def _touched[P: Post](before: P, after: P, world: World) -> P:
    """What changes nothing is no change. Of an event that lasts all day only the days count."""
    is_same = _settled(before) == _settled(after)
    return after if is_same else replace(after, modified=world.now)


def _settled(post: Post) -> Post:
    if not isinstance(post, Event):
        return post
    return replace(post, start_wall=wall_of(post.start, post.zone), end_wall=wall_of(post.end, post.zone))


CHANGES: tuple[Change, ...] = (
    _reschedule, _reschedule, _set_status, _set_status, _set_flags, _relink, _set_author, _delete_event, _purge_event,
    _change_venue, _delete_term,
)  # fmt: skip
