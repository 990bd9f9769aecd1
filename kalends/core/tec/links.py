"""Addresses of records on the former site: former slugs, and the beginnings of paths."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from kalends.core.slugs import normalize_lookup
from kalends.core.tec.addresses import last_segment
from kalends.core.tec.exchanges import Exchanges, JsonObject, read_records
from kalends.core.tec.fields import find_prevalent, read_raw
from kalends.core.tec.move_in import PrefixRedirect, SlugRedirect
from kalends.core.tec.slugs import strip_trashed

POST_KINDS: Final = ("events", "venues", "organizers")
REDIRECT_STATUSES: Final = (301, 302, 308)
# Where the pages of each kind are here.
PREFIXES: Final = {
    "events": "/event/",
    "venues": "/venue/",
    "organizers": "/organizer/",
    "categories": "/events/category/",
    "tags": "/tag/",
}


def find_old_paths(exchanges: Exchanges) -> list[str]:
    """Return the paths that public records probably had, according to their permanent IDs."""
    paths: list[str] = []
    for kind in POST_KINDS:
        for record in read_records(exchanges, kind).values():
            slug = last_segment(read_raw(record, "guid"))
            prefix = _find_prefix(record)
            if (
                record.get("status") == "publish"
                and slug
                and prefix
                and slug != strip_trashed(str(record.get("slug") or ""))
            ):
                paths.append(f"{prefix}{slug}/")
    return paths


def find_redirects(exchanges: Exchanges, records: Mapping[str, Mapping[int, JsonObject]]) -> list[SlugRedirect]:
    """Return the former slugs of records, which the site redirects to their pages."""
    pages = _list_pages(records)
    redirects: dict[tuple[str, str], SlugRedirect] = {}
    for exchange in exchanges.list("/"):
        target = pages.get(_normalize(exchange.headers.get("location", "")))
        slug = normalize_lookup(unquote(last_segment(exchange.address)))
        if exchange.status not in REDIRECT_STATUSES or target is None or not slug:
            continue
        if _normalize(exchange.address) not in pages:
            redirects[target[0], slug] = SlugRedirect(*target, slug)
    return list(redirects.values())


def list_current_paths(exchanges: Exchanges) -> set[str]:
    """Return the paths that were requested and need not be again: redirects lead to a page that still exists."""
    pages = _list_pages({kind: read_records(exchanges, kind) for kind in POST_KINDS})
    return {
        exchange.address
        for exchange in exchanges.list("/")
        if exchange.status not in REDIRECT_STATUSES or _normalize(exchange.headers.get("location", "")) in pages
    }


def _list_pages(records: Mapping[str, Mapping[int, JsonObject]]) -> dict[str, tuple[str, str]]:
    """Return the kinds and identities of records by the paths of their pages."""
    return {
        _normalize(link): (kind, str(record_id))
        for kind in POST_KINDS
        for record_id, record in records[kind].items()
        if (link := _link(record))
    }


def find_prefixes(records: Mapping[str, Mapping[int, JsonObject]], folder: str) -> list[PrefixRedirect]:
    """Return the beginnings of paths that differ from those here, such as translated ones."""
    prefixes: list[PrefixRedirect] = []
    for kind, new in PREFIXES.items():
        found = find_prevalent(filter(None, map(_find_prefix, _list_public(kind, records[kind].values()))))
        old = found.removeprefix(folder) if found else new
        if old not in (new, "/"):
            prefixes.append(PrefixRedirect(old, new))
    return prefixes


def _list_public(kind: str, records: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Return the records whose addresses have the beginning and the slug only: no nested categories."""
    if kind in POST_KINDS:
        return [record for record in records if record.get("status") == "publish"]
    return [record for record in records if not record.get("parent")]


def _find_prefix(record: JsonObject) -> str:
    """Return the path of a record without its slug; empty without permalinks."""
    path = urlsplit(_link(record)).path
    slug = last_segment(path)
    if not slug or normalize_lookup(unquote(slug)) != normalize_lookup(unquote(str(record.get("slug", "")))):
        return ""
    return path.rstrip("/").removesuffix(slug)


def _link(record: JsonObject) -> str:
    link = record.get("link")
    return link if isinstance(link, str) else ""


def _normalize(url: str) -> str:
    """Return the path in one spelling; an address without a path is none."""
    parts = urlsplit(url)
    path = normalize_lookup(unquote(parts.path)).rstrip("/")
    return "" if parts.query and not path else path
