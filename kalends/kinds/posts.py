"""What events, venues and organizers share: authors, statuses, publication dates, trash, search."""

import re
from datetime import datetime
from functools import lru_cache
from typing import Any, LiteralString

import orjson

from kalends.core import errors, params, times
from kalends.core.params import Param, param
from kalends.core.sanitize import clean_html
from kalends.core.search import has_trigram, like_pattern, read_search
from kalends.core.slugs import TRASHED_SUFFIX, make_slug
from kalends.core.statuses import resolve_status
from kalends.core.times import DateTimeInput
from kalends.kinds.image_json import represent_image
from kalends.kinds.kind import Filter, Listing, Represented, Values, View, Writing, plain, unfiltered
from kalends.kinds.terms import links_of_event
from kalends.store import Row, records, users
from kalends.store.sql import Sql, and_

# Columns that every representation of a post needs.
POST_COLUMNS: LiteralString = """
    r.id, r.revision, r.author, r.status, r.trashed_status, r.slug, r.date_utc, r.modified_utc, r.title,
    r.description, r.image_id,
    CASE WHEN r.image_id IS NOT NULL THEN (
        SELECT jsonb_build_object('url', m.url, 'id', m.id, 'extension', m.extension, 'width', m.width,
            'height', m.height, 'filesize', m.filesize, 'sizes', m.sizes, 'alt_text', m.alt_text,
            'caption', m.caption, 'focus_x', m.focus_x, 'focus_y', m.focus_y)
        FROM media m WHERE m.site_id = r.site_id AND m.id = r.image_id) END AS image"""

DESCRIPTION = param("description", params.text(clean_html), "The description")


def post_fields() -> tuple[Param, ...]:
    return (
        param("author", params.integer(minimum=1), "The author ID"),
        param("date", params.DATE_TIME, "The publication date, in the zone of the site"),
        param("date_utc", params.DATE_TIME, "The publication date in UTC"),
        param("status", params.STATUS, "The post status"),
        param(
            "image",
            params.IMAGE,
            "The featured image: the ID of an image in the media library, or an address to fetch it from",
        ),
    )


def show_image(row: Row, view: View) -> Represented | None:
    """The image of a post (behaviour 5.6), with what a page needs to show it well."""
    return represent_image(orjson.loads(row["image"]), view) if row["image"] else None


def represent_post(row: Row, view: View, collection: str) -> Represented:
    zone = view.site.timezone
    own_id = f"{_host(view.base_url)}?id={row['id']}"
    public = row["slug"] and row["status"] in ("publish", "private")
    return {
        "id": row["id"],
        "global_id": own_id,
        "global_id_lineage": [own_id],
        "author": str(row["author"]),
        "status": row["status"],
        "date": times.format_datetime(times.local_of(row["date_utc"], zone)),
        "date_utc": times.format_datetime(row["date_utc"]),
        "modified": times.format_datetime(times.local_of(row["modified_utc"], zone)),
        "modified_utc": times.format_datetime(row["modified_utc"]),
        "url": f"{view.base_url}/{collection}/{row['slug']}/" if public else f"{view.base_url}/?p={row['id']}",
    }


@lru_cache(maxsize=256)  # Hosts come from requests.
def _host(base_url: str) -> str:
    return base_url.partition("://")[2].partition("/")[0].partition(":")[0]


async def store_post(writing: Writing, table: LiteralString, title: str) -> Values:
    """The columns that every post has. `title` is the parameter that names the record."""
    sent, row, tx = writing.sent, writing.row, writing.transaction
    values: Values = {}
    if title in sent:
        values["title"] = sent[title]
    if "description" in sent:
        values["description"] = sent["description"]
    if "author" in sent or row is None:
        values["author"] = await _author(writing)
    if "image" in sent:
        values["image_id"] = await _image(writing)
    await _store_status(writing, values)
    if row is None or "status" in values or sent.get("slug"):
        await _store_slug(writing, table, values)
    if row is None:
        values["modified_utc"] = tx.now
    return values


async def _author(writing: Writing) -> int:
    wanted: int = writing.sent.get("author", writing.user_id)
    if wanted != writing.user_id and not await users.has_user(writing.transaction, wanted):
        raise errors.invalid("author", "there is no user {id}.", id=wanted)
    return wanted


async def _image(writing: Writing) -> int | None:
    """The ID of an image in the media library; addresses have become IDs before."""
    wanted: int | None = writing.sent["image"]
    if wanted is not None and not await records.find_existing_ids(writing.transaction, "media", [wanted]):
        raise errors.invalid("image", "the media library has no image {image}.", image=wanted)
    return wanted


async def _store_status(writing: Writing, values: Values) -> None:
    """Publication date and status. A scheduled date decides between `publish` and `future`."""
    sent, row, tx = writing.sent, writing.row, writing.transaction
    date_utc = row["date_utc"] if row else tx.now
    if "date_utc" in sent:
        date_utc = _published_at(sent["date_utc"], "UTC", "date_utc")
    elif "date" in sent:
        date_utc = _published_at(sent["date"], writing.site.timezone, "date")
    if row is None or "date" in sent or "date_utc" in sent:
        values["date_utc"] = date_utc
    asked = sent.get("status")
    if row is None:
        asked = asked or ("publish" if writing.may_publish else "draft")
        if asked == "trash":
            raise errors.invalid("status", "a record cannot begin in the trash.")
    elif asked is None:
        # No status means no change, except that a new date may release or schedule the record.
        if row["status"] not in ("publish", "future") or "date_utc" not in values:
            return
        asked = row["status"]
    status = resolve_status(asked, may_publish=writing.may_publish, date_utc=date_utc, now=tx.now)
    if row is None or status != row["status"]:
        values["status"] = status


