"""Filters by a hidden venue or organizer, and files of another site, tell no more than unknown ones."""

import re
from collections.abc import Callable

import pytest

from kalends.store.sites import add_host, add_site
from tests.api.running_app import API_PATH, RunningApp, expect_json
from tests.api.sample_records import DATES, unique
from tests.media.media_client import create_image

UNKNOWN = 999_999


@pytest.fixture(scope="module")
def app(start_app_for_module: Callable[..., RunningApp]) -> RunningApp:
    """IDs are so large that they are found in a page as nothing but IDs."""
    started = start_app_for_module()
    started.sql("UPDATE sites SET last_post_id = 700000")
    return started


@pytest.mark.parametrize("status", ["private", "draft", "trash"])
@pytest.mark.parametrize("name", ["venue", "organizer"])
def test_filter_by_hidden_record_returns_no_events(app: RunningApp, name: str, status: str) -> None:
    """The response is that for a record without events; existing clients expect 200 for a draft."""
    editor, title = app.caller("editor"), unique("There")
    hidden, unused = (editor.create(f"{name}s", **{name: unique("Hidden")})["id"] for _ in range(2))
    event = editor.create("events", title=title, **{name: hidden}, **DATES)
    assert app.caller().ids("events", **{name: hidden}) == [event["id"]]
    for record_id in (hidden, unused):
        editor.change(f"{name}s", record_id, status=status)

    def responses(record_id: int) -> list[tuple[int, str]]:
        """What strangers get, without the ID itself."""
        results = []
        for role in ("anonymous", "subscriber", "contributor", "author"):
            response = app.caller(role).get("/events", {name: record_id})
            results.append((response.status_code, response.text.replace(str(record_id), "")))
        for path in ("/events/list/", "/events.ics", "/events/month/2027-03/"):
            status, _, body = app.raw("GET", path, query=f"{name}={record_id}".encode())
            text = re.sub(r"DTSTAMP:\w+", "", body.decode()).replace(str(record_id), "")
            assert title not in text
            results.append((status, text))
        return results

    hidden_responses = responses(hidden)
    assert [status for status, _ in hidden_responses] == [200] * 7
    assert hidden_responses == responses(unused)
    # Pages and feeds refuse nothing, and tell no difference to an ID that nobody has.
    assert hidden_responses[4:] == responses(UNKNOWN)[4:]
    assert app.caller().page("events", **{name: hidden})["total"] == 0
    assert editor.ids("events", **{name: hidden}) == [event["id"]]


def test_file_belongs_to_site_of_host(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    url = create_image(app.caller("editor"))["url"]
    path = url[url.index("/media/") :]

    def status(host: str, **headers: str) -> int:
        return app.raw("GET", path, headers=[("host", host), *headers.items()])[0]

    # With a single site every host is that site's.
    assert status("calendar.test") == status("anything.test") == 200
    app = start_single_site()
    url = create_image(app.caller("editor"))["url"]
    path = url[url.index("/media/") :]
    app.run(add_host(app.database_url, "calendar.test", 1))
    app.run(add_site(app.database_url, "b.test", "Other"))
    etag = app.raw("GET", path, headers=[("host", "calendar.test")])[1]["etag"]
    hosts = ("calendar.test", "CALENDAR.test:8000", "b.test", "nobody.test")
    assert [status(host) for host in hosts] == [200, 200, 404, 404]
    assert [status(host, **{"if-none-match": etag}) for host in hosts] == [304, 304, 404, 404]


def test_media_url_host_serves_all_sites(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site({"KALENDS_MEDIA_URL": "https://images.test/media"})
    url = create_image(app.caller("editor"))["url"]
    assert url.startswith("https://images.test/media/")
    app.run(add_host(app.database_url, "calendar.test", 1))
    app.run(add_site(app.database_url, "b.test", "Other"))
    path = url.removeprefix("https://images.test")
    hosts = ("images.test", "calendar.test", "b.test")
    assert [app.raw("GET", path, headers=[("host", host)])[0] for host in hosts] == [200, 200, 404]
    assert expect_json(app.caller().get("/events"))["rest_url"].startswith(f"http://calendar.test{API_PATH}")
