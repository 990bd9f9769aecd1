"""Slugs identify records in URLs. They are ASCII; other scripts are percent-encoded.

This module does not check whether a slug is in use.
"""

import re
import unicodedata
from typing import Final
from urllib.parse import quote

from anyascii import anyascii

MAX_BYTES: Final = 200
TRASHED_SUFFIX: Final = "__trashed"

_MARKUP = re.compile(r"<(script|style)\b[^>]*>.*?</\1\s*>|</?[a-z!][^<>]*>", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)
_ESCAPES = re.compile(r"(?:%[89a-f][0-9a-f])+", re.IGNORECASE)
_HYPHENS = re.compile(r"-+")


def make_slug(text: str) -> str:
    """Return the slug for a title, name or requested slug; "" if nothing usable is left (behaviour 4.7)."""
    bare = _ENTITY.sub("", _MARKUP.sub("", text[: 20 * MAX_BYTES]))
    lower = unicodedata.normalize("NFC", _ESCAPES.sub(_decode, bare).lower())
    slug = "".join(_transliterate(character) for character in lower)
    return _truncate(_HYPHENS.sub("-", slug).strip("-"), MAX_BYTES).strip("-")


def normalize_lookup(slug: str) -> str:
    """Convert a URL-decoded slug to its stored spelling."""
    lower = unicodedata.normalize("NFC", slug.lower())
    return "".join(c if "!" <= c <= "~" else _escape(c) for c in lower)


def add_number(slug: str, n: int) -> str:
    """Return the slug for the nth record with this slug. A trashed record's slug is not truncated."""
    if n == 1:
        return slug
    return f"{slug}-{n}" if slug.endswith(TRASHED_SUFFIX) else add_suffix(slug, f"-{n}")


def add_suffix(slug: str, suffix: str) -> str:
    """Append a suffix, truncating the slug if the result would be too long."""
    return _truncate(slug, MAX_BYTES - len(suffix)) + suffix


def _decode(escapes: re.Match[str]) -> str:
    """Decode an existing slug's escapes, unless they are invalid UTF-8."""
    try:
        return bytes.fromhex(escapes[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return escapes[0]


def _transliterate(character: str) -> str:
    if character.isascii():
        return _transliterate_ascii(character)
    name = unicodedata.name(character, "")
    if "LATIN" in name:
        return "".join(c for c in anyascii(character).lower() if c.isalnum())
    if character == "×":
        return "x"
    category = unicodedata.category(character)
    if category in ("Zs", "Zl", "Zp", "Pd"):
        return "-"
    # Keep letters, digits and emoji. Drop combining accents, variation selectors, joiners, punctuation, currency
    # symbols and signs such as ©.
    is_sign = category[0] == "S" and character < "\u2190"
    if category[0] in "PC" or category in ("Sc", "Sm") or is_sign or "\u0300" <= character <= "\u036f":
        return ""
    return "" if "VARIATION SELECTOR" in name else _escape(character)


def _transliterate_ascii(character: str) -> str:
    if character.isalnum() or character == "_":
        return character
    return "-" if character.isspace() or character in "-/." else ""


def _escape(character: str) -> str:
    return quote(character, safe="", errors="replace").lower()


def _truncate(slug: str, size: int) -> str:
    """Truncate to `size` bytes without splitting an encoded character."""
    if len(slug) <= size:
        return slug
    truncated = slug[:size]
    # A character has up to four escapes of three bytes; the last escape may be incomplete.
    for begin in range(max(size - 11, 0), size):
        if slug[begin] == "%" and slug[begin + 1] in "cdef" and begin + 3 * _utf8_length(slug[begin + 1]) > size:
            return slug[:begin]
    return truncated


def _utf8_length(digit: str) -> int:
    """Return a character's length in bytes, given the first hexadecimal digit."""
    return {"e": 3, "f": 4}.get(digit, 2)
