"""What a WordPress site with The Events Calendar (TEC) becomes here.

Identities are the IDs of WordPress as text; images that are only files there have the identity `file-…`. Every record
has its author in `links["author"]`, its image in `links["image"]`, a category its parent in `links["parent"]`; the
other links have the names of the parameters of events. Descriptions refer to images as `media:IDENTITY`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kalends.core.imports.records import ImportedRecord, Rejection
from kalends.core.messages import Message

# The kinds in the order in which their records are written.
KINDS = ("users", "categories", "tags", "media", "venues", "organizers", "events")

_MEDIA_REFERENCE = re.compile(r"(?<=[\"'])media:([a-z0-9-]+)(?=[\"'])")


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The settings of the former site that have an equivalent here. An empty value is unknown."""

    url: str  # the home page, without a slash at the end
    host: str  # the host in UIDs and in global IDs
    name: str
    timezone: str
    language: str
    first_weekday: int  # 1 is Monday, 7 is Sunday
    per_page: int | None = None
    currency_symbol: str = ""
    currency_code: str = ""
    currency_position: str = ""  # prefix or postfix
    namespaces: Sequence[str] = ()
    # The highest IDs that were seen; new records get higher ones.
    highest_post_id: int = 0
    highest_term_id: int = 0
    highest_user_id: int = 0


@dataclass(frozen=True, slots=True)
class SlugRedirect:
    """A former slug of a record, whose page redirected to the record."""

    kind: str
    identity: str
    slug: str


@dataclass(frozen=True, slots=True)
class PrefixRedirect:
    """The beginning of paths that differ here, such as `/veranstaltung/` for `/event/`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LegacyFile:
    """The path of an image file on the former site, without the host."""

    path: str
    identity: str  # of the image
    width: int


@dataclass(frozen=True, slots=True)
class MoveInWarning:
    """Something that is lost or changed, with the records concerned as kind and identity."""

    cause: Message
    records: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class MoveIn:
    """The records of a site in the order in which they are to be written, and everything around them.

    A record in the trash has the status `trash`. It must be created as a draft, so that others can refer to it, and
    moved to the trash after all records have been written.
    """

    site: SiteFacts
    records: Sequence[ImportedRecord]
    redirects: Sequence[SlugRedirect] = ()
    prefixes: Sequence[PrefixRedirect] = ()
    legacy_files: Sequence[LegacyFile] = ()
    warnings: Sequence[MoveInWarning] = ()
    rejections: Sequence[Rejection] = ()
    # The addresses of the image files by the identity of the image; the snapshot has their content.
    image_urls: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_kind(self, kind: str) -> list[ImportedRecord]:
        return [record for record in self.records if record.kind == kind]

    @property
    def trashed(self) -> list[ImportedRecord]:
        return [record for record in self.records if record.values.get("status") == "trash"]


def find_media_references(html: str) -> list[str]:
    """Return the identities of the images to which a description refers."""
    return _MEDIA_REFERENCE.findall(html)


def replace_media_references(html: str, ids: Mapping[str, int]) -> str:
    """Replace the identities of images in a description by the IDs of the records that they became."""
    return _MEDIA_REFERENCE.sub(lambda match: f"media:{ids[match[1]]}" if match[1] in ids else match[0], html)
