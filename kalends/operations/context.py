"""The context of an operation and its outcome, independent of HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kalends.core.errors import InvalidValue
from kalends.kinds.kind import Actor, Kind, RenderContext
from kalends.kinds.linked_records import NO_LINKED_RECORDS, LinkedRecords
from kalends.operations.media.library import FetchResult, Library, StoredImage
from kalends.operations.representation_cache import RepresentationCache
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file of an import, as sent."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class OperationContext:
    transaction: Transaction
    actor: Actor
    base_url: str
    api_url: str
    extension_url: str = ""  # URL prefix of the extensions, as `api_url` is that of the API
    media_url: str = ""  # URL prefix of image files
    client_ip: str = ""
    max_daily_records: int = 0  # records that an account may create per day; 0 disables the limit
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # The record in the path, by ID or slug.
    record_id: int | None = None
    slug: str | None = None
    # The query parameters as sent, for the links to other pages.
    query_pairs: Sequence[tuple[str, str]] = ()
    representation_cache: RepresentationCache | None = None
    accepts_fragments: bool = False  # whether records may be encoded JSON, because the response is sent as it is
    library: Library | None = None
    # The uploaded file, and the results of fetching the image URLs in the body.
    upload: StoredImage | None = None
    fetched_images: Mapping[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )
    file: UploadedFile | None = None  # the file of an import
    # The revisions that If-Match accepts; None if it is absent.
    if_match: frozenset[int] | None = None
    returns_record: bool = True  # whether a write returns the record; reading it again costs as much as the write

    @property
    def render_context(self) -> RenderContext:
        return self.make_render_context(NO_LINKED_RECORDS, frozenset())

    def make_render_context(self, linked: LinkedRecords, locked_ids: frozenset[int]) -> RenderContext:
        return RenderContext(self.transaction.site, self.base_url, self.api_url, self.media_url, linked, locked_ids)

    def collection_url(self, kind: Kind) -> str:
        """Return the URL of the list of a kind."""
        return f"{self.extension_url if kind.is_extension else self.api_url}/{kind.name}"


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table to be written as a file. Its headers depend on the language of the caller."""

    kind: str
    format: str
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    body: dict[str, Any]  # a fragment of encoded JSON if the context accepts fragments
    status: int = 200
    table: ExportedTable | None = None  # a file instead of `body`
    items: Sequence[Mapping[str, Any]] | None = None  # the body of a list without an envelope, instead of `body`
    revision: int | None = None
    location: str = ""
    page: "PageInfo | None" = None
    # When the outcome expires without any write (e.g. at midnight); None if never.
    expires_at: datetime | None = None
    # The cache tags of the records and lists in the response.
    cache_tags: tuple[str, ...] = ()
    ignored_params: tuple[str, ...] = ()  # the names of parameters of a write with values that were left out


@dataclass(frozen=True, slots=True)
class PageInfo:
    total: int
    total_pages: int
    next_url: str = ""
    previous_url: str = ""
