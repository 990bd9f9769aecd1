"""Larkford's venues, organizers and categories, all fictional, and the dates of the program."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from kalends.demo.town.programme import PROGRAMME, Item, Slot

TOWN: Final = "Larkford"
COUNTRY: Final = "United Kingdom"
ZONE: Final = "Europe/London"
SITE: Final = {
    "name": "What’s on in Larkford",
    "timezone": ZONE,
    "language": "en-GB",
    "currency_symbol": "£",
    "currency_position": "prefix",
    "currency_code": "GBP",
    "accent": "#0f6b5c",
    "first_weekday": "monday",
    "start_page": "front",
    "submissions": "true",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A venue. All venues lie within one kilometer of each other."""

    name: str
    address: str
    latitude: float
    longitude: float
    picture: str  # a scene and the number of its palette
    description: str


@dataclass(frozen=True, slots=True)
class Host:
    """An organizer. The website and email address are derived from `domain`."""

    name: str
    domain: str
    description: str


@dataclass(frozen=True, slots=True)
class Category:
    """A category with its text. `scene` illustrates events whose slot has no scene."""

    scene: str
    text: str


PLACES: Final = (
    Place("Market Square", "Market Square", 52.3674, -2.7201, "market 1",
          "The square in the middle of the town. The weekly"
          " market has been held here since 1291."),
    Place("Corn Exchange", "12 Market Square", 52.3677, -2.7189, "house 0",
          "Concert hall with 420 seats in the former corn"
          " exchange of 1854. Step-free entrance from Chapel Lane; hearing loop in all rows."),
    Place("Town Hall", "1 Market Square", 52.3671, -2.7193, "civic 1",
          "Seat of the town council. The council chamber is on the"
          " first floor and can be reached by lift."),
    Place("Playhouse", "21 Broad Street", 52.3661, -2.7186, "theatre 1",
          "A theatre of 180 seats, run by its own company and some"
          " sixty volunteers."),
    Place("Picture House", "15 Tanner Street", 52.3699, -2.7195, "film 0",
          "The last single-screen cinema of the county, with"
          " the red seats of 1937."),
    Place("Old Mill Arts Centre", "2 Mill Street", 52.3652, -2.7208, "house 3",
          "Two galleries, a printing workshop and a café"
          " in the paper mill by the weir."),
    Place("Larkford Museum", "7 Castle Street", 52.3668, -2.7213, "timepiece 2",
          "Town history on three floors: wool, paper, the"
          " railway, and a very large clock."),
    Place("Larkford Library", "4 Chapel Lane", 52.3691, -2.7173, "books 1",
          "Open every day except Sunday. Meeting room and"
          " children’s library on the ground floor."),
    Place("The Weir Bookshop", "9 Quality Row", 52.3665, -2.7179, "house 4",
          "New and second-hand books, and a reading room with"
          " forty chairs that do not match."),
    Place("St Anne’s Church", "Church Walk", 52.3684, -2.7191, "organ 0",
          "Parish church of the fifteenth century with an organ"
          " of 1764. Heated in winter, mostly."),
    Place("Station Yard Community Centre", "3 Station Yard", 52.3711, -2.7168, "house 7",
          "Four rooms, a kitchen and a workshop"
          " in the former goods shed. Anybody may book a room."),
    Place("Leisure Centre", "40 Station Road", 52.3722, -2.7151, "house 6",
          "Sports hall, climbing wall and a pool of"
          " twenty-five metres."),
    Place("Castle Gardens", "Castle Street", 52.3672, -2.7227, "walks 1",
          "Walled gardens below the castle, open from eight"
          " until dusk."),
    Place("Riverside Park", "Lower Mill Lane", 52.3638, -2.7183, "walks 0",
          "Meadows, a bandstand and the boathouse along the"
          " River Lark."),
    Place("Bridge Lane Ground", "Bridge Lane", 52.3626, -2.7143, "sport 0",
          "Home of Larkford Town. The clubhouse opens an hour"
          " before kick-off."),
    Place("The Bell Inn", "30 Lower Bridge Street", 52.3645, -2.7166, "house 1",
          "A public house with a function room upstairs,"
          " where the folk club has met since 1972."),
)  # fmt: skip

