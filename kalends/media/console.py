"""Media library pages: a searchable list, upload, one image with its focus point, and deletion."""

from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, PageInfo
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.operations.record_verbs import fetch_visible_row, find_page
from kalends.calendar.rules.record_types import MediaItem
from kalends.console.conflicts import read_choices, save_merged
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, redirect
from kalends.console.field_texts import make_locale
from kalends.console.record_forms import MEDIA_FORM, find_changes, read_row, read_submitted
from kalends.console.record_views import (
    FORM_ERRORS,
    make_page_links,
    read_base,
    read_id,
    read_list_values,
    read_revision,
)
from kalends.core import errors, times
from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.image_types import BY_MIME
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.http.bodies import FIELD, read_upload
from kalends.media.adapters.library import StoredImage
from kalends.media.operations import FORCE, Usage, create_media, delete_media, find_usages
from kalends.store import Row

PATH: Final = MEDIA_FORM.path
# Headings for the lists of records that have an image, by kind.
USAGE_TITLES: Final = {
    "events": N_("Events"),
    "venues": N_("Venues"),
    "organizers": N_("Organizers"),
    "series": N_("Series"),
}


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image in the grid. `src` is empty for files on other servers, which the page must not load."""

    item: MediaItem
    src: str
    position: str  # CSS classes for the focus point


@dataclass(frozen=True, slots=True)
class UsingRecord:
    title: str
    url: str


async def show_library(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    query = {name: console_request.query_value(name) for name in ("search", "without_alt_text", "page")}
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, read_list_values(MEDIA, query))
        found = await find_page(MEDIA, context)
    page = PageInfo(found.total, found.total_pages)
    return show(
        console_request,
        "media_list.html",
        status=error.status if error else 200,
        form=MEDIA_FORM,
        thumbnails=[_make_thumbnail(context, row) for row in found.rows],
        page=page,
        query=query,
        links=make_page_links(PATH, query, page.total_pages),
        may_create=permissions.may_write(console_request.actor, MEDIA),
        types=",".join(BY_MIME),
        max_bytes=console_request.state.library.max_bytes if console_request.state.library else 0,
        error=error.message if error else None,
        errors=field_errors(error) if error else {},
    )


async def upload(console_request: ConsoleRequest) -> Response:
    """Store one image from a plain form, then redirect to its page."""
    permissions.require_writer(console_request.actor, MEDIA)
    try:
        values, image = await _store_upload(console_request)
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            context = replace(console_request.make_context(tx, values), upload=image)
            outcome = await create_media(MEDIA, context)
    except ApiError as error:
        if error.status not in (*FORM_ERRORS, 413):
            raise
        return await show_library(console_request, error)
    return redirect(f"{PATH}/{outcome.body['id']}", "uploaded")


async def _store_upload(console_request: ConsoleRequest) -> tuple[dict[str, Any], StoredImage]:
    """Read the form and store its file before any transaction begins."""
    library, site_id = console_request.state.library, console_request.site.id
    if library is None:
        raise errors.unavailable()
    owner = (site_id, console_request.actor.user_id)
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        raw, sent = await read_upload(console_request.request, directory, library.max_bytes)
        values = read_params(MEDIA.fields, raw.values)
        if sent is None or not sent.name:
            raise errors.missing_params([FIELD])
        try:
            return values, await library.store_image(site_id, sent.path, title=sent.name)
        except InvalidValue as error:
            raise errors.invalid_params({FIELD: errors.for_param(FIELD, error.message)}) from error


async def show_image(console_request: ConsoleRequest) -> Response:
    row = await _read_image(console_request)
    return await _show_image(console_request, row, read_row(MEDIA_FORM, row, console_request.site.timezone))


async def save_image(console_request: ConsoleRequest) -> Response:
    row = await _read_image(console_request)
    permissions.require_writer(console_request.actor, MEDIA)
    permissions.require_edit(console_request.actor, MEDIA, row)
    base = await read_base(console_request, MEDIA_FORM, row)
    submitted = read_submitted(MEDIA_FORM, console_request.form)
    changes = read_choices(console_request.form) or find_changes(MEDIA_FORM, submitted, base)
    revision = read_revision(console_request) or row["revision"]
    try:
        saved = await save_merged(console_request, MEDIA, row["id"], revision, changes)
    except ApiError as error:
        if error.status not in FORM_ERRORS:
            raise
        return await _show_image(console_request, row, {**base, **submitted}, error)
    return saved if isinstance(saved, Response) else redirect(f"{PATH}/{row['id']}", "saved")


async def confirm_deletion(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    """Show where an image is used, and ask for confirmation before deleting it."""
    row = await _read_image(console_request)
    permissions.require_edit(console_request.actor, MEDIA, row)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        usages, hidden = await find_usages(context, row["id"])
        thumbnail = _make_thumbnail(context, row)
    return show(
        console_request,
        "media_delete.html",
        status=error.status if error else 200,
        form=MEDIA_FORM,
        row=row,
        thumbnail=thumbnail,
        usages=_group_usages(console_request, usages),
        hidden=hidden,
        error=error.message if error else None,
    )


async def delete(console_request: ConsoleRequest) -> Response:
    """Delete an image. If it is in use, the form must confirm the deletion."""
    force = read_params((FORCE,), console_request.form)
    try:
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            revision = read_revision(console_request)
            context = console_request.make_context(tx, force, record_id=read_id(console_request), revision=revision)
            await delete_media(MEDIA, context)
    except ApiError as error:
        if error.status != 409:
            raise
        return await confirm_deletion(console_request, error)
    return redirect(PATH, "deleted")


# Helpers -------------------------------------------------------------------------------------


async def _read_image(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        return await fetch_visible_row(MEDIA, console_request.make_context(tx, record_id=read_id(console_request)))


async def _show_image(
    console_request: ConsoleRequest, row: Row, texts: dict[str, str], error: ApiError | None = None
) -> Response:
    actor, locale = console_request.actor, make_locale(console_request)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        usages, hidden = await find_usages(context, row["id"])
        thumbnail = _make_thumbnail(context, row)
    problems = field_errors(error) if error else {}
    return show(
        console_request,
        "media_item.html",
        status=error.status if error else 200,
        form=MEDIA_FORM,
        row=row,
        thumbnail=thumbnail,
        texts=texts,
        usages=_group_usages(console_request, usages),
        hidden=hidden,
        added=locale.bare_day(times.local_of(row["added_at"], console_request.site.timezone)),
        may_edit=permissions.may_write(actor, MEDIA)
        and (console_request.has_role("editor") or permissions.is_own(actor, row)),
        base_revision=read_revision(console_request) or row["revision"],
        error=error.message if error else None,
        errors=problems,
        labels={name: label for name, label in MEDIA_FORM.labels.items() if name in problems},
        is_new=console_request.query_value("notice") == "uploaded",
    )


def _make_thumbnail(context: OperationContext, row: Row) -> Thumbnail:
    item: MediaItem = MEDIA.reads.from_row(row, context.render_context)
    is_local = "/" not in row["url"]
    position = f"x{round(item.focus_x * 10)} y{round(item.focus_y * 10)}"
    return Thumbnail(item, str(item.sizes.get("medium", {}).get("url", item.url)) if is_local else "", position)


def _group_usages(console_request: ConsoleRequest, usages: list[Usage]) -> list[tuple[str, list[UsingRecord]]]:
    """Return the records that use an image, by kind. Records that the user may not edit have no link."""
    groups: dict[str, list[UsingRecord]] = {}
    for usage in usages:
        is_editable = permissions.may_edit(console_request.actor, usage.row)
        url = f"/console/{usage.kind.name}/{usage.row['id']}" if is_editable else ""
        groups.setdefault(usage.kind.name, []).append(UsingRecord(to_plain_text(usage.row["title"]), url))
    return [(USAGE_TITLES[name], rows) for name, rows in groups.items()]


ROUTES: Final = (
    ConsoleRoute("/media", show_library, upload, reads_body=False),
    ConsoleRoute(r"/media/(?P<id>\d{1,15})", show_image, save_image),
    ConsoleRoute(r"/media/(?P<id>\d{1,15})/delete", confirm_deletion, delete, min_role="author"),
)
