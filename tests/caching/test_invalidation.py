"""The touched tags of a site: what is known, what is forgotten, and what happens if changes cannot be read."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from unittest.mock import patch

import pytest

from kalends.calendar import jobs as calendar_jobs
from kalends.calendar.access import caching
from kalends.calendar.access.caching import Touched
from kalends.core.times import utc_now
from kalends.http import cache as invalidation
from kalends.http.cache import SiteTags, TouchedTags
from kalends.http.request import ReadSources
from kalends.store.database import Database, Options
from tests.api.conftest import StartApp, start_app, start_single_site
from tests.api.running_app import API_PATH, Caller, RunningApp
from tests.api.sample_records import DATES
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.media.media_client import create_image, generate_sizes

__all__ = ["start_app", "start_single_site"]


@pytest.fixture
def app(start_app: Callable[..., RunningApp]) -> RunningApp:
    return start_app()


@pytest.fixture
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")


@pytest.fixture
def database(app: RunningApp) -> Iterator[Database]:
    opened = app.run(Database.open(Options(url=app.database_url)))
    yield opened
    app.run(opened.close())


def add_event(editor: Caller, **values: object) -> int:
    response = editor.post("/events", {"title": "Concert", **DATES, **values})
    assert response.status_code == 201, response.text
    event_id: int = response.json()["id"]
    return event_id


def read_revision(app: RunningApp) -> int:
    revision: int = app.sql("SELECT revision FROM sites")[0]["revision"]
    return revision


def test_tags_are_touched_after_their_last_change_only() -> None:
    site = SiteTags(10, 10)
    site.add([Touched(11, frozenset({"a"}), utc_now()), Touched(12, frozenset({"b"}), utc_now())], 12)
    assert not site.is_untouched(["a"], 10)
    assert site.is_untouched(["a"], 11)
    assert not site.is_untouched(["a", "b"], 11)
    assert site.is_untouched(["c"], 10)
    assert not site.is_untouched(["c"], 9)  # unknown


def test_oldest_revisions_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invalidation, "MAX_TAGS_PER_SITE", 4)
    site = SiteTags(0, 0)
    for revision in range(1, 6):
        site.add([Touched(revision, frozenset({"events", f"events/{revision}"}), utc_now())], revision)
    assert (site.floor, site.size) == (3, 4)
    assert site.last_touched == {"events": 5, "events/4": 4, "events/5": 5}
    assert not site.is_untouched(["venues"], 2)
    assert site.is_untouched(["venues"], 3)


def test_changes_are_read_once_per_revision(app: RunningApp, editor: Caller, database: Database) -> None:
    touched = TouchedTags(ReadSources(database).fetch_changes)
    before = read_revision(app)
    event_id = add_event(editor)
    revision = read_revision(app)
    site = app.run(touched.learn(app.site_id, before, revision))
    assert not site.is_untouched([f"events/{event_id}"], before)
    assert site.is_untouched(["venues"], before)
    with patch.object(database, "fetch_unscoped", side_effect=AssertionError("a second query")):
        assert app.run(touched.learn(app.site_id, before, revision)) is site


def test_derived_change_touches_its_record_and_no_list(app: RunningApp, editor: Caller, database: Database) -> None:
    image = create_image(editor)
    event_id = add_event(editor, image=image["id"])
    touched, before = TouchedTags(ReadSources(database).fetch_changes), read_revision(app)
    assert generate_sizes(app, image)
    site = app.run(touched.learn(app.site_id, before, read_revision(app)))
    for tag in (f"events/{event_id}", "events", "many"):
        assert not site.is_untouched([tag], before), tag
    assert site.is_untouched(["events:any", "events:set", "events:search", "site"], before)


def test_gap_in_the_log_invalidates_older_responses(app: RunningApp, editor: Caller, database: Database) -> None:
    touched, before = TouchedTags(ReadSources(database).fetch_changes), read_revision(app)
    add_event(editor)
    add_event(editor)
    app.sql("DELETE FROM changes WHERE revision = $1", before + 1)
    site = app.run(touched.learn(app.site_id, before, read_revision(app)))
    assert (site.known, site.floor) == (read_revision(app),) * 2
    assert not site.is_untouched(["venues"], before)


def test_many_changes_invalidate_older_responses(
    app: RunningApp, editor: Caller, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "MAX_CHANGES", 2)
    touched, before = TouchedTags(ReadSources(database).fetch_changes), read_revision(app)
    for _ in range(3):
        add_event(editor)
    assert not app.run(touched.learn(app.site_id, before, read_revision(app))).is_untouched(["venues"], before)


def test_least_recently_used_sites_are_forgotten(
    app: RunningApp, editor: Caller, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invalidation, "MAX_SITES", 2)
    touched, before = TouchedTags(ReadSources(database).fetch_changes), read_revision(app)
    add_event(editor)
    for site_id in (10**6, 10**6 + 1, app.site_id):
        app.run(touched.learn(site_id, before, before + 1))
    assert touched.find(10**6) is None
    assert touched.find(app.site_id) is not None


def test_response_is_not_used_unchecked_if_changes_cannot_be_read(start_single_site: StartApp) -> None:
    app = start_single_site()
    editor = app.caller("editor")
    add_event(editor)
    path = f"{API_PATH}/events"
    assert app.raw("GET", path)[0] == 200
    add_event(editor)
    app.sql("ALTER FUNCTION dated_changes RENAME TO missing")
    assert app.raw("GET", path)[0] == 503
    app.sql("ALTER FUNCTION missing RENAME TO dated_changes")
    assert app.raw("GET", path)[0] == 200


def test_etag_of_list_survives_unrelated_writes(app: RunningApp, editor: Caller) -> None:
    add_event(editor)
    other = add_event(editor, status="draft")
    _, headers, _ = app.raw("GET", f"{API_PATH}/events")
    for number in range(20):
        editor.patch(f"/events/{other}", {"excerpt": str(number)})
    conditional = [("If-None-Match", headers["etag"])]
    assert app.raw("GET", f"{API_PATH}/events", headers=conditional)[0] == 304


@pytest.mark.quick("venue-venues-venue", "tags-tags-name")
@pytest.mark.parametrize(
    ("param", "kind", "name"),
    [
        ("venue", "venues", "venue"),
        ("organizer", "organizers", "organizer"),
        ("categories", "categories", "name"),
        ("tags", "tags", "name"),
    ],
)
def test_filtered_list_gains_an_event_that_is_moved(
    app: RunningApp, editor: Caller, param: str, kind: str, name: str
) -> None:
    linked_id = editor.create(kind, **{name: "Park"})["id"]
    event_id = add_event(editor, start_date="2020-01-01", end_date="2020-01-01", **{param: [linked_id]})
    path, tomorrow = f"/events?{param}={linked_id}", f"{utc_now() + timedelta(days=1):%Y-%m-%d}"
    assert app.caller().get(path).json()["total"] == 0
    editor.patch(f"/events/{event_id}", {"start_date": tomorrow, "end_date": tomorrow})
    assert app.caller().get(path).json()["total"] == 1


def test_month_gains_an_event_that_is_moved(app: RunningApp, editor: Caller) -> None:
    event_id = add_event(editor)
    path = "/events?start_date=2031-03-01&end_date=2031-03-31"
    assert app.caller().get(path).json()["total"] == 0
    editor.patch(f"/events/{event_id}", {"start_date": "2031-03-15 10:00:00", "end_date": "2031-03-15 11:00:00"})
    assert app.caller().get(path).json()["total"] == 1


def test_terms_do_not_count_an_event_that_is_trashed_and_deleted_at_once(app: RunningApp, editor: Caller) -> None:
    tag = editor.post("/tags", {"name": "jazz"}).json()["id"]
    event_id = add_event(editor, tags=[tag])

    def read_count() -> int:
        count: int = app.caller().get(f"/tags/{tag}").json()["count"]
        return count

    assert read_count() == 1
    assert editor.delete(f"/events/{event_id}").status_code == 200
    cutoff = utc_now() + timedelta(seconds=1)
    assert app.run_operation(lambda tx: calendar_jobs.remove_old_trash(tx, "events", event_id, cutoff))
    assert read_count() == 0


@pytest.mark.parametrize("change", [{"slug": "arts"}, {"parent": "other"}])
def test_addresses_of_categories_follow_their_ancestors(
    app: RunningApp, editor: Caller, change: dict[str, str]
) -> None:
    ids: list[int] = []
    for name in ("other", "culture", "music", "jazz"):
        parent = ids[-1] if len(ids) > 1 else 0
        ids.append(editor.post("/categories", {"name": name, "parent": parent}).json()["id"])
    other, top, _, bottom = ids
    add_event(editor, categories=[bottom])
    paths = [f"{API_PATH}/categories/{bottom}", f"{API_PATH}/categories", f"{API_PATH}/events", "/events/list/"]

    def read_addresses() -> list[set[str]]:
        bodies = [app.raw("GET", path)[2].decode() for path in paths]
        return [set(re.findall(r"/events/category/([\w/-]*jazz)/", body)) for body in bodies]

    expected = [{"culture/music/jazz"}, {"culture/music/jazz"}]
    assert read_addresses()[:2] == expected
    response = editor.patch(
        f"/categories/{top}", {key: other if key == "parent" else value for key, value in change.items()}
    )
    assert response.status_code == 200, response.text
    path = "arts/music/jazz" if "slug" in change else "other/culture/music/jazz"
    for addresses in read_addresses():
        assert addresses <= {path}
    assert read_addresses()[:2] == [{path}, {path}]
    changed = app.raw("GET", f"{EXTENSION_PATH}/changes", query=b"since=0&limit=100")[2].decode()
    assert changed.count('"kind":"categories"') == 4


def test_series_are_not_cached_because_their_upcoming_dates_pass(app: RunningApp, editor: Caller) -> None:
    response = editor.post(f"/{EXTENSION_PATH}/series", {"title": "Yoga", **DATES, "rule": "FREQ=WEEKLY"})
    assert response.status_code == 201, response.text
    for path in (f"{EXTENSION_PATH}/series", f"{EXTENSION_PATH}/series/{response.json()['id']}"):
        assert app.raw("GET", path)[1]["cache-control"] == "private, no-store"
