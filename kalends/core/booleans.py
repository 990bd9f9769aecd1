"""Booleans in all common spellings. This is an extension: the original API accepts fewer."""

from typing import Final

from kalends.core.errors import InvalidValue

SPELLINGS: Final = {
    "true": True, "1": True, "yes": True, "on": True,
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


def parse_bool(value: object) -> bool:
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    parsed = SPELLINGS.get(value.lower()) if isinstance(value, str) else None
    if parsed is None:
        raise InvalidValue("must be a boolean: true/false, 1/0, yes/no or on/off.")
    return parsed
