"""One request to an operation, and its outcome; neither knows HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kalends.core.errors import InvalidValue
from kalends.kinds.kind import Actor, Kind, View
from kalends.operations.media.library import Fetched, Library, Taken
from kalends.operations.representation_cache import Fragments
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Call:
    transaction: Transaction
    actor: Actor
    base_url: str
    ns: str
    ours: str = ""  # the address of the extension, as `ns` is that of the interface
    media_url: str = ""  # in front of the files of images
    client: str = ""  # the address that asks
    daily_records: int = 0  # how many records an account may create per day; 0: any number
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Where the path points: an ID or a slug.
    record_id: int | None = None
    slug: str | None = None
    # The list parameters as they were sent, for the page links.
    sent: Sequence[tuple[str, str]] = ()
    fragments: Fragments | None = None
    library: Library | None = None
    # A file that came with the request, and what the addresses of images in it answered.
    upload: Taken | None = None
    fetched: Mapping[str, Fetched | InvalidValue] = field(default_factory=dict[str, Fetched | InvalidValue])
    # The revisions that If-Match accepts; None: any.
    expected: frozenset[int] | None = None

    @property
    def view(self) -> View:
        return View(self.transaction.site, self.base_url, self.ns, self.media_url)

    def collection(self, kind: Kind) -> str:
        """The address of all records of a kind."""
        return f"{self.ours if kind.is_ours else self.ns}/{kind.name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    body: dict[str, Any]
    status: int = 200
    revision: int | None = None
    location: str = ""
    page: "Page | None" = None
    # When the clock alone makes this answer wrong; None: only a change does.
    until: datetime | None = None
    # The records and lists in the answer, as shared caches name them.
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    total: int
    total_pages: int
    next_url: str = ""
    previous_url: str = ""
