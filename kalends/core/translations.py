"""Translation of texts by the catalogues in `kalends/locale`."""

import gettext
from functools import cache
from pathlib import Path
from typing import Final

from kalends.core.languages import DEFAULT
from kalends.core.messages import Translate, gettext_noop

CATALOGUES: Final = Path(__file__).resolve().parent.parent / "locale"


@cache
def translator(language: str) -> Translate:
    """Return the function that translates texts; a text without a translation stays English."""
    if language == DEFAULT:
        return gettext_noop
    folder = CATALOGUES / language.replace("-", "_") / "LC_MESSAGES"
    with (folder / "messages.mo").open("rb") as compiled:
        return gettext.GNUTranslations(compiled).gettext
