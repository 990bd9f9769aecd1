"""Renderings of digests and alerts that several recipients share, and whether they are still current."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kalends.calendar.access.caching import find_touched
from kalends.core.limits import ByteLru
from kalends.core.messages import choose_email_language
from kalends.core.times import utc_now
from kalends.core.urls import to_ascii_url
from kalends.follow.mails.alert_model import make_alert, write_calendar
from kalends.follow.mails.digest_model import Reader, make_digest
from kalends.follow.mails.message_bytes import PreparedMessage, prepare
from kalends.follow.operations.digest_content import read_digest
from kalends.follow.operations.event_follows import read_event_news
from kalends.follow.operations.followings import make_reader_context
from kalends.follow.rules.event_alerts import Decision
from kalends.follow.rules.slots import Slot
from kalends.store.database import Database, Transaction
from kalends.store.sites import Site

MAX_BYTES: Final = 32 * 1024 * 1024
MAX_AGE: Final = timedelta(minutes=10)
ENTRY_BYTES: Final = 2000  # besides the message
TAG_BYTES: Final = 80


@dataclass(frozen=True, slots=True)
class DigestKey:
    """What a rendering depends on besides the site's records and settings."""

    site_id: int
    query: str
    language: str
    slot: Slot
    since: int | None


@dataclass(frozen=True, slots=True)
class EventKey:
    """The same for emails about an event. A change makes them due for all its followers at one moment."""

    site_id: int
    event_id: int
    language: str
    known: str
    due_at: datetime


MailKey = DigestKey | EventKey


@dataclass(slots=True)
class Rendering:
    message: PreparedMessage | None  # None: nothing to say, or the site sends no emails
    is_off: bool
    revision: int
    current_at: int  # the last revision at which the rendering is known to be current
    tags: frozenset[str]
    made_at: datetime
    decision: Decision | None = None  # about an event

    async def is_current(self, tx: Transaction) -> bool:
        """Return whether nothing that the rendering shows has changed up to the transaction's revision."""
        last = tx.site.revision
        if last <= self.current_at:
            return True
        if not self.tags.isdisjoint(await find_touched(tx, self.current_at + 1, last)):
            return False
        self.current_at = max(self.current_at, last)
        return True


@dataclass(slots=True)
class Mailbox:
    """Who emails come from, and where their links lead."""

    base_url: str  # of sites without their own
    find_sender: Callable[[Site], str]

    def find_url(self, site: Site) -> str:
        """Return the URL for links, which are in headers, too."""
        return to_ascii_url(site.base_url or self.base_url).rstrip("/")

    def is_open(self, site: Site) -> bool:
        return site.follow_by_email and bool(self.find_url(site))


@dataclass(slots=True)
class RenderingCache:
    database: Database
    mailbox: Mailbox
    read_now: Callable[[], datetime] = utc_now
    number: int = 0  # renderings made
    _entries: ByteLru[MailKey, Rendering] = field(default_factory=lambda: ByteLru(MAX_BYTES))
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, key: MailKey) -> Rendering:
        """Return a rendering, which is made at most once at a time."""
        if (entry := self._find(key)) is not None:
            return entry
        async with self._lock:
            if (entry := self._find(key)) is None:
                entry = await self._render(key)
                size = entry.message.size if entry.message is not None else 0
                self._entries.put(key, entry, ENTRY_BYTES + TAG_BYTES * len(entry.tags) + size)
        return entry

    def discard(self, key: MailKey, rendering: Rendering) -> None:
        """Forget an outdated rendering, unless there is already a newer one."""
        if self._entries.get(key) is rendering:
            self._entries.discard(key)

    def _find(self, key: MailKey) -> Rendering | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.made_at > self.read_now() - MAX_AGE else None

    async def _render(self, key: MailKey) -> Rendering:
        now = self.read_now()
        async with self.database.transaction(key.site_id, now, writing=False) as tx:
            site, url = tx.site, self.mailbox.find_url(tx.site)
            if not self.mailbox.is_open(site):
                return Rendering(None, True, site.revision, site.revision, frozenset(["site"]), now)
            context = make_reader_context(tx, url)
            reader = Reader.make(site, choose_email_language(key.language, site.language), url)
            sender = self.mailbox.find_sender(site)
            message, decision = None, None
            self.number += 1
            if isinstance(key, EventKey):
                news = await read_event_news(context, key.event_id, key.known)
                decision, tags = news.decision, news.cache_tags
                if decision.sends:
                    message = prepare(make_alert(news, reader), reader, sender, write_calendar(news, reader))
            else:
                content = await read_digest(context, key.query, key.slot, key.since)
                tags = content.cache_tags
                if not content.is_empty:
                    message = prepare(make_digest(content, key.query, key.slot, reader), reader, sender)
        return Rendering(message, False, site.revision, site.revision, tags, now, decision)
