"""Descriptions of the forms and tables: fields in groups, and texts, for each kind that events link to.

The views and templates read these descriptions, so a kind needs no code of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kalends.core.messages import gettext_noop as N_
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.kind import Kind, Link
from kalends.kinds.media import MEDIA
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations.merges import find_link

Control = Literal[
    "text", "email", "tel", "url", "number", "datetime-local", "textarea", "checkbox", "image", "select"
]
OFF: Final = {"autocomplete": "off"}  # a browser would offer the address of the editor, not that of the venue


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form; its name is that of the API parameter."""

    name: str
    label: str  # a message ID, as all other texts here
    control: Control = "text"
    hint: str = ""
    rows: int = 4
    is_required: bool = False
    min_role: str = "contributor"
    attributes: Mapping[str, str] = field(default_factory=lambda: OFF)


STATUS: Final = FormField("status", N_("Status"), "select")


@dataclass(frozen=True, slots=True)
class FieldGroup:
    title: str
    fields: tuple[FormField, ...]
    is_folded: bool = True


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts that name the kind. They are complete, because in most languages more than the noun differs."""

    plural: str
    new: str
    search: str
    none: str
    merge: str
    deletion: str = ""


@dataclass(frozen=True, slots=True)
class RecordForm:
    kind: Kind
    texts: Texts
    groups: tuple[FieldGroup, ...]
    event_filter: str  # the parameter by which a list of events is restricted to a record
    columns: tuple[tuple[str, str], ...] = ()  # further columns of the table: column and heading

    @property
    def path(self) -> str:
        return f"/console/{self.kind.name}"

    @property
    def link(self) -> Link:
        return find_link(self.kind)

    @property
    def fields(self) -> Iterator[FormField]:
        yield from (row for group in self.groups for row in group.fields)
        if self.kind.is_post:
            yield STATUS

    @property
    def labels(self) -> dict[str, str]:
        return {row.name: row.label for row in self.fields}


LATITUDE: Final = {"step": "any", "min": "-90", "max": "90", "inputmode": "decimal", **OFF}
LONGITUDE: Final = {"step": "any", "min": "-180", "max": "180", "inputmode": "decimal", **OFF}
NAME: Final = {"maxlength": "200", **OFF}
DESCRIPTION: Final = FormField(
    "description", N_("Description"), "textarea", N_("Text with HTML, such as <p>, <strong> and <a>."), rows=6
)
PUBLISHING: Final = FieldGroup(
    N_("Publishing"),
    (
        FormField("date", N_("Publication date"), "datetime-local", N_("A date in the future schedules the record.")),
        FormField("author", N_("Author"), "select", min_role="editor"),
    ),
)
IMAGE: Final = FieldGroup(N_("Image"), (FormField("image", N_("Image"), "image"),))

VENUE_FORM: Final = RecordForm(
    VENUES,
    Texts(
        plural=N_("Venues"),
        new=N_("New venue"),
        search=N_("Search venues"),
        none=N_("There are no venues yet."),
        merge=N_("Merge venues"),
    ),
    (
        FieldGroup(
            N_("Name and address"),
            (
                FormField("venue", N_("Name"), is_required=True),
                FormField("address", N_("Street and number")),
                FormField("zip", N_("Postal code")),
                FormField("city", N_("City")),
                FormField("country", N_("Country")),
            ),
            is_folded=False,
        ),
        FieldGroup(N_("Description"), (DESCRIPTION,)),
        FieldGroup(
            N_("Contact"),
            (
                FormField("phone", N_("Phone"), "tel"),
                FormField("website", N_("Website"), "url"),
            ),
        ),
        FieldGroup(
            N_("Map"),
            (
                FormField("geo_lat", N_("Latitude"), "number", N_("From -90 to 90."), attributes=LATITUDE),
                FormField("geo_lng", N_("Longitude"), "number", N_("From -180 to 180."), attributes=LONGITUDE),
                FormField("show_map", N_("Show a map on the pages of events"), "checkbox"),
                FormField("show_map_link", N_("Show a link to a map"), "checkbox"),
            ),
        ),
        FieldGroup(
            N_("State and province"),
            (
                FormField("state", N_("State")),
                FormField("province", N_("Province")),
                FormField(
                    "stateprovince", N_("State or province in addresses"), hint=N_("Empty: chosen by country.")
                ),
            ),
        ),
        IMAGE,
        PUBLISHING,
    ),
    event_filter="venue",
    columns=(("city", N_("City")),),
)
ORGANIZER_FORM: Final = RecordForm(
    ORGANIZERS,
    Texts(
        plural=N_("Organizers"),
        new=N_("New organizer"),
        search=N_("Search organizers"),
        none=N_("There are no organizers yet."),
        merge=N_("Merge organizers"),
    ),
    (
        FieldGroup(
            N_("Name and contact"),
            (
                FormField("organizer", N_("Name"), is_required=True),
                FormField("email", N_("E-mail"), "email", N_("Shown on the public page.")),
                FormField("phone", N_("Phone"), "tel"),
                FormField("website", N_("Website"), "url"),
            ),
            is_folded=False,
        ),
        FieldGroup(N_("Description"), (DESCRIPTION,)),
        IMAGE,
        PUBLISHING,
    ),
    event_filter="organizer",
    columns=(("email", N_("E-mail")),),
)
TERM_DESCRIPTION: Final = FormField(
    "description", N_("Description"), "textarea", N_("Text with HTML for links and emphasis."), rows=3
)
SLUG: Final = FormField("slug", N_("Address"), hint=N_("The last part of the public address. Empty: from the name."))
CATEGORY_FORM: Final = RecordForm(
    CATEGORIES,
    Texts(
        plural=N_("Categories"),
        new=N_("New category"),
        search=N_("Search categories"),
        none=N_("There are no categories yet."),
        merge=N_("Merge categories"),
        deletion=N_("Delete category"),
    ),
    (
        FieldGroup(
            N_("Category"),
            (
                FormField("name", N_("Name"), is_required=True, attributes=NAME),
                FormField("parent", N_("Parent category"), "select"),
            ),
            is_folded=False,
        ),
        FieldGroup(N_("Description"), (TERM_DESCRIPTION,)),
        FieldGroup(N_("Address"), (SLUG,)),
    ),
    event_filter="categories",
)
TAG_FORM: Final = RecordForm(
    TAGS,
    Texts(
        plural=N_("Tags"),
        new=N_("New tag"),
        search=N_("Search tags"),
        none=N_("There are no tags yet."),
        merge=N_("Merge tags"),
        deletion=N_("Delete tag"),
    ),
    (
        FieldGroup(N_("Tag"), (FormField("name", N_("Name"), is_required=True, attributes=NAME),), is_folded=False),
        FieldGroup(N_("Description"), (TERM_DESCRIPTION,)),
        FieldGroup(N_("Address"), (SLUG,)),
    ),
    event_filter="tags",
)
FORMS: Final = {row.kind.name: row for row in (VENUE_FORM, ORGANIZER_FORM, CATEGORY_FORM, TAG_FORM)}

FRACTION: Final = {"step": "0.01", "min": "0", "max": "1", "inputmode": "decimal", **OFF}
MEDIA_FORM: Final = RecordForm(
    MEDIA,
    Texts(
        plural=N_("Media"),
        new=N_("Upload images"),
        search=N_("Search images"),
        none=N_("There are no images yet."),
        merge="",
        deletion=N_("Delete image"),
    ),
    (
        FieldGroup(
            N_("Image"),
            (
                FormField(
                    "alt_text",
                    N_("Alternative text"),
                    "textarea",
                    N_("Describe the image for people who cannot see it. Leave it empty only for decoration."),
                    rows=2,
                ),
                FormField("title", N_("Title"), hint=N_("Only shown in the media library.")),
                FormField("caption", N_("Caption"), "textarea", N_("Such as the name of the photographer."), rows=2),
            ),
            is_folded=False,
        ),
        FieldGroup(
            N_("Focus point"),
            (
                FormField("focus_x", N_("From the left, 0 to 1"), "number", attributes=FRACTION),
                FormField("focus_y", N_("From the top, 0 to 1"), "number", attributes=FRACTION),
            ),
            is_folded=False,
        ),
    ),
    event_filter="",
)
