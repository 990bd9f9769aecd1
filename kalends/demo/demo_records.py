"""Demo towns and dates, and chunks of event, series and link rows for COPY, which loads millions in minutes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from kalends.calendar.kinds.series_kind import CONTENT_DEFAULTS, encode_content, span_columns
from kalends.core.cost import FREE_COSTS, read_cost
from kalends.core.recurrence import Rule
from kalends.core.slugs import add_number
from kalends.core.times import DateTimeInput, Span, event_span, local_of
from kalends.demo.demo_texts import THEMES, Chance, Theme, Writer, pick
from kalends.series.rules.series_slots import LAST_SLOT, Date, Definition, Part
from kalends.series.storage import encode_definition
from kalends.store.sites import Site

DAYS_BACK: Final = 11 * 365 + 3
DAYS_AHEAD: Final = 600  # Even a long exhibition that starts this late ends within the default list window.
DAY_SECONDS: Final = 86_400

_BITS: Final = 16
_MIDDLE: Final = 1 << (_BITS - 1)


def plan_days(chance: Chance, past: int, upcoming: int) -> list[int]:
    """Return each event's publication time and day, packed into one number, in publication order.

    As on real sites, events are published weeks ahead, so their IDs are only roughly in date order. Packing two
    numbers into one makes two million entries small and fast to sort.
    """
    days = [-1 - int(chance() * DAYS_BACK) for _ in range(past)]
    days += [int(DAYS_AHEAD * chance() ** 2.5) for _ in range(upcoming)]
    return sorted(pack(_publication_time(chance, day), day) for day in days)


def unpack(plan: int) -> tuple[int, int]:
    """Return the seconds from the start of today to the publication, and the days from today to the event."""
    return plan >> _BITS, (plan & ((1 << _BITS) - 1)) - _MIDDLE


def pack(published: int, day: int) -> int:
    return published << _BITS | (day + _MIDDLE)


def _publication_time(chance: Chance, day: int) -> int:
    ahead = 3 + int(120 * chance() ** 2)
    latest = min(day - ahead, -1 - int(200 * chance() ** 2) if day - ahead >= 0 else -1)
    return latest * DAY_SECONDS + int(chance() * DAY_SECONDS)


def choose_span(chance: Chance, theme: Theme, midnight: datetime, zone: str) -> tuple[Span, bool]:
    """Choose an event's start and end, and whether it lasts all day."""
    roll = chance()
    if theme.category == "Exhibitions" and roll < 0.12:
        # Exhibitions run for weeks, and a few of them for most of a year.
        days = int(14 + 110 * chance() ** 2) if roll < 0.115 else 150 + int(200 * chance())
        return _span(midnight, midnight + timedelta(days=days), zone, True), True
    if roll > 0.94:
        days = 0 if roll > 0.965 else 1 + int(3 * chance())
        return _span(midnight, midnight + timedelta(days=days), zone, True), True
    minutes = pick(chance, theme.hours) * 60 + (30 if chance() < 0.3 else 0)
    start = midnight + timedelta(minutes=minutes)
    # A few events end one or two days later.
    length = 60 * 24 * (1 + int(2 * chance())) if roll < 0.02 else 0
    return _span(start, start + timedelta(minutes=length + pick(chance, theme.lengths)), zone, False), False


@lru_cache(maxsize=1 << 17)
def _span(start: datetime, end: datetime, zone: str, all_day: bool) -> Span:
    return event_span(DateTimeInput(start, None, all_day), DateTimeInput(end, None, all_day), zone, all_day)


CHUNK: Final = 20_000

