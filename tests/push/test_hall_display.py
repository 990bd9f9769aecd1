"""The hall display: which events it shows at which time, and when its page expires."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import orjson
import psycopg
import pytest
from playwright.sync_api import Browser, expect

from tests.api.conftest import StartApp, start_app
from tests.api.running_app import API_PATH, RunningApp, User
from tests.conftest import replace_database, temporary_database
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.conftest import app, chromium
from tests.pages.demo_calendar import DemoCalendar, build_demo_calendar
from tests.pages.page_client import HTML_HEADERS, add_event, get_page
from tests.servers import KALENDS, Server, find_free_port, make_environment
from tools import postgres

__all__ = ["app", "chromium", "start_app"]

DISPLAY = "/display/"
DAY = "2031-03-12"


@contextmanager
def at(moment: str) -> Iterator[None]:
    """Let the server answer at a time in Berlin, in winter."""
    day, hour = moment.split()
    now = datetime.fromisoformat(f"{day}T{hour}+01:00").astimezone(UTC)
    with patch("kalends.asgi.utc_now", lambda: now):
        yield


def read_rows(page: str) -> list[tuple[str, str, str]]:
    """Return title, time and badges of each row, as text."""
    texts = re.findall(r'<p class="when">(.*?)</p>.*?<h2>(.*?)</h2>(.*?)</div>', page, flags=re.DOTALL)
    return [(plain(title), plain(when), plain(badges)) for when, title, badges in texts]


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def add_day(app: RunningApp) -> None:
    app.set_site("language", "en-GB")
    for title, start, end, more in (
        ("Breakfast", "08:00", "09:30", {}),
        ("Lecture", "17:00", "18:30", {}),
        ("Concert", "19:30", "22:00", {}),
        ("Reading", "17:15", "18:00", {"event_status": "cancelled"}),
        ("Meeting point", "17:20", "17:20", {}),
        ("Protected", "20:00", "21:00", {"new_password": "open sesame"}),
        ("Draft", "20:00", "21:00", {"status": "draft"}),
        ("Hidden", "20:00", "21:00", {"hide_from_listings": True}),
    ):
        add_event(app, title, f"{DAY} {start}", f"{DAY} {end}", **more)
    add_event(app, "Exhibition", "2031-03-01", "2031-03-20", all_day=True)
    add_event(app, "Festival", f"{DAY} 21:00", "2031-03-14 18:00")
    add_event(app, "Fair", DAY, DAY, all_day=True)
    add_event(app, "Next week", "2031-03-19 10:00", "2031-03-19 11:00")


def test_display_marks_what_is_on_and_omits_what_is_over(app: RunningApp) -> None:
    add_day(app)
    with at(f"{DAY} 17:40"):
        page = get_page(app, DISPLAY)
    assert "<h1>Wednesday 12 March</h1>" in page
    assert read_rows(page) == [
        ("Fair", "All day", "Now"),
        ("Lecture", "17:00 – 18:30", "Now"),
        ("Reading", "17:15 – 18:00", "Cancelled"),
        ("Meeting point", "17:20", "Now"),
        ("Concert", "19:30 – 22:00", ""),
        ("Protected", "20:00 – 21:00", ""),
        ("Festival", "21:00 – until Fri 14 Mar", ""),
        ("Exhibition", "until Thu 20 Mar", "Now"),
    ]
    assert "<s>Reading</s>" in page
    with at(f"{DAY} 18:20"):
        titles = [title for title, *_ in read_rows(get_page(app, DISPLAY))]
    assert titles == ["Fair", "Lecture", "Concert", "Protected", "Festival", "Exhibition"]


def test_display_shows_the_next_day_if_nothing_is_left(app: RunningApp) -> None:
    add_event(app, "Lecture", f"{DAY} 17:00", f"{DAY} 18:30")
    add_event(app, "Concert", "2031-03-14 19:30", "2031-03-14 22:00")
    with at(f"{DAY} 18:30"):
        page = get_page(app, DISPLAY)
    assert "<h1>Next: Friday, March 14</h1>" in page
    assert [title for title, *_ in read_rows(page)] == ["Concert"]
    with at("2031-03-15 12:00"):
        page = get_page(app, DISPLAY)
    assert "Nothing on Saturday, March 15" in page
    assert not read_rows(page)


def test_display_takes_the_filters_of_lists(app: RunningApp) -> None:
    music = app.caller("editor").create("categories", name="Music & dance")
    add_event(app, "Concert", f"{DAY} 19:30", f"{DAY} 22:00", categories=[music["id"]])
    add_event(app, "Lecture", f"{DAY} 19:30", f"{DAY} 22:00")
    with at(f"{DAY} 12:00"):
        page = get_page(app, DISPLAY, "categories=music-dance&start_date=2031-03-20")
        assert [title for title, *_ in read_rows(page)] == ["Concert"]
        assert "<p>Music &amp; dance</p>" in page
        assert 'name="robots" content="noindex"' in page
        get_page(app, DISPLAY, "categories[", status=200)
        linked = get_page(app, "/events/list/", f"categories={music['id']}")
    assert f'href="/display/?categories={music["id"]}"' in linked


def test_display_in_a_frame_has_a_fixed_theme(app: RunningApp) -> None:
    assert '<meta name="color-scheme" content="light dark">' in get_page(app, DISPLAY)
    framed = get_page(app, f"/embed{DISPLAY}", "theme=dark")
    assert '<meta name="color-scheme" content="dark">' in framed


def test_full_day_fits_the_page_budget(app: RunningApp) -> None:
    title = "市民合唱団と吹奏楽団による春の合同演奏会および地域の子どもたちの発表会のご案内"
    for number in range(120):
        add_event(app, f"{title}{number}", f"{DAY} 18:00", f"{DAY} 21:00")
    with at(f"{DAY} 12:00"):
        page = get_page(app, DISPLAY)
    shown = len(read_rows(page))
    assert 50 < shown < 120
    assert f"{120 - shown} more" in page
    files = re.findall(r'(?:stylesheet" href|<script src)="(/assets/[^"]+)"', page)
    assert len(files) == 3
    assert len(page.encode()) + sum(len(app.raw("GET", file)[2]) for file in files) < 60_000


def test_page_expires_when_a_mark_changes(app: RunningApp) -> None:
    """The cache of the server gives each minute the marks of that minute."""
    add_event(app, "Lecture", f"{DAY} 17:00", f"{DAY} 18:30")
    badges: list[list[str]] = []
    for moment in ("16:59", "17:00", "18:29", "18:30"):
        with at(f"{DAY} {moment}"):
            badges.append([text for *_, text in read_rows(get_page(app, DISPLAY))])
    assert badges == [[""], ["Now"], ["Now"], []]


def test_display_names_its_live_list(start_app: StartApp) -> None:
    app = start_app({"KALENDS_STREAM_URL": "https://live.example"})
    music = app.caller("editor").create("categories", name="Music")["id"]
    status, headers, body = app.raw("GET", DISPLAY, query=b"categories=music", headers=HTML_HEADERS)
    assert status == 200
    assert "connect-src 'self' https://live.example;" in headers["content-security-policy"]
    found = re.search(r'data-stream="https://live\.example(/[^"?]+)\?([^"]+)"', body.decode())
    assert found
    assert found[1] == f"{API_PATH}/events"
    query = unescape(found[2])
    assert query.startswith(f"categories={music}&overlaps_from=today&overlaps_to=today&")
    # The list itself has these parameters.
    status, _, body = app.raw("GET", found[1], query=query.encode())
    assert (status, orjson.loads(body)["events"]) == (200, [])


# In a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hall(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[DemoCalendar]:
    """Return the demo calendar on its full day at 9:30."""
    if not shutil.which("faketime"):
        pytest.skip("needs faketime")
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        server = start_server(url, **shift_time(f"{DAY} 08:30:00"))
        town = build_demo_calendar(server, url, users["editor"])
        yield town
        town.editor.close()
        server.stop()


def shift_time(moment: str) -> dict[str, Any]:
    """Return options of a server that starts at a time in UTC."""
    environment = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "UTC"}
    return {"environment": environment, "prefix": ["faketime", "-f", f"@{moment}"], "timeout": 90}


@pytest.mark.npm
@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_display_is_accessible_and_fits_the_screen(
    hall: DemoCalendar, chromium: Browser, width: int, height: int, scheme: str
) -> None:
    with open_browser_page(
        chromium, viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    ) as browser:
        page = browser.page
        weighed = browser.measure_bytes()
        page.goto(hall.server.base_url + DISPLAY)
        page.locator("header time", has_text=re.compile(r"\d")).wait_for()
        assert sum(weighed.values()) < 40_000, weighed
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width > 1000:
            assert page.evaluate("document.documentElement.scrollHeight") <= height
        assert page.evaluate("window.shifts") < 0.02
        assert find_violations(page) == []
        assert browser.errors == []
        assert browser.hosts == {hall.server.base_url.split("/")[2]}


def test_display_turns_pages_slowly_and_stops_at_a_touch(hall: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 480}) as browser:
        page = browser.page
        page.clock.install()
        page.goto(hall.server.base_url + DISPLAY)
        rows = page.locator("main li:visible h2")
        expect(page.locator(".position")).to_have_text("1 / 2")
        first = rows.all_text_contents()
        page.clock.fast_forward(16_000)
        expect(page.locator(".position")).to_have_text("2 / 2")
        second = rows.all_text_contents()
        assert first + second == page.locator("main li h2").all_text_contents()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".position")).to_have_text("1 / 2")
        page.clock.fast_forward(16_000)
        expect(page.locator(".position")).to_have_text("1 / 2")


def test_display_without_script_reloads_itself(hall: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False) as browser:
        browser.page.goto(hall.server.base_url + DISPLAY)
        assert browser.page.locator("meta[http-equiv=refresh]").get_attribute("content") == "60"
        assert browser.page.locator("main li h2").count() > 5


def test_display_follows_changes_and_outlives_the_server(
    hall: DemoCalendar, chromium: Browser, start_server: Callable[..., Server]
) -> None:
    created = hall.editor.post(
        f"{API_PATH}/events",
        json={"title": "Late walk", "start_date": f"{DAY} 21:00", "end_date": f"{DAY} 22:00", "status": "publish"},
    ).json()
    server = start_server(hall.database_url, **shift_time(f"{DAY} 15:30:00"))
    port = int(server.base_url.rpartition(":")[2])
    with open_browser_page(chromium, viewport={"width": 1920, "height": 1080}) as browser:
        page = browser.page
        page.clock.install()
        page.goto(server.base_url + DISPLAY)
        row, note = page.locator("main li", has_text="Late walk"), page.locator(".offline")
        expect(row).not_to_contain_text("Cancelled")
        hall.editor.put(f"{API_PATH}/events/{created['id']}", json={"event_status": "cancelled"})
        page.clock.fast_forward(63_000)
        expect(row).to_contain_text("Cancelled")
        server.kill()
        page.clock.fast_forward(63_000)
        expect(note).to_contain_text("Offline since")
        expect(row).to_be_visible()
        # It is the next day when the server is back.
        with start_server(hall.database_url, port=port, **shift_time("2031-03-13 15:30:00")):
            page.clock.fast_forward(10_000)
            expect(note).to_be_hidden()
            expect(page.locator("h1")).to_have_text("Thursday, March 13")


def test_cancellation_is_shown_within_three_seconds(
    hall: DemoCalendar, chromium: Browser, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    """A live list reports it, from an origin of its own, and after a restart again."""
    port = find_free_port()
    options = shift_time(f"{DAY} 12:30:00")
    options["environment"]["KALENDS_STREAM_URL"] = f"http://127.0.0.1:{port}"
    server = start_server(hall.database_url, **options)
    titles = ("Matinée", "Soirée")
    events = [
        hall.editor.post(
            f"{API_PATH}/events", json={"title": title, "start_date": f"{DAY} 22:00", "end_date": f"{DAY} 23:00"}
        ).json()["id"]
        for title in titles
    ]
    with open_browser_page(chromium, viewport={"width": 1920, "height": 1080}) as browser:
        page, delays = browser.page, list[float]()
        for title, event in zip(titles, events, strict=True):
            with run_stream(hall.database_url, port, tmp_path / f"{event}.log", f"{DAY} 12:30:00"):
                if title == titles[0]:
                    page.goto(server.base_url + DISPLAY)
                row = page.locator("main li", has_text=title)
                expect(row).not_to_contain_text("Cancelled")
                # The browser connects again within ten seconds, and the page is fetched after a snapshot.
                page.wait_for_timeout(15_000)
                hall.editor.put(f"{API_PATH}/events/{event}", json={"event_status": "cancelled"})
                began = time.monotonic()
                expect(row).to_contain_text("Cancelled")
                delays.append(time.monotonic() - began)
        assert max(delays) < 3, delays


@contextmanager
def run_stream(database_url: str, port: int, log: Path, moment: str) -> Iterator[None]:
    command = ["faketime", "-f", f"@{moment}", *KALENDS, "stream", "--host", "127.0.0.1", "--port", str(port)]
    environment = make_environment(database_url, shift_time(moment)["environment"])
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_until_listening(port)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def wait_until_listening(port: int) -> None:
    for _ in range(300):
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the process for live lists does not start")


def test_display_survives_midnight(
    hall: DemoCalendar, chromium: Browser, start_server: Callable[..., Server]
) -> None:
    server = start_server(hall.database_url, **shift_time("2031-03-13 22:59:20"))
    with open_browser_page(chromium, viewport={"width": 1280, "height": 720}) as browser:
        page = browser.page
        page.clock.install()
        page.goto(server.base_url + DISPLAY)
        heading = page.locator("h1")
        expect(heading).to_have_text("Thursday, March 13")
        for _ in range(60):
            page.clock.fast_forward(63_000)
            if heading.text_content() == "Friday, March 14":
                break
            page.wait_for_timeout(1000)
        expect(heading).to_have_text("Friday, March 14")


def test_display_survives_a_restart_of_the_database(
    chromium: Browser, start_server: Callable[..., Server], tmp_path: Any
) -> None:
    from kalends.store.migrations import migrate

    with postgres.throwaway() as cluster:
        migrate(cluster.url)
        server = start_server(cluster.url)
        with open_browser_page(chromium) as browser:
            page = browser.page
            page.clock.install()
            page.goto(server.base_url + DISPLAY)
            cluster.stop()
            page.clock.fast_forward(63_000)
            postgres.start(cluster.directory, port=cluster.port, settings=postgres.THROWAWAY)
            with psycopg.connect(cluster.url) as connection:
                connection.execute("UPDATE sites SET name = 'Back again', revision = revision + 1")
            assert httpx.get(f"{server.base_url}/readyz", timeout=30)
            page.clock.fast_forward(63_000)
            expect(page.locator(".offline")).to_be_hidden()
