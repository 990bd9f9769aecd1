"""Redirects to the current address of a page: from former slugs, permanent links and old addresses."""

import re
from typing import Final
from urllib.parse import unquote

from starlette.responses import Response

from kalends.core import errors
from kalends.core.slugs import normalize_lookup
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.image_json import build_file_url
from kalends.kinds.kind import Kind
from kalends.kinds.tags import TAGS
from kalends.operations import calendar
from kalends.operations.context import OperationContext
from kalends.store import former_addresses, slug_redirects
from kalends.website import old_addresses
from kalends.website.handler import PageRequest, make_context
from kalends.website.old_addresses import Address

HOUR_HEADERS: Final = {"Cache-Control": "public, max-age=3600"}
TERM_KINDS: Final = {"categories": CATEGORIES, "tags": TAGS}


def redirect(url: str) -> Response:
    return Response(status_code=301, headers={"Location": url, **HOUR_HEADERS})


async def redirect_former_slug(page_request: PageRequest) -> Response | None:
    """Redirect a path with a former slug of a record to the current one."""
    route, path = page_request.route, page_request.request.scope["path"]
    match = re.search(route.pattern + "$", path, re.ASCII) if route else None
    if match is None or route is None or route.kind is None:
        return None
    start, end = match.span("path" if "path" in match.groupdict() else "slug")
    slug = normalize_lookup(path[start:end].rpartition("/")[2])
    async with page_request.transaction() as tx:
        new_slug = await slug_redirects.current_slug(tx, route.kind.name, slug, is_post=route.kind.is_post)
    return redirect(page_request.with_query(path[:start] + new_slug + path[end:])) if new_slug else None


async def redirect_permanent_link(page_request: PageRequest, post_id: int) -> Response:
    """Redirect `/?p=ID` to the page of a published event, venue or organizer."""
    async with page_request.transaction() as tx:
        found = await calendar.find_record_url(make_context(page_request, tx, {}), post_id)
    if found is None:
        raise errors.no_route()
    path = unquote(f"/{found[0]}/{found[1]}/")
    return redirect(Address(path, old_addresses.keep_query(page_request.sent_query)).url)


async def redirect_former_address(page_request: PageRequest) -> Response | None:
    """Redirect the path of an image file of the former site, or a path that begins differently here."""
    path = page_request.path
    if "\0" in path:  # PostgreSQL has no such texts.
        return None
    async with page_request.transaction() as tx:
        context = make_context(page_request, tx, {})
        name = await former_addresses.find_file(tx, path)
        if name is not None:
            return redirect(build_file_url(name, context.render_context))
        new_path = await former_addresses.find_prefix(tx, path)
    # Two slashes would lead to another host.
    if new_path is None or new_path.startswith("//"):
        return None
    return redirect(Address(new_path, tuple(page_request.sent_query)).url)


async def find_target(page_request: PageRequest, address: Address, kind: Kind | None) -> Address:
    """Return the address that the translation of an old one would redirect to, so that clients need one step.

    `kind` is that of the record in the path.
    """
    async with page_request.transaction() as tx:
        context = make_context(page_request, tx, {})
        path = await _find_current_path(context, address.path, kind) if kind else address.path
        query = address.query
        if path.startswith("/events."):
            query = tuple([(name, await _find_term_id(context, name, value)) for name, value in query])
    return Address(path, query)


async def _find_current_path(context: OperationContext, path: str, kind: Kind) -> str:
    start, _, slug = path.removesuffix("/").rpartition("/")
    row = await calendar.find_by_slug(context, kind, slug)
    if row is None:
        return path
    return unquote(f"{start}/{row['slug']}/" if kind is not CATEGORIES else f"/events/category/{row['path']}/")


async def _find_term_id(context: OperationContext, name: str, value: str) -> str:
    """Replace the slug of a term by its ID, so that the subscription survives a change of the slug."""
    row = await calendar.find_by_slug(context, TERM_KINDS[name], value) if name in TERM_KINDS else None
    return str(row["id"]) if row else value
