"""A site that has everything: records of all kinds and statuses, history, images, imports, drafts and accounts."""

from pathlib import Path
from typing import Any

import psycopg

from kalends.bootstrap import open_library
from kalends.core.times import utc_now
from kalends.media import jobs as media_jobs
from kalends.settings import read_settings
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.console.console_rows import add_console_rows
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.robustness.follow_rows import SHARED_FOLLOWER, add_follow_rows
from tests.robustness.import_rows import add_import_rows
from tests.robustness.proposal_rows import SHARED_PROPOSAL, add_proposal_rows
from tests.robustness.site_fixtures import DATES
from tests.robustness.webhook_rows import SHARED_WEBHOOK, add_webhook_rows

PAST = {"start_date": "2021-03-28 01:30:00", "end_date": "2021-03-29 04:00:00", "timezone": "Europe/Berlin"}
SETTINGS = {
    "name": "Town & Country",
    "timezone": "Europe/Berlin",
    "language": "de",
    "currency_symbol": "€",
    "accent": "#112233",
    "custom_css": "body { color: #222 }",
    "imprint_url": "https://imprint.example/",
}
PASSWORD = "open sesame 123"


class SiteBuilder:
    """Fills the first site through the API, and the tables that it does not reach by SQL."""

    def __init__(self, app: RunningApp, media_dir: Path) -> None:
        self.app = app
        self.admin = app.caller("administrator")
        self.media_dir = media_dir

    def fill(self) -> None:
        for key, value in SETTINGS.items():
            self.app.set_site(key, value)
        image = self._add_image(1, 400, 300)
        small = self._add_image(2, 40, 30)
        self.app.set_site("logo_url", "/media/" + image["url"].partition("/media/")[2])
        links = self._add_linked_records(image)
        self._add_events(links, image, small)
        self._add_series(links, image)
        self._add_rows(image)

    def _add_image(self, seed: int, width: int, height: int) -> dict[str, Any]:
        content = make_image("PNG", width, height, seed=seed)
        files = {"file": (f"picture {seed}.png", content)}
        form = {"alt_text": f"Alternative {seed}", "caption": 'Photo: <a href="https://x.example">X</a>'}
        image = expect_json(self.admin.request("POST", f"{EXTENSION_URL}/media", files=files, data=form), 201)
        library = open_library(read_settings(media_dir=str(self.media_dir)))
        made = self.app.run_with_database(
            lambda database: media_jobs.make_sizes(database, library, utc_now(), 1, image["id"])
        )
        assert made
        return image

    def _create(self, path: str, caller: Caller | None = None, **values: Any) -> dict[str, Any]:
        record: dict[str, Any] = expect_json((caller or self.admin).post(path, values), 201)
        return record

    def _add_linked_records(self, image: dict[str, Any]) -> dict[str, Any]:
        child = self._create("/categories", name="Jazz", description="<b>Loud</b>")
        # The parent has the higher ID, so it comes later in the archive.
        parent = self._create("/categories", name="Music")
        expect_json(self.admin.patch(f"/categories/{child['id']}", {"parent": parent["id"]}))
        tags = [self._create("/tags", name=name) for name in ("Free & easy", "日本")]
        venue = self._create(
            "/venues", venue="Café <em>Zoo</em>", description="By the <a href=\"https://zoo.example/?a=1&amp;b=2\">zoo</a>",
            address="Straße 1", city="Köln", country="Germany", geo_lat=50.94, geo_lng=6.96, image=image["id"],
            website="https://zoo.example/über",
        )  # fmt: skip
        hall = self._create("/venues", venue="Hall", status="draft")
        organizer = self._create("/organizers", organizer="Club", email="club@example.org", phone="+49 1")
        return {
            "venue": [venue["id"], hall["id"]],
            "organizer": [organizer["id"]],
            "categories": [child["id"], parent["id"]],
            "tags": [tag["id"] for tag in tags],
        }

    def _add_events(self, links: dict[str, Any], image: dict[str, Any], small: dict[str, Any]) -> None:
        for status in ("publish", "draft", "pending", "private"):
            self._create("/events", title=f"Event {status}", status=status, **DATES, **links)
        self._create("/events", title="Later", date_utc="2099-01-01 00:00:00", **DATES)
        self._create("/events", title="Night of the clock change", **PAST, all_day=False)
        self._create(
            "/events", title="Rich <em>title</em> & more", image=image["id"], featured=True, sticky=True,
            cost="5–10 €",
            description=f'<p>Text with <img src="{small["url"]}" alt="x"> &amp; "quotes"</p>\n<pre>  a\n b</pre>',
            excerpt="Short <strong>text</strong>", website="https://example.org/?q=a%20b", event_status="postponed",
            status_reason="Rain", ticket_url="https://tickets.example/", **DATES, **links,
        )  # fmt: skip
        self._create("/events", title="Secret", new_password=PASSWORD, description="Hidden text", **DATES, **links)
        self._create("/events", title="All day", all_day=True, hide_from_listings=True, **DATES)
        by_author = self.app.caller("author")
        own = self._create("/events", by_author, title="Own", **DATES)
        # History: changes by several accounts, an old address, a password in the log, trash and a tombstone.
        expect_json(by_author.patch(f"/events/{own['id']}", {"title": "Own, changed", "cost": "3"}))
        expect_json(self.admin.patch(f"/events/{own['id']}", {"slug": "own-again", "new_password": PASSWORD}))
        expect_json(self.admin.patch(f"/events/{own['id']}", {"new_password": "", "author": self.admin.id}))
        trashed = self._create("/events", title="Thrown away", **DATES, **links)
        expect_json(self.admin.delete(f"/events/{trashed['id']}"))
        gone = self._create("/events", title="Gone", **DATES)
        expect_json(self.admin.delete(f"/events/{gone['id']}?force=true"))

    def _add_series(self, links: dict[str, Any], image: dict[str, Any]) -> None:
        series = self._create(
            f"{EXTENSION_URL}/series", title="Weekly", rule="FREQ=WEEKLY;COUNT=6", description="<p>Every week</p>",
            image=image["id"], **DATES, **links,
        )  # fmt: skip
        rows = self.app.sql(
            "SELECT id FROM events WHERE site_id = 1 AND series_id = $1 ORDER BY start_utc", series["id"]
        )
        ids = [row["id"] for row in rows]
        expect_json(
            self.admin.patch(f"{EXTENSION_URL}/events/{ids[1]}?scope=this", {"title": "Weekly, but different"})
        )
        following = {"description": "<p>From now on</p>", "new_password": PASSWORD}
        expect_json(self.admin.patch(f"{EXTENSION_URL}/events/{ids[4]}?scope=following", following))
        removal = {"remove_dates": [self._date_of(ids[2])]}
        expect_json(self.admin.patch(f"{EXTENSION_URL}/series/{series['id']}", removal))

    def _date_of(self, event_id: int) -> str:
        (row,) = self.app.sql("SELECT start_local FROM events WHERE site_id = 1 AND id = $1", event_id)
        return str(row["start_local"])

    def _add_rows(self, image: dict[str, Any]) -> None:
        """Add rows that only the console, imports and a move-in write."""
        with psycopg.connect(self.app.database_url) as connection:
            add_console_rows(connection, 1, self.admin.id, "private")
            connection.execute('UPDATE drafts SET fields = \'{"title": "Unfinished <b>"}\'')
            add_import_rows(connection, 1, 1, "feed")
            add_proposal_rows(connection, 1, SHARED_PROPOSAL, "rosaword")
            add_follow_rows(connection, 1, SHARED_FOLLOWER, "rosaword")
            connection.execute("UPDATE sites SET follow_by_email = true WHERE id = 1")
            add_webhook_rows(connection, 1, SHARED_WEBHOOK, "rosaword")
            connection.execute('UPDATE import_items SET stored_values = \'{"password_hash": "01ff", "title": "x"}\'')
            connection.execute("INSERT INTO legacy_files VALUES (1, '/wp-content/a.png', %s, 400)", [image["id"]])
            connection.execute("INSERT INTO prefix_redirects VALUES (1, '/agenda/', '/events/')")
            connection.execute("INSERT INTO not_duplicates SELECT 1, min(id), max(id) FROM events WHERE site_id = 1")
            connection.execute("UPDATE sites SET former_host = 'old.example', former_last_id = 3 WHERE id = 1")
            connection.execute("UPDATE users SET display_name = 'Ada L.', language = 'de' WHERE role = 'editor'")


def fill_site(app: RunningApp, media_dir: Path) -> None:
    """Fill the first site of an application."""
    SiteBuilder(app, media_dir).fill()
