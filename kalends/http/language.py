"""Language negotiation and translation.

Only texts for people are translated. Names, codes, types and structure are the same in every language.
"""

import re
from typing import Final

from kalends.core import languages, translations

DEFAULT: Final = languages.DEFAULT
LANGUAGES: Final = languages.LANGUAGES
find_language = languages.find_language
CATALOGUES: Final = translations.CATALOGUES
translator = translations.translator
MAX_RANGES: Final = 20
LANG_PARAM: Final = re.compile(rb"(?:^|&)lang=([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*)(?=&|$)")


def choose_language(query: bytes, accepted: str, site: str = "") -> str:
    """Return the language of `?lang=`, else of Accept-Language, else of the site, else English.

    The query string is searched undecoded, because an error about its encoding needs a language too.
    """
    return find_requested(query, accepted) or find_language(site) or DEFAULT


def find_requested(query: bytes, accepted: str) -> str | None:
    """Return the supported language that a request prefers, or None."""
    match = LANG_PARAM.search(query) if query else None
    if match is None and not accepted:
        return None
    ranges = [match[1].decode() if match else "", *_ranges(accepted)]
    return next((tag for range_ in ranges if (tag := find_language(range_))), None)


def _ranges(accepted: str) -> list[str]:
    """Return the tags of Accept-Language by preference, without those of quality 0."""
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
