"""Filters by a hidden venue or organizer, and files of another site, tell no more than unknown ones."""

import re
from collections.abc import Callable

import pytest

from kalends.store.sites import add_host, add_site
from tests.api.running_app import NAMESPACE, NS, Interface, done
from tests.api.sample_records import DATES, unique
from tests.media.media_client import add

UNKNOWN = 999_999


@pytest.fixture(scope="module")
def interface(fresh_for_module: Callable[..., Interface]) -> Interface:
    """IDs are so large that they are found in a page as nothing but IDs."""
    started = fresh_for_module()
    started.sql("UPDATE sites SET last_post_id = 700000")
    return started


@pytest.mark.parametrize("status", ["private", "draft", "trash"])
@pytest.mark.parametrize("name", ["venue", "organizer"])
def test_filter_by_hidden_record_returns_no_events(interface: Interface, name: str, status: str) -> None:
    """The response is that for a record without events; existing clients expect 200 for a draft."""
    editor, title = interface.caller("editor"), unique("There")
    hidden, unused = (editor.create(f"{name}s", **{name: unique("Hidden")})["id"] for _ in range(2))
    event = editor.create("events", title=title, **{name: hidden}, **DATES)
    assert interface.caller().ids("events", **{name: hidden}) == [event["id"]]
    for record_id in (hidden, unused):
        editor.change(f"{name}s", record_id, status=status)

    def answers(wanted: int) -> list[tuple[int, str]]:
        """What strangers get, without the ID itself."""
        found = []
        for role in ("anonymous", "subscriber", "contributor", "author"):
            answer = interface.caller(role).get("/events", {name: wanted})
            found.append((answer.status_code, answer.text.replace(str(wanted), "")))
        for path in ("/events/list/", "/events.ics", "/events/month/2027-03/"):
            status, _, body = interface.raw("GET", path, query=f"{name}={wanted}".encode())
            text = re.sub(r"DTSTAMP:\w+", "", body.decode()).replace(str(wanted), "")
            assert title not in text
            found.append((status, text))
        return found

    told = answers(hidden)
    assert [status for status, _ in told] == [200] * 7
    assert told == answers(unused)
    # Pages and feeds refuse nothing, and tell no difference to an ID that nobody has.
    assert told[4:] == answers(UNKNOWN)[4:]
    assert interface.caller().page("events", **{name: hidden})["total"] == 0
    assert editor.ids("events", **{name: hidden}) == [event["id"]]


def test_file_belongs_to_site_of_host(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    url = add(interface.caller("editor"))["url"]
    path = url[url.index("/media/") :]

    def status(host: str, **headers: str) -> int:
        return interface.raw("GET", path, headers=[("host", host), *headers.items()])[0]

    # With a single site every host is that site's.
    assert status("calendar.test") == status("anything.test") == 200
    interface = fresh()
    url = add(interface.caller("editor"))["url"]
    path = url[url.index("/media/") :]
    interface.run(add_host(interface.database_url, "calendar.test", 1))
    interface.run(add_site(interface.database_url, "b.test", "Other"))
    etag = interface.raw("GET", path, headers=[("host", "calendar.test")])[1]["etag"]
    hosts = ("calendar.test", "CALENDAR.test:8000", "b.test", "nobody.test")
    assert [status(host) for host in hosts] == [200, 200, 404, 404]
    assert [status(host, **{"if-none-match": etag}) for host in hosts] == [304, 304, 404, 404]


def test_media_url_host_serves_all_sites(fresh: Callable[..., Interface]) -> None:
    interface = fresh({"KALENDS_MEDIA_URL": "https://images.test/media"})
    url = add(interface.caller("editor"))["url"]
    assert url.startswith("https://images.test/media/")
    interface.run(add_host(interface.database_url, "calendar.test", 1))
    interface.run(add_site(interface.database_url, "b.test", "Other"))
    path = url.removeprefix("https://images.test")
    hosts = ("images.test", "calendar.test", "b.test")
    assert [interface.raw("GET", path, headers=[("host", host)])[0] for host in hosts] == [200, 200, 404]
    assert done(interface.caller().get(f"{NS}/events"))["rest_url"].startswith(f"http://calendar.test{NAMESPACE}")
