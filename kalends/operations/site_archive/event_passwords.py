"""Passwords of events in archives: that there is one, but not its hash.

A hash is useless without the secret of its site, which no archive contains. A protected event stays locked after an
import until somebody sets a new password. Hashes occur in columns, in series and in the history.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

KEY: Final = "password_hash"
# Stand for any hash, in a column of bytes and in JSON. No password has a hash of one byte.
LOCKED_BYTES: Final = "\\x00"
LOCKED: Final = "00"


def hide_hashes(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the hashes of passwords."""
    return {
        name: (value and LOCKED_BYTES) if name == KEY else _hide_nested(value, is_hash=False)
        for name, value in row.items()
    }


def _hide_nested(value: Any, *, is_hash: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: _hide_nested(entry, is_hash=is_hash or name == KEY)
            for name, entry in value.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(value, list):
        return [_hide_nested(entry, is_hash=is_hash) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    return (value and LOCKED) if is_hash else _hide_encoded(value)


def _hide_encoded(text: str) -> str:
    """Hide the hashes in a text that is JSON: the history of a series contains its definition as text."""
    if KEY not in text:
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.dumps(_hide_nested(value, is_hash=False), option=orjson.OPT_SORT_KEYS).decode()


def find_hashes(row: dict[str, Any]) -> Iterator[str]:
    """Yield all hashes of passwords in a row, which an archive must not contain."""
    hidden = hide_hashes(row)
    yield from (name for name in row if row[name] != hidden[name])
