"""Submitted event forms: read the values and the picture, find changes, and keep a form as unsaved changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from kalends.api.api_request import fetch_images, find_image_urls
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import KIND, LABELS, FormPage, ProposedForm, load_linked, resolve_names
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.operations import record_verbs
from kalends.calendar.operations.form_work import save_draft
from kalends.calendar.storage.form_drafts import Draft
from kalends.console.console_request import ConsoleRequest
from kalends.console.event_values import (
    IMAGE_PARAMS,
    EventValues,
    find_changes,
    make_new_values,
    make_originals,
    make_values,
    overlay,
    to_params,
)
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import RepeatedValues, parse_id, read_params
from kalends.http import bodies
from kalends.http.bodies import FIELD, MULTIPART, FormLimits, Upload, parse_nested, read_upload
from kalends.media.adapters.library import Library, StoredImage
from kalends.media.images import resolve_image_url
from kalends.media.operations import create_media
from kalends.store import Row


@dataclass(slots=True)
class Submission:
    """The submitted values of a form, and the values it was rendered with."""

    row: Row | None
    values: EventValues
    originals: dict[str, Any]
    base_revision: int | None
    draft_key: str
    problems: dict[str, Message]  # unknown names, by parameter
    proposed: ProposedForm | None = None

    @property
    def record_id(self) -> int | None:
        return self.row["id"] if self.row else None

    def find_params(self) -> dict[str, Any]:
        """Return the parameters to send: only changes for an existing event, only non-empty values for a new one."""
        params = to_params(self.values)
        if self.row is not None:
            return find_changes(params, self.originals)
        return {name: value for name, value in params.items() if value not in ("", [], None, False, 0)}

    def find_image_params(self) -> dict[str, Any]:
        current = {name: getattr(self.values, name) for name in IMAGE_PARAMS}
        changed = find_changes(current, self.originals)
        return {IMAGE_PARAMS[name]: value for name, value in changed.items()}

    def make_page(self) -> FormPage:
        return FormPage(
            values=self.values,
            row=self.row,
            originals=self.originals,
            base_revision=self.base_revision,
            draft_key=self.draft_key,
            proposed=self.proposed,
        )


async def load_submission(
    console_request: ConsoleRequest, context: OperationContext, form: dict[str, Any], record_id: int | None
) -> Submission:
    """Read a form. Fields that the form lacks get their stored values."""
    row: Row | None = None
    if record_id is None:
        permissions.require_writer(console_request.actor, EVENTS)
        values = make_new_values(context.transaction.site)
        values.start_time = values.end_time = ""
    else:
        record_context = console_request.make_context(context.transaction, record_id=record_id)
        row = await record_verbs.fetch_editable_row(EVENTS, record_context)
        values = make_values(row, await load_linked(context, row), context.transaction.site)
    stored_originals = make_originals(values)
    overlay(values, form)
    problems = await resolve_names(context, values)
    revision = str(form.get("base_revision", ""))
    return Submission(
        row=row,
        values=values,
        originals=read_originals(form.get("originals")) or stored_originals,
        base_revision=parse_id(revision),
        draft_key=str(form.get("draft_key", ""))[:64],
        problems=problems,
    )


def read_originals(text: object) -> dict[str, Any] | None:
    """Return the parameters that the form was rendered with. The conflict page does not send them."""
    try:
        decoded: Any = orjson.loads(text) if isinstance(text, str) and text else None
    except orjson.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None  # pyright: ignore[reportUnknownVariableType]


# Limits for the submitted form, which may contain a picture.

LIMITS: Final = FormLimits(fields=1000, field_bytes=1024 * 1024, total_bytes=2 * 1024 * 1024)
# Actions that save neither the form nor its picture.
UNSAVED_ACTIONS: Final = frozenset(["preview", "trash", "find-image", "repeat"])


async def read_form(console_request: ConsoleRequest) -> StoredImage | ApiError | None:
    """Read the form and store the picture, if there is one. If the picture is invalid, return the error."""
    request, library = console_request.request, console_request.state.library
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != MULTIPART or library is None:
        body = await bodies.read_body(request, LIMITS.total_bytes)
        console_request.form = (await bodies.read_values(request, body)).values
        return None
    owner = (console_request.site.id, console_request.actor.user_id)
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        raw, upload = await read_upload(request, directory, library.max_bytes, LIMITS)
        console_request.form = raw.values
        if upload is None or not upload.path.stat().st_size or raw.values.get("action") in UNSAVED_ACTIONS:
            return None
        return await _store(console_request, library, upload)


async def _store(console_request: ConsoleRequest, library: Library, upload: Upload) -> StoredImage | ApiError:
    try:
        permissions.require_writer(console_request.actor, MEDIA)
        return await library.store_image(console_request.site.id, upload.path, title=upload.name)
    except InvalidValue as error:
        return errors.invalid_params({FIELD: errors.for_param(FIELD, error.message)})
    except ApiError as error:
        return error


async def add_picture(console_request: ConsoleRequest, image: StoredImage, raw: dict[str, Any]) -> int:
    """Add a stored picture to the media library and return its ID."""
    values = read_params(MEDIA.fields, raw)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = replace(console_request.make_context(tx, values), upload=image)
        return int((await create_media(MEDIA, context)).body["id"])


async def fetch_picture(console_request: ConsoleRequest, url: str) -> int:
    """Fetch a picture from another site unless the media library has it, and return its ID."""
    values = read_params(EVENTS.fields, {"image": url}, update=True)
    fetched = await fetch_images(console_request, console_request.site.id, find_image_urls(EVENTS, values))
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = replace(console_request.make_context(tx), fetched_images=fetched)
        return int((await resolve_image_url(context, values))["image"])


# Submitted forms become unsaved changes, so users lose nothing if they go back from the scope page.

# Fields of the conflict and scope forms. These forms lack the fields of the event form.
OTHER_FORMS: Final = frozenset(["conflict_values", "scope_values"])


async def keep_form(console_request: ConsoleRequest, submission: Submission) -> bool:
    """Store the form as the event's unsaved changes. Return False if it is not an event form or is too long."""
    form = console_request.form
    if OTHER_FORMS & set(form) or "originals" not in form:
        return False
    # The picture may have been uploaded with this form.
    pairs = [*list_pairs(form), ("image", submission.values.image)]
    draft = {"base_revision": submission.base_revision, "fields": [[name, value] for name, value in pairs]}
    try:
        async with console_request.write() as tx:
            await save_draft(tx, console_request.actor.user_id or 0, KIND, str(submission.record_id), draft)
    except ApiError as error:
        if error.status >= 500:
            raise
        return False
    return True


