"""The roles as publishers read them."""

from typing import Final

from kalends.core.messages import gettext_noop as N_

ROLE_NAMES: Final = {
    "subscriber": N_("Subscriber"),
    "contributor": N_("Contributor"),
    "author": N_("Author"),
    "editor": N_("Editor"),
    "administrator": N_("Administrator"),
}
ROLE_RIGHTS: Final = {
    "subscriber": N_("Reads published events only."),
    "contributor": N_("Writes drafts, which somebody else publishes."),
    "author": N_("Publishes and changes own events, uploads images."),
    "editor": N_("Publishes and changes all events."),
    "administrator": N_("Everything, including people and settings."),
}
