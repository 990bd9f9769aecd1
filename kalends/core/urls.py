"""Check the syntax of URLs and email addresses."""

import re
import unicodedata
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import clean_text

MAX_WEBSITE_LENGTH: Final = 2000
MAX_EMAIL_LENGTH: Final = 254

_HOST_AND_PORT = re.compile(r"(?P<host>(?:[\w-]+\.)*[\w-]+\.?|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]{1,5}))?")
_UNWISE = re.compile(r"[\"<>\\^`{|}]")
_EMAIL = re.compile(r"[^@\s<>()\[\],;:\\\"]+@[^@\s<>()\[\],;:\\\"/?#]+")


def read_website(value: object) -> str:
    """Validate an http or https URL, ASCII or international, and return it as written; "" for none.

    Characters that are illegal in URLs, such as quotation marks and angle brackets, are encoded to make the URL safe
    in pages. All others are kept.
    """
    if value is None or value is False or value == "":
        return ""
    if not isinstance(value, str):
        raise _invalid_website()
    text = clean_text(value, MAX_WEBSITE_LENGTH)
    if not text or any(c.isspace() or unicodedata.category(c) in ("Cf", "Co", "Cn") for c in text):
        raise _invalid_website()
    try:
        parts = urlsplit(text)
    except ValueError:
        raise _invalid_website() from None
    if parts.scheme not in ("http", "https") or not _has_host(parts):
        raise _invalid_website()
    url = parts.scheme + text[len(parts.scheme) :]
    return _UNWISE.sub(lambda match: quote(match[0]), url)


def to_ascii_url(url: str) -> str:
    """Return a URL with its host in ASCII, as the headers of emails need it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.encode("idna").decode("ascii")).geturl()


def read_email(value: str) -> str:
    """Validate an email address: text before and after one @, no markup; "" for none."""
    text = clean_text(value, MAX_EMAIL_LENGTH)
    if text and not _EMAIL.fullmatch(text):
        raise InvalidValue("must be an email address such as name@example.org.")
    return text


def read_ascii_email(value: str) -> str:
    """Validate an email address that every mail server accepts."""
    text = read_email(value)
    if not text.isascii():
        raise InvalidValue("must be an email address such as name@example.org.")
    return text


def _has_host(parts: SplitResult) -> bool:
    """Return whether a URL has a host. Credentials before an @ are rejected, because they mislead readers."""
    match = _HOST_AND_PORT.fullmatch(parts.netloc)
    return match is not None and len(match["host"]) <= 253 and 0 < int(match["port"] or 80) < 65536


def _invalid_website() -> InvalidValue:
    return InvalidValue("must be an absolute http or https URL.")
