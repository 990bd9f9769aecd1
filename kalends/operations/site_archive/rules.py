"""Rules for the texts of archives: the same that a write through the API applies, and those of settings.

A rule is a function that returns the value to store and raises InvalidValue for values that cannot be stored. What
a site has stored is what the rule returns for it, so a value that its rule changes is not one of an export.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from kalends.core.custom_css import read_custom_css
from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_plain
from kalends.core.image_types import BY_EXTENSION, BY_MIME, is_file_name, read_key
from kalends.core.languages import find_language
from kalends.core.urls import read_email, read_website
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.kinds.series import CONTENT_FIELDS, TIMES
from kalends.operations.accounts import read_login
from kalends.operations.imports.fetching import read_source_url
from kalends.operations.sites import MEDIA_PATH, SITE_KEYS
from kalends.store.series import decode_definition
from kalends.store.site_tables import OWN_MEDIA

type Rule = Callable[[Any], Any]
type Rules = Mapping[str, Rule]

# Parameters that are not the text of a column of the same name. Constraints of the database check statuses.
_NOT_TEXTS: Final = frozenset({"slug", "status"})
_UNSAFE_IN_SLUG: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f<>\"'`&/\\?#]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OWN_FIELDS: Final = {*CONTENT_FIELDS.values(), TIMES}


def _read_slug(value: str) -> str:
    if _UNSAFE_IN_SLUG.search(value):
        raise InvalidValue("contains characters that no slug has.")
    return value


def _read_line(value: str) -> str:
    if _CONTROL.search(value):
        raise InvalidValue("contains control characters.")
    return value


def _read_file_or_url(value: str) -> str:
    return value if is_file_name(value) else _read_url(value)


def _read_file_name(value: str) -> str:
    if not is_file_name(value):
        raise InvalidValue("is not the name of an image file.")
    return value


def _read_url(value: str) -> str:
    return read_website(value)


def _read_source_url(value: str) -> str:
    return value and read_source_url(value)


def _read_logo(value: str) -> str:
    """Accept the path of an own image with a placeholder for the ID of the site."""
    if value.startswith(OWN_MEDIA):
        if read_key(f"1/{value.removeprefix(OWN_MEDIA)}") is None:
            raise InvalidValue("is not the path of an image file.")
        return value
    if value.startswith(MEDIA_PATH):
        raise InvalidValue("is the path of an image of another site.")
    return read_website(value)


def _read_known(known: Mapping[str, object]) -> Rule:
    def read(value: str) -> str:
        if value and value not in known:
            raise InvalidValue("must be one of {values}.", values=", ".join(known))
        return value

    return read


def _read_sizes(value: Any) -> Any:
    """Accept what `make_sizes` stores: by name of the size its dimensions and files."""
    try:
        for size in value.values():
            if not all(type(size[name]) is int and size[name] > 0 for name in ("width", "height", "filesize")):
                raise InvalidValue("contains a size without its dimensions.")
            if size["mime-type"] not in BY_MIME or type(size["webp"]["filesize"]) is not int:
                raise InvalidValue("contains a size of an unknown type.")
            for name in (size["url"], size["webp"]["url"]):
                _read_file_name(name)
    except (AttributeError, KeyError, TypeError):
        raise InvalidValue("is not a description of image sizes.") from None
    return value


def _read_css_hash(value: str) -> str:
    if not re.fullmatch(r"([0-9a-f]{12})?", value, re.ASCII):
        raise InvalidValue("is not the hash of custom CSS.")
    return value


def _read_language(value: str) -> str:
    return (value and find_language(value)) or ""


def _read_own_fields(value: list[str]) -> list[str]:
    if not set(value) <= _OWN_FIELDS:
        raise InvalidValue("contains a field that no event has.")
    return value


def _read_path(value: str) -> str:
    if not value.startswith("/") or value.startswith("//"):
        raise InvalidValue("must be a path.")
    return _read_line(value)


def _rules_of_kind(kind: Kind) -> dict[str, Rule]:
    """Return the rules of the parameters, by column."""
    columns = {param.name: param.name for param in kind.fields if param.name not in _NOT_TEXTS}
    if kind.title_param != "name":  # Terms have a column `name`, the others `title`.
        columns[kind.title_param] = "title"
    return {columns[param.name]: param.type.read for param in kind.fields if param.name in columns}


_POST: Final[dict[str, Rule]] = {"slug": _read_slug, "uid": _read_line, "feed_guid": _read_line}
_KINDS: Final = {kind.name: {**_rules_of_kind(kind), **_POST} for kind in (*KINDS, MEDIA)}
_SERIES: Final[dict[str, Rule]] = {**_KINDS["events"]}
RULES: Final[Mapping[str, Rules]] = {
    **_KINDS,
    "events": {**_KINDS["events"], "own_fields": _read_own_fields},
    "series": _SERIES,
    "media": {
        **_KINDS["media"],
        "url": _read_file_or_url,
        "extension": _read_known(BY_EXTENSION),
        "mime_type": _read_known(BY_MIME),
        "sizes": _read_sizes,
        "source_url": _read_url,
    },
    "media_files": {"name": _read_file_name, "size": _read_line},
    "legacy_files": {"path": _read_line},
    "prefix_redirects": {"old": _read_path, "new": _read_path},
    "slug_redirects": {"kind": _read_known(BY_NAME), "slug": _read_slug},
    "site_styles": {"css": read_custom_css},
    "import_sources": {"url": _read_source_url, "name": lambda value: clean_plain(value, 200)},
    "users": {
        "login": read_login,
        "email": read_email,
        "display_name": lambda value: clean_plain(value, 100),
        "language": _read_language,
    },
    "sites": {
        **{name: SITE_KEYS[name] for name in ("name", "timezone", "language", "currency_symbol", "currency_code")},
        **{name: SITE_KEYS[name] for name in ("imprint_url", "privacy_url", "parent_url")},
        "logo_url": _read_logo,
        "custom_css_hash": _read_css_hash,
        "former_host": _read_line,
    },
}
# The rules of the columns in the history, where columns of JSON are texts.
LOGGED_RULES: Final[Mapping[str, Rules]] = {
    kind: {name: rule for name, rule in rules.items() if name != "sizes"} for kind, rules in RULES.items()
}


def check_definition(row: Mapping[str, Any]) -> None:
    """Raise InvalidValue unless the definition of a series can be read."""
    encoded = {name: orjson.dumps(row[name]).decode() for name in ("parts", "template", "content_changes")}
    try:
        definition = decode_definition({"added": [], "removed": [], **encoded})
        for content in (definition.template, *(change.values for change in definition.content_changes)):
            if not set(content) <= set(CONTENT_FIELDS):
                raise InvalidValue("contains a field that no event has.")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue("is not the definition of a series.") from error
