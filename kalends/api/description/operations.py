"""What each operation does, in a few words; /doc and the reference pages are headed by them."""

from typing import Final

from kalends.api.batch import run_batch
from kalends.api.catalog import Endpoint, Operation
from kalends.core.messages import gettext_noop as N_
from kalends.operations.changes import list_changes
from kalends.operations.history import read_history, restore_record
from kalends.operations.media.records import create_media, delete_media
from kalends.operations.records import create_record, delete_record, list_records, read_record, update_record

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
SUMMARIES: Final[dict[tuple[Operation, str], str]] = {
    (list_records, "events"): N_("List events"),
    (create_record, "events"): N_("Create an event"),
    (read_record, "events"): N_("Read an event"),
    (update_record, "events"): N_("Update an event: only what is sent changes"),
    (delete_record, "events"): N_("Move an event to the trash"),
    (list_records, "venues"): N_("List venues"),
    (create_record, "venues"): N_("Create a venue"),
    (read_record, "venues"): N_("Read a venue"),
    (update_record, "venues"): N_("Update a venue: only what is sent changes"),
    (delete_record, "venues"): N_("Move a venue to the trash"),
    (list_records, "organizers"): N_("List organizers"),
    (create_record, "organizers"): N_("Create an organizer"),
    (read_record, "organizers"): N_("Read an organizer"),
    (update_record, "organizers"): N_("Update an organizer: only what is sent changes"),
    (delete_record, "organizers"): N_("Move an organizer to the trash"),
    (list_records, "categories"): N_("List categories"),
    (create_record, "categories"): N_("Create a category"),
    (read_record, "categories"): N_("Read a category"),
    (update_record, "categories"): N_("Update a category: only what is sent changes"),
    (delete_record, "categories"): N_("Delete a category for good; those below it move up"),
    (list_records, "tags"): N_("List tags"),
    (create_record, "tags"): N_("Create a tag"),
    (read_record, "tags"): N_("Read a tag"),
    (update_record, "tags"): N_("Update a tag: only what is sent changes"),
    (delete_record, "tags"): N_("Delete a tag for good"),
    (read_history, "events"): N_("The history of an event"),
    (read_history, "venues"): N_("The history of a venue"),
    (read_history, "organizers"): N_("The history of an organizer"),
    (restore_record, "events"): N_("Restore an event"),
    (restore_record, "venues"): N_("Restore a venue"),
    (restore_record, "organizers"): N_("Restore an organizer"),
    (list_records, "media"): N_("List images"),
    (create_media, "media"): N_("Add an image: as a form with `file`, or as the body itself"),
    (read_record, "media"): N_("Read an image"),
    (update_record, "media"): N_("Update an image: only what is sent changes"),
    (delete_media, "media"): N_("Remove an image for good, unless records show it"),
    (run_batch, ""): N_("Many writes in one request"),
    (list_changes, ""): N_("What changed since a revision"),
}
VERBS: Final[dict[Operation, str]] = {
    list_records: "list",
    create_record: "create",
    read_record: "read",
    update_record: "update",
    delete_record: "delete",
    read_history: "read",
    restore_record: "restore",
    create_media: "create",
    delete_media: "delete",
}


def find_summary(endpoint: Endpoint) -> str:
    key = (endpoint.operation, endpoint.kind.name if endpoint.kind else "")
    return SUMMARIES.get(key, endpoint.operation.__name__.replace("_", " "))


def find_tag(endpoint: Endpoint) -> str:
    return endpoint.kind.name if endpoint.kind else "batch" if endpoint.operation is run_batch else "changes"


def operation_id(endpoint: Endpoint, method: str) -> str:
    """listEvents, createEvent, readEventBySlug, updateEventByPut …: what generators name functions after."""
    if endpoint.kind is None or endpoint.operation not in VERBS:
        first, *others = endpoint.operation.__name__.split("_")
        return first + "".join(map(str.capitalize, others))
    verb = VERBS[endpoint.operation]
    name = (endpoint.kind.name if endpoint.operation is list_records else endpoint.kind.singular).capitalize()
    suffix = "History" if endpoint.operation is read_history else ""
    by_slug = "BySlug" if any(p.name == "slug" for p in endpoint.path_params) else ""
    by_method = f"By{method.capitalize()}" if endpoint.is_update and method != "PATCH" else ""
    return f"{verb}{name}{suffix}{by_slug}{by_method}"
