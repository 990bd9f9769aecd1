"""A submitted form as unsaved changes, so that nothing is lost if the user goes back from the page about scopes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kalends.console.event_form.page import KIND
from kalends.console.event_form.submission import Submission
from kalends.console.request import ConsoleRequest
from kalends.core.errors import ApiError
from kalends.core.params import RepeatedValues
from kalends.operations.drafts import save_draft

# Forms that follow the form of an event, and do not have its fields.
OTHER_FORMS: Final = frozenset(["conflict_values", "scope_values"])


async def keep_form(console_request: ConsoleRequest, submission: Submission) -> bool:
    """Store the form as unsaved changes of its event; return False if it is another form or too long."""
    form = console_request.form
    if OTHER_FORMS & set(form) or "originals" not in form:
        return False
    # The picture may have been uploaded with the form.
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
    """Yield the names and values of a form, from which `parse_nested` builds the same lists and objects."""
    for key, value in form.items():
        name = f"{prefix}[{key}]" if prefix else key
        if isinstance(value, dict):
            yield from list_pairs(value, name)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            suffix = "" if isinstance(value, RepeatedValues) else "[]"
            yield from ((name + suffix, entry) for entry in value if isinstance(entry, str))  # pyright: ignore
        elif isinstance(value, str):
            yield name, value