HOSTS: Final = (
    Host("Larkford Town Council", "larkford-council", "Sixteen councillors and a small office in the Town Hall."),
    Host("Larkford Arts Trust", "larkford-arts", "Runs the Corn Exchange and the Old Mill Arts Centre."),
    Host("Playhouse Company", "larkford-playhouse", "Amateurs and professionals on one stage since 1961."),
    Host("Picture House Film Club", "picture-house", "Films that do not come to the multiplex, every Tuesday."),
    Host("Larkford Museum Society", "larkford-museum", "Volunteers who keep the museum open and the clock wound."),
    Host("Larkford Library", "larkford-library", "Books, advice and a warm room for everybody."),
    Host("The Weir Bookshop", "weir-bookshop", "Independent since 1988."),
    Host("Larkford Choral Society", "larkford-choral", "Ninety singers, no auditions."),
    Host("Market Traders’ Association", "larkford-market", "Organizes the markets in the square."),
    Host("Friends of the River Lark", "river-lark", "Looks after the river, its banks and its otters."),
    Host("Station Yard Community Trust", "station-yard", "Courses, meals and advice in the former goods shed."),
    Host("Larkford Sports Association", "larkford-sport", "Nine clubs, one timetable."),
)

CATEGORIES: Final = {
    "Music": Category("music", "Concerts, recitals and sessions, from a string quartet in the Corn Exchange to songs"
                      " in the upstairs room of The Bell Inn."),
    "Theatre": Category("theatre", "Plays, comedies and improvisation at the Playhouse. Every production has a"
                        " relaxed or audio-described performance."),
    "Film": Category("film", "The film club on Tuesdays and films for children on Saturday mornings, on the only"
                     " screen in town."),
    "Exhibitions": Category("exhibition", "Art, photographs and town history. Most exhibitions are free, and all are"
                            " closed on Mondays."),
    "Talks & books": Category("books", "Readings, book clubs and talks. Most last an hour and end with questions."),
    "Courses": Category("courses", "Learn something with your hands, your back or your voice. Beginners are welcome"
                        " at every course."),
    "Families": Category("families", "For children and the people who bring them. Ages are given with each event."),
    "Markets": Category("market", "Vegetables on Saturdays, flea markets on Sundays and makers’ markets when the"
                        " weather turns."),
    "Food & drink": Category("food", "Cook together, eat together, and now and then a quiz. Tell us about allergies"
                             " when you book."),
    "Nature & walks": Category("walks", "Guided walks and working parties along the River Lark. Sturdy shoes are a"
                               " good idea all year."),
    "Sport": Category("sport", "Matches to watch and games to join, on the pitch, on the climbing wall and by the"
                      " river."),
    "Festivals": Category("festival", "The weekends that fill the town, from chamber music to lanterns. Book early."),
    "Town life": Category("civic", "Council meetings, community meals, repairs and advice: everything that keeps"
                          " Larkford running."),
}  # fmt: skip


WEEKS_BACK: Final = 4
WEEKS_AHEAD: Final = 10
# Maximum duration of an exhibition, in weeks. One that opened before the first week may still be open.
LONGEST_RUN: Final = 7
FIRST_MONDAY: Final = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Occurrence:
    slot: Slot
    item: Item
    start: datetime
    end: datetime

    @property
    def all_day(self) -> bool:
        return self.slot.days > 0


def list_occurrences(today: date) -> list[Occurrence]:
    """Return the program from four weeks before the current week to ten weeks after it, sorted by start."""
    this_week = (today - FIRST_MONDAY).days // 7
    first_day = FIRST_MONDAY + timedelta(weeks=this_week - WEEKS_BACK)
    found = [
        occurrence
        for slot in PROGRAMME
        for occurrence in _repeat(slot, this_week - WEEKS_BACK - LONGEST_RUN, this_week + WEEKS_AHEAD)
        if occurrence.end.date() >= first_day
    ]
    return sorted(found, key=lambda occurrence: occurrence.start)


def find_occurrence(slot: Slot, today: date, weeks: int) -> Occurrence:
    """Return the slot's occurrence in the week that is `weeks` weeks after the current one."""
    week = (today - FIRST_MONDAY).days // 7 + weeks
    return next(_repeat(slot, week, week))


def _repeat(slot: Slot, first_week: int, last_week: int) -> Iterator[Occurrence]:
    for week in range(first_week, last_week + 1):
        turn, rest = divmod(week - slot.phase, slot.every)
        day = FIRST_MONDAY + timedelta(weeks=week, days=slot.weekday)
        if rest or (slot.months and day.month not in slot.months):
            continue
        start = datetime.combine(day, time.fromisoformat(slot.start or "00:00"))
        length = timedelta(days=slot.days - 1) if slot.days else timedelta(minutes=slot.minutes)
        yield Occurrence(slot, slot.items[turn % len(slot.items)], start, start + length)
