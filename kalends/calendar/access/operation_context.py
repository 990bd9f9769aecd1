"""An operation's context and outcome, independent of HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kalends.calendar.access.caching import EventFragments
from kalends.calendar.kinds.kind import NO_LINKED_RECORDS, Actor, Kind, LinkedRecords, RenderContext
from kalends.core.egress import AllowedNetwork
from kalends.core.errors import InvalidValue
from kalends.media.adapters.library import FetchResult, Library, StoredImage
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class UploadedFile:
    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class OperationContext:
    transaction: Transaction
    actor: Actor
    base_url: str
    api_url: str
    extension_url: str = ""  # URL prefix for the extensions; `api_url` is the API prefix
    media_url: str = ""  # URL prefix for image files
    has_base_url: bool = False  # whether links have a configured host instead of the requested one
    allowed_networks: Sequence[AllowedNetwork] = ()  # non-public networks that may be contacted
    client_ip: str = ""
    max_daily_records: int = 0  # records that an account may create per day; 0 disables the limit
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # The record in the path, by ID or slug.
    record_id: int | None = None
    slug: str | None = None
    # The query parameters as sent, used in links to other pages.
    query_pairs: Sequence[tuple[str, str]] = ()
    # A cache of encoded events. None if there is no cache, or if `_fields` selects fields, because that needs decoded
    # events.
    fragments: EventFragments | None = None
    library: Library | None = None
    # The uploaded file, and the fetch results for image URLs in the body.
    upload: StoredImage | None = None
    fetched_images: Mapping[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )
    # Stored files of the pictures of accepted proposals, by proposal.
    stored_pictures: Mapping[str, StoredImage] = field(default_factory=dict[str, StoredImage])
    file: UploadedFile | None = None  # the import file
    # The revisions that If-Match accepts; None if the header is absent.
    if_match: frozenset[int] | None = None
    returns_record: bool = True  # whether a write returns the record; reading it again takes as long as the write

    @property
    def render_context(self) -> RenderContext:
        return self.make_render_context(NO_LINKED_RECORDS, frozenset())

    def make_render_context(self, linked: LinkedRecords, locked_ids: frozenset[int]) -> RenderContext:
        return RenderContext(self.transaction.site, self.base_url, self.api_url, self.media_url, linked, locked_ids)

    def collection_url(self, kind: Kind) -> str:
        return f"{self.extension_url if kind.is_extension else self.api_url}/{kind.name}"


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table to export to a file, with headers in the caller's language."""

    kind: str
    format: str
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    body: dict[str, Any]
    status: int = 200
    table: ExportedTable | None = None  # a file instead of `body`
    items: Sequence[Mapping[str, Any]] | None = None  # a list body without an envelope, instead of `body`
    revision: int | None = None
    location: str = ""
    page: "PageInfo | None" = None
    # When the outcome expires even without a write (for example at midnight); None if never.
    expires_at: datetime | None = None
    # The cache tags for the records and lists in the response.
    cache_tags: tuple[str, ...] = ()
    ignored_params: tuple[str, ...] = ()  # write parameters whose values were ignored
    shown_once: tuple[str, ...] = ()  # keys of `body` that a repeated response omits, because they are never stored


@dataclass(frozen=True, slots=True)
class PageInfo:
    total: int
    total_pages: int
    next_url: str = ""
    previous_url: str = ""
