"""The calendar of a small town: one of everything that a page has to show well. March 2031 is its full month."""

from dataclasses import dataclass
from typing import Any

import httpx
import psycopg

from tests.api.running_app import API_PATH, User
from tests.servers import Server

# A grey rectangle, from the server itself: pictures come from the site's own host.
IMAGE_PATH = "/assets/picture.svg"
PASSWORD = "open sesame"
FULL_DAY = "2031-03-12"
FAIR_DAY = "2031-08-13"
TITLES = (
    "Morning prayer", "Market on the square", "Story hour for the smallest", "Choir rehearsal",
    "An evening about the old railway, the people who built it and what became of the stations along the line",
    "Chess club", "Film: The Long Way Home", "Open stage",
)  # fmt: skip
# The events that do not take place as announced.
STATES = {
    "Choir rehearsal": {"event_status": "cancelled", "status_reason": "The conductor is ill."},
    "Chess club": {"event_status": "postponed"},
    "Film: The Long Way Home": {"event_status": "moved_online", "online_url": "https://meet.example/film"},
    "Open stage": {"event_status": "sold_out"},
}


@dataclass(frozen=True)
class DemoCalendar:
    server: Server
    database_url: str
    editor: httpx.Client
    concert: str  # paths
    protected: str
    venue: str
    organizer: str
    category: str
    tag: str

    @property
    def pages(self) -> dict[str, str]:
        """Every kind of page, by name."""
        return {
            "home": "/",
            "month": "/events/month/2031-03/",
            "empty month": "/events/month/2035-01/",
            "week": f"/events/week/{FULL_DAY}/",
            "weekend": "/events/weekend/2031-03-15/",
            "day": f"/events/day/{FULL_DAY}/",
            "list": "/events/list/?per_page=50",
            "holidays": "/events/month/2031-04/",
            "past": "/events/list/?past=1",
            "filtered": "/events/list/?categories=music&search=concert",
            "map": "/events/map/",
            "search": "/events/search/?search=a&overlaps_from=2031-01-01&near=Lindenstadt",
            "event": self.concert,
            "protected": self.protected,
            "venue": self.venue,
            "organizer": self.organizer,
            "category": self.category,
            "tag": self.tag,
            "missing": "/event/there-is-no-such-event/",
            "embed": "/embed/events/month/2031-03/",
        }


