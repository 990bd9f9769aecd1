"""Reading a whole WordPress site with The Events Calendar into a snapshot.

The lists are read twice at least, before and after the single events, until two passes agree, because a change
during the crawl shifts the pages. A crawl that was interrupted continues; a later one reads only what has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from kalends.adapters.safe_fetch import Fetcher
from kalends.adapters.tec_site import (
    EXPERIMENTAL,
    MAX_JSON_BYTES,
    Answer,
    SiteProblem,
    Sleep,
    TecSite,
    is_same_origin,
)
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.tec.exchanges import (
    DEFAULT_LIST,
    INDEX,
    ME,
    PUBLIC_EVENTS,
    SETTINGS,
    TEC_EVENTS,
    TRIBE_LISTS,
    WP_LISTS,
    Exchange,
    count_pages,
    list_single_ids,
    page_address,
    read_items,
    read_total,
    tribe_event_address,
    wp_address,
)
from kalends.core.tec.links import find_old_paths
from kalends.core.tec.mapping import list_image_urls
from kalends.operations.move_in.discovery import MISSING, build_address, check_account, find_api
from kalends.operations.move_in.snapshot import Snapshot
from kalends.store.imports import encode_message

MAX_PASSES: Final = 6
MAX_PROBES: Final = 20_000
MAX_FILE_BYTES: Final = 20 * 1024 * 1024
WORKERS: Final = 3
CRAWL_TIMEOUT: Final = 60.0  # seconds of one request; lists of 100 records take some
NOT_FETCHED: Final = 0  # the status of a file that could not be fetched


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being read: lists, events, gaps, addresses or files."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ListState:
    """The records of a list: the totals at its begin and end, and the time of change of each record by ID."""

    totals: tuple[int | None, int | None]
    modified: Mapping[int, str]

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
    """Read a site into a snapshot. Raise SiteProblem with a sentence if that is not possible.

    `old_urls` are addresses that may redirect to records. Without a login nothing is read: the exception says what
    would be missing.
    """
    site = TecSite(fetcher, url, login=login, password=password, rate=rate, sleep=sleep)
    form, index = await find_api(site)
    run = Crawl(site, snapshot, form, 0, progress, full=full, max_file_bytes=max_file_bytes)
    if not login:
        raise await run.explain_anonymous()
    account = await run.fetch_answer(ME)
    check_account(site, account)
    run.number = snapshot.begin_crawl(url.rstrip("/"))
    run.keep(INDEX, index)
    run.keep(ME, account)
    snapshot.write_fact("namespaces", index.json["namespaces"])
    snapshot.write_fact("home", str(index.json.get("home") or run.site.url).rstrip("/"))
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
    # Records that were read by ID while they were in no list.
    unlisted: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    # Single requests ----------------------------------------------------------------------------

    async def fetch_answer(self, address: str) -> Answer:
        headers = EXPERIMENTAL if address.startswith("tec/") else None
        return await self.site.get_json(self.site.url + build_address(self.form, address), headers=headers)

    async def fetch(self, address: str) -> Exchange:
        return self.keep(address, await self.fetch_answer(address))

    def keep(self, address: str, answer: Answer) -> Exchange:
        exchange = Exchange(address, answer.status, answer.headers, answer.body, self.number)
        self.snapshot.add(exchange)
        return exchange

    # The whole site -----------------------------------------------------------------------------

    async def read_all(self, old_urls: Iterable[str]) -> None:
        _require(await self.fetch(SETTINGS))
        await self.fetch(DEFAULT_LIST)  # only for the number of events per page
        states: dict[str, ListState] = {}
        while True:
            previous, states = states, await self.read_lists()
            self.passes += 1
            if previous == states and all(state.is_stable for state in states.values()):
                break
            if self.passes > MAX_PASSES:
                self.warnings.append(
                    Message("The site was edited all the time; run the command again when it is quiet.")
                )
                break
            await self.read_records(states)
        self.compare_totals(states)
        self.check_listed(states)
        await self.read_old_paths(old_urls)
        await self.read_files()

    async def read_lists(self) -> dict[str, ListState]:
        addresses = [*WP_LISTS.values(), *TRIBE_LISTS.values(), *([TEC_EVENTS] if self.has_tec else [])]
        states: dict[str, ListState] = {}
        for number, address in enumerate(addresses):
            self.progress(Progress("lists", number, len(addresses)))
            states[address] = await self.read_list(address)
        self.progress(Progress("lists", len(addresses), len(addresses)))
        return states

    @property
    def has_tec(self) -> bool:
        return "tec/v1" in self.snapshot.read_fact("namespaces", [])

    async def read_list(self, address: str) -> ListState:
        """Read all pages of a list. A page behind the end means that the list has become shorter."""
        first = last = await self.fetch(address)
        if first.status == 404 and address.startswith("tribe/"):
            return ListState((0, 0), {})  # Former versions of TEC answer an empty list like this.
        _require(first)
        modified = _read_modified(first)
        for page in range(2, count_pages(first.headers) + 1):
            exchange = await self.fetch(page_address(address, page))
            if exchange.status in (400, 404):
                return ListState((read_total(first.headers), None), modified)
            last = _require(exchange)
            modified |= _read_modified(last)
        return ListState((read_total(first.headers), read_total(last.headers)), modified)

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
        needed = [entry for entry, times in listed.items() if not self.is_current(entry, times)]
        unlisted = [entry for entry in known if ("events", entry) not in self.unlisted]
        self.unlisted |= {("events", entry) for entry in unlisted}
        await self.for_each("events", sorted({*needed, *unlisted}), self.read_event)
        if not self.has_tec:
            await self.probe_gaps(states)

    async def read_missing(self, kind: str, states: Mapping[str, ListState]) -> None:
        """Read the records by ID that only the list of `tribe` has, and those that were read so before."""
        listed = states[WP_LISTS[kind]].modified
        stored = set(list_single_ids(self.snapshot, kind))
        for record_id in sorted((stored | set(states[TRIBE_LISTS[kind]].modified)) - set(listed)):
            if (kind, record_id) not in self.unlisted:
                self.unlisted.add((kind, record_id))
                await self.fetch(wp_address(kind, record_id))

    def list_events(self, states: Mapping[str, ListState]) -> dict[int, set[str]]:
        """Return the events of all lists with the times of change that the lists have."""
        events: dict[int, set[str]] = {}
        for address in (WP_LISTS["events"], TRIBE_LISTS["events"], TEC_EVENTS):
            for record_id, modified in states[address].modified.items() if address in states else ():
                events.setdefault(record_id, set()).add(modified)
        return events

    def is_current(self, record_id: int, modified: set[str]) -> bool:
        """Return whether the snapshot has an event as the lists describe it."""
        stored = self.snapshot.find(wp_address("events", record_id))
        if stored is None or (self.full and stored.crawl != self.number):
            return False
        if stored.status != 200:
            return stored.crawl == self.number
        return modified == {_normalize_time(stored.json.get("modified"))}

    async def read_event(self, record_id: int) -> None:
        """Read an event from both APIs. The first one is stored last, so that an interruption loses neither."""
        address = wp_address("events", record_id)
        answer = await self.fetch_answer(address)
        if answer.status == 401:
            raise SiteProblem("{url} no longer accepts the application password.", url=self.site.url)
        if answer.status == 200:  # TEC answers 403 for the trash.
            await self.fetch(tribe_event_address(record_id))
        self.keep(address, answer)

    async def probe_gaps(self, states: Mapping[str, ListState]) -> None:
        """Ask for the IDs between the known ones: no list has events that are hidden and over."""
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
        """Request the pages of former slugs; the site redirects them to the records."""
        home = urlsplit(self.site.url).path
        given = {urlsplit(url.strip()).path for url in old_urls if url.strip()}
        paths = sorted(
            {path for path in {*find_old_paths(self.snapshot), *given} if path.startswith("/") and path != "/"}
        )

        async def read(path: str) -> None:
            self.keep(path, await self.site.get_file(self.site.url + path.removeprefix(home), MAX_JSON_BYTES))

        await self.for_each("addresses", [path for path in paths if not self._has_path(path)], read)

    def _has_path(self, path: str) -> bool:
        stored = self.snapshot.find(path)
        return stored is not None and stored.crawl == self.number

    async def read_files(self) -> None:
        urls = [url for url in list_image_urls(self.snapshot) if not self._has_file(url)]
        await self.for_each("files", urls, self.read_file)

    def _has_file(self, url: str) -> bool:
        stored = self.snapshot.find(url)
        return stored is not None and (stored.status == 200 or stored.crawl == self.number)

    async def read_file(self, url: str) -> None:
        """Fetch an image. Those of the site itself come from the address at which it is read."""
        home = self.snapshot.read_fact("home") or self.site.url
        target = self.site.url + url.removeprefix(home) if url.startswith(home + "/") else url
        try:
            self.keep(url, await self.site.get_file(target, self.max_file_bytes))
        except InvalidValue as error:
            if isinstance(error, SiteProblem) and is_same_origin(target, self.site.url):
                raise
            self.keep(url, Answer(NOT_FETCHED, {"problem": str(error)}, b""))

    # Helpers ------------------------------------------------------------------------------------

    async def for_each[T](self, step: str, entries: Sequence[T], read: Callable[[T], Awaitable[None]]) -> None:
        """Read entries with some requests at the same time; the first failure ends all."""
        remaining = iter(entries)
        done = 0

        async def work() -> None:
            nonlocal done
            for entry in remaining:
                await read(entry)
                done += 1
                self.progress(Progress(step, done, len(entries)))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(WORKERS, len(entries))):
                    group.create_task(work())
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def explain_anonymous(self) -> SiteProblem:
        found: set[int] = set()
        for address in PUBLIC_EVENTS:
            first = await self.fetch_answer(address)
            pages = count_pages(first.headers) if first.status == 200 else 0
            for page in range(1, pages + 1):
                answer = first if page == 1 else await self.fetch_answer(page_address(address, page))
                found |= {entry["id"] for entry in read_items(answer.json)} if answer.status == 200 else set()
        return SiteProblem(
            "Without the login of an administrator only {count} published events of {url} can be found. {missing} "
            "Create an application password in the profile of an administrator.",
            count=len(found), url=self.site.url, missing=Message(MISSING),
        )  # fmt: skip


def _require(exchange: Exchange) -> Exchange:
    if exchange.status != 200:
        answer = Answer(exchange.status, exchange.headers, exchange.body)
        raise SiteProblem(
            "The site answered {status} {code} to {address}, which must be readable.",
            status=answer.status, code=answer.error_code, address=exchange.address.partition("?")[0],
        )  # fmt: skip
    return exchange


def _read_modified(exchange: Exchange) -> dict[int, str]:
    return {entry["id"]: _normalize_time(entry.get("modified")) for entry in read_items(exchange.json)}


def _normalize_time(text: object) -> str:
    return str(text or "").replace("T", " ")
