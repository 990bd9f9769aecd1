"""Maps a site snapshot to records that can be imported."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.imports.rules.import_records import ImportedRecord, Rejection
from kalends.move_in.rules import old_records
from kalends.move_in.rules.exchanges import (
    COMMENTS,
    MAX_COMMENT_PAGES,
    TRIBE_LISTS,
    WP_COLLECTIONS,
    WRONG_FIELDS,
    Exchanges,
    JsonObject,
    count_pages,
    read_list,
    read_object,
    read_records,
    read_total,
)
from kalends.move_in.rules.old_content import Converter
from kalends.move_in.rules.old_links import build_index, find_prefixes, find_redirects, is_image, list_files
from kalends.move_in.rules.old_posts import STATUSES, Mapper, map_terms, map_user
from kalends.move_in.rules.old_records import Home, MoveIn, MoveInWarning, SiteFacts

Records = dict[str, dict[int, JsonObject]]
# Long event fields in `tribe/events/v1` that the import does not use.
UNUSED_FIELDS: Final = ("description", "excerpt", "image", "venue", "organizer", "categories", "tags")


def map_snapshot(
    exchanges: Exchanges, *, base_url: str = "", keep_shortcodes: bool = False, without_trash: bool = False
) -> MoveIn:
    """Map a site to importable records. Links to its pages point to `base_url`, if given."""
    records = _read_all(exchanges)
    if without_trash:
        records = {
            kind: {entry: record for entry, record in entries.items() if record.get("status") != "trash"}
            for kind, entries in records.items()
        }
    tribe = read_tribe_events(exchanges)
    site = old_records.read_site_facts(exchanges, records["events"], tribe, _find_highest_ids(records))
    mapper = _build_mapper(site, records, tribe, base_url, keep_shortcodes)
    mapped = list(_map_all(mapper, records))
    images = mapper.converter.images
    urls = _list_urls(records["media"]) | images.unknown_files
    broken = list(_check_files(exchanges, urls))
    lost = {rejection.identity for rejection in broken}
    return MoveIn(
        site=site,
        records=[*_order(mapped, [_map_file(identity, url) for identity, url in images.unknown_files.items()], lost)],
        redirects=find_redirects(exchanges, records),
        prefixes=find_prefixes(records, Home.read(site.url).folder),
        legacy_files=[
            file for file in list_files(filter(is_image, records["media"].values())) if file.identity not in lost
        ],
        warnings=[
            *_read_crawl_warnings(exchanges),
            *_count_comments(exchanges, records["events"]),
            *mapper.warnings.list(),
        ],
        rejections=[*mapper.rejections, *broken, *_find_unreadable(exchanges)],
        image_urls={identity: url for identity, url in urls.items() if identity not in lost},
    )


def list_image_urls(exchanges: Exchanges) -> list[str]:
    """Return the addresses of all image files, including images in texts."""
    records = _read_all(exchanges)
    site = old_records.read_site_facts(exchanges, {}, {}, {})
    mapper = _build_mapper(site, records, {}, "", keep_shortcodes=False)
    list(_map_all(mapper, records))
    return list((_list_urls(records["media"]) | mapper.converter.images.unknown_files).values())


def read_tribe_events(exchanges: Exchanges) -> dict[int, JsonObject]:
    """Return events from `tribe/events/v1`: its list, plus single events.

    The list lacks the flags of protected events, but it alone contains trashed events.
    """
    events = read_list(exchanges, TRIBE_LISTS["events"])
    for exchange in exchanges.list("tribe/events/v1/events/"):
        if exchange.status == 200:
            record = read_object(exchange)
            events[int(old_records.last_segment(exchange.address))] = record
    for record in events.values():
        for name in UNUSED_FIELDS:
            record.pop(name, None)
    return events


def _read_all(exchanges: Exchanges) -> Records:
    records = {kind: read_records(exchanges, kind) for kind in old_records.KINDS}
    for kind in ("venues", "organizers", "events"):
        records[kind] = {entry: record for entry, record in records[kind].items() if record.get("status") in STATUSES}
    return records


def _build_mapper(
    site: SiteFacts, records: Records, tribe: Mapping[int, JsonObject], base_url: str, keep_shortcodes: bool
) -> Mapper:
    home = Home.read(site.url)
    moves = Home.read(base_url).url if base_url and Home.read(base_url).host != home.host else ""
    return Mapper(
        site=site,
        converter=Converter(build_index(home, records["media"].values()), moves, keep_shortcodes),
        slugs={kind: old_records.choose_slugs(records[kind]) for kind in ("venues", "organizers", "events")},
        tribe=tribe,
        users=frozenset(map(str, records["users"])),
    )


def _map_all(mapper: Mapper, records: Records) -> Iterator[ImportedRecord]:
    for kind, entries in records.items():
        for record_id, record in entries.items():
            for name in record.get(WRONG_FIELDS, ()):
                mapper.warnings.add(
                    (kind, str(record_id)),
                    Message("The field {name} has an unexpected type; it is left out.", name=name),
                )
    for kind in ("users", "categories", "tags"):
        for record_id, record in records[kind].items():
            mapper.list_fields((kind, str(record_id)), record)
    yield from map(map_user, records["users"].values())
    for kind in ("categories", "tags"):
        yield from map_terms(kind, records[kind])
    for record in records["media"].values():
        if is_image(record):
            yield mapper.map_image(record)
        else:
            mapper.warnings.add(("media", str(record["id"])), Message("It is no image and stays behind."))
    yield from map(mapper.map_venue, records["venues"].values())
    yield from map(mapper.map_organizer, records["organizers"].values())
    yield from filter(None, map(mapper.map_event, records["events"].values()))


def _order(mapped: list[ImportedRecord], files: list[ImportedRecord], lost: set[str]) -> Iterator[ImportedRecord]:
    """Yield the records in the order in which to write them, without `lost` images.

    Images known only from texts follow the library's images.
    """
    for kind in old_records.KINDS:
        for record in [*mapped, *files]:
            if record.kind == kind and not (kind == "media" and record.identity in lost):
                yield record


def _map_file(identity: str, url: str) -> ImportedRecord:
    """Return the record for an image known only by its file."""
    title = unquote(old_records.last_segment(url)).rpartition(".")[0]
    return ImportedRecord("media", identity, {"title": title, "alt_text": "", "caption": ""})


def _list_urls(media: Mapping[int, JsonObject]) -> dict[str, str]:
    return {str(entry): record["source_url"] for entry, record in media.items() if is_image(record)}


def _check_files(exchanges: Exchanges, urls: Mapping[str, str]) -> Iterator[Rejection]:
    """Yield a rejection for each image whose file could not be fetched."""
    for identity, url in urls.items():
        exchange = exchanges.find(url)
        if exchange is not None and exchange.status != 200:
            problem = exchange.headers.get("problem") or Message(
                "the site answered {status}.", status=exchange.status
            )
            yield Rejection(
                Message("The file {url} could not be fetched: {problem}", url=url, problem=problem),
                identity=identity,
                title=url,
            )


def _find_unreadable(exchanges: Exchanges) -> Iterator[Rejection]:
    """Yield a rejection for each event that the site refuses to return. A 404 or 410 means that it does not exist."""
    for exchange in exchanges.list(f"{WP_COLLECTIONS['events']}/"):
        if exchange.status not in (200, 404, 410):
            identity = old_records.last_segment(exchange.address)
            reason = Message("The site answered {status} instead of the event.", status=exchange.status)
            yield Rejection(reason, identity=identity)


def _read_crawl_warnings(exchanges: Exchanges) -> list[MoveInWarning]:
    stored: list[JsonObject] = exchanges.read_fact("warnings", [])
    return [MoveInWarning(Message(entry["text"], **entry["values"])) for entry in stored]


def _count_comments(exchanges: Exchanges, events: Mapping[int, JsonObject]) -> Iterator[MoveInWarning]:
    """Yield a warning with the number of comments on events. If there are too many to read, count all comments."""
    first = exchanges.find(COMMENTS)
    if first is None:
        return
    if first.status == 200 and count_pages(first.headers) > MAX_COMMENT_PAGES:
        yield MoveInWarning(Message("{count} comments stay behind.", count=read_total(first.headers)))
        return
    try:
        comments = read_list(exchanges, COMMENTS).values() if first.status == 200 else None
    except InvalidValue:
        comments = None
    if comments is None:
        yield MoveInWarning(Message("The comments could not be read; they stay behind."))
    elif posts := [entry["post"] for entry in comments if entry.get("post") in events]:
        keys = [("events", str(post)) for post in dict.fromkeys(posts)]
        yield MoveInWarning(Message("{count} comments stay behind.", count=len(posts)), keys)


def _find_highest_ids(records: Records) -> dict[str, int]:
    posts = [entry for kind in ("media", "venues", "organizers", "events") for entry in records[kind]]
    terms = [entry for kind in ("categories", "tags") for entry in records[kind]]
    return {"posts": max(posts, default=0), "terms": max(terms, default=0), "users": max(records["users"], default=0)}
