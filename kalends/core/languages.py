"""The languages of messages and pages: those with a catalogue in `kalends/locale`, and English."""

from typing import Final

DEFAULT: Final = "en"
# Native names by tag, in the order in which they are offered.
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


def find_language(range_: str) -> str | None:
    """Return the supported language of a tag: `de-AT` and `de_DE` give `de`, and `pt` gives `pt-BR`."""
    return BY_PRIMARY.get(range_.strip().lower().replace("_", "-").partition("-")[0])
