"""The structured data of a web page: events in JSON-LD (schema.org), and meta elements."""

import html
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any, Final, TypeGuard
from urllib.parse import urljoin

from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.urls import read_website
from kalends.imports.rules.table_cells import DAY_FIRST, MONTH_FIRST

Node = dict[str, Any]
MAX_NODES: Final = 50_000
MAX_LENGTH: Final = 500
_EVENT: Final = re.compile(
    r"(?:.*[/:])?(?:(?!Publication|Broadcast|OnDemand)\w*Event|EventSeries|Festival|Hackathon)"
)
_INHERITED: Final = ("location", "organizer", "image")  # by sub-events
# The meta elements with the properties of an event.
_META: Final = {
    "name": ("og:title", "twitter:title", "<title>"),
    "startDate": ("event:start_time", "og:event:start_time", "event:start_date", "startdate"),
    "endDate": ("event:end_time", "og:event:end_time", "event:end_date", "enddate"),
    "description": ("og:description", "twitter:description", "description"),
    "image": ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "image"),
    "location": ("event:location", "og:event:location", "event:venue"),
}
# Other codecs are slow, or not for text. Browsers read ISO 8859-1 as Windows-1252.
_CODECS: Final = re.compile(r"utf-?(?:8|16)|(?:iso-?8859|windows|cp)-?\d+(?:-\d+)?|koi8-.|shift_jis|euc-..|gb\d*k?")
_LATIN: Final = ("iso-8859-1", "latin1", "us-ascii")
_CHARSET: Final = re.compile(r"charset\s{0,9}=\s{0,9}[\"']?([\w-]{1,30})", re.IGNORECASE | re.ASCII)
_WRAPPING: Final = re.compile(r"<!--|-->|(?://\s{0,9})?(?:<!\[CDATA\[|\]\]>)")
_LAST_COMMA: Final = re.compile(r",(?=\s*[}\]])")
_TEXT_ELEMENTS: Final = ("script", "style", "noscript", "title")


def decode(data: bytes, content_type: str) -> str:
    """Decode a page by its headers or its own statement, or else as UTF-8 or Windows-1252."""
    found = _CHARSET.search(content_type) or _CHARSET.search(data[:4096].decode("latin-1"))
    name = found[1].lower() if found else "utf-8"
    for codec in ("cp1252" if name in _LATIN else name if _CODECS.fullmatch(name) else "utf-8", "utf-8"):
        try:
            return data.decode(codec).removeprefix("\ufeff")
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


class PageData(HTMLParser):
    """Collects a page's JSON-LD and meta elements."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url, self.base, self.order = url, url, DAY_FIRST
        self.scripts: list[str] = []
        self.meta: dict[str, str] = {}
        self.has_programs, self.visible, self._inside = False, 0, ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("property") or given.get("itemprop") or (given.get("name") if tag == "meta" else "")
        if name and (value := given.get("content") or given.get("datetime")):
            self.meta.setdefault(name.lower(), value.strip())
        elif tag == "base":
            self.base = self.link(given.get("href")) or self.url
        elif tag == "html":
            self.order = MONTH_FIRST if given.get("lang", "").lower() in ("en", "en-us") else DAY_FIRST
        elif tag in _TEXT_ELEMENTS:
            self._inside = "data" if "ld+json" in given.get("type", "").lower() else tag
            self.has_programs |= self._inside == "script"
            self.scripts += [""] * (self._inside == "data")

    def handle_endtag(self, tag: str) -> None:
        if tag in _TEXT_ELEMENTS:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.scripts[-1] += data
        elif self._inside == "title":
            self.meta.setdefault("<title>", data.strip())
        elif not self._inside:
            self.visible += len(data.strip())

    def describe(self) -> Node:
        """Return the meta elements as properties of an event. The title loses the name of the site."""
        found = {name: next(filter(None, map(self.meta.get, keys)), "") for name, keys in _META.items()}
        bare = re.sub(r"\s[|–—·-]\s?$", "", found["name"].removesuffix(self.meta.get("og:site_name", "")))
        return {name: value for name, value in {**found, "name": bare or found["name"]}.items() if value}

    def link(self, value: Any) -> str:
        """Return the first valid address in a value, as an absolute URL."""
        for entry in as_list(value):
            text = entry.get("url") or entry.get("contentUrl") if is_node(entry) else entry
            try:
                if text and (found := read_website(urljoin(self.base, html.unescape(text).strip()))):
                    return found
            except (InvalidValue, AttributeError, TypeError, ValueError):
                continue
        return ""


# JSON-LD ----------------------------------------------------------------------------------------


def list_events(scripts: Sequence[str]) -> list[Node]:
    """Return the events in all scripts, outermost first, with the nodes that they refer to by ID."""
    queue: list[tuple[Any, Node | None]] = [(_load(script), {}) for script in scripts]
    found: list[Node] = []
    by_id: dict[str, Node] = {}
    # Inside an event, `inherited` is None, because only its sub-events count.
    for value, inherited in queue:
        if len(queue) > MAX_NODES:
            break
        if not is_node(value):
            queue += [(entry, inherited) for entry in as_list(value) if isinstance(entry, dict | list)]
            continue
        if "@id" in value and len(value) > 2:
            by_id.setdefault(str(value["@id"]), value)
        is_event = inherited is not None and any(_EVENT.fullmatch(str(name)) for name in as_list(value.get("@type")))
        if inherited is not None and is_event and ("name" in value or "startDate" in value):
            found.append({**inherited, **value})
        common: Node = {name: value[name] for name in _INHERITED if name in value}
        for name, child in value.items():
            queue.append((child, inherited if not is_event else common if name == "subEvent" else None))
    return [
        {name: [_refer(entry, by_id) for entry in as_list(value)] for name, value in row.items()} for row in found
    ]


def _load(script: str) -> Any:
    """Return a script's value. Tolerate comments, last commas, line breaks in strings, and escaped quotes."""
    text = _WRAPPING.sub("", script).strip().rstrip(";")
    for candidate in (text, _LAST_COMMA.sub("", text), _LAST_COMMA.sub("", html.unescape(text))):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _refer(value: Any, by_id: dict[str, Node]) -> Any:
    """Return the node that a value refers to, or the value. A reference has an ID and perhaps a type."""
    return by_id.get(str(value["@id"]), value) if is_node(value) and "@id" in value and len(value) <= 2 else value


def is_node(value: Any) -> TypeGuard[Node]:
    return isinstance(value, dict)


def as_list(value: Any) -> list[Any]:
    entries: list[Any] = value if isinstance(value, list) else [] if value in (None, "") else [value]
    return entries


def read_text(value: Any, limit: int = MAX_LENGTH) -> str:
    """Return the start of the first text or number in a value. An object counts by its value or name."""
    for entry in as_list(value):
        text = read_text(entry.get("@value") or entry.get("name"), limit) if is_node(entry) else entry
        if isinstance(text, str | int | float) and str(text).strip():
            return str(text)[:limit].strip()
    return ""


def read_line(value: Any) -> str:
    return to_plain_text(html.unescape(read_text(value)))
