"""The choices of the settings, with their names in the language of the user."""

from functools import cache
from typing import Final

from babel import Locale

from kalends.console.request import ConsoleRequest
from kalends.core.languages import LANGUAGES
from kalends.core.messages import gettext_noop as N_
from kalends.core.zones import REGIONS, read_zone, zone_names
from kalends.http.language import translator
from kalends.operations.sites import WEEKDAYS
from kalends.website.models.page_locale import make_page_locale
from kalends.website.rendering import VIEW_NAMES

Options = list[tuple[str, str]]
FONT_NAMES: Final = {
    "serif": N_("Serif headings, sans-serif texts"),
    "sans": N_("Sans-serif"),
    "classic": N_("Serif"),
    "humanist": N_("Humanist sans-serif"),
    "rounded": N_("Rounded headings"),
}
POSITION_NAMES: Final = {"prefix": N_("Before the amount"), "postfix": N_("After the amount")}
# Regions that differ in the format of dates.
REGIONAL: Final = (
    *("en-GB", "en-IE", "en-CA", "en-AU", "en-US", "de-AT", "de-CH", "fr-BE", "fr-CA", "fr-CH"),
    *("es-MX", "es-AR", "it-CH", "nl-BE"),
)


def make_options(console_request: ConsoleRequest) -> dict[str, Options]:
    """Return the choices by setting. A current value that is not among them is added."""
    language, site = console_request.language, console_request.site
    translate = translator(language)
    weekdays = make_page_locale(language, site.language, translate).weekdays(1)
    has_map = bool(console_request.map_settings.tiles_url) or site.default_view == "map"
    return {
        "language": _list_languages(site.language),
        "first_weekday": [(key, name) for key, (_, name) in zip(WEEKDAYS, weekdays, strict=True)],
        "default_view": [(key, translate(name)) for key, name in VIEW_NAMES.items() if key != "map" or has_map],
        "fonts": [(key, translate(name)) for key, name in FONT_NAMES.items()],
        "currency_position": [(key, translate(name)) for key, name in POSITION_NAMES.items()],
    }


@cache
def list_zones() -> tuple[str, ...]:
    """Return the current names of the time zones that are named after a place."""
    return ("UTC", *sorted(name for name in zone_names() if name.startswith(REGIONS) and read_zone(name) == name))


def _list_languages(current: str) -> Options:
    """Return the languages, each followed by its regions."""
    tags = dict.fromkeys((*LANGUAGES, *REGIONAL, current))
    order = [tag.partition("-")[0] for tag in LANGUAGES]
    by_language = sorted(tags, key=lambda tag: order.index(tag.partition("-")[0]))
    return [(tag, LANGUAGES.get(tag) or _name_language(tag)) for tag in by_language]


@cache
def _name_language(tag: str) -> str:
    try:
        name = Locale.parse(tag, sep="-").get_display_name() or tag
    except ValueError:
        return tag
    return name[0].upper() + name[1:]
