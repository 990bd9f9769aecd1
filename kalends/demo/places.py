"""Towns with their coordinates and time zones, and patterns for names and addresses in their languages."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """Patterns of one language, with the placeholders `{town}`, `{street}` and `{n}`."""

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