EVENT_COLUMNS: Final = (
    "site_id", "id", "uid", "revision", "author_id", "status", "slug", "published_at", "modified_utc",
    "title", "description", "excerpt", "timezone", "all_day", "start_local", "end_local", "start_fold",
    "end_fold", "start_utc", "end_utc", "cost", "website", "ticket_url", "show_map", "show_map_link",
    "hide_from_listings", "sticky", "featured", "search_text", "is_free", "geoloc_known",
)  # fmt: skip
LINK_COLUMNS: Final = {
    table: ("site_id", "event_id", column, "position", "start_utc", "listed", "published")
    for table, column in (
        ("event_venues", "venue_id"),
        ("event_organizers", "organizer_id"),
        ("event_categories", "category_id"),
        ("event_tags", "tag_id"),
    )
}
COSTS: Final = tuple(
    read_cost(cost)
    for cost in ("", "", "", "0", "0", "Free", "5", "8.50", "10", "12", "12", "15", "20", "25", "48", "10 - 25",
                 "€7", "€ 14 – 22", "£9.50", "120 kr", "Pay what you can", "Donations welcome", "1,250")
)  # fmt: skip

Row = tuple[object, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DemoVenue:
    id: int
    name: str
    town: str
    zone: str


@dataclass(frozen=True, slots=True)
class Chunk:
    events: list[Row] = field(default_factory=list[Row])
    links: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in LINK_COLUMNS})
    ids: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # (ID, revision) pairs


@dataclass(frozen=True, slots=True)
class EventBuilder:
    site: Site
    now: datetime
    chance: Chance
    writer: Writer
    authors: list[int]
    categories: dict[str, list[int]]
    tags: dict[str, int]
    venues: list[DemoVenue]
    organizers: list[int]
    used_slugs: set[str]
    slug_counts: dict[str, int] = field(default_factory=dict[str, int])

    def build_chunk(self, plans: list[int], last_id: int, last_revision: int) -> Chunk:
        chunk = Chunk()
        today = local_of(self.now, self.site.timezone)
        for n, plan in enumerate(plans, 1):
            published, days = unpack(plan)
            event_id, revision = last_id + n, last_revision + n
            chunk.ids.append((event_id, revision))
            self._add(
                chunk, event_id, revision, self.now + timedelta(seconds=published), today + timedelta(days=days)
            )
        return chunk

    def _add(self, chunk: Chunk, event_id: int, revision: int, published_at: datetime, midnight: datetime) -> None:
        chance, site_id = self.chance, self.site.id
        theme = pick(chance, THEMES)
        venues = self._pick_few(self.venues, none_below=0.05, two_above=0.99)
        main_venue = venues[0] if venues else DemoVenue(0, "the market hall", "town", self.site.timezone)
        zone = main_venue.zone if chance() < 0.15 else self.site.timezone
        span, all_day = choose_span(chance, theme, midnight, zone)
        status, hidden = self._pick_status()
        title = self.writer.title(theme, main_venue.name, main_venue.town)
        description = self.writer.description(theme, main_venue.name, main_venue.town)
        excerpt = self.writer.sentence(theme) if chance() < 0.3 else None
        texts = (title, excerpt, description) if excerpt else (title, description)
        modified = min(published_at + timedelta(days=int(40 * chance() ** 4)), self.now)
        has_slug = status not in ("draft", "pending")  # as in the API (behaviour 4.7)
        web = chance()
        chunk.events.append(
            (
                site_id,
                event_id,
                self.make_uid(published_at, event_id),
                revision,
                pick(chance, self.authors),
                status,
                self.free_slug(title.slug or str(event_id)) if has_slug else "",
                published_at,
                modified,
                title.written,
                description.written,
                excerpt.written if excerpt else "",
                zone,
                all_day,
                span.start.wall,
                span.end.wall,
                span.start.fold,
                span.end.fold,
                span.start.utc,
                span.end.utc,
                (cost := pick(chance, COSTS)),
                f"https://events.example.org/{event_id}" if web < 0.3 else "",
                f"https://tickets.example.com/{event_id}" if web > 0.75 else "",
                bool(venues),
                bool(venues),
                hidden,
                chance() < 0.004,
                chance() < 0.02,
                "\n".join([text.folded for text in texts]),
                cost in FREE_COSTS,
                bool(venues),  # all demo venues have coordinates; the triggers would set the same value
            )
        )
        tail = (span.start.utc, status == "publish" and not hidden, status == "publish")
        linked = {
            "event_venues": [venue.id for venue in venues],
            "event_organizers": self._pick_few(self.organizers, none_below=0.12, two_above=0.9),
            "event_categories": self._pick_categories(theme),
            "event_tags": self._pick_tags(theme),
        }
        for table, ids in linked.items():
            rows = ((site_id, event_id, linked_id, position, *tail) for position, linked_id in enumerate(ids, 1))
            chunk.links[table].extend(rows)

    def _pick_status(self) -> tuple[str, bool]:
        draw = self.chance()
        if draw > 0.02:
            return "publish", draw > 0.995
        return ("draft" if draw < 0.01 else "pending" if draw < 0.015 else "private"), False

    def _pick_few[T](self, records: list[T], *, none_below: float, two_above: float) -> list[T]:
        """Choose up to two venues or organizers. Some are chosen much more often than others."""
        draw = self.chance()
        if draw < none_below or not records:
            return []
        number = 2 if draw > two_above and len(records) > 1 else 1
        first = int(self.chance() ** 2 * len(records))
        return [records[(first + n) % len(records)] for n in range(number)]

    def _pick_categories(self, theme: Theme) -> list[int]:
        top, *below = self.categories[theme.category]
        return [top, pick(self.chance, below)] if below and self.chance() < 0.3 else [top]

    def _pick_tags(self, theme: Theme) -> list[int]:
        tags, chance = self.tags, self.chance
        tag_ids = [tags[name] for name in theme.tags if name in tags and chance() < 0.4]
        if tags and chance() < 0.35:
            other = pick(chance, list(tags.values()))
            return tag_ids if other in tag_ids else [*tag_ids, other]
        return tag_ids

    def free_slug(self, base: str) -> str:
        """Return the slug that the API would choose, with the first free number."""
        n = self.slug_counts.get(base, 0) + 1
        slug = base if n == 1 else add_number(base, n)
        while slug in self.used_slugs:
            n += 1
            slug = add_number(base, n)
        self.slug_counts[base] = n
        self.used_slugs.add(slug)
        return slug

    def make_uid(self, published_at: datetime, event_id: int) -> str:
        """Return a version 7 UUID for the publication time. The same seed gives the same UUID.

        The event ID makes the UUID unique even if a site is seeded twice with the same seed.
        """
        milliseconds = (published_at - _EPOCH) // timedelta(milliseconds=1)
        low = int(self.chance() * (1 << 40)) << 34 | event_id
        value = milliseconds << 80 | 0x7 << 76 | (low >> 62) << 64 | 0x2 << 62 | low & ((1 << 62) - 1)
        return str(UUID(int=value))


