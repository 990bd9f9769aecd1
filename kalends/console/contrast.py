"""Notes on the accent colours: which colour the pages use, and its contrast with the background."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from babel.numbers import format_decimal

from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.website.models.theme import DARK_BACKGROUND, LIGHT_BACKGROUND, contrast, ensure_contrast

BACKGROUNDS: Final = {"light": LIGHT_BACKGROUND, "dark": DARK_BACKGROUND}
KEPT: Final = {
    ("accent", "light"): N_("On light pages, links use your colour. Its contrast is {used}:1."),
    ("accent", "dark"): N_("On dark pages, links use your colour. Its contrast is {used}:1."),
    ("second_accent", "light"): N_("On light pages, featured events use your colour. Its contrast is {used}:1."),
    ("second_accent", "dark"): N_("On dark pages, featured events use your colour. Its contrast is {used}:1."),
}
ADJUSTED: Final = {
    ("accent", "light"): N_(
        "On light pages, links will use {colour} so that they stay readable. Its contrast is {used}:1; that of your "
        "colour is {chosen}:1."
    ),
    ("accent", "dark"): N_(
        "On dark pages, links will use {colour} so that they stay readable. Its contrast is {used}:1; that of your "
        "colour is {chosen}:1."
    ),
    ("second_accent", "light"): N_(
        "On light pages, featured events will use {colour} so that they stay readable. Its contrast is {used}:1; "
        "that of your colour is {chosen}:1."
    ),
    ("second_accent", "dark"): N_(
        "On dark pages, featured events will use {colour} so that they stay readable. Its contrast is {used}:1; that "
        "of your colour is {chosen}:1."
    ),
}


@dataclass(frozen=True, slots=True)
class ContrastNote:
    """The colour that pages use on a background, and a sentence about it."""

    background: str
    colour: str
    text: Message


def make_notes(colours: Mapping[str, object], language: str) -> dict[str, list[ContrastNote]]:
    """Return the notes on each accent colour; none on an empty one."""
    return {
        name: [_make_note(name, str(colours[name]), theme, language) for theme in BACKGROUNDS]
        for name in ("accent", "second_accent")
        if colours.get(name)
    }


def _make_note(name: str, chosen: str, theme: str, language: str) -> ContrastNote:
    background = BACKGROUNDS[theme]
    used = ensure_contrast(chosen, background)
    text = (KEPT if used == chosen else ADJUSTED)[name, theme]
    ratios = [
        format_decimal(contrast(colour, background), "0.0", locale=language.replace("-", "_"))
        for colour in (used, chosen)
    ]
    return ContrastNote(theme, used, Message(text, colour=used, used=ratios[0], chosen=ratios[1]))
