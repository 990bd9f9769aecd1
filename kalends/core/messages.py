"""Messages, which are translated when a response is rendered, and the choice of the language.

A message is an English text with named placeholders and their values. Only texts that people read are translated;
names, codes, types and structure are the same in every language.
"""

import gettext
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

Translate = Callable[[str], str]


def gettext_noop(text: str) -> str:
    """Return the text unchanged; the call marks it for extraction by `just translations`."""
    return text


class Message:
    """A message such as `Message("There is no user {id}.", id=7)`. Values can be messages or lists of messages."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    def render(self, translate: Translate) -> str:
        text = translate(self.text)
        if not self.values:
            return text
        return text.format(**{name: _render_value(value, translate) for name, value in self.values.items()})

    def __str__(self) -> str:
        return self.render(gettext_noop)

    def __repr__(self) -> str:
        return f"Message({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.text, self.values) == (other.text, other.values)

    def __hash__(self) -> int:
        return hash(self.text)


def _render_value(value: object, translate: Translate) -> object:
    if isinstance(value, Message):
        return value.render(translate)
    if isinstance(value, list | tuple):
        return " ".join(str(_render_value(entry, translate)) for entry in value)  # pyright: ignore[reportUnknownVariableType]
    return value


DEFAULT: Final = "en"
# Native language names by tag, in display order, for the languages with a catalog in `kalends/locale`.
LANGUAGES: Final = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "it": "Italiano",
    "nl": "Nederlands",
    "pt-BR": "Português (Brasil)",
    "ja": "日本語",
}
BY_PRIMARY: Final = {tag.partition("-")[0]: tag for tag in LANGUAGES}
MAX_RANGES: Final = 20
LANG_PARAM: Final = re.compile(rb"(?:^|&)lang=([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*)(?=&|$)")


def find_language(range_: str) -> str | None:
    """Return the supported language for a tag: `de-AT` and `de_DE` become `de`, and `pt` becomes `pt-BR`."""
    return BY_PRIMARY.get(range_.strip().lower().replace("_", "-").partition("-")[0])


def choose_language(query: bytes, accepted: str, site: str = "") -> str:
    """Return the language from `?lang=`, Accept-Language or the site.

    The query is searched without decoding it, because it may contain encoding errors.
    """
    return find_requested(query, accepted) or find_language(site) or DEFAULT


def find_requested(query: bytes, accepted: str) -> str | None:
    """Return the supported language preferred by a request, or None."""
    match = LANG_PARAM.search(query) if query else None
    if match is None and not accepted:
        return None
    ranges = [match[1].decode() if match else "", *_ranges(accepted)]
    return next((tag for range_ in ranges if (tag := find_language(range_))), None)


def _ranges(accepted: str) -> list[str]:
    """Return the Accept-Language tags in order of preference, omitting quality 0."""
    weighted: list[tuple[float, str]] = []
    for part in accepted.split(",")[:MAX_RANGES]:
        tag, _, parameters = part.partition(";")
        weight = _weight(parameters)
        if weight > 0:
            weighted.append((weight, tag))
    return [tag for _, tag in sorted(weighted, key=lambda pair: -pair[0])]


def _weight(parameters: str) -> float:
    name, _, number = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return min(1.0, max(0.0, float(number)))
    except ValueError:
        return 0.0


def choose_email_language(own: str, site_language: str) -> str:
    """Return the language for an email: the recipient's choice, or else the site's language."""
    return (find_language(own) if own else None) or find_language(site_language) or DEFAULT


CATALOGUES: Final = Path(__file__).resolve().parent.parent / "locale"


@cache
def translator(language: str) -> Translate:
    """Return the function that translates text into the language. Texts without a translation stay English."""
    if language == DEFAULT:
        return gettext_noop
    folder = CATALOGUES / language.replace("-", "_") / "LC_MESSAGES"
    with (folder / "messages.mo").open("rb") as compiled:
        return gettext.GNUTranslations(compiled).gettext
