"""Titles, tags and summaries of the API description, and its operation IDs."""

from typing import Final

from kalends.api.catalog import Endpoint
from kalends.core.messages import gettext_noop as N_

TITLE: Final = N_("Calendar events")
ABOUT: Final = N_(
    "Events, venues, organizers, event categories and event tags. Published records are public; writing requires "
    "a user name and an application password (HTTP Basic). Parameters are read from the query string, a form or a "
    "JSON body; unknown parameters are ignored. `HEAD` works wherever `GET` does, and `OPTIONS` describes a path. "
    "With `_method` or `X-HTTP-Method-Override`, a `POST` is handled as `PUT`, `PATCH` or `DELETE`."
)
ABOUT_FIELDS: Final = N_(
    "`_fields` and `_envelope` are accepted on every read and change the shape of the response: the first returns "
    "only the named keys, the second wraps the response together with its status and headers. The schemas "
    "describe responses without them."
)
ABOUT_IGNORED: Final = N_(
    "`X-Kalends-Ignored-Params` names up to ten parameters of a request that were ignored. With `strict=1` such a "
    "request is rejected, and the error suggests the right name."
)
ABOUT_LANGUAGE: Final = N_(
    "Messages and descriptions are in the language of `lang`, `Accept-Language` or the site. Names, codes and "
    "structure are the same in all languages."
)
EXTENSION_TITLE: Final = N_("Kalends extensions")
ABOUT_EXTENSION: Final = N_(
    "Kalends extensions: images, record history and restore, series, imports, and changes since a revision."
)
EXTENSION_NOTE: Final = N_("Kalends extension.")
INDEX: Final = N_("List the routes and their parameters")
DESCRIPTION: Final = N_("Read this description of the API")
TAGS: Final = {
    "events": N_("Events"),
    "venues": N_("Venues"),
    "organizers": N_("Organizers"),
    "categories": N_("Event categories"),
    "tags": N_("Event tags"),
    "series": N_("Series"),
    "media": N_("Images"),
    "changes": N_("Changes"),
    "batch": N_("Batches"),
    "imports": N_("Imports"),
    "interface": N_("API"),
}
# By operation ID.
SUMMARIES: Final = {
    "listEvents": N_("List events"),
    "createEvent": N_("Create an event"),
    "readEvent": N_("Read an event"),
    "updateEvent": N_("Update an event; omitted fields stay unchanged"),
    "deleteEvent": N_("Move an event to the trash"),
    "listSeries": N_("List series"),
    "createSeries": N_("Create a series of events"),
    "readSeries": N_("Read a series"),
    "updateSeries": N_("Change all dates of a series, or the dates from one on"),
    "deleteSeries": N_("Move a series and its upcoming dates to the trash, or end it before a date"),
    "previewSeries": N_("Compute the dates of a rule without writing anything"),
    "listOccurrences": N_("List the dates of a series: events, dates that are left out, and later ones"),
    "restoreSeries": N_("Undo edits of a series with all their effects, or restore it from the trash"),
    "changeDates": N_("Add dates to a series, and leave out others"),
    "convertEvent": N_("Turn an event into the first date of a series"),
    "detachEvent": N_("Take an event out of its series"),
    "followSeries": N_("Give up fields of its own, so that an event follows its series"),
    "splitSeries": N_("Make a series of its own of the dates from one on"),
    "mergeSeries": N_("Take over the dates of another series"),
    "dissolveSeries": N_("Delete a series and keep its events"),
    "editEvent": N_("Change an event, or the dates of its series"),
    "trashEvent": N_("Move an event, or dates of its series, to the trash"),
    "exportEvents": N_("Download a list of events as a table"),
    "exportVenues": N_("Download a list of venues as a table"),
    "exportOrganizers": N_("Download a list of organizers as a table"),
    "declareDifferent": N_("Declare that two events are not the same"),
    "listVenues": N_("List venues"),
    "createVenue": N_("Create a venue"),
    "readVenue": N_("Read a venue"),
    "updateVenue": N_("Update a venue; omitted fields stay unchanged"),
    "deleteVenue": N_("Move a venue to the trash"),
    "listOrganizers": N_("List organizers"),
    "createOrganizer": N_("Create an organizer"),
    "readOrganizer": N_("Read an organizer"),
    "updateOrganizer": N_("Update an organizer; omitted fields stay unchanged"),
    "deleteOrganizer": N_("Move an organizer to the trash"),
    "listCategories": N_("List categories"),
    "createCategory": N_("Create a category"),
    "readCategory": N_("Read a category"),
    "updateCategory": N_("Update a category; omitted fields stay unchanged"),
    "deleteCategory": N_("Delete a category permanently; its child categories move up one level"),
    "listTags": N_("List tags"),
    "createTag": N_("Create a tag"),
    "readTag": N_("Read a tag"),
    "updateTag": N_("Update a tag; omitted fields stay unchanged"),
    "deleteTag": N_("Delete a tag permanently"),
    "readEventHistory": N_("Read the history of an event"),
    "readVenueHistory": N_("Read the history of a venue"),
    "readOrganizerHistory": N_("Read the history of an organizer"),
    "readSeriesHistory": N_("Read the history of a series"),
    "restoreEvent": N_("Restore an event"),
    "restoreVenue": N_("Restore a venue"),
    "restoreOrganizer": N_("Restore an organizer"),
    "listMedia": N_("List images"),
    "createMedia": N_("Upload an image, as a form with `file` or as the request body"),
    "readMedia": N_("Read an image"),
    "updateMedia": N_("Update an image; omitted fields stay unchanged"),
    "deleteMedia": N_("Delete an image permanently; fails while it is in use"),
    "listImportSources": N_("List the sources of imports"),
    "createImportSource": N_("Create a source of imports"),
    "readImportSource": N_("Read a source of imports"),
    "updateImportSource": N_("Update a source of imports; omitted fields stay unchanged"),
    "deleteImportSource": N_("Delete a source of imports with its runs; its events stay"),
    "startImport": N_("Fetch a source or read an uploaded `file`, and make a plan; a worker does this"),
    "listImportRuns": N_("List the runs of imports"),
    "readImportRun": N_("Read a run with its counts and its progress"),
    "listImportRows": N_("List the rows of a plan: what happens with each record, and why"),
    "applyImport": N_("Apply a plan or some of its rows; a worker does this"),
    "decideImportRow": N_("Decide whether a row is a record that exists, or a new one"),
    "undoImport": N_("Plan to undo a run; the plan is a new run"),
    "discardImport": N_("Discard a plan"),
    "runBatch": N_("Run several writes in one request"),
    "listChanges": N_("List changes since a revision"),
}


def operation_id(endpoint: Endpoint, method: str) -> str:
    """Return a unique ID such as readEvent or updateEventByPut, from which generators name functions."""
    is_alias = endpoint.is_update and method != "PATCH"
    return f"{endpoint.operation_id}By{method.capitalize()}" if is_alias else endpoint.operation_id
