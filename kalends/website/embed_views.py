"""The page with the codes that embed a view of the calendar in another website."""

from dataclasses import replace
from html import escape
from typing import Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.http.bodies import base_name
from kalends.rendering.page_urls import EMBED, VIEWS
from kalends.website.calendar_views import find_default_view
from kalends.website.context import (
    FRAME_PARAMS,
    VIEW_NAMES,
    PageContext,
    PageRequest,
    PageResponse,
    make_page_context,
    show_page,
    take_frame,
)
from kalends.website.list_views import CHOICES, LIST_PARAMS, make_facets, make_list_values
from kalends.website.pages import EmbedPage

WEEKEND: Final = "weekend"
LABELS: Final = {**VIEW_NAMES, WEEKEND: N_("This weekend")}
EMBED_PARAMS: Final = (*LIST_PARAMS, Param("view", params.one_of(*VIEWS, WEEKEND), ""), *FRAME_PARAMS)
# The filters that the form has fields for.
FIELDS: Final = {"search", *[name for name, *_ in CHOICES]}


async def show_embedding(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    values = dict(context.values)
    view = values.pop("view", "") or find_default_view(page_request, context)
    frame = take_frame(values)
    page = make_page_context(page_request, replace(context, values=values))
    names = [name for name in LABELS if name != "map" or page_request.map_settings.tiles_url]
    title = page.locale.gettext(N_("Embed this calendar"))
    # Only lists have a number of events.
    address = page.links.embed(view, frame if view == "list" else replace(frame, limit=0))
    model = EmbedPage(
        title=title,
        robots="noindex",
        canonical="",
        views=[(name, LABELS[name]) for name in names],
        shown_view=view,
        options=frame,
        search=dict(page.links.filters).get("search", ""),
        kept=[pair for pair in page.links.filters if base_name(pair[0]) not in FIELDS],
        facets=await make_facets(page, replace(page.context, values=make_list_values(page, page.context))),
        preview_url=address,
        codes=_write_codes(page, address),
    )
    response = await show_page(page, model, cache_tags=tuple(kind for _, kind, *_ in CHOICES))
    policy = response.headers["Content-Security-Policy"]
    return replace(response, headers={**response.headers, "Content-Security-Policy": f"{policy}; frame-src 'self'"})


def _write_codes(page: PageContext, address: str) -> list[tuple[str, str]]:
    """Return the code with a script, which adapts the height of the frame, and the code without."""
    base_url, title = escape(page.context.base_url), escape(page.site.name)
    view = escape(address.removeprefix(EMBED))
    return [
        (
            N_("Code with a script that adjusts the height"),
            f'<script src="{base_url}/embed.js" data-view="{view}" data-title="{title}" defer></script>',
        ),
        (
            N_("Code without a script"),
            f'<iframe src="{base_url}{escape(address)}" title="{title}" width="100%" height="700"></iframe>',
        ),
    ]
