"""Random writes of every kind, and random reads of every route, for the comparison of cached responses."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, LiteralString
from urllib.parse import quote, urlencode

import httpx

from kalends.calendar import jobs as calendar_jobs
from kalends.calendar.storage import record_tables
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.running_app import API_PATH, Caller, RunningApp
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.lifecycle.random_writers import KnownRecords, Writer

CORE_PATH: Final = "/wp-json/wp/v2"
CORE_ROUTES: Final = ("tribe_events", "tribe_venue", "tribe_organizer", "tribe_events_cat", "tags", "media")
LISTS: Final = ("events", "venues", "organizers", "categories", "tags")
RECENT_PATHS: Final = 15
WORDS: Final = ("concert", "market", "lecture", "opening")
ZONES: Final = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Auckland")
RULES: Final = ("FREQ=WEEKLY;COUNT=4", "FREQ=DAILY;INTERVAL=9;COUNT=3", "FREQ=MONTHLY;COUNT=3")
COSTS: Final = ("", "0", "12", "free")
IMAGE: Final = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00"
    b"\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"
)


@dataclass
class Clock:
    """The time of both servers, which only the test moves."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass
class CallerClient:
    """Sends the requests of a writer to an application in this process."""

    caller: Caller

    def request(self, method: str, path: str, *, json: Any = None, **options: Any) -> httpx.Response:
        return self.caller.request(method, f"/{path}", json=json, **options)


@dataclass
class RandomSite:
    """A site that is changed and read at random."""

    app: RunningApp
    clock: Clock
    seed: int
    known: KnownRecords = field(default_factory=KnownRecords)
    recent_paths: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT_PATHS))

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.writer = BusyWriter(self.app, self.clock, self.known, self.seed)

    def fill(self) -> None:
        """Add enough records for lists of several pages, filters with matches and a tree of categories."""
        for _ in range(4):
            for create in (self.writer.create_place, self.writer.create_term):
                create()
        for kind in ("venues", "organizers", "categories", "tags"):
            self.known.stable_ids[kind] = set(self.known.ids[kind][:2])
        for _ in range(25):
            self.writer.create_event()
        for work in (self.writer.create_series, self.writer.upload):
            work()

    def next_paths(self) -> list[str]:
        """Return the paths of the reads after a write.

        One is new, and the others were read after the writes before, so that their responses are in the cache.
        """
        self.recent_paths.append(self._make_path())
        return [path for path in self.recent_paths if self.rng.random() < 0.8]

    def _make_path(self) -> str:
        """Return the path of a random read, most of which return from time to time."""
        rng = Random(self.rng.randrange(60)) if self.rng.random() < 0.8 else self.rng
        make: Callable[[Random], str] = rng.choices(
            (self._event_list, self._list, self._record, self._core, self._page, self._feed), (8, 2, 4, 2, 5, 2)
        )[0]
        return make(rng)

    def _event_list(self, rng: Random) -> str:
        return f"{API_PATH}/events{_query(self._event_filters(rng))}"

    def _event_filters(self, rng: Random) -> dict[str, Any]:
        kinds = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}
        links = {name: self._stable(rng, kind) for name, kind in kinds.items()}
        first = self.clock.now.date() + timedelta(days=rng.randint(-40, 90))
        dates = {"start_date": first.isoformat(), "end_date": (first + timedelta(days=rng.choice((0, 6, 30))))}
        options: list[dict[str, Any]] = [
            {}, {}, dates, dates, dates, {"start_date": first.isoformat()}, {"ends_after": "now"},
            {"starts_before": first},
            *[{name: value} for name, value in links.items() for _ in range(2)], {"venue": links["venue"], **dates},
            {"search": rng.choice(WORDS)}, {"search": rng.choice(WORDS), "tags": links["tags"]},
            {"featured": "true"}, {"free": "true"}, {"geoloc": "true"}, {"hide_subsequent_recurrences": "true"},
            {"include": ",".join(map(str, rng.choices(self.known.ids["events"] or [1], k=3)))},
            {"series": rng.choice(self.known.ids["series"] or [1])}, {"event_status": "canceled"},
        ]  # fmt: skip
        query = dict(rng.choice(options))
        if rng.random() < 0.4:
            query |= {"orderby": rng.choice(("title", "date", "modified", "end_date")), "order": "desc"}
        if rng.random() < 0.4:
            query |= {"per_page": rng.choice((2, 5, 50)), "page": rng.choice((1, 1, 2))}
        return query

    def _stable(self, rng: Random, kind: str) -> int:
        return rng.choice(sorted(self.known.stable_ids[kind]) or [1])

    def _list(self, rng: Random) -> str:
        kind = rng.choice(LISTS[1:])
        post = {"event": rng.choice(self.known.ids["events"] or [1])}
        filters: list[dict[str, Any]] = [{}, {}, {"search": rng.choice(WORDS)}, {"per_page": 3}, post]
        if kind in ("venues", "organizers"):
            filters += [{"has_events": "true"}, {"only_with_upcoming": "true"}]
        return f"{API_PATH}/{kind}{_query(rng.choice(filters))}"

    def _record(self, rng: Random) -> str:
        kind = rng.choice((*LISTS, "events", "events", "series", "media"))
        ids = self.known.ids[kind]
        record_id = rng.choice(ids[-20:] if ids else [1])
        if kind in ("series", "media"):
            return f"{EXTENSION_PATH}/{kind}/{record_id}"
        return f"{API_PATH}/{kind}/{record_id}"

    def _core(self, rng: Random) -> str:
        route = rng.choice(CORE_ROUTES)
        options: list[dict[str, Any]] = [{}, {"per_page": 3}, {"search": rng.choice(WORDS)}, {"_embed": "1"}]
        return f"{CORE_PATH}/{route}{_query(rng.choice(options))}"

    def _page(self, rng: Random) -> str:
        day = self.clock.now.date() + timedelta(days=rng.randint(-20, 60))
        paths = ["/", "/events/list/", "/events/month/", f"/events/month/{day:%Y-%m}/", f"/events/week/{day}/",
                 f"/events/day/{day}/", "/events/map/", "/events/search/"]  # fmt: skip
        if rng.random() < 0.5:
            return rng.choice(paths) + _query(rng.choice(({}, {}, self._event_filters(rng))))
        kind, prefix = rng.choice(
            (("events", "event"), ("series", "series"), ("venues", "venue"), ("organizers", "organizer"),
             ("categories", "events/category"), ("tags", "tag"))
        )  # fmt: skip
        slugs = self.app.sql(f"SELECT slug FROM {kind} ORDER BY id DESC LIMIT 30")
        slug = quote(rng.choice(slugs)["slug"].removesuffix("__trashed") if slugs else "none")
        return (
            f"/{prefix}/{slug}.ics" if kind in ("events", "series") and rng.random() < 0.3 else f"/{prefix}/{slug}/"
        )

    def _feed(self, rng: Random) -> str:
        paths = ["/events.ics", "/events.rss", "/events.atom", "/events.json", "/sitemap.xml", "/sitemap/1.xml",
                 "/sitemap/terms.xml", "/robots.txt"]  # fmt: skip
        path = rng.choice(paths)
        return path + (_query({"venue": self._stable(rng, "venues")}) if rng.random() < 0.3 and "ev" in path else "")


