"""Reads a whole WordPress site with The Events Calendar into a snapshot.

Each pass reads the lists and then single events. A change during a pass shifts the pages, so the crawl ends only when
two passes agree. An interrupted crawl can be resumed. A later crawl reads only events whose modification time or list
content has changed. It skips the second pass if its first pass agrees with the last pass of the previous crawl.
"""

import asyncio
import hashlib
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from kalends.adapters.safe_fetch import Fetcher
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.imports.storage.import_tables import encode_message
from kalends.move_in import adapters
from kalends.move_in.adapters import Answer, SiteProblem, Sleep, SlowAnswer, TecSite
from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.rules.exchanges import (
    COMMENTS,
    DEFAULT_LIST,
    INDEX,
    MAX_COMMENT_PAGES,
    ME,
    PUBLIC_EVENTS,
    SETTINGS,
    TEC_EVENTS,
    TRIBE_LISTS,
    WP_LISTS,
    Exchange,
    JsonObject,
    count_pages,
    list_single_ids,
    page_address,
    read_items,
    read_object,
    read_page_size,
    read_total,
    tribe_event_address,
    wp_address,
)
from kalends.move_in.rules.mapping import list_image_urls
from kalends.move_in.rules.old_links import find_old_paths, list_current_paths

MAX_PASSES: Final = 6
MAX_PROBES: Final = 20_000
MAX_FILE_BYTES: Final = 20 * 1024 * 1024
CRAWL_TIMEOUT: Final = 60.0  # seconds per request; lists of 100 records are slow
MAX_PAGE_SIZE: Final = 100
# A list can exceed its reported total by this factor, because it may grow during the crawl.
MAX_EXCESS: Final = 1.1
MAX_LISTED: Final = 1_000_000
NOT_FETCHED: Final = 0  # the status of a file that could not be fetched
# Snapshot header with the hashes of an event in the lists, as they were before the event was read.
LISTED: Final = "listed"
# Event fields compared in lists, besides the modification time. Other fields change without an edit.
COMPARED_FIELDS: Final = (
    *("status", "slug", "title", "content", "excerpt", "description", "author", "featured_media", "image", "meta"),
    *("tags", "tribe_events_cat", "categories", "venue", "organizer", "cost", "cost_details", "website", "password"),
    *("start_date", "end_date", "timezone", "all_day", "featured", "sticky", "hide_from_listings", "date_gmt"),
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Crawl progress; `step` is lists, events, gaps, addresses or files."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ListState:
    """A list as read: record totals before and after reading, and each record's modification time and hash by ID."""

    totals: tuple[int | None, int | None]
    modified: Mapping[int, str]
    hashes: Mapping[int, str] = field(default_factory=dict[int, str], compare=False)

    @property
    def is_stable(self) -> bool:
        return self.totals[0] == self.totals[1]


@dataclass(frozen=True, slots=True)
class CrawlResult:
    number: int
    events: int
    requests: int
    passes: int
    warnings: Sequence[Message] = ()


async def crawl(
    fetcher: Fetcher,
    url: str,
    login: str,
    password: str,
    snapshot: Snapshot,
    *,
    rate: float | None = None,
    full: bool = False,
    old_urls: Iterable[str] = (),
    max_file_bytes: int = MAX_FILE_BYTES,
    progress: Callable[[Progress], object] = lambda _: None,
    sleep: Sleep = asyncio.sleep,
) -> CrawlResult:
    """Read a site into a snapshot. Raise SiteProblem with an explanation if it cannot be read.

    `old_urls` are addresses that might redirect to records. Without a login, store nothing and raise an exception
    that lists what would be missing.
    """
    site = TecSite(fetcher, url, login=login, password=password, rate=rate, sleep=sleep)
    form, index = await adapters.find_api(site)
    run = Crawl(site, snapshot, form, 0, progress, full=full, max_file_bytes=max_file_bytes)
    if not login:
        raise await run.explain_anonymous()
    account = await run.fetch_answer(ME)
    adapters.check_account(site, account)
    run.number = snapshot.begin_crawl(url.rstrip("/"))
    run.keep(ME, account)
    facts = read_object(run.keep(INDEX, index))
    snapshot.write_fact("namespaces", facts["namespaces"])
    snapshot.write_fact("home", str(facts.get("home") or run.site.url).rstrip("/"))
    await run.read_all(old_urls)
    snapshot.write_fact("warnings", [encode_message(message) for message in run.warnings])
    snapshot.end_crawl()
    return CrawlResult(run.number, len(list_single_ids(snapshot, "events")), site.requests, run.passes, run.warnings)


@dataclass(slots=True)
class Crawl:
    site: TecSite
    snapshot: Snapshot
    form: str
    number: int
    progress: Callable[[Progress], object]
    full: bool = False
    max_file_bytes: int = MAX_FILE_BYTES
    passes: int = 0
    warnings: list[Message] = field(default_factory=list[Message])
    # Records that were read by ID because no list contains them.
    unlisted: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    # Maximum number of records per request. It halves after a timeout and then grows again.
    page_size: int = MAX_PAGE_SIZE
    pages: tuple[int, int] = (0, 0)  # pages read, pages known

    # Single requests ----------------------------------------------------------------------------

    async def fetch_answer(self, address: str, *, is_divisible: bool = False) -> Answer:
        headers = adapters.EXPERIMENTAL if address.startswith("tec/") else None
        url = self.site.url + adapters.build_address(self.form, address)
        return await self.site.get_json(url, headers=headers, is_divisible=is_divisible)

    async def fetch(self, address: str) -> Exchange:
        return self.keep(address, await self.fetch_answer(address))

    def keep(self, address: str, answer: Answer) -> Exchange:
        exchange = _make_exchange(address, answer, self.number)
        self.snapshot.add(exchange)
        return exchange

    # The whole site -----------------------------------------------------------------------------

    async def read_all(self, old_urls: Iterable[str]) -> None:
        read_object(_require(await self.fetch(SETTINGS)))
        await self.fetch(DEFAULT_LIST)  # only to learn the number of events per page
        await self.read_comments()
        known = None if self.full else self.snapshot.read_fact("lists")
        while True:
            states = await self.read_lists()
            self.passes += 1
            await self.read_records(states)
            previous, known = known, _hash_lists(states)
            if previous == known and all(state.is_stable for state in states.values()):
                break
            if self.passes > MAX_PASSES:
                self.warnings.append(
                    Message("The site was edited all the time; run the command again when it is quiet.")
                )
                break
        self.snapshot.write_fact("lists", known)
        self.compare_totals(states)
        self.check_listed(states)
        await self.read_old_paths(old_urls)
        await self.read_files()

    async def read_comments(self) -> None:
        """Read which posts have comments, to report how many are not imported. Plugins often disable comments."""
        first = await self.fetch(COMMENTS)
        pages = count_pages(first.headers) if first.status == 200 else 1
        for page in range(2, pages + 1) if pages <= MAX_COMMENT_PAGES else ():
            await self.fetch(page_address(COMMENTS, page))

    # Lists --------------------------------------------------------------------------------------

    async def read_lists(self) -> dict[str, ListState]:
        addresses = [*WP_LISTS.values(), *TRIBE_LISTS.values(), *([TEC_EVENTS] if self.has_tec else [])]
        states: dict[str, ListState] = {}

        async def read(address: str) -> None:
            states[address] = await self.read_list(address)

        self.pages = (0, len(addresses))
        await self.for_each("", addresses, read)
        return {address: states[address] for address in addresses}

    @property
    def has_tec(self) -> bool:
        return "tec/v1" in self.snapshot.read_fact("namespaces", [])

    async def read_list(self, address: str) -> ListState:
        """Read all pages of a list. A page past the end means that the list got shorter."""
        first, size = await self.fetch_first(address)
        self.count_page()
        if first.status == 404 and address.startswith("tribe/"):
            self.keep(address, first)
            return ListState((0, 0), {})  # older TEC versions respond like this if a list is empty
        items = read_items(_require(_make_exchange(address, first, self.number)))
        size, total = _find_page_size(first, len(items), size), read_total(first.headers)
        last_page = _limit_pages(address, first, size)
        modified, hashes, last_total = _read_modified(items), _hash_items(items), total
        self.count_page(0, last_page - 1)

        async def read(page: int) -> None:
            nonlocal last_page, last_total
            if page > last_page:
                return
            answer = await self.fetch_page(address, page, size)
            self.count_page()
            if answer.status in (400, 404):
                last_page, last_total = min(last_page, page - 1), None
                return
            entries = read_items(_require(self.keep(page_address(address, page), answer)))
            if all(entry["id"] in modified for entry in entries):
                last_page = min(last_page, page)  # The page contains only known records.
            modified.update(_read_modified(entries))
            hashes.update(_hash_items(entries))
            if page == last_page:
                last_total = read_total(answer.headers)

        await self.for_each("", range(2, last_page + 1), read)
        # Store the number of valid pages: if the list got shorter, the snapshot still holds extra pages from an
        # earlier crawl.
        self.keep(address, replace(first, headers={**first.headers, "x-wp-totalpages": str(last_page)}))
        return ListState((total, last_total), modified, hashes)

    def count_page(self, done: int = 1, further: int = 0) -> None:
        self.pages = self.pages[0] + done, self.pages[1] + further
        self.progress(Progress("lists", *self.pages))

    async def fetch_first(self, address: str) -> tuple[Answer, int]:
        """Fetch a list's first page, as large as the site can send in time. Return the answer and the page size."""
        while True:
            size = min(read_page_size(address), self.page_size)
            try:
                answer = await self.fetch_answer(page_address(address, 1, size), is_divisible=size > 1)
            except SlowAnswer:
                self.page_size = min(self.page_size, size // 2)
            else:
                self.grow_pages(answer)
                return answer, size

    async def fetch_page(self, address: str, page: int, size: int) -> Answer:
        """Fetch a page of `size` records, in parts if the site is too slow."""
        while True:
            part = max(entry for entry in range(1, min(size, self.page_size) + 1) if size % entry == 0)
            try:
                return await self.fetch_parts(address, page, size, part)
            except SlowAnswer:
                self.page_size = min(self.page_size, part // 2)

    async def fetch_parts(self, address: str, page: int, size: int, part: int) -> Answer:
        count, items = size // part, list[Any]()
        last = Answer(404, {}, b"")
        for number in range((page - 1) * count + 1, page * count + 1):
            answer = await self.fetch_answer(page_address(address, number, part), is_divisible=part > 1)
            self.grow_pages(answer)
            if answer.status != 200 or count == 1:
                return answer if not items else last
            items += read_items(_make_exchange(address, answer, self.number))
            last = replace(answer, body=orjson.dumps(items))
        return last

    def grow_pages(self, answer: Answer) -> None:
        """Request more records at once if the site took less than a quarter of the timeout."""
        if answer.seconds < self.site.seconds / 4:
            self.page_size = min(2 * self.page_size, MAX_PAGE_SIZE)

    def compare_totals(self, states: Mapping[str, ListState]) -> None:
        for address, state in states.items():
            if state.totals[0] is not None and state.totals[0] != len(state.modified):
                self.warnings.append(
                    Message(
                        "The list {address} has {count} different records, but says that it has {total}.",
                        address=address.partition("?")[0], count=len(state.modified), total=state.totals[0],
                    )
                )  # fmt: skip

    def check_listed(self, states: Mapping[str, ListState]) -> None:
        gone = set(list_single_ids(self.snapshot, "events", 404)) & set(self.list_events(states))
        if gone:
            self.warnings.append(
                Message(
                    "{count} events are in a list, but not available by ID, for example {example}. Dates of "
                    "recurring events of Events Calendar Pro are like this; only their first date moves in.",
                    count=len(gone), example=min(gone),
                )
            )  # fmt: skip

    # Records by ID ------------------------------------------------------------------------------

    async def read_records(self, states: Mapping[str, ListState]) -> None:
        for kind in ("categories", "tags", "venues", "organizers"):
            await self.read_missing(kind, states)
        listed = self.list_events(states)
        known = [entry for entry in list_single_ids(self.snapshot, "events") if entry not in listed]
        needed = [entry for entry, states in listed.items() if not self.is_current(entry, states)]
        unlisted = [entry for entry in known if ("events", entry) not in self.unlisted]
        self.unlisted |= {("events", entry) for entry in unlisted}

        async def read(record_id: int) -> None:
            await self.read_event(record_id, listed.get(record_id))

        await self.for_each("events", sorted({*needed, *unlisted}), read)
        if not self.has_tec:
            await self.probe_gaps(states)

    async def read_missing(self, kind: str, states: Mapping[str, ListState]) -> None:
        """Fetch by ID each record that only the `tribe` list contains or that was fetched by ID before."""
        listed = states[WP_LISTS[kind]].modified
        stored = set(list_single_ids(self.snapshot, kind))
        for record_id in sorted((stored | set(states[TRIBE_LISTS[kind]].modified)) - set(listed)):
            if (kind, record_id) not in self.unlisted:
                self.unlisted.add((kind, record_id))
                await self.fetch(wp_address(kind, record_id))

    def list_events(self, states: Mapping[str, ListState]) -> dict[int, dict[str, tuple[str, str]]]:
        """Return each event's modification time and hash in each list namespace, by event ID."""
        events: dict[int, dict[str, tuple[str, str]]] = {}
        for address in (WP_LISTS["events"], TRIBE_LISTS["events"], TEC_EVENTS):
            state = states.get(address, ListState((0, 0), {}))
            for record_id, modified in state.modified.items():
                known = modified, state.hashes[record_id]
                events.setdefault(record_id, {})[address.partition("/")[0]] = known
        return events

    def is_current(self, record_id: int, listed: Mapping[str, tuple[str, str]]) -> bool:
        """Return whether the snapshot's event matches the lists."""
        stored = self.snapshot.find(wp_address("events", record_id))
        if stored is None or (self.full and stored.crawl != self.number):
            return False
        if stored.status != 200:
            return stored.crawl == self.number
        if {modified for modified, _ in listed.values()} != {_normalize_time(read_object(stored).get("modified"))}:
            return False
        # Past events disappear from the wp/v2 list, so compare only lists that contained the event before.
        before: dict[str, str] = orjson.loads(stored.headers.get(LISTED, "{}"))
        return all(before.get(name, value) == value for name, (_, value) in listed.items())

    async def read_event(self, record_id: int, listed: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Read an event from both APIs.

        Store the wp/v2 response last: if it is missing, a resumed crawl reads both again.
        """
        address = wp_address("events", record_id)
        answer = await self.fetch_answer(address)
        if answer.status == 401:
            raise SiteProblem("{url} no longer accepts the application password.", url=self.site.url)
        if answer.status == 200:  # TEC answers 403 for trashed events.
            read_object(_make_exchange(address, answer, self.number))
            await self.fetch(tribe_event_address(record_id))
        hashes = {name: value for name, (_, value) in (listed or {}).items()}
        self.keep(address, replace(answer, headers={**answer.headers, LISTED: orjson.dumps(hashes).decode()}))

    async def probe_gaps(self, states: Mapping[str, ListState]) -> None:
        """Try the IDs between known ones, because past hidden events appear in no list."""
        known = set(list_single_ids(self.snapshot, "events"))
        for kind in ("media", "venues", "organizers"):
            known |= set(states[WP_LISTS[kind]].modified)
        tried = known | set(list_single_ids(self.snapshot, "events", None))
        gaps = [entry for entry in range(max(known, default=0), min(known, default=1), -1) if entry not in tried]
        if len(gaps) > MAX_PROBES:
            self.warnings.append(
                Message(
                    "{count} IDs below {highest} were not tried; events that are hidden and over may be missing. "
                    "Update The Events Calendar to 6.15 or later on the old site.",
                    count=len(gaps) - MAX_PROBES, highest=gaps[MAX_PROBES] + 1,
                )
            )  # fmt: skip
        await self.for_each("gaps", gaps[:MAX_PROBES], self.read_event)

    # Old addresses and files --------------------------------------------------------------------

    async def read_old_paths(self, old_urls: Iterable[str]) -> None:
        """Request pages at former slugs; the site redirects them to the records."""
        home = urlsplit(self.site.url).path
        given = {urlsplit(url.strip()).path for url in old_urls if url.strip()}
        paths = sorted(
            {path for path in {*find_old_paths(self.snapshot), *given} if path.startswith("/") and path != "/"}
        )

        async def read(path: str) -> None:
            self.keep(
                path, await self.site.get_file(self.site.url + path.removeprefix(home), adapters.MAX_JSON_BYTES)
            )

        known = set[str]() if self.full else list_current_paths(self.snapshot)
        await self.for_each("addresses", [path for path in paths if not self._has_path(path, known)], read)

    def _has_path(self, path: str, known: Collection[str]) -> bool:
        stored = self.snapshot.find(path)
        return path in known or (stored is not None and stored.crawl == self.number)

    async def read_files(self) -> None:
        urls = [url for url in list_image_urls(self.snapshot) if not self._has_file(url)]
        await self.for_each("files", urls, self.read_file)

    def _has_file(self, url: str) -> bool:
        stored = self.snapshot.find(url)
        return stored is not None and (stored.status == 200 or stored.crawl == self.number)

    async def read_file(self, url: str) -> None:
        """Fetch an image.

        If its URL starts with the old site's home address, replace this part with the address used for the crawl.
        """
        home = self.snapshot.read_fact("home") or self.site.url
        target = self.site.url + url.removeprefix(home) if url.startswith(home + "/") else url
        try:
            self.keep(url, await self.site.get_file(target, self.max_file_bytes))
        except InvalidValue as error:
            if isinstance(error, SiteProblem) and adapters.is_same_origin(target, self.site.url):
                raise
            self.keep(url, Answer(NOT_FETCHED, {"problem": str(error)}, b""))

    # Helpers ------------------------------------------------------------------------------------

    async def for_each[T](self, step: str, entries: Sequence[T], read: Callable[[T], Awaitable[None]]) -> None:
        """Read entries concurrently and stop at the first failure. If `step` is empty, report no progress."""
        remaining = iter(entries)
        done = 0

        async def work() -> None:
            nonlocal done
            for entry in remaining:
                await read(entry)
                done += 1
                if step:
                    self.progress(Progress(step, done, len(entries)))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(adapters.MAX_PARALLEL, len(entries))):
                    group.create_task(work())
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def explain_anonymous(self) -> SiteProblem:
        found: set[int] = set()
        for address in PUBLIC_EVENTS:
            first = await self.fetch_answer(address)
            if first.status == 200:
                items = read_items(_make_exchange(address, first, 0))
                found |= {entry["id"] for entry in items}
                for page in range(2, _limit_pages(address, first, len(items) or 1) + 1):
                    answer = await self.fetch_answer(page_address(address, page))
                    further = read_items(_make_exchange(address, answer, 0)) if answer.status == 200 else []
                    if all(entry["id"] in found for entry in further):
                        break
                    found |= {entry["id"] for entry in further}
        return SiteProblem(
            "Without the login of an administrator only {count} published events of {url} can be found. {missing} "
            "Create an application password in the profile of an administrator.",
            count=len(found), url=self.site.url, missing=Message(adapters.MISSING),
        )  # fmt: skip


def _require(exchange: Exchange) -> Exchange:
    if exchange.status != 200:
        answer = Answer(exchange.status, exchange.headers, exchange.body)
        raise SiteProblem(
            "The site answered {status} {code} to {address}, which must be readable.",
            status=answer.status, code=answer.error_code, address=exchange.address.partition("?")[0],
        )  # fmt: skip
    return exchange


def _make_exchange(address: str, answer: Answer, crawl: int) -> Exchange:
    return Exchange(address, answer.status, answer.headers, answer.body, crawl)


def _find_page_size(first: Answer, count: int, size: int) -> int:
    """Return a list's page size; a site may send fewer records than requested."""
    total, pages = read_total(first.headers) or 0, count_pages(first.headers)
    return size if pages == 1 or pages == math.ceil(total / size) else max(count, 1)


def _limit_pages(address: str, first: Answer, size: int) -> int:
    """Return the number of pages to read: the site's number, unless it contradicts the record total."""
    pages, total = count_pages(first.headers), read_total(first.headers)
    most = math.ceil((MAX_LISTED if total is None else total) * MAX_EXCESS / size)
    if (total or min(pages, most) * size) > MAX_LISTED:
        raise SiteProblem(
            "The list {address} says that it has {total} records; at most {maximum} can be read.",
            address=address.partition("?")[0], total=total or pages * size, maximum=MAX_LISTED,
        )  # fmt: skip
    return max(min(pages, most), 1)


def _read_modified(items: Iterable[JsonObject]) -> dict[int, str]:
    return {entry["id"]: _normalize_time(entry.get("modified")) for entry in items}


def _hash_items(items: Iterable[JsonObject]) -> dict[int, str]:
    """Return hashes of the fields that an edit can change, by record ID. Linked records are hashed by ID."""
    return {entry["id"]: _hash([_identify(entry.get(name)) for name in COMPARED_FIELDS]) for entry in items}


def _identify(value: Any) -> Any:
    if isinstance(value, dict):
        entries: JsonObject = value
        return next((entries[name] for name in ("id", "raw") if name in entries), entries)
    return [_identify(entry) for entry in value] if isinstance(value, list) else value  # pyright: ignore


def _hash_lists(states: Mapping[str, ListState]) -> str:
    return _hash([[address, state.totals, sorted(state.modified.items())] for address, state in states.items()])


def _hash(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _normalize_time(text: object) -> str:
    return str(text or "").replace("T", " ")