def _published_at(moment: DateTimeInput, zone: str, name: str) -> datetime:
    """An instant that every zone can show."""
    try:
        found = times.to_utc(moment, zone)
    except errors.InvalidValue as problem:
        raise errors.invalid_params({name: errors.for_param(name, problem.message)}) from problem
    if not 1 < found.year < times.LAST_YEAR:
        raise errors.invalid(name, "A date lies in the years 1 to {last}.", last=times.LAST_YEAR)
    return found


async def _store_slug(writing: Writing, table: LiteralString, values: Values) -> None:
    row, sent, tx = writing.row, writing.sent, writing.transaction
    status = values.get("status", row["status"] if row else None)
    slug = untrashed(row["slug"]) if row and row["status"] == "trash" else row["slug"] if row else ""
    wanted = sent.get("slug") or slug
    if not wanted and not (table == "events" and status in ("draft", "pending", "trash")):
        title = str(values.get("title", row["title"] if row else ""))
        wanted = make_slug(title) or str(writing.record_id)
    if wanted and status == "trash":
        wanted += TRASHED_SUFFIX
    if row is not None and row["status"] != "trash" and status == "trash":
        values["trashed_status"], values["trashed_at"] = row["status"], tx.now
    elif row is not None and row["status"] == "trash" and status != "trash":
        values["trashed_status"], values["trashed_at"] = "", None
    if row is None or wanted != row["slug"]:
        values["slug"] = await records.find_free_slug(tx, table, wanted, writing.record_id) if wanted else ""


def untrashed(slug: str) -> str:
    """The slug that a record in the trash had before."""
    return re.sub(TRASHED_SUFFIX + r"(-\d+)?$", "", slug)


# Lists ---------------------------------------------------------------------------------------


def newest_first(_: Listing) -> Sql:
    return Sql("r.date_utc DESC, r.id DESC")


def search_clause(value: str) -> Sql:
    """Every word occurs, none of the excluded ones does; both sides are folded alike."""
    words = read_search(value)
    return and_(
        [
            *[_contains(word) for word in words.required],
            *[Sql("r.search_text NOT LIKE ?", like_pattern(word)) for word in words.excluded],
        ]
    )


def _contains(word: str) -> Sql:
    """Find a word through the index, which knows groups of three characters.

    A shorter word is kept away from it. A plan for all words, which PostgreSQL keeps after a few requests, would read
    the whole index for such a word: this takes ten times as long as reading the rows.
    """
    if has_trigram(word):
        return Sql("r.search_text LIKE ?", like_pattern(word))
    return Sql("r.search_text || '' LIKE ?", like_pattern(word))


def _read_search(value: str) -> str:
    read_search(value)
    return value.strip()


SEARCH = params.text(_read_search, allow_empty=False)


def linked_filters(link_table: LiteralString, column: LiteralString) -> tuple[Filter, ...]:
    """The list parameters of venues and organizers."""

    async def of_event(event_id: int, listing: Listing) -> Sql:
        return await links_of_event(event_id, listing, "event", link_table, column)

    async def has_events(value: bool, listing: Listing) -> Sql:
        used = Sql(
            "EXISTS (SELECT FROM "
            + link_table
            + " l WHERE l.site_id = ? AND l."
            + column
            + " = r.id AND l.published)",
            listing.site.id,
        )
        return used if value else Sql("NOT") + used

    async def only_with_upcoming(value: bool, listing: Listing) -> Sql:
        if not value:
            return Sql("")
        return Sql(
            "EXISTS (SELECT FROM " + link_table + " l WHERE l.site_id = ? AND l." + column
            + " = r.id AND l.published AND l.start_utc >= ?)",
            listing.site.id,
            listing.transaction.now,
        )  # fmt: skip

    return (
        Filter(
            param("search", SEARCH, "Every word is in the name, the description or another text"),
            plain(search_clause),
        ),
        Filter(param("event", params.integer(minimum=1), "Related to this event ID"), of_event),
        Filter(
            param("has_events", params.BOOLEAN, "Only records that have published events, or only those without"),
            has_events,
        ),
        Filter(
            param("only_with_upcoming", params.BOOLEAN, "Only records that have upcoming events", default=False),
            only_with_upcoming,
        ),
        Filter(param("status", params.STATUS_LIST, "The post status"), unfiltered),
    )


def omit_empty(record: Represented) -> Represented:
    """Venues and organizers leave out what is empty."""
    return {key: value for key, value in record.items() if value != "" and value is not None}


def merged(values: Values, row: Row | None, column: LiteralString) -> Any:
    """The value that a column will have after the write."""
    return values[column] if column in values else row[column] if row is not None else ""


def until_next_start(listing: Listing) -> datetime | None:
    """Which records have upcoming events changes whenever one of these begins: it is never kept."""
    return listing.transaction.now if listing.values.get("only_with_upcoming") else None
