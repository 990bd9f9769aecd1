"""The sections of the console that a user may open."""

from dataclasses import dataclass, replace
from typing import Final

from kalends.console.request import PREFIX, ConsoleRequest
from kalends.core.messages import gettext_noop as N_


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the navigation."""

    name: str  # a message ID
    path: str
    min_role: str = "contributor"
    is_current: bool = False
    further_path: str = ""  # pages below it belong to the section as well


SECTIONS: Final = (
    Section(N_("Events"), f"{PREFIX}/events", further_path=f"{PREFIX}/series"),
    Section(N_("Venues"), f"{PREFIX}/venues"),
    Section(N_("Organizers"), f"{PREFIX}/organizers"),
    Section(N_("Categories"), f"{PREFIX}/categories", "author"),
    Section(N_("Tags"), f"{PREFIX}/tags", "editor"),
    Section(N_("Media"), f"{PREFIX}/media"),
    Section(N_("Imports"), f"{PREFIX}/imports", "editor"),
    Section(N_("People"), f"{PREFIX}/people", "administrator"),
    Section(N_("Settings"), f"{PREFIX}/settings", "administrator"),
)


def list_sections(console_request: ConsoleRequest) -> list[Section]:
    """Return the sections for the role of the user; none without a session."""
    if console_request.session is None:
        return []
    path = console_request.path
    return [
        replace(row, is_current=_contains(row.path, path) or _contains(row.further_path, path))
        for row in SECTIONS
        if console_request.has_role(row.min_role)
    ]


def _contains(section_path: str, path: str) -> bool:
    return bool(section_path) and (path == section_path or path.startswith(f"{section_path}/"))
