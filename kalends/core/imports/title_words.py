"""The words of titles and names of places: which ones say nothing, which ones name a type of event or an audience."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text
from kalends.core.imports.cell_words import MONTHS

# Words before and after a title that say nothing about the event, folded.
_NOISE: Final = frozenset(
    """
    abgesagt absage verschoben neu ausverkauft fallt aus wichtig achtung entfallt online termin veranstaltung
    cancelled canceled postponed new sold out update updated reminder event rescheduled
    dr prof mr mrs ms herr frau live ao vivo stream livestream omu omeu
    annule annulee reporte reportee complet nouveau cancelado cancelada aplazado agotado nuevo
    annullato rinviato esaurito nuovo adiado esgotado novo afgelast geannuleerd uitgesteld uitverkocht nieuw
    der die das den dem des ein eine einer und oder im in am an mit mit von vom zum zur fur auf bei
    the a an and or of for with at on to by le la les l un une et ou du de d des au aux en pour avec
    el los las y o del al con por para il lo gli i e di da dal della delle dell nell sull all per con nel os as um uma
    do dos das no na het een van voor met te op
    eintritt frei free entry admission entree libre gratuite gratuit entrada gratis ingresso libero gratuito toegang
    """.split()  # noqa: SIM905
)
# Abbreviations that are as common as their words, folded.
_ABBREVIATIONS: Final = {
    "xmas": "christmas",
    "sq": "square",
    "rd": "road",
    "ave": "avenue",
    "center": "centre",
    "theater": "theatre",
    "sankt": "st",
    "saint": "st",
    "sainte": "st",
    "santa": "st",
    "san": "st",
    "sao": "st",
    "sint": "st",
    "vhs": "volkshochschule",
    "jhv": "jahreshauptversammlung",
    "hbf": "hauptbahnhof",
    "str": "strasse",
    "evang": "evangelisch",
    "kath": "katholisch",
    "stadtbucherei": "stadtbibliothek",
    "bucherei": "bibliothek",
    "pza": "plaza",
    "pl": "place",
    "bib": "bibliotheque",
    "mjc": "maison",
    "av": "avenida",
    "uni": "universitat",
}


def _read_groups(text: str) -> Mapping[str, str]:
    """Return the group of each word; a line has the name of a group and its words."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {word: group for group, *words in lines for word in words}


# Words for the type of an event, which some sources add and others leave out, folded; those of a line mean the same.
GENRES: Final = _read_groups(
    """
    concert konzert concert concierto concerto spielt gig recital show コンサート
    film kino film filme cinema cine screening projection proyeccion proiezione cineclub cineforum 上映会
    reading lesung autorenlesung liest reading lectura lettura leitura
    talk vortrag referat talk lecture conference conferencia conferenza charla palestra lezing 講演会
    theatre theatre theater teatro toneel voorstelling spectacle spettacolo
    comedy kabarett comedy
    exhibition ausstellung exhibition exposition exposicion mostra exposicao tentoonstelling 展覧会
    opening vernissage ausstellungseroffnung
    course kurs course class cours curso clase corso cursus
    workshop workshop atelier taller oficina 教室
    tour fuhrung tour visite visita rondleiding
    festival festival fest fete fiesta festa feest
    meeting sitzung meeting reunion riunione reuniao vergadering seduta
    evening abend evening night soiree noche serata noite avond social
    group gruppe treff group groupe grupo gruppo groep
    other open air prasentiert presents
    """
)
# Words for those whom an event is for; also the first part of compounds. Those of a line mean the same.
AUDIENCES: Final = _read_groups(
    """
    children kind kinder child children kids enfant enfants nino ninos infantil bambino bambini crianca criancas
    children kinderen 子ども 子供 こども
    babies baby babies bebe bebes bimbi
    young jugend jugendliche youth teens teen junior juniors jeunes jovenes juvenil ragazzi giovani jovens jongeren
    adults erwachsene adult adults adultes adultos adulti volwassenen
    elderly senior senioren seniors seniorinnen aines mayores anziani idosos ouderen
    women frauen women ladies femmes mujeres donne mulheres vrouwen
    men manner men hommes hombres uomini homens mannen
    beginners anfanger einsteiger beginner beginners debutant debutants principiantes principianti iniciantes
    beginners beginnende 初級
    advanced fortgeschrittene advanced improver improvers intermediate avance avances avanzado avanzados avanzato
    advanced avancado gevorderden 中級 上級
    """
)
# The names of months; shorter ones are words, too.
_MONTHS: Final = frozenset(
    fold(name) for row in MONTHS for names in row for name in names.split("|") if len(name) > 3
)
_NUMERALS: Final = frozenset("i ii iii iv v vi vii viii ix x xi xii a b c d".split())  # noqa: SIM905


@lru_cache(maxsize=2048)
def split_words(title: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the words of a title without those that say nothing, and its numbers."""
    found: list[str] = re.findall(r"\d+|[^\W\d_]+", fold(to_plain_text(title)))
    parts = [_ABBREVIATIONS.get(part, part) for part in found]
    numbers = frozenset(part.lstrip("0") for part in _leave_out_dates(parts) if part.isdecimal())
    # A letter or a Roman numeral behind a word numbers it.
    numbers |= {part for part in parts[1:] if part in _NUMERALS and (part not in _NOISE or part == parts[-1])}
    words = [part for part in parts if not part.isdecimal() and part not in _NUMERALS]
    return tuple(word for word in words if word not in _NOISE) or tuple(words), numbers


def _leave_out_dates(parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts that are neither a year nor a day of a month; the start tells them."""
    for part, before, after in zip(parts, ["", *parts], [*parts[1:], ""], strict=False):
        is_year = len(part) == 4 and part.startswith(("19", "20"))
        if not is_year and before not in _MONTHS and after not in _MONTHS:
            yield part