@dataclass(frozen=True, slots=True)
class Language:
    """One language's patterns, with the placeholders `{town}`, `{street}` and `{n}`."""

    venues: tuple[str, ...]
    streets: tuple[str, ...]
    address_format: str
    organizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Town:
    name: str
    province: str
    country: str
    zone: str
    latitude: float
    longitude: float
    language: str
    dialling_code: str
    top_level_domain: str


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


LANGUAGES: Final = {
    "en": Language(
        _split("{town} Town Hall | The Old Mill | Riverside Arts Centre | {town} Public Library | St Mary’s Church"
                " | The Lantern Room | {town} Community Garden | Harbour Stage | The Green Dragon | Northgate Theatre"
                " | {town} Museum of Everyday Life | Station Road Hall"),
        _split("High Street | Mill Lane | Church Road | Queen Street | Market Square | Quay Street | Elm Avenue"),
        "{n} {street}",
        _split("Friends of {town} | {town} Arts Trust | The Saturday Players | {town} Music Society"
                " | {town} Walkers | Open Door Community | The Reading Room | {town} Parish Council"),
    ),
    "de": Language(
        _split("Stadtbibliothek {town} | Altes Rathaus | Kulturhaus am Markt | Gemeindehaus St. Martin"
                " | Bürgersaal {town} | Kleines Theater | Haus der Jugend | Schlosspark {town} | Freie Werkstatt"),
        _split("Hauptstraße | Bahnhofstraße | Schillerstraße | Am Markt | Gartenweg | Lindenallee"),
        "{street} {n}",
        _split("Kulturverein {town} | Stadt {town} | Volkshochschule {town} | Evangelische Gemeinde {town}"
                " | Bürgerbühne e. V. | Naturfreunde {town}"),
    ),
    "fr": Language(
        _split("Médiathèque de {town} | Salle des fêtes | Théâtre du Quai | Maison des associations"
                " | Musée d’art et d’histoire | Église Saint-Jean | La Grande Halle | Café des Écluses"),
        _split("rue de la République | place du Marché | avenue de la Gare | rue des Tilleuls | quai du Port"),
        "{n}, {street}",
        _split("Ville de {town} | Les Amis du livre | Association Rive Gauche | Compagnie du Quai"
                " | Comité des fêtes de {town}"),
    ),
    "es": Language(
        _split("Biblioteca Municipal de {town} | Teatro Principal | Casa de la Cultura | Plaza de la Constitución"
                " | Centro Cívico El Olivo | Iglesia de San Andrés | Sala Manantial"),
        _split("Calle Mayor | Avenida del Puerto | Calle de la Luna | Paseo del Río | Calle Nueva"),
        "{street}, {n}",
        _split("Ayuntamiento de {town} | Asociación Vecinal La Fuente | Amigos de la Música | Ateneo de {town}"),
    ),
    "pl": Language(
        _split("Biblioteka Miejska w mieście {town} | Dom Kultury „Pod Lipami” | Teatr na Rynku | Stary Młyn"
                " | Sala Koncertowa | Ogród Miejski"),
        _split("ul. Kościelna | ul. Ogrodowa | ul. Szkolna | Rynek | ul. Długa"),
        "{street} {n}",
        _split("Miasto {town} | Stowarzyszenie Zielona Brama | Towarzystwo Muzyczne | Fundacja Źródło"),
    ),
    "da": Language(
        _split("Kulturhuset {town} | {town} Bibliotek | Den Gamle Smedje | Havnescenen | Sankt Nikolaj Kirke"
                " | Forsamlingshuset"),
        _split("Storegade | Havnevej | Kirkestræde | Søndergade | Ågade"),
        "{street} {n}",
        _split("{town} Kommune | Foreningen Åben Scene | {town} Jazzklub | Naturvennerne"),
    ),
    "el": Language(
        _split("Δημοτική Βιβλιοθήκη | Πολιτιστικό Κέντρο | Παλιό Λιμάνι | Θέατρο της Πλατείας | Ωδείο"),
        _split("Ερμού | Οδός Λιμένος | Πλατεία Ελευθερίας | Σοφοκλέους"),
        "{street} {n}",
        _split("Δήμος {town} | Σύλλογος Φίλων της Μουσικής | Ομάδα Θεάτρου Άνεμος"),
    ),
    "ja": Language(
        _split("{town}市民会館 | 中央図書館 | 川辺ホール | {town}文化センター | 駅前ギャラリー"),
        _split("本町 | 中央通り | 桜町 | 港町"),
        "{street}{n}番地",
        _split("{town}市 | 市民オーケストラ | まちあるきの会 | こども劇場"),
    ),
    "hi": Language(
        _split("नगर पुस्तकालय | कला भवन {town} | रंगमंच सभागार | गांधी उद्यान"),
        _split("स्टेशन रोड | मुख्य बाज़ार | झील मार्ग"),
        "{n}, {street}",
        _split("{town} नगर निगम | संगीत सभा | पुस्तक मित्र"),
    ),
    "ar": Language(
        _split("المكتبة العامة | دار الثقافة | مسرح المدينة | قاعة الميناء"),
        _split("شارع الجامعة | شارع البحر | ساحة السوق"),
        "{street} {n}",
        _split("بلدية {town} | جمعية أصدقاء الكتاب | فرقة النسيم"),
    ),
}  # fmt: skip

