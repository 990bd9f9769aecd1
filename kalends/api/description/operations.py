"""Titles, tags and summaries of the API description, and its operation IDs."""

from typing import Final

from kalends.api.catalog import Endpoint
from kalends.core.messages import gettext_noop as N_

TITLE: Final = N_("Calendar events")
ABOUT: Final = N_(
    "Events, venues, organizers, event categories and event tags. What is published may be read by everybody; "
    "writing needs a user name and an application password (HTTP Basic). Parameters come from the query string, "
    "a form or a JSON body; unknown ones are ignored. `HEAD` works wherever `GET` does, and `OPTIONS` describes "
    "a path. A `POST` may stand for `PUT`, `PATCH` or `DELETE` by `_method` or `X-HTTP-Method-Override`."
)
ABOUT_FIELDS: Final = N_(
    "`_fields` and `_envelope` work on every read and change the shape of its answer: the first leaves only the keys "
    "that are named, the second wraps the answer with its status and headers. The schemas show answers without them."
)
ABOUT_LANGUAGE: Final = N_(
    "Messages and descriptions come in the language of `lang`, of `Accept-Language` or of the site. Names, codes and "
    "structure are the same in all languages."
)
EXTENSION_TITLE: Final = N_("Kalends: beside the interface")
ABOUT_EXTENSION: Final = N_(
    "What this server offers beside the interface that existing clients know: images, the history of a record, the "
    "way back, and everything that changed since a revision."
)
EXTENSION_NOTE: Final = N_("Not in the interface: an extension of this server.")
INDEX: Final = N_("The routes and their parameters")
DESCRIPTION: Final = N_("This description")
TAGS: Final = {
    "events": N_("Events"),
    "venues": N_("Venues"),
    "organizers": N_("Organizers"),
    "categories": N_("Event categories"),
    "tags": N_("Event tags"),
    "media": N_("Images"),
    "changes": N_("Changes"),
    "batch": N_("Batches"),
    "interface": N_("The interface"),
}
# By operation ID.
SUMMARIES: Final = {
    "listEvents": N_("List events"),
    "createEvent": N_("Create an event"),
    "readEvent": N_("Read an event"),
    "updateEvent": N_("Update an event: only what is sent changes"),
    "deleteEvent": N_("Move an event to the trash"),
    "listVenues": N_("List venues"),
    "createVenue": N_("Create a venue"),
    "readVenue": N_("Read a venue"),
    "updateVenue": N_("Update a venue: only what is sent changes"),
    "deleteVenue": N_("Move a venue to the trash"),
    "listOrganizers": N_("List organizers"),
    "createOrganizer": N_("Create an organizer"),
    "readOrganizer": N_("Read an organizer"),
    "updateOrganizer": N_("Update an organizer: only what is sent changes"),
    "deleteOrganizer": N_("Move an organizer to the trash"),
    "listCategories": N_("List categories"),
    "createCategory": N_("Create a category"),
    "readCategory": N_("Read a category"),
    "updateCategory": N_("Update a category: only what is sent changes"),
    "deleteCategory": N_("Delete a category for good; those below it move up"),
    "listTags": N_("List tags"),
    "createTag": N_("Create a tag"),
    "readTag": N_("Read a tag"),
    "updateTag": N_("Update a tag: only what is sent changes"),
    "deleteTag": N_("Delete a tag for good"),
    "readEventHistory": N_("The history of an event"),
    "readVenueHistory": N_("The history of a venue"),
    "readOrganizerHistory": N_("The history of an organizer"),
    "restoreEvent": N_("Restore an event"),
    "restoreVenue": N_("Restore a venue"),
    "restoreOrganizer": N_("Restore an organizer"),
    "listMedia": N_("List images"),
    "createMedia": N_("Add an image: as a form with `file`, or as the body itself"),
    "readMedia": N_("Read an image"),
    "updateMedia": N_("Update an image: only what is sent changes"),
    "deleteMedia": N_("Remove an image for good, unless records show it"),
    "runBatch": N_("Many writes in one request"),
    "listChanges": N_("What changed since a revision"),
}


def operation_id(endpoint: Endpoint, method: str) -> str:
    """Return a unique ID such as readEvent or updateEventByPut, from which generators name functions."""
    is_alias = endpoint.is_update and method != "PATCH"
    return f"{endpoint.operation_id}By{method.capitalize()}" if is_alias else endpoint.operation_id
