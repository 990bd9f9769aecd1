"""The sections of the console that a user may open."""

from dataclasses import dataclass
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


SECTIONS: Final = (
    Section(N_("Events"), f"{PREFIX}/events"),
    Section(N_("Venues"), f"{PREFIX}/venues"),
    Section(N_("Organizers"), f"{PREFIX}/organizers"),
    Section(N_("Categories"), f"{PREFIX}/categories", "author"),
    Section(N_("Tags"), f"{PREFIX}/tags", "editor"),
    Section(N_("Media"), f"{PREFIX}/media"),
    Section(N_("People"), f"{PREFIX}/people", "administrator"),
    Section(N_("Settings"), f"{PREFIX}/settings", "administrator"),
)


def list_sections(console_request: ConsoleRequest) -> list[Section]:
    """Return the sections for the role of the user; none without a session."""
    if console_request.session is None:
        return []
    path = console_request.path
    return [
        Section(row.name, row.path, row.min_role, is_current=path == row.path or path.startswith(f"{row.path}/"))
        for row in SECTIONS
        if console_request.has_role(row.min_role)
    ]
