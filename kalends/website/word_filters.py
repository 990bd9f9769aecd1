"""Named filters: "Today", "Tonight", "Tomorrow", "This weekend" and "Free".

Pages show them as quick filters and chips, and searches recognize their words.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from kalends.calendar.operations.calendar_months import DATE_PARAMS
from kalends.calendar.operations.site_feeds import FEED_PARAMS
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.core.sanitize import read_search
from kalends.core.search_words import DAY_MEANINGS, EVENING, MEANINGS, Meaning, SplitText, find_days, split_text
from kalends.http.bodies import base_name
from kalends.website.context import PageContext, make_page_context
from kalends.website.pages import QuickFilter

LABELS: Final[Mapping[Meaning, str]] = {
    "today": N_("Today"),
    "tonight": N_("Tonight"),
    "tomorrow": N_("Tomorrow"),
    "weekend": N_("This weekend"),
    "free": N_("Free"),
}
DATES: Final = DATE_PARAMS - {"order", "orderby", "cursor"} | {"past"}
Pair = tuple[str, str]


def make_pairs(meaning: Meaning, today: date) -> dict[str, str]:
    """Return the list parameters that a word stands for."""
    days = find_days(meaning, today)
    if days is None:
        return {"free": "1"}
    first, last = days
    if meaning == "tonight":
        tomorrow = first + timedelta(days=1)
        return {"start_date": f"{first}T{EVENING:%H:%M}", "starts_before": tomorrow.isoformat(), "strict_dates": "1"}
    return {"overlaps_from": first.isoformat(), "overlaps_to": last.isoformat()}


def find_active(filters: Iterable[Pair], today: date) -> Iterator[tuple[Meaning, dict[str, str]]]:
    """Yield the words whose parameters are among the filters, but at most one word for days."""
    current, has_day = dict(filters), False
    for meaning in MEANINGS:
        pairs = make_pairs(meaning, today)
        if pairs.items() <= current.items() and not (has_day and meaning in DAY_MEANINGS):
            has_day = has_day or meaning in DAY_MEANINGS
            yield meaning, pairs


def make_quick_filters(page: PageContext, path: str) -> list[QuickFilter]:
    current = page.links.filters
    active = {meaning for meaning, _ in find_active(current, page.today)}
    result: list[QuickFilter] = []
    for meaning, label in LABELS.items():
        others = remove_word(current, meaning)
        pairs = () if meaning in active else make_pairs(meaning, page.today).items()
        links = page.links.with_filters([*others, *pairs])
        result.append(QuickFilter(page.locale.text(label), links.url(path), meaning in active))
    return result


def remove_word(filters: Iterable[Pair], meaning: Meaning) -> list[Pair]:
    return [pair for pair in filters if base_name(pair[0]) not in _list_names(meaning)]


def _list_names(meaning: Meaning) -> frozenset[str]:
    """Return the parameters that a word replaces; a word for days replaces all dates."""
    return DATES if meaning in DAY_MEANINGS else frozenset({"free"})


def apply_words(page: PageContext) -> tuple[PageContext, SplitText]:
    """Replace the words for days and prices in a page's search with the filters that they stand for."""
    split = split_text(dict(page.request.query).get("search", ""))
    if not split.found:
        return page, split
    removed = frozenset({"search"}).union(*(_list_names(word.meaning) for word in split.found))
    pairs = _make_search(split, page.today)
    others = [pair for pair in page.request.query if base_name(pair[0]) not in removed]
    page.request.query = [*others, *pairs.items()]
    values = {name: value for name, value in page.context.values.items() if name not in removed}
    context = replace(page.context, values=values | read_params(FEED_PARAMS, pairs))
    return make_page_context(page.request, context), split


def read_filters(split: SplitText, today: date) -> dict[str, Any]:
    """Return the parsed list parameters that a text stands for. If it sets no dates, they select upcoming events."""
    pairs = _make_search(split, today)
    since = {} if DATES & pairs.keys() else {"overlaps_from": today.isoformat()}
    return read_params(FEED_PARAMS, pairs | since)


def _make_search(split: SplitText, today: date) -> dict[str, str]:
    pairs = {"search": split.rest} if has_words(split.rest) else {}
    for word in split.found:
        pairs |= make_pairs(word.meaning, today)
    return pairs


def has_words(text: str) -> bool:
    try:
        read_search(text)
    except InvalidValue:
        return False
    return True
