"""Drafts of forms: what a user has typed and not saved yet. They never change a record or a revision."""

from collections.abc import Mapping
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.params import read_integer
from kalends.store import drafts
from kalends.store.database import Transaction

MAX_PAIRS: Final = 1000
MAX_CHARACTERS: Final = 400_000
# Fields that are not kept: a password belongs in no draft.
LEFT_OUT: Final = frozenset(["new_password"])


async def save_draft(tx: Transaction, user_id: int, kind: str, key: str, values: Mapping[str, Any]) -> None:
    """Store the fields of a form, given as pairs, with the revision that it was opened at."""
    pairs = _read_pairs(values.get("fields"))
    revision = _read_revision(values.get("base_revision"))
    if await drafts.save_draft(tx, user_id, kind, key, base_revision=revision, pairs=pairs):
        await drafts.remove_oldest(tx, user_id, kind)


def _read_pairs(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, list) or len(value) > MAX_PAIRS:  # pyright: ignore[reportUnknownArgumentType]
        raise errors.invalid("fields", "must be a list of pairs.")
    pairs: list[tuple[str, str]] = []
    for entry in value:  # pyright: ignore[reportUnknownVariableType]
        match entry:
            case [str(name), str(text)] if "\0" not in name + text:
                pairs.append((name, text))
            case _:
                raise errors.invalid("fields", "must be a list of pairs.")
    if sum(len(name) + len(text) for name, text in pairs) > MAX_CHARACTERS:
        raise errors.draft_too_long(MAX_CHARACTERS)
    return [(name, text) for name, text in pairs if name not in LEFT_OUT]


def _read_revision(value: object) -> int | None:
    if value in (None, ""):
        return None
    try:
        return read_integer(value)
    except InvalidValue as error:
        raise errors.invalid_params({"base_revision": errors.for_param("base_revision", error.message)}) from error
