"""Descriptions of the form and the table for each kind of record that events link to.

Views and templates read these descriptions, so no kind needs separate code.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kalends.accounts.storage import user_tables
from kalends.calendar.access import permissions
from kalends.calendar.kinds.kind import Kind, Link
from kalends.calendar.kinds.media_kind import MEDIA, build_media_item
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.form_work import find_link
from kalends.calendar.operations.record_verbs import find_page, list_tree
from kalends.calendar.rules.fields import OFF, ORGANIZER_FIELDS, VENUE_FIELDS, Control, Field, in_group, pick
from kalends.calendar.rules.record_types import MediaItem
from kalends.calendar.storage import record_tables
from kalends.console.console_request import ConsoleRequest
from kalends.console.field_texts import STATUS_FILTERS
from kalends.core import times
from kalends.core.messages import gettext_noop as N_, translator
from kalends.core.params import parse_id
from kalends.core.statuses import REQUIRED_RIGHTS
from kalends.media.operations import read_images
from kalends.store import Row
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class FormField:
    """A form field with the same name as its API parameter."""

    name: str
    label: str  # a message ID, like all other strings in forms
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
    """Texts that name the kind. Each text is complete, because in most languages more than the noun changes."""

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
    event_filter: str  # the parameter that selects events by record
    columns: tuple[tuple[str, str], ...] = ()  # extra table columns, as (column, heading) pairs

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


def _inputs(fields: Sequence[Field], *first: str) -> tuple[FormField, ...]:
    """Return inputs for plain fields: first the named ones, then all others in order."""
    return tuple(
        FormField(
            row.name, row.form.label or row.label, row.form.control, row.form.hint, attributes=row.form.attributes
        )
        for row in dict.fromkeys((*pick(fields, *first), *fields))
    )


NAME: Final = {"maxlength": "200", **OFF}
DESCRIPTION: Final = FormField(
    "description", N_("Description"), "textarea", N_("Text with HTML, such as <p>, <strong> and <a>."), rows=6
)
PUBLISHING: Final = FieldGroup(
    N_("Publishing"),
    (
        FormField(
            "date",
            N_("Publication date"),
            "datetime-local",
            N_("If the date is in the future, the record is published then."),
        ),
        FormField("author", N_("Author"), "select", min_role="editor"),
    ),
)
IMAGE: Final = FieldGroup(N_("Picture"), (FormField("image", N_("Picture"), "image"),))

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
                *_inputs(in_group(VENUE_FIELDS, "address"), "address", "zip"),
            ),
            is_folded=False,
        ),
        FieldGroup(N_("Description"), (DESCRIPTION,)),
        FieldGroup(N_("Contact"), _inputs(in_group(VENUE_FIELDS, "contact"))),
        FieldGroup(N_("Map"), _inputs(in_group(VENUE_FIELDS, "map"))),
        FieldGroup(N_("State and province"), _inputs(in_group(VENUE_FIELDS, "state"), "state")),
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
            (FormField("organizer", N_("Name"), is_required=True), *_inputs(ORGANIZER_FIELDS, "email")),
            is_folded=False,
        ),
        FieldGroup(N_("Description"), (DESCRIPTION,)),
        IMAGE,
        PUBLISHING,
    ),
    event_filter="organizer",
    columns=(("email", N_("Email")),),
)
TERM_DESCRIPTION: Final = FormField(
    "description", N_("Description"), "textarea", N_("Text with HTML for links and emphasis."), rows=3
)
SLUG: Final = FormField(
    "slug", N_("Address"), hint=N_("The last part of the web address. If empty, it’s made from the name.")
)
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
        new=N_("Upload pictures"),
        search=N_("Search pictures"),
        none=N_("There are no pictures yet."),
        merge="",
        deletion=N_("Delete picture"),
    ),
    (
        FieldGroup(
            N_("Picture"),
            (
                FormField(
                    "alt_text",
                    N_("Alternative text"),
                    "textarea",
                    N_(
                        "Describe the picture for people who can’t see it. Leave this empty only if the picture is "
                        "decoration."
                    ),
                    rows=2,
                ),
                FormField("title", N_("Title"), hint=N_("Only shown in the media library.")),
                FormField("caption", N_("Caption"), "textarea", N_("For example, the photographer’s name."), rows=2),
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


# Values of the form: texts from a row, and parameters that a submitted form changes.

# Columns by parameter, if their names differ.
COLUMNS: Final = {"author": "author_id", "image": "image_id", "date": "published_at"}
# Defaults for a new record that are not empty.
DEFAULTS: Final = {"show_map": "true", "show_map_link": "true", "parent": "0", "image": "0"}


def read_row(form: RecordForm, row: Row, zone: str) -> dict[str, str]:
    return {field.name: show_value(row[find_column(form.kind, field.name)], field, zone) for field in form.fields}


def read_version(form: RecordForm, version: Mapping[str, Any], zone: str) -> dict[str, str]:
    values = dict(version)
    if published := values.get("date_utc"):
        values["date"] = datetime.fromisoformat(published).replace(tzinfo=UTC)
    return {field.name: show_value(values.get(field.name), field, zone) for field in form.fields}


def read_defaults(form: RecordForm, console_request: ConsoleRequest) -> dict[str, str]:
    status = "publish" if console_request.has_role("author") else "draft"
    fixed = {**DEFAULTS, "status": status, "author": str(console_request.actor.user_id)}
    return {field.name: fixed.get(field.name, "") for field in form.fields}


def read_submitted(form: RecordForm, submitted: Mapping[str, Any]) -> dict[str, str]:
    """Return the submitted values as text. If a field is repeated, the last value counts."""
    texts: dict[str, str] = {}
    for row in form.fields:
        value = submitted.get(row.name)
        if isinstance(value, list) and value:
            value = value[-1]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, str):
            texts[row.name] = value.replace("\r\n", "\n")
    return texts


def find_changes(form: RecordForm, texts: Mapping[str, str], current: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters whose text differs from the current text.

    Omitting unchanged parameters keeps derived values derived, and does not overwrite other users' changes.
    """
    # A publication date cannot be removed, so ignore an empty one.
    return {
        field.name: None if field.control == "number" and not texts[field.name].strip() else texts[field.name]
        for field in form.fields
        if field.name in texts
        and texts[field.name] != current.get(field.name)
        and not (field.control == "datetime-local" and not texts[field.name].strip())
    }


