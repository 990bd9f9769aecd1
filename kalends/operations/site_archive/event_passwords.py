"""Passwords of events in archives: that there is one, but not its hash.

A hash is useless without the secret of its site, which no archive contains. A protected event stays locked after an
import until somebody sets a new password. Hashes occur in columns, in series and in the history.
"""

from collections.abc import Iterator
from typing import Any, Final

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
    return LOCKED if is_hash and isinstance(value, str) and value else value


def find_hashes(row: dict[str, Any]) -> Iterator[str]:
    """Yield all hashes of passwords in a row, which an archive must not contain."""
    hidden = hide_hashes(row)
    yield from (name for name in row if row[name] != hidden[name])
