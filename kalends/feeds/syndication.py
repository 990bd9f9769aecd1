"""RSS, Atom and JSON Feed output for a list's upcoming events, and sitemaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime as format_rfc2822
from html import escape
from typing import Any, Final

import orjson

from kalends.calendar.rules.fields import EVENT_FIELDS, Plain
from kalends.calendar.rules.record_types import Event
from kalends.core.credentials import is_uuid
from kalends.core.html_text import to_plain_text
from kalends.core.times import format_datetime

RSS_TYPE: Final = "application/rss+xml; charset=utf-8"
ATOM_TYPE: Final = "application/atom+xml; charset=utf-8"
JSON_TYPE: Final = "application/feed+json; charset=utf-8"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Changes to these fields increase SEQUENCE. JSON Feed lists them besides the times and places.
_STATE: Final = Plain(row for row in EVENT_FIELDS if row.in_sequence)


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    home_url: str
    url: str
    language: str


@dataclass(frozen=True, slots=True)
class Item:
    """An event with its time and place formatted in the feed's language.

    `marked_title` is the title including the event status.
    """

    event: Event
    when: str
    where: str
    marked_title: str = ""

    @property
    def id(self) -> str:
        """Return the event's feed ID. An imported event keeps the ID from its former site."""
        return self.event.feed_guid or (f"urn:uuid:{self.event.uid}" if is_uuid(self.event.uid) else self.event.uid)

    @property
    def html(self) -> str:
        line = " · ".join(filter(None, (self.when, self.where)))
        reason = f"<p>{escape(self.event.reason)}</p>\n" if self.event.reason else ""
        return f"<p>{escape(line)}</p>\n{reason}{self.event.excerpt or self.event.description}"

    @property
    def title(self) -> str:
        return self.marked_title or to_plain_text(self.event.title)


def write_rss(channel: Channel, items: Sequence[Item]) -> str:
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">',
        f"<channel><title>{_escape_xml(channel.name)}</title><link>{_escape_xml(channel.home_url)}</link>",
        f"<description>{_escape_xml(channel.name)}</description><language>{_escape_xml(channel.language)}</language>",
        f'<atom:link href="{_escape_xml(channel.url)}" rel="self" type="application/rss+xml"/>',
    ]
    for item in items:
        event = item.event
        categories = "".join(f"<category>{_escape_xml(term.name)}</category>" for term in event.categories)
        parts.append(
            f"<item><title>{_escape_xml(item.title)}</title><link>{_escape_xml(event.url)}</link>"
            f'<guid isPermaLink="false">{_escape_xml(item.id)}</guid>'
            f"<pubDate>{format_rfc2822(event.date_utc)}</pubDate>{categories}"
            f"<description>{_escape_xml(item.html)}</description></item>"
        )
    return "\n".join([*parts, "</channel></rss>\n"])


def write_atom(channel: Channel, items: Sequence[Item]) -> str:
    updated = max((item.event.modified_utc for item in items), default=EPOCH)
    parts = [
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
        f'xml:lang="{_escape_xml(channel.language)}">',
        f"<id>{_escape_xml(channel.url)}</id><title>{_escape_xml(channel.name)}</title><updated>{_to_iso(updated)}</updated>",
        f'<author><name>{_escape_xml(channel.name)}</name></author><link href="{_escape_xml(channel.home_url)}"/>',
        f'<link rel="self" href="{_escape_xml(channel.url)}"/>',
    ]
    for item in items:
        event = item.event
        categories = "".join(
            f'<category term="{_escape_xml(term.slug)}" label="{_escape_xml(term.name)}"/>'
            for term in event.categories
        )
        parts.append(
            f"<entry><id>{_escape_xml(item.id)}</id><title>{_escape_xml(item.title)}</title>"
            f'<link href="{_escape_xml(event.url)}"/><published>{_to_iso(event.date_utc)}</published>'
            f"<updated>{_to_iso(event.modified_utc)}</updated>{categories}"
            f'<content type="html">{_escape_xml(item.html)}</content></entry>'
        )
    return "\n".join([*parts, "</feed>\n"])


def write_json(channel: Channel, items: Sequence[Item]) -> bytes:
    """Write JSON Feed 1.1. The extension `_event` contains event fields."""
    entries: list[dict[str, Any]] = []
    for item in items:
        event = item.event
        entry: dict[str, Any] = {
            "id": item.id,
            "url": event.url,
            "title": item.title,
            "content_html": item.html,
            "summary": item.when,
            "date_published": _to_iso(event.date_utc),
            "date_modified": _to_iso(event.modified_utc),
            "tags": [term.name for term in event.categories],
            "_event": {
                "start_date": format_datetime(event.start_local),
                "end_date": format_datetime(event.end_local),
                "timezone": event.timezone,
                "utc_start_date": format_datetime(event.start_utc),
                "utc_end_date": format_datetime(event.end_utc),
                "all_day": None if event.is_locked else event.all_day,
                "location": item.where,
                **dict(zip(_STATE.names, _STATE.get_attributes(event), strict=True)),
            },
        }
        if event.is_locked:
            entry["_event"]["event_status"] = None
        if event.image:
            entry["image"] = event.image.url
        entries.append(entry)
    body = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.name,
        "home_page_url": channel.home_url,
        "feed_url": channel.url,
        "language": channel.language,
        "items": entries,
    }
    return orjson.dumps(body)


def write_sitemap(urls: Sequence[tuple[str, str]]) -> str:
    """Write a sitemap of these URLs, each with the day it last changed or ""."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">']
    for url, last_modified in urls:
        day = f"<lastmod>{last_modified}</lastmod>" if last_modified else ""
        lines.append(f"<url><loc>{_escape_xml(url)}</loc>{day}</url>")
    return "\n".join([*lines, "</urlset>\n"])


def write_sitemap_index(urls: Sequence[str]) -> str:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    ]
    lines += [f"<sitemap><loc>{_escape_xml(url)}</loc></sitemap>" for url in urls]
    return "\n".join([*lines, "</sitemapindex>\n"])


def _to_iso(utc: datetime) -> str:
    return format_datetime(utc).replace(" ", "T") + "Z"


# Characters not allowed in XML 1.0; stored texts contain no other control characters.
_NOT_XML: Final = dict.fromkeys([*range(0x20), 0xFFFE, 0xFFFF])
for _allowed in (0x09, 0x0A, 0x0D):
    del _NOT_XML[_allowed]


def _escape_xml(text: str) -> str:
    return escape(text.translate(_NOT_XML))
