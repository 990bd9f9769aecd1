"""The headers and links by which other sites and collectors find the API of a page, as in WordPress."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

API_LINK: Final = "https://api.w.org/"


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """The part of the API that a page shows: a path below the namespace, and the ID of the event of its page."""

    path: str = "/"
    event_id: int = 0

    @classmethod
    def of_event(cls, event_id: int) -> "ApiAddress":
        return cls(f"/events/{event_id}", event_id)

    @classmethod
    def of_term(cls, filter_name: str, slug: str) -> "ApiAddress":
        """Return the events of a category or tag. Slugs are stored percent-encoded."""
        return cls(f"/events/?{filter_name}={quote(slug, safe='%')}")


WHOLE_API: Final = ApiAddress()


@dataclass(frozen=True, slots=True)
class Discovery:
    """The absolute addresses that a page announces."""

    root_url: str  # of the REST root
    api_url: str  # of the part of the API that the page shows
    headers: dict[str, str]


def make_discovery(base_url: str, api_prefix: str, address: ApiAddress) -> Discovery | None:
    """Return the addresses of a page; None if existing clients find no API here (`api_prefix` is empty)."""
    if not api_prefix:
        return None
    root_url = f"{base_url}{'/'.join(api_prefix.split('/')[:-3])}/"
    api_url = f"{base_url}{api_prefix}{address.path}"
    link = f'<{root_url}>; rel="{API_LINK}"'
    if address.event_id:
        link += f", <{base_url}/?p={address.event_id}>; rel=shortlink"
    headers = {
        "X-TEC-API-ROOT": api_url,
        "X-TEC-API-VERSION": "v1",
        "X-TEC-API-ORIGIN": base_url,
        "Link": link,
    }
    return Discovery(root_url, api_url, headers)