_TOWNS: Final = """
Boston|Massachusetts|United States|America/New_York|42.3601|-71.0589|en|+1 617|.org
Ithaca|New York|United States|America/New_York|42.4440|-76.5019|en|+1 607|.org
Savannah|Georgia|United States|America/New_York|32.0809|-81.0912|en|+1 912|.org
Rochester|New York|United States|America/New_York|43.1566|-77.6088|en|+1 585|.org
Madison|Wisconsin|United States|America/Chicago|43.0731|-89.4012|en|+1 608|.org
Portland|Oregon|United States|America/Los_Angeles|45.5152|-122.6784|en|+1 503|.org
Halifax|Nova Scotia|Canada|America/Halifax|44.6488|-63.5752|en|+1 902|.ca
Québec|Québec|Canada|America/Toronto|46.8139|-71.2080|fr|+1 418|.ca
Norwich|Norfolk|United Kingdom|Europe/London|52.6309|1.2974|en|+44 1603|.org.uk
Aberystwyth|Ceredigion|United Kingdom|Europe/London|52.4153|-4.0829|en|+44 1970|.org.uk
Galway|Connacht|Ireland|Europe/Dublin|53.2707|-9.0568|en|+353 91|.ie
Tübingen|Baden-Württemberg|Germany|Europe/Berlin|48.5216|9.0576|de|+49 7071|.de
Lübeck|Schleswig-Holstein|Germany|Europe/Berlin|53.8655|10.6866|de|+49 451|.de
Görlitz|Sachsen|Germany|Europe/Berlin|51.1526|14.9885|de|+49 3581|.de
Graz|Steiermark|Austria|Europe/Vienna|47.0707|15.4395|de|+43 316|.at
Winterthur|Zürich|Switzerland|Europe/Zurich|47.4988|8.7237|de|+41 52|.ch
Besançon|Doubs|France|Europe/Paris|47.2378|6.0241|fr|+33 3|.fr
Orléans|Loiret|France|Europe/Paris|47.9030|1.9093|fr|+33 2|.fr
Saint-Étienne|Loire|France|Europe/Paris|45.4397|4.3872|fr|+33 4|.fr
Liège|Liège|Belgium|Europe/Brussels|50.6326|5.5797|fr|+32 4|.be
Logroño|La Rioja|Spain|Europe/Madrid|42.4627|-2.4450|es|+34 941|.es
Cádiz|Andalucía|Spain|Europe/Madrid|36.5271|-6.2886|es|+34 956|.es
Córdoba|Córdoba|Argentina|America/Argentina/Cordoba|-31.4201|-64.1888|es|+54 351|.ar
Mérida|Yucatán|México|America/Merida|20.9674|-89.5926|es|+52 999|.mx
Łódź|łódzkie|Poland|Europe/Warsaw|51.7592|19.4560|pl|+48 42|.pl
Toruń|kujawsko-pomorskie|Poland|Europe/Warsaw|53.0138|18.5984|pl|+48 56|.pl
Ærøskøbing|Syddanmark|Denmark|Europe/Copenhagen|54.8880|10.4112|da|+45 62|.dk
Århus|Midtjylland|Denmark|Europe/Copenhagen|56.1629|10.2039|da|+45 86|.dk
Ναύπλιο|Αργολίδα|Greece|Europe/Athens|37.5673|22.8016|el|+30 2752|.gr
Χανιά|Κρήτη|Greece|Europe/Athens|35.5138|24.0180|el|+30 2821|.gr
松本|長野県|Japan|Asia/Tokyo|36.2380|137.9720|ja|+81 263|.jp
金沢|石川県|Japan|Asia/Tokyo|36.5613|136.6562|ja|+81 76|.jp
उदयपुर|राजस्थान|India|Asia/Kolkata|24.5854|73.7125|hi|+91 294|.in
الإسكندرية|الإسكندرية|Egypt|Africa/Cairo|31.2001|29.9187|ar|+20 3|.eg
Dunedin|Otago|New Zealand|Pacific/Auckland|-45.8788|170.5028|en|+64 3|.nz
Hobart|Tasmania|Australia|Australia/Hobart|-42.8821|147.3272|en|+61 3|.au
"""


