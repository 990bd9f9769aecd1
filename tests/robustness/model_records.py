"""The words in which the model of a site is written: roles, kinds, names, records."""

from dataclasses import dataclass, field

ANONYMOUS, SUBSCRIBER, CONTRIBUTOR, AUTHOR, EDITOR = range(5)
TERM_WRITERS = {"categories": AUTHOR, "tags": EDITOR}
SINGULAR = {
    "events": "event",
    "venues": "venue",
    "organizers": "organizer",
    "categories": "category",
    "tags": "tag",
}
# The links of an event in the order in which they are resolved: parameter and kind.
LINKS = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}

# Names that collide in every way that matters, with their slugs and the form in which they are compared.
NAMES = {
    "Jazz": ("jazz", "jazz"),
    "JAZZ": ("jazz", "jazz"),
    "Jazz 2": ("jazz-2", "jazz 2"),
    "Café": ("cafe", "cafe"),
    "Cafe": ("cafe", "cafe"),
    "Кино": ("%d0%ba%d0%b8%d0%bd%d0%be", "кино"),
    "!!!": ("", "!!!"),
}


class RejectedWrite(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Actor:
    login: str
    rank: int
    user_id: int | None


@dataclass
class Term:
    kind: str
    id: int
    name: str
    slug: str
    parent: int | None = None
    revision: int = 0


@dataclass
class Post:
    kind: str
    id: int
    author: int
    status: str
    title: str
    slug: str = ""
    before_trash: str = ""
    is_scheduled: bool = False
    is_hidden: bool = False
    revision: int = 0
    links: dict[str, list[int]] = field(default_factory=lambda: {param: [] for param in LINKS})
