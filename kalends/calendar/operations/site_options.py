"""Site settings that commands and the console can change."""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, LiteralString

from kalends.accounts.operations.user_accounts import parse_argument
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.image_types import read_key
from kalends.core.messages import LANGUAGES, Message, find_language
from kalends.core.params import parse_bool, parse_id
from kalends.core.sanitize import clean_plain, clean_text, read_custom_css
from kalends.core.urls import read_ascii_email, read_website
from kalends.core.words import suggest
from kalends.core.zones import read_zone
from kalends.store.database import Transaction
from kalends.store.sql import Sql

START_PAGES: Final = ("front", "calendar")
VIEWS: Final = ("month", "week", "day", "list", "map")
MEDIA_PATH: Final = "/media/"
MAX_FOOTER: Final = 1000  # characters
FONTS: Final = ("serif", "sans", "classic", "humanist", "rounded")
CUSTOM_CSS: Final = "custom_css"
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _parse_per_page(value: str) -> int:
    number = parse_id(value)
    if number is None or not 1 <= number <= 50:
        raise InvalidValue("must be an integer from 1 to 50.")
    return number


def _parse_currency_position(value: str) -> str:
    if value not in ("prefix", "postfix"):
        raise InvalidValue("must be prefix or postfix.")
    return value


def _parse_currency_code(value: str) -> str:
    if len(value) != 3 or not value.isascii() or not value.isupper():
        raise InvalidValue("must be three capital letters, such as EUR.")
    return value


def _parse_language(value: str) -> str:
    """Accept a language that has a catalog, and an optional region, which determines the date format."""
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*", value) or find_language(value) is None:
        raise InvalidValue("must be one of {values}, also with a region, such as en-GB.", values=", ".join(LANGUAGES))
    return value.replace("_", "-")


def _clean_short_text(value: str) -> str:
    return clean_plain(value, 200)


def _clean_footer(value: str) -> str:
    return clean_text(value, MAX_FOOTER)


def _parse_accent(value: str) -> str:
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", value):
        raise InvalidValue("must be a colour such as #1f6f8b.")
    return value.lower()


def _parse_logo(value: str) -> str:
    """Accept a URL, or the path of an image on this site, which works on all of the site's hosts."""
    if value.startswith(MEDIA_PATH) and read_key(value.removeprefix(MEDIA_PATH)):
        return value
    return read_website(value)


def _parse_weekday(value: str) -> int:
    if value.lower() not in WEEKDAYS:
        raise InvalidValue("must be one of {values}.", values=", ".join(WEEKDAYS))
    return WEEKDAYS.index(value.lower()) + 1


def _parse_one_of(values: Sequence[str]) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in values:
            raise InvalidValue("must be one of {values}.", values=", ".join(values))
        return value

    return parse


# The parser for each setting. The keys are column names, except for custom CSS, which has a separate table.
SITE_KEYS: Final[dict[LiteralString, Callable[[str], object]]] = {
    "name": _clean_short_text,
    "base_url": lambda value: read_website(value).rstrip("/") or None,
    "timezone": read_zone,
    "language": _parse_language,
    "currency_symbol": _clean_short_text,
    "currency_position": _parse_currency_position,
    "currency_code": _parse_currency_code,
    "per_page": _parse_per_page,
    "logo_url": _parse_logo,
    "accent": _parse_accent,
    "first_weekday": _parse_weekday,
    "default_view": _parse_one_of(VIEWS),
    "start_page": _parse_one_of(START_PAGES),
    "imprint_url": read_website,
    "privacy_url": read_website,
    "parent_url": read_website,
    "second_accent": lambda value: value and _parse_accent(value),
    "fonts": _parse_one_of(FONTS),
    "submissions": parse_bool,
    "follow_by_email": parse_bool,
    "reply_to": read_ascii_email,
    "mail_footer": _clean_footer,
    CUSTOM_CSS: read_custom_css,
}


async def find_hosts(tx: Transaction) -> list[str]:
    """Return the site's host names. The only site of an installation may have none; it then serves every host."""
    return [row["host"] for row in await tx.fetch_all(Sql("SELECT host FROM own_hosts()"))]


async def show_site(tx: Transaction) -> dict[str, Any]:
    return {
        "id": tx.site.id,
        "hosts": ", ".join(await find_hosts(tx)) or "any",
        **{key: _show(getattr(tx.site, key)) for key in SITE_KEYS if key != CUSTOM_CSS},
        "first_weekday": WEEKDAYS[tx.site.first_weekday - 1],
        CUSTOM_CSS: f"version {tx.site.custom_css_hash}" if tx.site.custom_css_hash else "",
        "revision": tx.site.revision,
    }


async def set_site(tx: Transaction, key: str, value: str) -> str:
    """Change a setting and return its stored value."""
    [parsed] = await set_several(tx, {key: value})
    return value.lower() if key == "first_weekday" else _show(parsed)


def _show(value: object) -> str:
    """Return a setting as text that can be set again."""
    return str(value).lower() if isinstance(value, bool) else str(value or "")


async def set_several(tx: Transaction, settings: Mapping[str, str], user_id: int | None = None) -> list[object]:
    """Change settings and return the parsed values. Raise the revision, because any response may depend on them."""
    parsed = [_parse_setting(key, value) for key, value in settings.items()]
    await tx.lock_site(user_id)
    for column, value in parsed:
        if column == CUSTOM_CSS:
            css = str(value)
            await tx.execute(Sql("DELETE FROM site_styles WHERE site_id = ?", tx.site.id))
            if css:
                await tx.execute(Sql("INSERT INTO site_styles (site_id, css) VALUES (?, ?)", tx.site.id, css))
            css_hash = blake2b(css.encode(), digest_size=6).hexdigest() if css else ""
            await tx.execute(Sql("UPDATE sites SET custom_css_hash = ? WHERE id = ?", css_hash, tx.site.id))
        else:
            await tx.execute(Sql("UPDATE sites SET " + column + " = ? WHERE id = ?", value, tx.site.id))
    tx.changes.record("sites", tx.site.id, "settings")
    return [value for _, value in parsed]


def find_problems(settings: Mapping[str, str]) -> dict[str, Message]:
    """Return the reason for each invalid value, by setting."""
    problems: dict[str, Message] = {}
    for key, value in settings.items():
        try:
            _parse_setting(key, value)
        except InvalidArgument as error:
            problems[key] = error.problem
    return problems


def parse_valid(settings: Mapping[str, str]) -> dict[str, object]:
    problems = find_problems(settings)
    return {key: _parse_setting(key, value)[1] for key, value in settings.items() if key not in problems}


async def read_settings(tx: Transaction) -> dict[str, str]:
    """Return all settings as texts that `set_several` accepts."""
    values = {key: _show(getattr(tx.site, key)) for key in SITE_KEYS if key != CUSTOM_CSS}
    return {**values, "first_weekday": WEEKDAYS[tx.site.first_weekday - 1], CUSTOM_CSS: await read_css(tx)}


def _parse_setting(key: str, value: str) -> tuple[LiteralString, object]:
    for column, parse in SITE_KEYS.items():
        if column == key:
            return column, parse_argument(key, parse, value)
    similar = suggest(key, SITE_KEYS)
    if similar:
        raise InvalidValue("There is no setting {key}.", suggestion=similar, key=key)
    raise InvalidValue("There is no setting {key}. The settings are {keys}.", key=key, keys=", ".join(SITE_KEYS))


async def read_css(tx: Transaction) -> str:
    row = await tx.fetch_one(Sql("SELECT css FROM site_styles WHERE site_id = ?", tx.site.id))
    return row["css"] if row else ""
