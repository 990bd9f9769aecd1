"""The home page: the default view of the site below featured events and events of the weekend."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from kalends.operations.context import OperationContext
from kalends.operations.typed_records import list_events
from kalends.website.context import PageContext, make_date_filter, make_page_context
from kalends.website.handler import PageRequest
from kalends.website.models.cards import Card
from kalends.website.models.highlights import Highlights, find_weekend
from kalends.website.models.page_budget import MAX_FEATURED_BYTES, trim

MAX_FEATURED: Final = 3
MAX_WEEKEND: Final = 4
DAY: Final = timedelta(days=1)


async def load_highlights(page_request: PageRequest, context: OperationContext) -> Highlights:
    """Return the highlights of the home page. A filtered, later or embedded page has none."""
    if page_request.embedded or context.values:
        return Highlights()
    page = make_page_context(page_request, context)
    featured, featured_tags = await _list(
        page, MAX_FEATURED, featured=True, overlaps_from=make_date_filter(page.today)
    )
    first, last = find_weekend(page.today)
    days = {"starts_after": make_date_filter(first - DAY), "starts_before": make_date_filter(last)}
    weekend, weekend_tags = await _list(page, MAX_FEATURED + MAX_WEEKEND, **days)
    shown = {card.id for card in featured}
    others = [card for card in weekend if card.id not in shown][:MAX_WEEKEND]
    return Highlights(trim(featured, MAX_FEATURED_BYTES), others, (*featured_tags, *weekend_tags))


async def _list(page: PageContext, limit: int, **values: object) -> tuple[list[Card], tuple[str, ...]]:
    """Return the cards of a list of events, and its cache tags."""
    found = await list_events(replace(page.context, values={**values, "per_page": limit}), with_total=False)
    return [replace(page.make_card(event), excerpt="") for event in found.records], found.cache_tags