def _read_town(line: str) -> Town:
    name, province, country, zone, latitude, longitude, language, dialling_code, top_level_domain = line.split("|")
    return Town(
        name, province, country, zone, float(latitude), float(longitude), language, dialling_code, top_level_domain
    )


TOWNS: Final = tuple(_read_town(line) for line in _TOWNS.split("\n") if line)


# Weekly series have 5 to 35 dates around today, 20 on average.

AVERAGE_DATES: Final = 20
MAX_DISTANCE: Final = 100  # maximum number of days between today and the first date
SERIES_CHUNK: Final = 500
SERIES_COLUMNS: Final = (
    "site_id", "id", "uid", "revision", "author_id", "status", "slug", "published_at", "modified_utc", "title",
    "description", "parts", "template",
)  # fmt: skip
DATE_COLUMNS: Final = (*EVENT_COLUMNS, "series_id", "slot")


@dataclass(frozen=True, slots=True)
class SeriesChunk:
    """Rows of series, their dates and the dates' links. Entries in `log` contain kind, ID, revision and cause."""

    series: list[Row] = field(default_factory=list[Row])
    dates: Chunk = field(default_factory=Chunk)
    log: list[tuple[str, int, int, int | None]] = field(default_factory=list[tuple[str, int, int, int | None]])


