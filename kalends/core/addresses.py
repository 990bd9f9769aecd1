"""Postal addresses in each country's format: where the town, the region and the postcode go."""

import re
from functools import lru_cache
from typing import Final

# The last lines of an address, by country. A missing region is removed with the punctuation before it.
_FORMATS: Final = {
    "GB IE NZ IN SG ZA": "{city} {code}\n{region}",
    "US CA": "{city}, {region} {code}",
    "AU": "{city} {region} {code}",
    "BR": "{city} - {region}\n{code}",
    "IT": "{code} {city} {region}",
    "MX": "{code} {city}, {region}",
}
_OTHERS: Final = "{code} {city}\n{region}"
_FORMAT_OF: Final = {country: text for countries, text in _FORMATS.items() for country in countries.split()}
# Country names in English, in local languages and in the interface languages.
_NAMES: Final = {
    "GB": "uk|united kingdom|great britain|britain|england|scotland|wales|northern ireland|vereinigtes königreich|"
    "großbritannien|reino unido|gran bretaña|royaume-uni|grande-bretagne|regno unito|gran bretagna|"
    "verenigd koninkrijk|groot-brittannië|grã-bretanha|イギリス|英国",
    "IE": "ireland|republic of ireland|éire|irland|irlanda|irlande|ierland|アイルランド",
    "NZ": "new zealand|aotearoa|neuseeland|nueva zelanda|nueva zelandia|nouvelle-zélande|nuova zelanda|"
    "nieuw-zeeland|nova zelândia|ニュージーランド",
    "IN": "india|bharat|indien|inde|índia|インド",
    "SG": "singapore|singapur|singapour|singapura|シンガポール",
    "ZA": "south africa|südafrika|sudáfrica|afrique du sud|sudafrica|zuid-afrika|"
    "áfrica do sul|suid-afrika|南アフリカ",
    "US": "usa|u.s.|u.s.a.|united states|united states of america|vereinigte staaten|vereinigte staaten von amerika|"
    "estados unidos|ee. uu.|eua|états-unis|stati uniti|verenigde staten|アメリカ|アメリカ合衆国|米国",
    "CA": "canada|kanada|canadá|カナダ",
    "AU": "australia|australien|australie|australië|austrália|オーストラリア",
    "BR": "brazil|brasil|brasilien|brésil|brasile|brazilië|ブラジル",
    "IT": "italy|italia|italien|italie|italië|itália|イタリア",
    "MX": "mexico|méxico|mexiko|mexique|messico|メキシコ",
    "JP": "japan|nippon|nihon|japón|japon|giappone|japão|日本|日本国",
}
_JAPANESE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # kana and kanji; "Tōkyō" is in Latin script
_CODE_OF: Final = {name: code for code, names in _NAMES.items() for name in names.split("|")}


@lru_cache(maxsize=4096)  # events in a feed often share venues
def format_lines(street: str, code: str, city: str, region: str, country: str) -> tuple[str, ...]:
    """Return an address as lines without repetitions. `country` is a name or an ISO code; it may be empty."""
    name, region = country.strip(), "" if region == city else region
    key = _CODE_OF.get(name.lower(), name.upper())
    lines = _japanese(street, code, city, region) if key == "JP" else [street, *_town(key, code, city, region)]
    return tuple(dict.fromkeys(line for line in (*lines, country) if line))


def _town(key: str, code: str, city: str, region: str) -> list[str]:
    pattern = _FORMAT_OF.get(key, _OTHERS)
    if not region:
        pattern = pattern.replace(", {region}", "").replace(" - {region}", "")
    lines = pattern.format(city=city, code=code, region=region).split("\n")
    return [" ".join(line.split()).strip(",- ") for line in lines]


def _japanese(street: str, code: str, city: str, region: str) -> list[str]:
    """Return the postcode, then the rest: prefecture first in Japanese script, street first in Latin script."""
    postcode = f"〒{code.removeprefix('〒').strip()}" if code else ""
    if not _JAPANESE.search(f"{street}{city}{region}"):
        return [postcode, street, ", ".join(filter(None, (city, region)))]
    return [postcode, f"{region}{city}{street}"]
