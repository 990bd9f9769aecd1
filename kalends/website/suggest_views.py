"""Suggestions while a visitor types in the search field: `/events/suggest.json?q=`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import orjson

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations import suggestions
from kalends.core import params
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.core.sanitize import clean_text, read_search
from kalends.core.search_words import Meaning, complete, split_text
from kalends.rendering.cards import make_state_badge, read_title, shorten
from kalends.rendering.page_urls import readable_slug
from kalends.store import Row
from kalends.website import word_filters
from kalends.website.context import PageContext, PageRequest, PageResponse, make_page_context

MIN_TEXT, MAX_TEXT = 2, 60
TEXT: Final = Param("q", params.text(lambda text: clean_text(text, MAX_TEXT)), "", required=True)
MAX_EVENTS: Final = 5
MAX_PLACES: Final = 3
MAX_CATEGORIES: Final = 3
MAX_NAME: Final = 70
JSON_TYPE: Final = "application/json"
Item = dict[str, str]


async def show_suggestions(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Return groups of suggestions, each with a label and links. A single letter gets no suggestions."""
    page, text = make_page_context(page_request, context), context.values["q"]
    groups: dict[str, list[Item]] = {}
    split = split_text(text)
    values = word_filters.read_filters(split, page.today)
    words = read_search(values["search"]).required if "search" in values else ()
    if len(text) >= MIN_TEXT:
        groups[N_("Filters")] = _list_filters(page, text)
        if words or split.found:
            found = await suggestions.find_events(replace(context, values=values), words, MAX_EVENTS)
            groups[N_("Events")] = [_make_event(page, row) for row in found]
        if words:
            venues = await suggestions.find_venues(context, words, MAX_PLACES)
            groups[N_("Venues")] = [
                _make_item(page, row["name"], row["city"], f"/venue/{readable_slug(row['slug'])}/") for row in venues
            ]
            categories = await suggestions.find_categories(context, words, MAX_CATEGORIES)
            groups[N_("Categories")] = [
                _make_item(page, row["name"], "", f"/events/category/{readable_slug(row['slug'])}/")
                for row in categories
            ]
    body = orjson.dumps(
        [{"label": page.locale.text(label), "items": items} for label, items in groups.items() if items]
    )
    tags = (*caching.tags_for_shown(EVENTS, values, []), "venues", "categories")
    return PageResponse(body, JSON_TYPE, page.midnight, tags)


def _list_filters(page: PageContext, text: str) -> list[Item]:
    """Return one search that applies the filter words in the text.

    If it has none, return a search for each filter word that its end could be the start of.
    """
    split = split_text(text)
    searches: list[tuple[tuple[Meaning, ...], str]]
    if split.found:
        searches = [(tuple(word.meaning for word in split.found), split.rest)]
    else:
        meanings, rest = complete(text, page.locale.language)
        searches = [((meaning,), rest) for meaning in meanings]
    items: list[Item] = []
    for meanings, rest in searches:
        pairs: dict[str, Any] = {"search": rest} if word_filters.has_words(rest) else {}
        for meaning in meanings:
            pairs |= word_filters.make_pairs(meaning, page.today)
        name = _join(page.locale.text(word_filters.LABELS[meaning]) for meaning in meanings)
        items.append({"name": name, "note": rest, "url": page.links.url("/events/search/", *pairs.items())})
    return items


def _make_event(page: PageContext, row: Row) -> Item:
    start = row["start_local"]
    state = make_state_badge(row["event_status"], page.locale.translate)
    note = _join(
        (
            state.label if state else "",
            page.locale.short_day(start.date()),
            "" if row["all_day"] else page.locale.time(start),
            shorten(to_plain_text(row["venue"] or ""), MAX_NAME // 2),
        )
    )
    return {"name": shorten(read_title(row["title"]), MAX_NAME), "note": note, "url": page.links.event(row["slug"])}


def _make_item(page: PageContext, name: str, note: str, path: str) -> Item:
    return {"name": shorten(to_plain_text(name), MAX_NAME), "note": note, "url": page.links.top_level(path)}


def _join(texts: Iterable[str]) -> str:
    return " · ".join(filter(None, texts))
