"""Addresses of the former site: its pages and files, by host and path."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import urljoin, urlsplit


@dataclass(frozen=True, slots=True)
class Home:
    """The address of the former site. It may be in a folder, and `www.` makes no difference."""

    url: str  # without a slash at the end
    host: str
    port: int | None
    folder: str  # such as `/blog`, empty for most sites

    @classmethod
    def read(cls, url: str) -> Self:
        parts = urlsplit(url)
        return cls(url.rstrip("/"), parts.hostname or "", parts.port, parts.path.rstrip("/"))

    def find_path(self, url: str) -> str | None:
        """Return the path of a page or file of the site with its query; None for one of another site."""
        try:
            parts = urlsplit(urljoin(self.url + "/", url.strip()))
            port = parts.port
        except ValueError:
            return None
        if (
            parts.scheme not in ("http", "https")
            or port != self.port
            or _bare(parts.hostname or "") != _bare(self.host)
        ):
            return None
        return (
            parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
        )

    def move(self, url: str, base_url: str) -> str:
        """Return a URL of the site with the address of the new one; others stay as they are."""
        path = self.find_path(url) if base_url and urlsplit(url).netloc else None
        return url if path is None else base_url.rstrip("/") + path.removeprefix(self.folder)


def last_segment(url: str) -> str:
    """Return the last part of a path, which is the slug in the address of a record."""
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")
