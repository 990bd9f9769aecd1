"""One request to an operation, and its outcome; neither knows HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kalends.core.errors import InvalidValue
from kalends.kinds.kind import Actor, Kind, RenderContext
from kalends.operations.media.library import FetchResult, Library, StoredImage
from kalends.operations.representation_cache import RepresentationCache
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class OperationContext:
    transaction: Transaction
    actor: Actor
    base_url: str
    api_url: str
    extension_url: str = ""  # the address of the extension, as `ns` is that of the interface
    media_url: str = ""  # in front of the files of images
    client_ip: str = ""  # the address that asks
    max_daily_records: int = 0  # how many records an account may create per day; 0: any number
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Where the path points: an ID or a slug.
    record_id: int | None = None
    slug: str | None = None
    # The list parameters as they were sent, for the page links.
    query_pairs: Sequence[tuple[str, str]] = ()
    representation_cache: RepresentationCache | None = None
    library: Library | None = None
    # A file that came with the request, and what the addresses of images in it answered.
    upload: StoredImage | None = None
    fetched_images: Mapping[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )
    # The revisions that If-Match accepts; None: any.
    if_match: frozenset[int] | None = None

    @property
    def render_context(self) -> RenderContext:
        return RenderContext(self.transaction.site, self.base_url, self.api_url, self.media_url)

    def collection_url(self, kind: Kind) -> str:
        """The address of all records of a kind."""
        return f"{self.extension_url if kind.is_extension else self.api_url}/{kind.name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    body: dict[str, Any]
    status: int = 200
    revision: int | None = None
    location: str = ""
    page: "PageInfo | None" = None
    # When the clock alone makes this answer wrong; None: only a change does.
    expires_at: datetime | None = None
    # The records and lists in the answer, as shared caches name them.
    cache_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageInfo:
    total: int
    total_pages: int
    next_url: str = ""
    previous_url: str = ""