def list_pairs(form: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield a form's names and values. `parse_nested` turns them back into the same lists and objects."""
    for key, value in form.items():
        name = f"{prefix}[{key}]" if prefix else key
        if isinstance(value, dict):
            yield from list_pairs(value, name)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            suffix = "" if isinstance(value, RepeatedValues) else "[]"
            yield from ((name + suffix, entry) for entry in value if isinstance(entry, str))  # pyright: ignore
        elif isinstance(value, str):
            yield name, value


# Differences between unsaved changes and the stored event.


@dataclass(frozen=True, slots=True)
class Difference:
    label: str  # a message ID
    stored: str
    unsaved: str


async def compare(console_request: ConsoleRequest, context: OperationContext, draft: Draft) -> list[Difference]:
    submission = await load_submission(console_request, context, parse_nested(draft.pairs), parse_id(draft.key))
    site, row = context.transaction.site, submission.row
    stored = make_values(row, await load_linked(context, row), site) if row else make_new_values(site)
    changes = find_changes(to_params(submission.values), make_originals(stored))
    return [
        Difference(LABELS.get(name, name), _describe(stored, name), _describe(submission.values, name))
        for name in changes
        if name in LABELS
    ]


def _describe(values: EventValues, name: str) -> str:
    if name in ("venue", "organizer"):
        new = getattr(values, f"new_{name}").get(name, "")
        names = [pick.name for pick in getattr(values, name)]
        return ", ".join(dict.fromkeys([*names, *([new] if new else [])]))
    if name == "tags":
        return values.tags
    value: Any = to_params(values).get(name, "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
