"""Public reads that get no database connection: which of them the last known response answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from unittest.mock import patch

import pytest
from prometheus_client import REGISTRY

from kalends.core.times import utc_now
from kalends.http.auth import COOKIE
from tests.api.conftest import start_single_site as start_app
from tests.api.running_app import API_PATH, Caller, RunningApp
from tests.api.sample_records import DATES
from tests.caching.random_site import IMAGE, Clock
from tests.caching.starved_app import SETTINGS, read, read_all, starved
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH

__all__ = ["start_app"]

LIST = f"{API_PATH}/events"
MONTH = f"/events/month/{DATES['start_date'][:7]}/"
PAGES = (LIST, MONTH, "/events/list/", "/events.ics", "/events.rss", f"/events/day/{DATES['start_date'][:10]}/")


@dataclass
class Site:
    """A site with two events, of which the first has links to one record of each kind."""

    app: RunningApp
    clock: Clock
    editor: Caller
    event: int = 0
    other: int = 0
    venue: int = 0
    organizer: int = 0
    category: int = 0
    tag: int = 0
    image: int = 0

    @property
    def event_path(self) -> str:
        return f"{API_PATH}/events/{self.event}"

    def fill(self) -> None:
        editor = self.editor
        self.venue = editor.create("venues", venue="Barn")["id"]
        self.organizer = editor.create("organizers", organizer="Choir")["id"]
        self.category = editor.create("categories", name="Music")["id"]
        self.tag = editor.create("tags", name="jazz")["id"]
        upload = editor.post(f"/{EXTENSION_PATH}/media", files={"file": ("dot.png", IMAGE, "image/png")})
        self.image = upload.json()["id"]
        links = {"venue": [self.venue], "organizer": [self.organizer], "image": self.image}
        terms = {"categories": [self.category], "tags": [self.tag]}
        self.event = editor.create("events", title="Concert", description="Old", **DATES, **links, **terms)["id"]
        self.other = editor.create("events", title="Lecture", **DATES)["id"]

    def edit(self) -> None:
        self.editor.change("events", self.event, description="New", title="Recital")


@pytest.fixture
def site(start_app: Callable[..., RunningApp]) -> Iterator[Site]:
    clock = Clock(utc_now())
    with patch("kalends.asgi.utc_now", clock):
        app = start_app(SETTINGS)
        site = Site(app, clock, app.caller("administrator"))
        site.fill()
        yield site


def count_outcomes(outcome: str) -> float:
    return REGISTRY.get_sample_value("kalends_starved_reads_total", {"outcome": outcome}) or 0.0


def test_starved_reads_are_answered_with_the_last_known_response(site: Site) -> None:
    paths = [site.event_path, *PAGES]
    before = read_all(site.app, paths)
    site.edit()
    site.clock.now += timedelta(seconds=20)
    answered = count_outcomes("answered")
    with starved(site.app):
        during = read_all(site.app, paths, {"If-None-Match": before[0].headers["etag"]})
    assert [(reply.status, reply.text) for reply in during] == [(200, reply.text) for reply in before]
    for reply in during:
        assert (reply.headers["cache-control"], reply.headers["age"]) == ("no-store", "20")
        assert not {"etag", "last-modified", "surrogate-key"} & set(reply.headers)
        assert reply.headers["content-type"]
    assert count_outcomes("answered") == answered + len(paths)
    after = read_all(site.app, paths)
    assert all(reply.status == 200 and "age" not in reply.headers for reply in after)
    assert all(new.text != old.text for new, old in zip(after, before, strict=True))
    assert all("etag" in reply.headers and "surrogate-key" in reply.headers for reply in after)


def test_head_of_outdated_response_has_no_body(site: Site) -> None:
    read(site.app, LIST)
    site.edit()
    with starved(site.app):
        status, headers, body = site.app.raw("HEAD", LIST)
    assert (status, headers["cache-control"], body) == (200, "no-store", b"")


WITHDRAWALS: dict[str, Callable[[Site], object]] = {
    "draft": lambda site: site.editor.change("events", site.event, status="draft"),
    "private": lambda site: site.editor.change("events", site.event, status="private"),
    "scheduled": lambda site: site.editor.change(
        "events", site.event, status="future", date_utc=f"{site.clock.now + timedelta(days=9):%Y-%m-%d %H:%M:%S}"
    ),
    "trash": lambda site: site.editor.trash("events", site.event),
    "deleted": lambda site: site.editor.delete(f"/events/{site.event}?force=true"),
    "protected": lambda site: site.editor.change("events", site.event, new_password="secret"),
    "hidden": lambda site: site.editor.change("events", site.event, hide_from_listings=True),
    "moved and trashed": lambda site: (
        site.editor.change("events", site.event, start_date="2031-01-01", end_date="2031-01-02", venue=[]),
        site.editor.trash("events", site.event),
    ),
    "trashed and restored": lambda site: (
        site.editor.trash("events", site.event),
        site.editor.change("events", site.event, status="publish"),
    ),
    "venue trashed": lambda site: site.editor.trash("venues", site.venue),
    "organizer private": lambda site: site.editor.change("organizers", site.organizer, status="private"),
    "unlinked venue trashed": lambda site: (
        site.editor.change("events", site.event, venue=[]),
        site.editor.trash("venues", site.venue),
    ),
    "category deleted": lambda site: site.editor.delete(f"/categories/{site.category}"),
    "tag deleted": lambda site: site.editor.delete(f"/tags/{site.tag}"),
    "image deleted": lambda site: site.editor.delete(
        f"/{EXTENSION_PATH}/media/{site.image}", params={"force": "true"}
    ),
    "settings": lambda site: site.app.set_site("name", "Another town"),
}


@pytest.mark.parametrize("name", WITHDRAWALS)
def test_response_with_a_withdrawn_record_is_not_used(site: Site, name: str) -> None:
    paths = [site.event_path, LIST, *([] if name == "unlinked venue trashed" else ["/events/list/", "/events.ics"])]
    read_all(site.app, paths)
    site.edit()
    with starved(site.app):
        assert [reply.status for reply in read_all(site.app, paths)] == [200] * len(paths)
        WITHDRAWALS[name](site)
        replies = read_all(site.app, paths)
    assert [(reply.status, reply.headers["retry-after"]) for reply in replies] == [(503, "1")] * len(paths)


def test_pages_that_do_not_name_their_events_are_not_used_after_a_withdrawal(site: Site) -> None:
    paths = [MONTH, "/", f"/events/week/{DATES['start_date'][:10]}/", "/sitemap/0.xml"]
    read_all(site.app, paths)
    site.edit()
    with starved(site.app):
        assert [reply.status for reply in read_all(site.app, paths)] == [200] * len(paths)
        site.editor.trash("events", site.event)
        assert [reply.status for reply in read_all(site.app, paths)] == [503] * len(paths)


def test_withdrawal_of_another_record_does_not_matter(site: Site) -> None:
    paths = [site.event_path, f"{LIST}?venue={site.venue}", f"{LIST}?search=concert", f"{LIST}?include={site.event}"]
    before = read_all(site.app, paths)
    site.edit()
    site.editor.trash("events", site.other)
    with starved(site.app):
        during = read_all(site.app, paths)
    assert [(reply.status, reply.text) for reply in during] == [(200, reply.text) for reply in before]


def test_record_that_becomes_visible_does_not_matter(site: Site) -> None:
    editor = site.editor
    editor.change("events", site.event, new_password="secret")
    editor.change("events", site.other, hide_from_listings=True)
    editor.change("venues", site.venue, status="draft")
    read(site.app, LIST)
    editor.change("events", site.event, new_password="")
    editor.change("events", site.other, hide_from_listings=False)
    editor.change("venues", site.venue, status="publish")
    with starved(site.app):
        assert read(site.app, LIST).status == 200


@pytest.mark.parametrize(("seconds", "status"), [(59, 200), (61, 503)])
def test_response_is_used_for_a_minute_after_the_first_change(site: Site, seconds: int, status: int) -> None:
    read(site.app, site.event_path)
    site.clock.now += timedelta(hours=1)  # It was right until the change, however old it is.
    site.edit()
    site.clock.now += timedelta(seconds=seconds - 5)
    site.editor.change("events", site.event, description="Newer")
    site.clock.now += timedelta(seconds=5)
    with starved(site.app):
        assert read(site.app, site.event_path).status == status


@pytest.mark.parametrize(("seconds", "status"), [(59, 200), (61, 503)])
def test_response_is_used_for_a_minute_after_it_expired(site: Site, seconds: int, status: int) -> None:
    read(site.app, LIST)
    midnight = site.clock.now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    site.clock.now = midnight + timedelta(seconds=seconds)
    with starved(site.app):
        assert read(site.app, LIST).status == status


def test_setting_disables_outdated_responses(start_app: Callable[..., RunningApp]) -> None:
    app = start_app({**SETTINGS, "KALENDS_STALE_IF_ERROR_SECONDS": "0"})
    editor = app.caller("editor")
    read(app, LIST)
    editor.create("events", title="Concert", **DATES)
    with starved(app):
        assert read(app, LIST).status == 503


def test_unknown_address_is_503(site: Site) -> None:
    read(site.app, f"{LIST}?per_page=3")
    site.edit()
    unknown = count_outcomes("unknown")
    with starved(site.app):
        assert read(site.app, f"{LIST}?per_page=4").status == 503
        assert read(site.app, f"{LIST}?per_page=3", {"Accept-Language": "de"}).status == 503
        assert read(site.app, f"{LIST}?per_page=3").status == 200
    assert count_outcomes("unknown") == unknown + 2


def test_newer_answer_replaces_the_last_known_response(site: Site) -> None:
    path = "/event/concert/"
    assert read(site.app, path).status == 200
    site.editor.change("events", site.event, slug="recital")
    assert read(site.app, path).status in (301, 302, 308)
    with starved(site.app):
        assert read(site.app, path).status == 503


def test_people_who_are_signed_in_get_no_outdated_page(site: Site) -> None:
    read(site.app, "/events/list/")
    site.edit()
    with starved(site.app):
        assert read(site.app, "/events/list/", {"Cookie": f"{COOKIE}=anything"}).status == 503
        assert read(site.app, "/events/list/").status == 200


def test_required_revision_is_not_undercut(site: Site) -> None:
    read(site.app, LIST)
    site.edit()
    revision = site.app.sql("SELECT revision FROM sites")[0]["revision"]
    with starved(site.app):
        assert read(site.app, LIST, {"X-Kalends-Revision": str(revision)}).status == 503
        assert read(site.app, LIST, {"X-Kalends-Revision": "latest"}).status == 503
        assert read(site.app, LIST, {"X-Kalends-Revision": str(revision - 1)}).status == 200


def test_response_is_not_used_if_changes_cannot_be_read(site: Site) -> None:
    read(site.app, LIST)
    site.edit()
    with starved(site.app):
        site.app.sql("ALTER FUNCTION dated_changes RENAME TO missing")
        assert read(site.app, LIST).status == 503
        site.app.sql("ALTER FUNCTION missing RENAME TO dated_changes")
        assert read(site.app, LIST).status == 200


def test_changes_before_the_first_known_one_are_read_again(site: Site) -> None:
    """A response of an earlier revision than all others that have been checked."""
    read(site.app, LIST)
    site.edit()
    newer = f"{API_PATH}/tags"
    read(site.app, newer)
    site.editor.change("events", site.other, title="Talk")
    read(site.app, newer)
    with starved(site.app):
        assert read(site.app, LIST).status == 200
        site.editor.trash("events", site.other)
        assert read(site.app, LIST).status == 503


def test_gap_in_the_log_is_not_ignored(site: Site) -> None:
    read(site.app, LIST)
    site.edit()
    site.editor.trash("events", site.event)
    site.app.sql("DELETE FROM changes WHERE action = 'trash'")
    with starved(site.app):
        assert read(site.app, LIST).status == 503
