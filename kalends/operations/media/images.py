"""Images that become records: those that were sent, and those that another record names by an address."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.image_types import FULL, extract_file_name
from kalends.core.sanitize import clean_plain, fold
from kalends.kinds.kind import Values
from kalends.kinds.media import MEDIA, TEXTS
from kalends.operations import permissions
from kalends.operations.context import Call
from kalends.operations.media.library import Fetched, Library, Taken
from kalends.operations.quotas import count_new_record
from kalends.store import Row, jobs, media, records
from kalends.store.database import Transaction
from kalends.store.history import encode_columns

# For so long a source is not asked again.
FRESH: Final = timedelta(hours=1)
LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """An address that has to be asked, with the validators of its last answer."""

    address: str
    etag: str = ""
    date: str = ""


async def find_unfetched(tx: Transaction, addresses: Sequence[str]) -> list[Wanted]:
    """Which of these addresses of images have to be asked before a record can name them."""
    wanted: list[Wanted] = []
    for address in dict.fromkeys(addresses):
        if await _find_kept(tx, address) is not None:
            continue
        row = await media.find_by_source(tx, _hash(address))
        if row is None:
            wanted.append(Wanted(address))
        elif row["fetched_at"] is None or row["fetched_at"] < tx.now - FRESH:
            wanted.append(Wanted(address, row["source_etag"], row["source_date"]))
    return wanted


async def with_image_id(call: Call, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was sent, with the ID of the image where its address was. One address is one image."""
    address = sent.get("image")
    if not isinstance(address, str):
        return sent
    if not permissions.may_publish(call.actor):
        raise errors.invalid("image", "give an ID; an address needs the right to publish.")
    return {**sent, "image": await _find_or_add(call, address)}


async def add_image(
    tx: Transaction,
    library: Library,
    taken: Taken,
    *,
    user_id: int | None,
    sent: Mapping[str, Any] | None = None,
    source: Values | None = None,
) -> int:
    """A record for a file that is kept already. `source` are columns about where it was fetched."""
    sent = sent or {}
    if not await library.has(tx.site.id, [taken.name]):
        raise errors.unavailable()  # It lay there for a day, nobody's, and was removed at this very moment.
    media_id = tx.changes.next_post_id()
    texts: dict[str, str] = {name: sent.get(name, "") for name in TEXTS}
    texts["title"] = texts["title"] or _title(taken.title)
    values: Values = {
        **_columns(taken),
        "title": texts["title"],
        "alt_text": texts["alt_text"],
        "caption": texts["caption"],
        "search_text": "\n".join(fold(text) for text in texts.values() if text),
        "focus_x": sent.get("focus_x", 0.5),
        "focus_y": sent.get("focus_y", 0.5),
        "author": user_id,
        "date_utc": tx.now,
        "modified_utc": tx.now,
    }
    revision = tx.changes.record(
        "media", media_id, "create", after=encode_columns({"title": texts["title"], "url": taken.name})
    )
    await records.add(tx, "media", {"id": media_id, "revision": revision, **values, **(source or {})})
    await media.replace_files(tx, media_id, [(taken.name, FULL)])
    await jobs.enqueue(tx, jobs.Task.MAKE_SIZES, {"media_id": media_id})
    return media_id


async def _find_kept(tx: Transaction, address: str) -> int | None:
    """An image that an address names without being asked: a file of ours, or one that lies elsewhere for good."""
    name = extract_file_name(address)
    found = await media.find_by_file(tx, name) if name else None
    return found if found is not None else await media.find_by_url(tx, address)


async def _find_or_add(call: Call, address: str) -> int:
    tx, fetched = call.transaction, call.fetched.get(address)
    kept = await _find_kept(tx, address)
    if kept is not None:
        return kept
    row = await media.find_by_source(tx, _hash(address))
    if row is not None:
        if isinstance(fetched, Fetched):
            await _refresh(call, row, fetched)
        elif isinstance(fetched, InvalidValue):
            # What was fetched before stays, also when its source is away today; it is not asked each time.
            await media.record_fetch(tx, row["id"], row["source_etag"], row["source_date"])
        known: int = row["id"]
        return known
    if isinstance(fetched, InvalidValue):
        raise errors.invalid_params({"image": errors.for_param("image", fetched.message)})
    if fetched is None or fetched.taken is None or call.library is None:
        raise errors.invalid("image", "the media library has no image {image}.", image=address)
    await count_new_record(call)
    return await add_image(
        tx,
        call.library,
        fetched.taken,
        user_id=call.actor.user_id,
        source={
            "source_url": address,
            "source_hash": _hash(address),
            "source_etag": fetched.etag,
            "source_date": fetched.date,
            "fetched_at": tx.now,
        },
    )


async def _refresh(call: Call, row: Row, fetched: Fetched) -> None:
    """The source was asked again; another picture takes the place of the old one, under the same ID."""
    tx, taken = call.transaction, fetched.taken
    await media.record_fetch(tx, row["id"], fetched.etag, fetched.date)
    if taken is None or taken.name == row["url"]:
        return
    if call.library is None or not await call.library.has(tx.site.id, [taken.name]):
        raise errors.unavailable()
    revision = tx.changes.record("media", row["id"], "update", before=encode_columns({"url": row["url"]}))
    changed: Values = {**_columns(taken), "sizes": "{}", "revision": revision, "modified_utc": tx.now}
    await records.change(tx, "media", row["id"], changed)
    await media.replace_files(tx, row["id"], [(taken.name, FULL)])
    if MEDIA.changed is not None:
        await MEDIA.changed(tx, row, changed)


def _columns(taken: Taken) -> Values:
    return {
        "url": taken.name,
        "extension": taken.kind.extension,
        "mime_type": taken.kind.mime,
        "width": taken.width,
        "height": taken.height,
        "filesize": taken.filesize,
        "sent_hash": taken.sent_hash,
    }


def _hash(address: str) -> bytes:
    return hashlib.sha256(address.encode()).digest()


def _title(file_name: str) -> str:
    """The name of a file as a title: whatever it holds, it must not keep the image out."""
    stem = file_name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    try:
        return clean_plain((stem[0] or stem[2])[:LONGEST_TITLE], LONGEST_TITLE)
    except InvalidValue:
        return ""