def build_demo_calendar(server: Server, database_url: str, editor: User) -> DemoCalendar:
    client = httpx.Client(base_url=server.base_url, auth=(editor.login, editor.password), timeout=30)

    def add(kind: str, **fields: Any) -> dict[str, Any]:
        response = client.post(f"{API_PATH}/{kind}", json=fields)
        assert response.status_code == 201, response.text
        return response.json()

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE sites SET timezone = 'Europe/Berlin', name = 'Lindenstadt', last_post_id = last_post_id + 1, "
            "currency_symbol = '€', currency_code = 'EUR'"
        )
        connection.execute(
            "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize) "
            "SELECT id, last_post_id, 0, %s, 'svg', 1200, 700, 100 FROM sites",
            [server.base_url + IMAGE_PATH],
        )
        image = connection.execute("SELECT last_post_id FROM sites").fetchone()[0]
    music = add("categories", name="Music", description="Concerts and <em>jam sessions</em>.")
    jazz = add("categories", name="Jazz", parent=music["id"])
    talks = add("categories", name="Talks & readings")
    tag = add("tags", name="Free entry")
    hall = add(
        "venues", venue="Kulturhaus an der Linde", address="Am Markt 1", zip="12345", city="Lindenstadt",
        country="Germany", phone="+49 30 123456", website="https://kulturhaus.example/", geo_lat=52.5186,
        geo_lng=13.4081, description="A house with two halls.\n\nThe bar opens an hour before.", image=image,
    )  # fmt: skip
    library = add("venues", venue="Town library", city="Lindenstadt", geo_lat=52.52, geo_lng=13.41)
    verein = add(
        "organizers", organizer="Kulturverein Lindenstadt e. V.", email="hallo@verein.example",
        phone="+49 30 654321", website="https://verein.example/about", description="We do this since 1921.",
    )  # fmt: skip
    concert = add(
        "events", title="Spring concert: <em>Ewa Dąbek</em> Ensemble", start_date="2031-03-14 19:30:00",
        end_date="2031-03-14 22:00:00", venue=hall["id"], organizer=[verein["id"]], image=image, cost="12 - 18",
        categories=[jazz["id"], music["id"]], tags=[tag["id"]], featured=True, show_map=True, show_map_link=True,
        website="https://ensemble.example/", ticket_url="https://tickets.example/1",
        description="<h2>The programme</h2><p>Songs of the <a href='https://river.example/'>river</a>, then a pause."
        "</p><ul><li>First half</li><li>Second half</li></ul>"
        "<img src='https://elsewhere.example/x.png' alt='A poster'><blockquote>Not to be missed.</blockquote>",
    )  # fmt: skip
    for number, title in enumerate(TITLES):
        hours = (f"{FULL_DAY} {9 + number:02}:00", f"{FULL_DAY} {10 + number}:30")
        add("events", title=title, start_date=hours[0], end_date=hours[1],
            venue=library["id"], categories=[talks["id"]] if number % 2 else [], tags=[tag["id"]],
            excerpt="Everybody is welcome; bring a friend.", **STATES.get(title, {}))  # fmt: skip
    add("events", title="Exhibition: paper boats", start_date="2031-02-20", end_date="2031-03-20", all_day=True,
        categories=[talks["id"]], venue=hall["id"])  # fmt: skip
    for number in range(5):
        add("events", title=f"Festival {number + 1}", start_date="2031-03-21 10:00", end_date="2031-03-24 18:00",
            categories=[music["id"]], event_status="cancelled" if number == 0 else "scheduled")  # fmt: skip
    add(
        "events",
        title="Long night",
        start_date="2031-03-28 21:00",
        end_date="2031-03-29 04:00",
        categories=[music["id"]],
        venue=library["id"],
        event_status="sold_out",
    )
    add(
        "events",
        title="Call from Tokyo",
        start_date="2031-03-05 00:30",
        end_date="2031-03-05 02:00",
        timezone="Asia/Tokyo",
    )
    add("events", title="Concert du soir : Orchestre", start_date="2031-05-20 20:00", end_date="2031-05-20 22:00")
    add("events", title="Town fair", start_date="2031-03-09", end_date="2031-03-09", all_day=True)
    # At the end of a week, where the hidden text of a bar could widen the page.
    add("events", title=TITLES[4], start_date="2031-04-12", end_date="2031-04-13", all_day=True)
    add("events", title="Concert of long ago", start_date="2020-05-05 19:00", end_date="2020-05-05 21:00",
        categories=[music["id"]])  # fmt: skip
    for number in range(4):  # August has four exhibitions and a day with 32 events.
        add("events", title=f"Summer exhibition {number}", start_date=f"2031-0{7 + number % 2}-{6 + number:02}",
            end_date=f"2031-0{8 + number % 2}-{20 + number}", all_day=True, categories=[talks["id"]])  # fmt: skip
    for number in range(32):
        begin, end = (
            f"{FAIR_DAY} {8 + number // 3:02}:{number % 3}0",
            f"{FAIR_DAY} {9 + number // 3:02}:{number % 3}0",
        )
        add("events", title=f"Stand {number}", start_date=begin, end_date=end)
    for number in range(12):  # Every colour that a category can have.
        colour = add("categories", name=f"Colour {number}")
        add("events", title=f"Club night {number}", start_date="2031-03-17 20:00", end_date="2031-03-17 23:00",
            categories=[colour["id"]])  # fmt: skip
        add("events", title=f"Holidays {number}", start_date=f"2031-{number % 3 + 4:02}-05",
            end_date=f"2031-{number % 3 + 4:02}-09", all_day=True, categories=[colour["id"]])  # fmt: skip
    protected = add("events", title="For friends", start_date="2031-03-30 20:00", end_date="2031-03-30 23:00",
                    description="The secret place", new_password=PASSWORD)  # fmt: skip

    def path(record: dict[str, Any]) -> str:
        return record["url"].removeprefix(server.base_url)

    return DemoCalendar(
        server, database_url, client, concert=path(concert), protected=path(protected), venue=path(hall),
        organizer=path(verein), category=path(music), tag=path(tag),
    )  # fmt: skip