class BusyWriter(Writer):
    """Also moves events, edits texts, series, images and settings, deletes for good, and lets time pass."""

    def __init__(self, app: RunningApp, clock: Clock, known: KnownRecords, seed: int) -> None:
        super().__init__(CallerClient(app.caller("administrator")), known, seed)  # type: ignore[arg-type]
        self.app, self.clock = app, clock
        more: dict[Callable[[], None], int] = {
            self.edit_text: 12, self.move: 12, self.decorate: 6, self.create_series: 2, self.edit_series: 4,
            self.upload: 1, self.edit_image: 2, self.set_site: 1, self.empty_trash: 1, self.discard: 2,
            self.pass_time: 3, self.refresh_zones: 1, self.trim_log: 1, self.write_batch: 2,
        }  # fmt: skip
        self._actions += list(more)
        self._weights += list(more.values())

    def edit_text(self) -> None:
        column = self.rng.choice(("excerpt", "description", "website"))
        text = "https://example.org/" if column == "website" else " ".join(self.rng.sample(WORDS, 2))
        self._change("events", {column: f"{text}{self._random_name()[5:]}"})

    def move(self) -> None:
        start = self.clock.now + timedelta(hours=self.rng.randint(-24 * 30, 24 * 90))
        length = timedelta(hours=self.rng.choice((0, 1, 30, 24 * 40, 24 * 1000)))
        times = {"start_date": f"{start:%Y-%m-%d %H:%M:00}", "end_date": f"{start + length:%Y-%m-%d %H:%M:00}"}
        self._change("events", {**times, "timezone": self.rng.choice(ZONES)})

    def decorate(self) -> None:
        media = self.known.ids["media"]
        values: list[dict[str, Any]] = [
            {"featured": self._coin_flip()}, {"sticky": self._coin_flip()}, {"cost": self.rng.choice(COSTS)},
            {"event_status": self.rng.choice(("scheduled", "canceled"))},
            {"slug": f"slug-{self.rng.randrange(1000)}"}, {"title": " ".join(self.rng.sample(WORDS, 2))},
        ]  # fmt: skip
        if media:
            values.append({"image": self.rng.choice(media)})
        self._change("events", self.rng.choice(values))

    def create_series(self) -> None:
        start = self.clock.now + timedelta(days=self.rng.randint(-5, 20))
        times = {"start_date": f"{start:%Y-%m-%d 19:00:00}", "end_date": f"{start:%Y-%m-%d 20:00:00}"}
        body = {"title": self._random_name(), **times, "rule": self.rng.choice(RULES), **self._random_links()}
        response = self._request("POST", f"{EXTENSION_PATH}/series", body)
        if response.status_code == 201:
            series_id = response.json()["id"]
            self.known.ids["series"].append(series_id)
            rows = self.app.sql("SELECT id FROM events WHERE series_id = $1", series_id)
            self.known.ids["events"] += [row["id"] for row in rows]

    def edit_series(self) -> None:
        dates = self.app.sql("SELECT id FROM events WHERE series_id IS NOT NULL ORDER BY random() LIMIT 1")
        if not dates:
            return
        values: list[dict[str, Any]] = [
            {"title": self._random_name()}, {"description": self.rng.choice(WORDS)}, self._random_links(),
            {"status": self._random_status()},
        ]  # fmt: skip
        scope = self.rng.choice(("this", "following", "all"))
        self._request("PATCH", f"{EXTENSION_PATH}/events/{dates[0]['id']}?scope={scope}", self.rng.choice(values))

    def upload(self) -> None:
        response = self.client.request(  # type: ignore[call-arg]
            "POST", f"{EXTENSION_PATH}/media", files={"file": ("dot.png", IMAGE, "image/png")}
        )
        if response.status_code == 201:
            self.known.ids["media"].append(response.json()["id"])

    def edit_image(self) -> None:
        if self.known.ids["media"]:
            media_id = self.rng.choice(self.known.ids["media"])
            self._request("PATCH", f"{EXTENSION_PATH}/media/{media_id}", {"alt_text": self._random_name()})

    def set_site(self) -> None:
        name, value = self.rng.choice(
            (("name", self._random_name()), ("timezone", self.rng.choice(ZONES)), ("per_page", "7"))
        )
        self.app.set_site(name, value)

    def empty_trash(self) -> None:
        for row in self.app.sql("SELECT id FROM events WHERE status = 'trash' ORDER BY id LIMIT 3"):
            self._remove(row["id"])

    def discard(self) -> None:
        """Trash an event and delete it for good before anybody reads: nothing knows its state any more."""
        event_id = self._random_id("events")
        self._request("DELETE", f"{API_PATH}/events/{event_id}")
        self._remove(event_id)

    def pass_time(self) -> None:
        """Let some time pass, across a midnight now and then, and publish what is due."""
        self.clock.now += timedelta(seconds=self.rng.choice((2, 600, 3600, 7 * 3600)))
        for row in self.app.sql("SELECT kind, id FROM due_records(100)"):
            self._run(lambda tx, row=row: calendar_jobs.publish_due(tx, row["kind"], row["id"]))

    def refresh_zones(self) -> None:
        """Move an event as new time zone data would: only its UTC times change."""
        event_id = self._random_id("events")

        async def shift(tx: Transaction) -> None:
            await tx.lock_site(None)
            row = await tx.fetch_one(
                Sql("SELECT start_utc, end_utc FROM events WHERE site_id = ? AND id = ?", tx.site.id, event_id)
            )
            if row is not None:
                times: dict[LiteralString, Any] = {
                    "start_utc": row["start_utc"] + timedelta(hours=1), "end_utc": row["end_utc"] + timedelta(hours=1)
                }  # fmt: skip
                revision = tx.changes.record("events", event_id, "update")
                await record_tables.change(
                    tx, "events", event_id, {**times, "revision": revision, "modified_utc": tx.now}
                )

        self._run(shift)

    def trim_log(self) -> None:
        self._run(lambda tx: calendar_jobs.trim_change_log(tx, self.clock.now))

    def _remove(self, event_id: int) -> None:
        """Delete an event for good if it is in the trash."""
        cutoff = self.clock.now + timedelta(seconds=1)
        self._run(lambda tx: calendar_jobs.remove_old_trash(tx, "events", event_id, cutoff))

    def _run(self, work: Callable[[Transaction], Awaitable[object]]) -> None:
        self.app.run_operation(work)

    def write_batch(self) -> None:
        ids = self.rng.sample(self.known.ids["events"], min(3, len(self.known.ids["events"])))
        requests = [
            {"method": "PATCH", "path": f"/events/{event_id}", "body": {"excerpt": self._random_name()}}
            for event_id in ids
        ]
        self._request("POST", f"{EXTENSION_PATH}/batch", {"requests": requests})


def _query(values: dict[str, Any]) -> str:
    return f"?{urlencode(values)}" if values else ""
