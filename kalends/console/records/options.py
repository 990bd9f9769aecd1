"""The data of a form besides its values: choices, the chosen image, and the number of events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.records.forms import RecordForm
from kalends.console.request import ConsoleRequest
from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import MediaItem
from kalends.core.statuses import REQUIRED_RIGHTS
from kalends.http.language import translator
from kalends.kinds.media import MEDIA, build_media_item
from kalends.operations import permissions
from kalends.operations.category_tree import list_tree
from kalends.operations.media.records import read_images
from kalends.operations.records import find_page
from kalends.store import Row, link_moves, users
from kalends.store.database import Transaction

Choices = list[tuple[str, str]]  # value and text
# The statuses that the form offers, as far as the user may set them, besides the current one.
OFFERED_STATUSES: Final = ("draft", "pending", "publish")
MAX_IMAGES: Final = 11


@dataclass(frozen=True, slots=True)
class Loaded:
    choices: Mapping[str, Choices] = field(default_factory=dict[str, Choices])  # by field
    images: tuple["ImageChoice", ...] = ()  # the chosen one and the latest of the library
    upcoming: int = 0
    linked: int = 0


async def load_options(
    console_request: ConsoleRequest, tx: Transaction, form: RecordForm, texts: Mapping[str, str], row: Row | None
) -> Loaded:
    """Load the data for the form of a record, or of a new one."""
    names = {entry.name for entry in form.fields}
    choices: dict[str, Choices] = {}
    if "status" in names:
        choices["status"] = list_statuses(console_request, row["status"] if row else "")
    if "author" in names and console_request.has_role("editor"):
        choices["author"] = [(str(user["id"]), user["login"]) for user in await users.list_users(tx)]
    if "parent" in names:
        choices["parent"] = await _list_parents(console_request, tx, row["id"] if row else 0)
    link, ids = form.link, [row["id"]] if row else []
    return Loaded(
        choices,
        await _list_images(console_request, tx, texts["image"]) if "image" in names else (),
        sum((await link_moves.count_upcoming(tx, link.table, link.column, ids)).values()),
        await link_moves.count_links(tx, link.table, link.column, row["id"]) if row else 0,
    )


def list_statuses(console_request: ConsoleRequest, current: str) -> Choices:
    """Return the statuses that the user may set, and the current one."""
    translate = translator(console_request.language)
    may_publish = permissions.may_publish(console_request.actor)
    offered = [name for name in OFFERED_STATUSES if may_publish or REQUIRED_RIGHTS[name] != "publish"]
    names = [*offered, *([current] if current and current not in offered else [])]
    return [(name, translate(STATUS_FILTERS[name])) for name in names]


async def _list_parents(console_request: ConsoleRequest, tx: Transaction, own_id: int) -> Choices:
    """Return the categories that may be the parent: all except the category itself and those below it."""
    choices: Choices = [("0", translator(console_request.language)(N_("None")))]
    skipped_depth: int | None = None
    for entry in await list_tree(tx):
        if skipped_depth is not None and entry.depth > skipped_depth:
            continue
        skipped_depth = entry.depth if entry.row["id"] == own_id else None
        if skipped_depth is None:
            choices.append((str(entry.row["id"]), "\u2003" * entry.depth + entry.row["name"]))
    return choices


@dataclass(frozen=True, slots=True)
class ImageChoice:
    id: int
    title: str
    src: str


async def _list_images(console_request: ConsoleRequest, tx: Transaction, chosen: str) -> tuple[ImageChoice, ...]:
    """Return the chosen image and the latest ones of the library, as far as this site has their files."""
    context = console_request.make_context(tx, {"per_page": MAX_IMAGES})
    rows = (await find_page(MEDIA, context, with_total=False)).rows
    ids = [int(chosen)] if chosen.isdecimal() and len(chosen) <= 15 else []
    items = [item for item, _ in await read_images(context, ids)]
    items += [build_media_item(row, context.render_context) for row in rows if row["id"] not in ids]
    return tuple(_make_choice(console_request, item) for item in items)


def _make_choice(console_request: ConsoleRequest, item: MediaItem) -> ImageChoice:
    src = str(item.sizes.get("thumbnail", {}).get("url", item.url))
    is_loadable = item.url.startswith((console_request.origin_url, console_request.state.media_url or "\0"))
    return ImageChoice(item.id, item.title, src if is_loadable else "")
