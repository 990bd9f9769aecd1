"""Word lists, and the titles and descriptions made from them, each with its folded form for search.

Even two million descriptions consist of only a few thousand pieces, and each piece is folded only once. The generator
uses only `random()`, because its sequence is the same in all Python versions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kalends.core.html_text import to_plain_text
from kalends.core.sanitize import fold
from kalends.core.slugs import make_slug


@dataclass(frozen=True, slots=True)
class Theme:
    """A type of event. `hours` are typical starting hours, and `lengths` typical durations in minutes."""

    category: str
    tags: tuple[str, ...]
    titles: tuple[str, ...]
    leads: tuple[str, ...]
    sentences: tuple[str, ...]
    hours: tuple[int, ...]
    lengths: tuple[int, ...]


def _split(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("|"))


SLOTS: Final = {
    name: _split(text)
    for name, text in {
        "act": "the Harbour Quartet | Lena Quist | the Brass Sparrows | Tomás Rivero Trio | Amara and the Tides"
        " | Duo Zwielicht | Les Petites Ondes | the Copper Kettles | Ewa Dąbek Ensemble | Northern Lights Choir"
        " | Yuki Hanamori | Orchestra of the Old Quarter | Cuarteto Bruma | the Long Field Band | Søren Ravn",
        "instrument": "violin | accordion | cello | oud | saxophone | harp | double bass | koto | guitar | organ",
        "style": "jazz | folk | chamber music | swing | flamenco | baroque | klezmer | blues | choral | electronic",
        "subject": "light and water | the night sky | city gardens | forgotten trades | bees and meadows | old maps"
        " | rivers | paper and ink | stone bridges | migrating birds | bread | clocks | the moon | harbour life"
        " | glass | letters from abroad | mountain paths | kites | handwriting | the first railways | winter",
        "play": "The Clockmaker’s Daughter | A House by the Canal | Seven Chairs | The Last Ferry | Paper Lions"
        " | Salt and Honey | The Night Gardener | Two Doors Down | The Cartographer",
        "craft": "bookbinding | pottery | lino printing | weaving | wood carving | basket making | felting"
        " | watercolour | calligraphy | bicycle repair | screen printing | sourdough baking | darning",
        "food": "cheese | cider | street food | chocolate | olives | dumplings | mushrooms | apples | noodles | soup",
        "sport": "running | rowing | table tennis | chess | climbing | badminton | orienteering | handball | judo",
        "animal": "bats | beavers | swifts | hedgehogs | owls | dragonflies | salmon | foxes",
        "guest": "Dr Miriam Oyelaran | Professor Jonas Feld | Clara Benítez | Haruto Ishida | Zofia Wilk"
        " | Émile Garnier | Ruth Anand | Ingrid Solheim | Omar Haddad | Kalliopi Dimou",
        "adjective": "quiet | generous | surprising | warm | playful | bold | tender | curious | lively | patient"
        " | unhurried | bright | rare | careful",
        "crowd": "families | beginners | newcomers | old friends | students | neighbours | listeners of all ages"
        " | curious minds | early risers | night owls",
        "drink": "tea | mulled juice | coffee | lemonade | elderflower cordial | hot chocolate",
        "season": "spring | summer | autumn | winter",
        "weekday": "Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday",
        "book": "The Salt Road | Letters to an Island | What the River Kept | A Short History of Windows"
        " | Ten Winters | The Borrowed Garden",
    }.items()
}

THEMES: Final = (
    Theme(
        "Music", ("live", "evening", "concert"),
        _split("{Style} night with {act} | {act} in concert | Songs of the {season} | {Style} at noon"
                " | {act}: music for {instrument} | Abendkonzert: {act} | Concert du soir : {act}"
                " | {weekday} {style} sessions | 春の音楽会 {act} | Koncert: {act} | Συναυλία με {act}"),
        _split("An evening of {style} with {act} in {town}. | {act} come to {venue} with new songs."
                " | {Style} by candlelight at {venue}, for {crowd}."),
        _split("The programme moves from {style} to {style} and ends with pieces for {instrument} and voice."
                " | Expect {adjective} melodies, a {adjective} {instrument} and long conversations between songs."
                " | The group last played here in {season}, and many will remember that {adjective} encore."
                " | Between the sets there is {drink} in the foyer. | The hall has a <strong>hearing loop</strong>."),
        (11, 12, 18, 19, 20, 21), (75, 90, 120, 150),
    ),
    Theme(
        "Theatre", ("stage", "evening", "premiere"),
        _split("{play} | Premiere: {play} | {play} (with live {instrument}) | Open rehearsal of {play}"
                " | Theatre for {crowd}: {play} | Theaterabend: {play} | Noche de teatro: {play}"),
        _split("A {adjective} new staging of {play} at {venue}. | The company returns to {town} with {play}."),
        _split("Two actors, one table and a {instrument} are all that this {adjective} story needs."
                " | The text is spoken in the original language, with captions above the stage."
                " | After the performance the cast stays for a conversation with the audience."
                " | The set was built by volunteers from next door out of things that others threw away."),
        (15, 19, 20), (80, 100, 135),
    ),
    Theme(
        "Exhibitions", ("art", "museum", "indoors"),
        _split("Exhibition: {subject} | {Subject}: photographs and objects | Opening: {subject}"
                " | Ausstellung: {subject} | Exposition: {subject} | Drawing {subject} | Wystawa: {subject}"),
        _split("A {adjective} look at {subject}, with loans from collections around {town}."
                " | {Venue} shows works on {subject} by eleven artists."),
        _split("Rooms of sound, drawings and small models lead from one {adjective} idea to the next."
                " | A booklet for children is handed out at the entrance."
                " | Guided tours take place every {weekday}; no booking is needed."
                " | The catalogue has essays by {guest} and {guest}."),
        (9, 10, 11), (480, 540),
    ),
    Theme(
        "Talks", ("lecture", "science", "free"),
        _split("{guest}: {subject} | Lecture: what {subject} can teach us | Evening talk on {subject}"
                " | Vortrag: {subject} | Conférence: {subject} | {guest} in conversation with {guest}"
                " | Charla: {subject}"),
        _split("{guest} talks about {subject} and answers questions. | Why {subject} matter to {town}, and to us."),
        _split("No earlier knowledge is needed; examples come from daily life."
                " | {guest} has worked on {subject} for twenty years and still finds them {adjective}."
                " | The talk is recorded and can be heard later on the website of the library."
                " | A short reading list is on the tables, next to the {drink}."),
        (12, 17, 18, 19), (60, 75, 90),
    ),
    Theme(
        "Workshops", ("hands-on", "crafts", "booking"),
        _split("{Craft} for beginners | Weekend workshop: {craft} | {Craft} with {guest} | Repair café and {craft}"
                " | Learn {craft} in an afternoon | Kurs: {craft} | Atelier: {craft} | Taller abierto: {craft}"),
        _split("Learn {craft} step by step with {guest} at {venue}. | An afternoon of {craft} for {crowd}."),
        _split("All tools and materials are provided; please bring an apron and a little patience."
                " | Groups are small, so that everybody can be helped."
                " | You take home what you make, even when it turns out {adjective}."
                " | The room is heated but the floor is cold: wear warm shoes."),
        (9, 10, 13, 14), (120, 180, 240, 360),
    ),
    Theme(
        "Sport", ("outdoors", "health", "club"),
        _split("{Sport} for everybody | {town} {sport} day | {Season} cup: {sport} | Open {sport} evening"
                " | First steps in {sport} | Tournoi des amis | Torneo de barrio"),
        _split("The yearly {sport} meeting of {town} is open to {crowd}. | Try {sport} with trainers of the club."),
        _split("Teams are mixed and drawn by lot on the spot. | Changing rooms and showers are next to the hall."
                " | Those who only want to watch are as welcome as those who play."
                " | First aid is on the spot, and so is {drink}."),
        (8, 9, 10, 17, 18), (60, 90, 180, 300),
    ),
    Theme(
        "Markets & fairs", ("outdoors", "shopping", "local"),
        _split("{Season} market | {weekday} farmers’ market | {Food} fair in {town} | Flea market at {venue}"
                " | Wochenmarkt {town} | Marché gourmand | Mercado de artesanía | Book market: {subject}"),
        _split("More than forty stalls around {venue}, with {food}, {food} and second-hand books."
                " | The {season} market brings growers and makers to {town}."),
        _split("Bring your own bags, and cash for the smaller stalls. | Dogs on a lead are welcome."
                " | At noon {act} play on the steps. | Parking is scarce; the bus stops around the corner."),
        (8, 9, 10), (240, 300, 420),
    ),
    Theme(
        "Food & drink", ("tasting", "evening", "booking"),
        _split("{Food} tasting | Long table: {food} and stories | Cooking evening: {food} | {Food} festival {town}"
                " | Cata y música | Gemeinsam kochen: {food} | Soupe et musique"),
        _split("Taste {food} from small makers around {town}. | A long table, {food}, and {crowd}."),
        _split("There is a vegetarian choice at every course; please tell us about allergies."
                " | The cooks explain where everything comes from, in a {adjective} way."
                " | {Drink} is included in the price. | What is left over goes to the neighbourhood kitchen."),
        (12, 17, 18, 19), (90, 120, 180),
    ),
    Theme(
        "Children", ("family", "kids", "free"),
        _split("Story hour: {subject} | Puppet theatre: {play} | Children’s laboratory: {subject}"
                " | Singing with the smallest | Kindertheater: {play} | L’heure du conte | こどもまつり"),
        _split("For children from four years on: {subject}, told and played."
                " | A morning for the smallest at {venue}, with songs and {instrument}."),
        _split("Parents may stay or drink {drink} next door. | Pushchairs can be left in the hall."
                " | Cushions are there; slippers are a {adjective} idea."
                " | The story is told slowly, with pictures, also for those who learn the language."),
        (9, 10, 15, 16), (45, 60, 90),
    ),
    Theme(
        "Nature & walks", ("outdoors", "walk", "nature"),
        _split("Walk: {animal} at dusk | Guided walk through {town} | Botanical ramble: {subject}"
                " | Looking for {animal} | Night walk with {guest} | Stadtführung {town} | Balade: {subject}"),
        _split("A {adjective} walk of six kilometres around {town}, in search of {animal}."
                " | With {guest} along the water, listening for {animal}."),
        _split("Wear sturdy shoes; the path is muddy after rain. | We meet at the bridge and are back by bus."
                " | Binoculars can be borrowed. | In heavy storms the walk moves to the next {weekday}."),
        (6, 9, 10, 14, 20), (90, 120, 180, 240),
    ),
    Theme(
        "Books", ("reading", "literature", "evening"),
        _split("Reading: {book} | {guest} reads from {book} | Book club: {book} | Poetry and {instrument}"
                " | Lesung: {book} | Rencontre avec {guest} | Night of the short story | Wieczór z książką: {book}"),
        _split("{guest} reads from {book} at {venue}. | We talk about {book}, whether you finished it or not."),
        _split("Copies can be borrowed from the library two weeks before."
                " | Signed books are sold by the shop across the street."
                " | The conversation is led by {guest}; questions may be {adjective}."),
        (18, 19, 20), (60, 90, 120),
    ),
    Theme(
        "Community", ("neighbours", "free", "volunteers"),
        _split("Neighbourhood breakfast | Open council evening | {Season} clean-up at {venue} | Language café"
                " | Choir practice for everybody | Sunday service with {instrument} | Nachbarschaftsfest"
                " | Fête de quartier | Blood donation day | ब्रह्म मुहूर्त में संगीत | أمسية الجيران"),
        _split("Come as you are: {crowd} meet at {venue}. | What does {town} need next? Bring your idea."),
        _split("There is {drink} for all, and cake as long as it lasts. | Interpreters are on hand."
                " | Volunteers are thanked with soup and applause. | Children have their own corner with paints."),
        (9, 10, 14, 18, 19), (60, 120, 180),
    ),
)  # fmt: skip

# Sentences that suit any theme.
GENERAL: Final = _split(
    "Doors open half an hour before the beginning. | The venue can be reached without steps."
    " | Please book early: the last {season} edition was full within days. | Latecomers are let in at the break."
    " | Tickets at the door are a little dearer than in advance. | The entrance is in the courtyard, on the left."
    " | Supported by the town and by {adjective} friends of the house. | Take tram 4 or bus 27 to the market."
    " | Photographs are taken; tell the team if you do not want to be in them. | Under sixteen the entry is free."
    " | Questions are answered by telephone on {weekday} mornings. | It takes place in any weather."
    " | Read more in the <em>{season} programme</em>. | Seats are not numbered, so {crowd} find a place together."
    " | Assistants come in free of charge. | Bring somebody who has never been here before."
)

AUDIENCES: Final = _split("children | seniors | teenagers | beginners | families | newcomers | students | parents")

MORE_TAGS: Final = _split(
    "accessible | charity | weekend | morning | history | technology | dance | photography | architecture | language"
    " | environment | cycling | gardening | games | comedy | poetry | craft beer | vintage | astronomy | yoga"
    " | ballet | film | opera | debate | politics | design | fashion | ceramics | robots | radio | rail | sea"
    " | forest | river | bread | tea | choir | organ | drums | circus | magic | chess | puzzles | comics | quiz"
)


Chance = Callable[[], float]

# Number of description pieces per theme, and of titles per theme and town.
PIECES_PER_THEME: Final = 300
TITLES_PER_TOWN: Final = 60
MIN_WORDS: Final = 40

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Text:
    written: str
    folded: str
    word_count: int


@dataclass(frozen=True, slots=True)
class Title:
    written: str
    folded: str
    slug: str


def pick[T](chance: Chance, choices: Sequence[T]) -> T:
    return choices[int(chance() * len(choices))]


def read_text(written: str) -> Text:
    plain = to_plain_text(written)
    return Text(written, fold(plain), plain.count(" ") + 1)


def fill(template: str, chance: Chance, names: Mapping[str, str]) -> str:
    """Fill each slot with a name or a random word. If the slot's name is capitalized, capitalize the word."""

    def word(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        replacement = names.get(name) or pick(chance, SLOTS[name])
        return replacement[0].upper() + replacement[1:] if slot[1][0].isupper() else replacement

    return _SLOT.sub(word, template)


def fill_sentence(template: str, chance: Chance, names: Mapping[str, str]) -> str:
    """Fill a template and capitalize its first letter."""
    filled = fill(template, chance, names)
    return filled[0].upper() + filled[1:]


class Writer:
    """Generates titles and descriptions. The same random sequence gives the same texts."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._pieces = {theme.category: [self._halves(theme, half) for half in (0, 1)] for theme in THEMES}
        self._leads: dict[tuple[str, str, str], tuple[Text, ...]] = {}
        self._titles: dict[tuple[str, str], list[Title]] = {}

    def sentence(self, theme: Theme) -> Text:
        return pick(self._chance, self._pieces[theme.category][0])[0]

    def title(self, theme: Theme, venue: str, town: str) -> Title:
        key = (theme.category, town)
        if key not in self._titles:
            names = {"venue": venue, "town": town}
            filled = (
                fill_sentence(pick(self._chance, theme.titles), self._chance, names) for _ in range(TITLES_PER_TOWN)
            )
            self._titles[key] = [Title(text, fold(to_plain_text(text)), make_slug(text)) for text in filled]
        return pick(self._chance, self._titles[key])

    def description(self, theme: Theme, venue: str, town: str) -> Text:
        """Compose a description of about 40 to 120 words in one to three paragraphs."""
        chance, pieces = self._chance, self._pieces[theme.category]
        min_words = MIN_WORDS + int(60 * chance() ** 3)
        text = pick(chance, self._get_leads(theme, venue, town))
        half = 0
        while text.word_count < min_words:
            _, more = pick(chance, pieces[half])
            half = 1 - half
            gap = "\n\n" if text.word_count > 30 else " "
            text = Text(
                f"{text.written}{gap}{more.written}",
                f"{text.folded} {more.folded}",
                text.word_count + more.word_count,
            )
        return text

    def _halves(self, theme: Theme, half: int) -> list[tuple[Text, Text]]:
        """Return pieces from every second template, because two pieces in a row must not use the same one."""
        return [self._piece(theme.sentences[half::2], GENERAL[half::2]) for _ in range(PIECES_PER_THEME // 2)]

    def _piece(self, own: Sequence[str], general: Sequence[str]) -> tuple[Text, Text]:
        """Compose two to four sentences from different templates. Return the first sentence and the whole text."""
        chance = self._chance
        templates = [*self._sample(own), *self._sample(general)]
        sentences = [fill_sentence(template, chance, {}) for template in templates]
        return read_text(sentences[0]), read_text(" ".join(sentences))

    def _sample(self, templates: Sequence[str]) -> list[str]:
        remaining = list(templates)
        number = min(1 + int(self._chance() * 2), len(remaining))
        return [remaining.pop(int(self._chance() * len(remaining))) for _ in range(number)]

    def _get_leads(self, theme: Theme, venue: str, town: str) -> tuple[Text, ...]:
        key = (theme.category, venue, town)
        if key not in self._leads:
            names = {"venue": venue, "town": town}
            self._leads[key] = tuple(read_text(fill_sentence(lead, self._chance, names)) for lead in theme.leads)
        return self._leads[key]