def find_column(kind: Kind, name: str) -> str:
    return "title" if kind.is_post and name == kind.title_param else COLUMNS.get(name, name)


def show_value(value: object, field: FormField, zone: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        local = times.in_zone(value, zone)
        return local.replace(tzinfo=None).isoformat(timespec="seconds" if local.second else "minutes")
    if isinstance(value, float):
        return f"{value:.8f}".rstrip("0").rstrip(".")
    if value is None:
        return DEFAULTS.get(field.name, "")
    return str(value)


# Other form data: choices, the chosen image, and event counts.

Choices = list[tuple[str, str]]  # (value, text) pairs
# Statuses that the form offers, besides the current one, if the user may set them.
OFFERED_STATUSES: Final = ("draft", "pending", "publish")
MAX_IMAGES: Final = 11


@dataclass(frozen=True, slots=True)
class Loaded:
    choices: Mapping[str, Choices] = field(default_factory=dict[str, Choices])  # keyed by field
    images: tuple["ImageChoice", ...] = ()  # the chosen image and the latest library images
    upcoming: int = 0
    linked: int = 0


async def load_options(
    console_request: ConsoleRequest, tx: Transaction, form: RecordForm, texts: Mapping[str, str], row: Row | None
) -> Loaded:
    names = {entry.name for entry in form.fields}
    choices: dict[str, Choices] = {}
    if "status" in names:
        choices["status"] = list_statuses(console_request, row["status"] if row else "")
    if "author" in names and console_request.has_role("editor"):
        choices["author"] = [(str(user["id"]), user["login"]) for user in await user_tables.list_users(tx)]
    if "parent" in names:
        choices["parent"] = await _list_parents(console_request, tx, row["id"] if row else 0)
    link, ids = form.link, [row["id"]] if row else []
    return Loaded(
        choices,
        await _list_images(console_request, tx, texts["image"]) if "image" in names else (),
        sum((await record_tables.count_upcoming(tx, link.table, link.column, ids)).values()),
        await record_tables.count_links(tx, link.table, link.column, row["id"]) if row else 0,
    )


def list_statuses(console_request: ConsoleRequest, current: str) -> Choices:
    translate = translator(console_request.language)
    may_publish = permissions.may_publish(console_request.actor)
    offered = [name for name in OFFERED_STATUSES if may_publish or REQUIRED_RIGHTS[name] != "publish"]
    names = [*offered, *([current] if current and current not in offered else [])]
    return [(name, translate(STATUS_FILTERS[name])) for name in names]


async def _list_parents(console_request: ConsoleRequest, tx: Transaction, own_id: int) -> Choices:
    """Return the possible parents of a category: all categories except itself and its descendants."""
    choices: Choices = [("0", translator(console_request.language)(N_("None")))]
    skipped_depth: int | None = None
    for entry in await list_tree(tx):
        if skipped_depth is not None and entry.depth > skipped_depth:
            continue
        skipped_depth = entry.depth if entry.row["id"] == own_id else None
        if skipped_depth is None:
            choices.append((str(entry.row["id"]), "\u2003" * entry.depth + entry.row["name"]))
    return choices


@dataclass(frozen=True, slots=True)
class ImageChoice:
    id: int
    title: str
    src: str


async def _list_images(console_request: ConsoleRequest, tx: Transaction, chosen: str) -> tuple[ImageChoice, ...]:
    context = console_request.make_context(tx, {"per_page": MAX_IMAGES})
    rows = (await find_page(MEDIA, context, with_total=False)).rows
    ids = [image_id] if (image_id := parse_id(chosen)) is not None else []
    items = [item for item, _ in await read_images(context, ids)]
    items += [build_media_item(row, context.render_context) for row in rows if row["id"] not in ids]
    return tuple(_make_choice(console_request, item) for item in items)


def _make_choice(console_request: ConsoleRequest, item: MediaItem) -> ImageChoice:
    src = str(item.sizes.get("thumbnail", {}).get("url", item.url))
    is_loadable = item.url.startswith((console_request.origin_url, console_request.state.media_url or "\0"))
    return ImageChoice(item.id, item.title, src if is_loadable else "")
