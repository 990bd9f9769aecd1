"""RSS, Atom and JSON Feed of the events of a list: news of what is to come, for readers and other sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Any, Final

import orjson

from kalends.core.html_text import to_plain_text

RSS_TYPE: Final = "application/rss+xml; charset=utf-8"
ATOM_TYPE: Final = "application/atom+xml; charset=utf-8"
JSON_TYPE: Final = "application/feed+json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    home_url: str
    url: str
    language: str


@dataclass(frozen=True, slots=True)
class Item:
    """An event; `when` and `where` are said in the language of the feed."""

    record: dict[str, Any]
    when: str
    where: str

    @property
    def html(self) -> str:
        line = " · ".join(filter(None, (self.when, self.where)))
        return f"<p>{escape(line)}</p>\n{self.record['excerpt'] or self.record['description']}"

    @property
    def title(self) -> str:
        return to_plain_text(self.record["title"])


def write_rss(channel: Channel, items: Sequence[Item]) -> str:
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">',
        f"<channel><title>{_escape_xml(channel.name)}</title><link>{_escape_xml(channel.home_url)}</link>",
        f"<description>{_escape_xml(channel.name)}</description><language>{_escape_xml(channel.language)}</language>",
        f'<atom:link href="{_escape_xml(channel.url)}" rel="self" type="application/rss+xml"/>',
    ]
    for item in items:
        record = item.record
        categories = "".join(f"<category>{_escape_xml(term['name'])}</category>" for term in record["categories"])
        parts.append(
            f"<item><title>{_escape_xml(item.title)}</title><link>{_escape_xml(record['url'])}</link>"
            f'<guid isPermaLink="false">urn:uuid:{record["uid"]}</guid>'
            f"<pubDate>{format_datetime(_parse_datetime(record['date_utc']))}</pubDate>{categories}"
            f"<description>{_escape_xml(item.html)}</description></item>"
        )
    return "\n".join([*parts, "</channel></rss>\n"])


def write_atom(channel: Channel, items: Sequence[Item]) -> str:
    newest = max((item.record["modified_utc"] for item in items), default="1970-01-01 00:00:00")
    parts = [
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
        f'xml:lang="{_escape_xml(channel.language)}">',
        f"<id>{_escape_xml(channel.url)}</id><title>{_escape_xml(channel.name)}</title><updated>{_to_iso(newest)}</updated>",
        f'<author><name>{_escape_xml(channel.name)}</name></author><link href="{_escape_xml(channel.home_url)}"/>',
        f'<link rel="self" href="{_escape_xml(channel.url)}"/>',
    ]
    for item in items:
        record = item.record
        categories = "".join(
            f'<category term="{_escape_xml(term["slug"])}" label="{_escape_xml(term["name"])}"/>'
            for term in record["categories"]
        )
        parts.append(
            f"<entry><id>urn:uuid:{record['uid']}</id><title>{_escape_xml(item.title)}</title>"
            f'<link href="{_escape_xml(record["url"])}"/><published>{_to_iso(record["date_utc"])}</published>'
            f"<updated>{_to_iso(record['modified_utc'])}</updated>{categories}"
            f'<content type="html">{_escape_xml(item.html)}</content></entry>'
        )
    return "\n".join([*parts, "</feed>\n"])


def write_json(channel: Channel, items: Sequence[Item]) -> bytes:
    """JSON Feed 1.1; what belongs to an event stands under `_event`, as extensions do."""
    entries: list[dict[str, Any]] = []
    for item in items:
        record = item.record
        entry = {
            "id": f"urn:uuid:{record['uid']}",
            "url": record["url"],
            "title": item.title,
            "content_html": item.html,
            "summary": item.when,
            "date_published": _to_iso(record["date_utc"]),
            "date_modified": _to_iso(record["modified_utc"]),
            "tags": [term["name"] for term in record["categories"]],
            "_event": {
                "start_date": record["start_date"],
                "end_date": record["end_date"],
                "timezone": record["timezone"],
                "utc_start_date": record["utc_start_date"],
                "utc_end_date": record["utc_end_date"],
                "all_day": record["all_day"],
                "location": item.where,
            },
        }
        if record["image"]:
            entry["image"] = record["image"]["url"]
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
    """Addresses, each with the day of its last change, or ""."""
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


def _parse_datetime(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _to_iso(text: str) -> str:
    return text.replace(" ", "T") + "Z"


# Characters that XML 1.0 cannot hold; what is stored has no other control characters.
_NOT_XML: Final = dict.fromkeys([*range(0x20), 0xFFFE, 0xFFFF])
for _allowed in (0x09, 0x0A, 0x0D):
    del _NOT_XML[_allowed]


def _escape_xml(text: str) -> str:
    return escape(text.translate(_NOT_XML))
