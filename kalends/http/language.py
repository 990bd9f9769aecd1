"""The language of an answer: which one the reader wants, and how a sentence is said in it.

Only what people read differs between languages. Names, codes, types and structure never do.
"""

import gettext
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from kalends.core.messages import Message, Translate, gettext_noop

DEFAULT: Final = "en"
# Tag -> its own name, in the order in which they are offered.
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
CATALOGUES: Final = Path(__file__).resolve().parent.parent / "locale"
MAX_RANGES: Final = 20
LANG_PARAM: Final = re.compile(rb"(?:^|&)lang=([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*)(?=&|$)")


def choose_language(query: bytes, accepted: str, site: str = "") -> str:
    """`?lang=`, else the first that Accept-Language names, else the site's, else English.

    The query string is looked at as it came: what is wrong with it is to be said in some language, too.
    """
    return find_requested(query, accepted) or find_language(site) or DEFAULT


def find_requested(query: bytes, accepted: str) -> str | None:
    """Returns the language that a request asks for, if it asks for one that there is."""
    match = LANG_PARAM.search(query)
    ranges = [match[1].decode() if match else "", *_ranges(accepted)]
    return next((tag for range_ in ranges if (tag := find_language(range_))), None)


def find_language(range_: str) -> str | None:
    """The language that a tag means: `de-AT` and `de_DE` are German here, any Portuguese is Brazil's."""
    primary = range_.strip().lower().replace("_", "-").partition("-")[0]
    return next((tag for tag in LANGUAGES if tag.lower().partition("-")[0] == primary), None)


@cache
def translator(language: str) -> Translate:
    """How a text is said; what a catalogue lacks stays English."""
    if language == DEFAULT:
        return gettext_noop
    folder = CATALOGUES / language.replace("-", "_") / "LC_MESSAGES"
    with (folder / "messages.mo").open("rb") as compiled:
        return gettext.GNUTranslations(compiled).gettext


def json_default(language: str) -> Callable[[object], str]:
    """For the writer of JSON: says the sentences that stand in an answer."""
    translate = translator(language)

    def encode(value: object) -> str:
        if isinstance(value, Message):
            return value.render(translate)
        raise TypeError(f"{type(value).__name__} in an answer")

    return encode


def _ranges(accepted: str) -> list[str]:
    """The tags of Accept-Language, the best first; those with q=0 are not wanted."""
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