def plan_series(chance: Chance, count: int) -> list[int]:
    """Return the publication time and the first day of each series, packed into one number."""
    days = [int((2 * chance() - 1) * MAX_DISTANCE) for _ in range(count)]
    return [pack((min(day, 0) - 30) * DAY_SECONDS + int(chance() * DAY_SECONDS), day) for day in days]


def build_series_chunk(builder: EventBuilder, plans: list[int], last_id: int, last_revision: int) -> SeriesChunk:
    """Build series and their dates. IDs and revisions continue after the given ones."""
    chunk = SeriesChunk()
    for plan in plans:
        offset = len(chunk.log)
        base = builder.build_chunk([plan], last_id + offset, last_revision + offset)
        _add_series(chunk, builder, base)
    return chunk


def _add_series(chunk: SeriesChunk, builder: EventBuilder, base: Chunk) -> None:
    """Add a series that repeats the only event in `base`. The series gets the event's ID and revision."""
    first: dict[str, Any] = dict(zip(EVENT_COLUMNS, base.events[0], strict=True))
    slug = first["slug"] or builder.free_slug(str(first["id"]))
    part = _choose_part(builder.chance, first)
    ids = {column: [row[2] for row in base.links[table]] for table, (_, _, column, *_) in LINK_COLUMNS.items()}
    template = encode_content({**CONTENT_DEFAULTS, **first, **{f"{name}s": linked for name, linked in ids.items()}})
    definition = encode_definition(Definition((part,), template))
    first |= {"slug": slug, "parts": definition["parts"], "template": definition["template"]}
    chunk.series.append(tuple(first[name] for name in SERIES_COLUMNS))
    chunk.log.append(("series", first["id"], first["revision"], None))
    for number, slot in enumerate(part.slots(LAST_SLOT), 1):
        values = _build_date(builder, first, Date(slot, part), number)
        chunk.dates.events.append(tuple(values[name] for name in DATE_COLUMNS))
        chunk.log.append(("events", values["id"], values["revision"], first["revision"]))
        for table, rows in base.links.items():
            chunk.dates.links[table] += _copy_links(rows, values["id"], values["start_utc"])


def _choose_part(chance: Chance, first: dict[str, Any]) -> Part:
    rule = Rule(frequency="weekly", count=5 + int(chance() * (2 * AVERAGE_DATES - 9)))
    return Part(first["uid"], rule, first["start_local"], first["end_local"], first["timezone"], first["all_day"])


def _build_date(builder: EventBuilder, first: dict[str, Any], date: Date, number: int) -> dict[str, Any]:
    event_id = first["id"] + number
    return {
        **first,
        **span_columns(date.part, date.span()),
        "id": event_id,
        "revision": first["revision"] + number,
        "uid": builder.make_uid(first["published_at"], event_id),
        "slug": builder.free_slug(f"{first['slug']}-{date.slot:%Y-%m-%d}"),
        "series_id": first["id"],
        "slot": date.slot,
    }


def _copy_links(rows: list[Row], event_id: int, start_utc: datetime) -> Iterator[Row]:
    for site_id, _, linked_id, position, _, *states in rows:
        yield (site_id, event_id, linked_id, position, start_utc, *states)
