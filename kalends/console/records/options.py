"""The data of a form besides its values: choices, the chosen image, and the number of events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kalends.console.records.forms import RecordForm
from kalends.console.records.list_views import STATUS_NAMES
from kalends.console.request import ConsoleRequest
from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import MediaItem
from kalends.core.statuses import REQUIRED_RIGHTS
from kalends.http.language import translator
from kalends.operations import permissions
from kalends.operations.category_tree import list_tree
from kalends.operations.media.records import read_images
from kalends.store import Row, link_moves, users
from kalends.store.database import Transaction

Choices = list[tuple[str, str]]  # value and text
# The statuses that the form offers, as far as the user may set them, besides the current one.
OFFERED_STATUSES: Final = ("draft", "pending", "publish")


@dataclass(frozen=True, slots=True)
class Loaded:
    choices: Mapping[str, Choices] = field(default_factory=dict[str, Choices])  # by field
    image: MediaItem | None = None
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
        await _find_image(console_request, tx, texts.get("image", "")),
        sum((await link_moves.count_upcoming(tx, link.table, link.column, ids)).values()),
        await link_moves.count_links(tx, link.table, link.column, row["id"]) if row else 0,
    )


def list_statuses(console_request: ConsoleRequest, current: str) -> Choices:
    """Return the statuses that the user may set, and the current one."""
    translate = translator(console_request.language)
    may_publish = permissions.may_publish(console_request.actor)
    offered = [name for name in OFFERED_STATUSES if may_publish or REQUIRED_RIGHTS[name] != "publish"]
    names = [*offered, *([current] if current and current not in offered else [])]
    return [(name, translate(STATUS_NAMES[name])) for name in names]


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


async def _find_image(console_request: ConsoleRequest, tx: Transaction, image_id: str) -> MediaItem | None:
    if not image_id.isdecimal() or len(image_id) > 15:
        return None
    found = await read_images(console_request.make_context(tx), [int(image_id)])
    return found[0][0] if found else None
