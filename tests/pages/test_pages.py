"""What pages say and how they are answered, without a browser."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.api.test_response_cache import count_transactions
from tests.pages.page_client import HTML_HEADERS, add_event, get_page

EVENING = {"start_date": "2031-03-14 19:30", "end_date": "2031-03-14 22:00"}


def find_links(page: str, rel: str) -> list[str]:
    return re.findall(rf'<a rel="{rel}" href="([^"]+)"', page)


def text_before(page: str, title: str) -> str:
    """The part of the page around a title."""
    at = page.index(title)
    return page[max(0, at - 300) : at + len(title)]


# Months, weeks, days -----------------------------------------------------------------------------


def test_month_navigation_skips_empty_months(app: RunningApp) -> None:
    for title, start, end in (
        ("a", "2030-05-05 10:00", "2030-05-05 11:00"),
        ("b", "2031-03-10 10:00", "2031-03-10 11:00"),
        ("c", "2031-08-30", "2031-10-02"),
        ("d", "2033-01-31 23:00", "2033-02-01 02:00"),
    ):
        add_event(app, title, start, end, all_day=len(start) == 10)
    for month, before, after in (
        ("2031-03", "2030-05", "2031-08"),
        ("2030-05", None, "2031-03"),
        ("2031-06", "2031-03", "2031-08"),
        ("2031-08", "2031-03", "2031-09"),  # The event continues.
        ("2031-09", "2031-08", "2031-10"),
        ("2031-10", "2031-09", "2033-01"),
        ("2033-01", "2031-10", None),  # A night belongs to the day on which it began.
        ("2033-06", "2033-01", None),
    ):
        page = get_page(app, f"/events/month/{month}/")
        expected = [[f"/events/month/{other}/"] if other else [] for other in (before, after)]
        assert [find_links(page, "prev"), find_links(page, "next")] == expected, month


def test_empty_month_is_not_indexable(app: RunningApp) -> None:
    add_event(app, "a", "2031-03-10 10:00", "2031-03-10 11:00")
    assert 'name="robots"' not in get_page(app, "/events/month/2031-03/")
    assert '<meta name="robots" content="noindex, nofollow">' in get_page(app, "/events/month/2031-05/")
    for path in ("/events/week/2031-03-10/", "/events/day/2031-03-10/", "/events/search/"):
        assert '<meta name="robots" content="noindex">' in get_page(app, path)


def test_event_is_listed_on_its_local_date(app: RunningApp) -> None:
    add_event(app, "Early in Tokyo", "2031-03-12 00:30", "2031-03-12 01:00", timezone="Asia/Tokyo")
    add_event(app, "Late in Honolulu", "2031-03-12 23:30", "2031-03-12 23:45", timezone="Pacific/Honolulu")
    for path in ("/events/day/2031-03-12/", "/events/week/2031-03-12/", "/events/month/2031-03/"):
        page = get_page(app, path)
        assert "Early in Tokyo" in page
        assert "Late in Honolulu" in page
    assert "12:30\xa0AM JST" in get_page(app, "/events/month/2031-03/")
    for path in ("/events/day/2031-03-11/", "/events/day/2031-03-13/"):
        assert "Early in Tokyo" not in get_page(app, path)
        assert "Late in Honolulu" not in get_page(app, path)


def test_month_cell_lists_three_events_and_counts_others(app: RunningApp) -> None:
    for hour in range(9, 16):
        add_event(app, f"At {hour}", f"2031-03-12 {hour:02}:00", f"2031-03-12 {hour:02}:30")
    add_event(app, "Sticky", "2031-03-12 20:00", "2031-03-12 21:00", sticky=True)
    page = get_page(app, "/events/month/2031-03/")
    table = page[page.index("<table") : page.index("</table>")]
    assert re.findall(r"</i> (Sticky|At \d+)</a>", table) == ["Sticky", "At 9", "At 10"]
    assert "5 more" in table
    day = get_page(app, "/events/day/2031-03-12/")
    assert day.count("<article") == 8


def test_multi_day_events_span_cells_per_week(app: RunningApp) -> None:
    add_event(app, "Fair", "2031-03-08", "2031-03-11", all_day=True)  # Saturday to Tuesday
    add_event(app, "Tour", "2031-03-10 10:00", "2031-03-12 18:00")
    page = get_page(app, "/events/month/2031-03/")
    table = page[page.index("<table") : page.index("</table>")]
    cells = dict(
        re.findall(r'<td[^>]*><a class="date" href="/events/day/2031-03-([^/]+)/"(.*?)</td>', table, re.DOTALL)
    )
    slot = re.compile(
        r'<li class="lane(?: n?(l?\d))?"(?: aria-hidden="true"></li>|'
        r'><a class="bar h0([^"]*)"[^>]*>(?:<i>.*?</i> )?(\w+))'
    )
    assert {day: slot.findall(cell) for day, cell in cells.items() if "<li" in cell} == {
        "08": [("2", " continues-after", "Fair")],
        "09": [("", "", "")],
        "10": [("3", "", "Tour"), ("2", " continues-before", "Fair")],
        "11": [("l2", "", "")],
        "12": [("", "", "")],
    }
    # Screen readers announce the day and the end of each event.
    assert 'aria-label="Saturday, March 8, 2031, One event"' in cells["08"]
    assert re.findall(r'<span class="visually-hidden"> (until [^<]+)</span>', table) == [
        "until Tue, Mar 11",
        "until Wed, Mar 12",
        "until Tue, Mar 11",
    ]


def test_first_weekday_is_configurable(app: RunningApp) -> None:
    assert re.findall(r'<span aria-hidden="true">(\w+)</span>', get_page(app, "/events/month/2031-03/"))[0] == "Mon"
    app.set_site("first_weekday", "sunday")
    page = get_page(app, "/events/month/2031-03/")
    assert re.findall(r'<span aria-hidden="true">(\w+)</span>', page)[0] == "Sun"
    assert 'href="/events/day/2031-02-23/"' in page


@pytest.mark.quick("/events/month/2031-13/", "/events/day/0001-01-01/")
@pytest.mark.parametrize(
    "path",
    ["/events/month/2031-13/", "/events/month/0000-01/", "/events/month/9999-12/", "/events/day/2031-02-30/",
     "/events/week/9999-12-31/", "/events/month/", "/events/day/0001-01-01/"],
)  # fmt: skip
def test_invalid_dates_are_404(app: RunningApp, path: str) -> None:
    status = 200 if path == "/events/month/" else 404
    get_page(app, path, status=status)


# Lists and filters -------------------------------------------------------------------------------


def test_views_apply_and_preserve_filters(app: RunningApp) -> None:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")
    add_event(app, "Loud", **_start_and_end(EVENING), categories=[music["id"]])
    add_event(app, "Quiet", **_start_and_end(EVENING))
    for path in ("/events/month/2031-03/", "/events/week/2031-03-14/", "/events/day/2031-03-14/", "/events/list/"):
        page = get_page(app, path, "categories=music")
        assert "Loud" in page
        assert "Quiet" not in page
        assert f"/events.ics?categories={music['id']}" in page
        assert 'href="/events/list/?categories=music"' in page
        assert "Remove filter: Music" in page
    assert "Quiet" in get_page(app, "/events/list/")


def test_search_page_filters_by_words_dates_and_place(app: RunningApp) -> None:
    editor = app.caller("editor")
    hall = editor.create("venues", venue="Hall", city="Lindenstadt", geo_lat=52.5, geo_lng=13.4)
    far = editor.create("venues", venue="Far away", city="Fernau", geo_lat=48.1, geo_lng=11.5)
    add_event(app, "Near one", **_start_and_end(EVENING), venue=hall["id"])
    add_event(app, "Far one", **_start_and_end(EVENING), venue=far["id"])
    for query, expected, missing in (
        ("search=near&venue=&categories=&near=", "Near one", "Far one"),
        ("near=lindenstadt&geoloc_radius=10", "Near one", "Far one"),
        ("near=Fernau", "Far one", "Near one"),
        (f"venue={far['id']}", "Far one", "Near one"),
        ("overlaps_from=2031-03-14&overlaps_to=2031-03-14&search=far", "Far one", "Near one"),
    ):
        page = get_page(app, "/events/search/", query)
        assert expected in page, query
        assert missing not in page, query
    assert "No venue matches “Nowhere”." in get_page(app, "/events/search/", "near=Nowhere")
    assert 'value="Lindenstadt"' in get_page(app, "/events/search/")


def test_errors_are_rendered_as_pages(app: RunningApp) -> None:
    page = get_page(app, "/events/list/", "start_date=never&lang=de", status=400)
    assert '<html lang="de"' in page
    assert "Diese Seite kann nicht angezeigt werden" in page
    assert "start_date" in page
    get_page(app, "/events/list/", "page=99", status=404)


def test_past_list_is_ordered_newest_first(app: RunningApp) -> None:
    for year in (2019, 2020, 2021):
        add_event(app, f"In {year}", f"{year}-05-05 10:00", f"{year}-05-05 11:00")
    add_event(app, "To come", **_start_and_end(EVENING))
    assert re.findall(r">(In \d+|To come)</a>", get_page(app, "/events/list/", "past=1")) == [
        "In 2021",
        "In 2020",
        "In 2019",
    ]
    assert re.findall(r">(In \d+|To come)</a>", get_page(app, "/events/list/")) == ["To come"]


def test_event_of_yesterday_is_past(app: RunningApp) -> None:
    yesterday = str(datetime.now(UTC).date() - timedelta(days=1))
    add_event(app, "All day", yesterday, yesterday, all_day=True)
    assert "All day" in get_page(app, "/events/list/", "past=1")
    assert "All day" not in get_page(app, "/events/list/")


def test_dates_out_of_range_are_not_shown(app: RunningApp) -> None:
    for path in ("/events/list/", "/events/search/"):
        get_page(app, path, "include=5&start_date=%2B9999%20years")


def test_past_list_keeps_whole_days(app: RunningApp) -> None:
    add_event(app, "Last day of May", "2020-05-31 10:00", "2020-05-31 11:00")
    assert "Last day of May" in get_page(app, "/events/list/", "past=1&end_date=2020-05-31")


def test_search_form_shows_the_day_in_the_zone_of_the_site(app: RunningApp) -> None:
    page = get_page(app, "/events/search/", "overlaps_from=2026-11-15T23:00:00-08:00")
    assert 'value="2026-11-16"' in page


def test_running_events_are_listed_first(app: RunningApp) -> None:
    today = datetime.now(UTC).date()
    add_event(app, "Runs", str(today - timedelta(days=400)), str(today + timedelta(days=400)), all_day=True)
    add_event(app, "To come", **_start_and_end(EVENING))
    page = get_page(app, "/events/list/")
    assert re.findall(r">(Runs|To come)</a>", page) == ["Runs", "To come"]


# Records -----------------------------------------------------------------------------------------


def test_record_urls_are_canonical(app: RunningApp) -> None:
    editor = app.caller("editor")
    parent = editor.create("categories", name="Music")
    child = editor.create("categories", name="Jazz", parent=parent["id"])
    tag = editor.create("tags", name="Free")
    event = add_event(app, "Concert", **_start_and_end(EVENING), categories=[child["id"]], tags=[tag["id"]],
                venue={"venue": "Hall"}, organizer={"organizer": "Verein"})  # fmt: skip
    records = [event, event["venue"], event["organizer"][0], editor.read("categories", child["id"]), tag,
               editor.read("categories", parent["id"])]  # fmt: skip
    for record in records:
        page = get_page(app, record["url"].removeprefix(app.base_url))
        assert f'<link rel="canonical" href="{record["url"]}">' in page
        assert "Concert" in page
    moved = app.raw("GET", "/events/category/jazz/")[1]["location"]
    assert moved == f"{app.base_url}/events/category/music/jazz/"
    assert app.raw("GET", "/", query=f"p={event['id']}".encode())[1]["location"] == "/event/concert/"
    assert app.raw("GET", "/event/concert", query=b"a=b")[1]["location"] == "/event/concert/?a=b"


def test_event_page_contains_structured_data(app: RunningApp) -> None:
    event = add_event(app, "Concert </script><b>loud</b>", **_start_and_end(EVENING),
                      venue={"venue": "Hall", "city": "Town"},
                excerpt="Come and <em>listen</em>", cost="5")  # fmt: skip
    page = get_page(app, f"/event/{event['slug']}/")
    json_ld = json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)[1])
    assert json_ld == app.caller().read("events", event["id"])["json_ld"]
    assert json_ld["startDate"] == "2031-03-14T19:30:00+01:00"
    assert '<meta property="og:title" content="Concert loud">' in page
    assert '<meta property="og:description" content="Come and listen">' in page
    assert 'datetime="2031-03-14T19:30:00+01:00"' in page
    assert "dates=20310314T183000Z%2F20310314T210000Z" in page
    assert f'href="/event/{event["slug"]}.ics"' in page
    assert "Friday, March 14, 2031" in page


def test_similar_events_share_category_or_venue(app: RunningApp) -> None:
    soon = date.today() + timedelta(days=30)
    editor = app.caller("editor")
    music, talks = (editor.create("categories", name=name)["id"] for name in ("Music", "Talks"))
    times = {"start": f"{soon} 10:00", "end": f"{soon} 11:00"}
    event = add_event(app, "This", **times, categories=[music])
    for number in range(3):
        add_event(app, f"Talk {number}", **times, categories=[talks])
        add_event(app, f"Concert {number}", **times, categories=[music])
    page = get_page(app, f"/event/{event['slug']}/")
    similar = page[page.index("Similar events") : page.index("</main>")]
    assert sorted(re.findall(r">((?:Talk|Concert|This)[^<]*)</a>", similar)) == [
        "Concert 0",
        "Concert 1",
        "Concert 2",
    ]


@pytest.mark.quick("draft", "future")
@pytest.mark.parametrize("status", ["draft", "private", "trash", "future"])
def test_unpublished_events_are_not_displayed(app: RunningApp, status: str) -> None:
    event = add_event(app, "Secret meeting", **_start_and_end(EVENING))
    path = f"/event/{event['slug']}/"
    assert "Secret meeting" in get_page(app, path)
    assert "Secret meeting" in get_page(app, "/events/month/2031-03/")
    editor = app.caller("editor")
    if status == "trash":
        editor.trash("events", event["id"])
    else:
        editor.change("events", event["id"], **({"date": "2090-01-01"} if status == "future" else {"status": status}))
    assert "Secret" not in get_page(app, path, status=404)
    for view in ("/events/month/2031-03/", "/events/week/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
                 "/events/search/", "/events/", "/"):  # fmt: skip
        assert "Secret" not in get_page(app, view)
    # Not even to those who may see it: pages are what everybody sees.
    login = app.users["administrator"]
    assert login
    response = app.caller("administrator").get(f"/{path}", headers={"Accept": "text/html"})
    assert (response.status_code, "Secret" in response.text) == (404, False)


def test_protected_event_displays_title_time_and_password_form(app: RunningApp) -> None:
    category = app.caller("editor").create("categories", name="Private")
    event = add_event(app, "Birthday", **_start_and_end(EVENING), description="At Anna's", new_password="lilacs",
                featured=True, sticky=True, categories=[category["id"]])  # fmt: skip
    path = f"/event/{event['slug']}/"
    page = get_page(app, path, status=403)
    assert "At Anna" not in page
    # Neither its category, which gives the colour, nor whether it is featured.
    assert re.search(r'<li><a class="h0" href="/event/birthday/">', get_page(app, "/events/month/2031-03/"))
    assert 'type="password"' in page
    assert "Protected by a password" in get_page(app, "/events/list/")
    assert "At Anna" not in get_page(app, "/events/list/")
    form = [("content-type", "application/x-www-form-urlencoded"), ("accept", "text/html")]
    status, headers, body = app.raw("POST", path, headers=form, body=[b"password=lilacs"])
    assert (status, headers["cache-control"], b"At Anna" in body) == (200, "private, no-store", True)
    assert app.raw("POST", path, headers=form, body=[b"password=rose"])[0] == 403
    assert "At Anna" not in get_page(app, path, status=403)
    assert app.raw("POST", "/events/list/", headers=form, body=[b"password=lilacs"])[0] == 405


def test_page_of_unlocked_event_is_not_cached(app: RunningApp) -> None:
    event = add_event(app, "Birthday", **_start_and_end(EVENING), description="At Anna's", new_password="lilacs")
    path = f"/event/{event['slug']}/"
    status, headers, body = app.raw("GET", path, query=b"password=lilacs", headers=HTML_HEADERS)
    assert (status, b"At Anna" in body) == (200, True)
    assert headers["cache-control"] == "private, no-store"
    # Nor can it be recognized or purged by a shared cache.
    assert headers.keys() & {"etag", "surrogate-key"} == set()
    assert "At Anna" not in get_page(app, path, status=403)


def test_external_images_become_links_and_headings_are_demoted(app: RunningApp) -> None:
    event = add_event(app, "Show", **_start_and_end(EVENING), description=(
        "<h1>One</h1><h4>Two</h4><img src='https://elsewhere.example/a.png' alt='A &quot;poster&quot;'>"
        "<a href='https://x.example/'><img src='https://elsewhere.example/b.png' alt='linked'></a>"
        "<img src='/assets/own.png' alt='own' width='10'>"))  # fmt: skip
    page = get_page(app, f"/event/{event['slug']}/")
    prose = page[page.index('<div class="prose">') : page.index("</article>")]
    assert "<h2>One</h2>" in prose
    assert "<h3>Two</h3>" in prose
    assert 'href="https://elsewhere.example/a.png">A &quot;poster&quot;</a>' in prose
    assert '<a rel="nofollow noopener" href="https://x.example/">linked</a>' in prose
    assert re.findall(r"<img[^>]*>", prose) == ['<img loading="lazy" src="/assets/own.png" alt="own" width="10">']


# How they are answered ---------------------------------------------------------------------------


def test_page_is_cached_until_change(app: RunningApp) -> None:
    add_event(app, "First", **_start_and_end(EVENING))
    path = "/events/month/2031-03/"
    _, headers, first = app.raw("GET", path)
    assert count_transactions(app, b"", path) == 0
    assert app.raw("GET", path)[2] == first
    assert app.raw("GET", path, headers=[("if-none-match", headers["etag"])])[0] == 304
    assert f"s{app.site_id}" in headers["surrogate-key"].split()
    # Pages speak as their site does, whatever a browser prefers: one answer serves everybody.
    assert app.raw("GET", path, headers=[("accept-language", "ja")])[2] == first
    add_event(app, "Second", **_start_and_end(EVENING))
    again = app.raw("GET", path, headers=[("if-none-match", headers["etag"])])
    assert (again[0], b"Second" in again[2]) == (200, True)
    app.set_site("accent", "#0b5fff")
    assert b".0b5fff.css" in app.raw("GET", path)[2]


def test_content_security_policy_forbids_inline_and_third_party(app: RunningApp) -> None:
    _, headers, body = app.raw("GET", "/events/month/2031-03/")
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "style-src": "'self'", "script-src": "'self'", "connect-src": "'self'",
        "font-src": "'self'", "form-action": "'self'",
        "base-uri": "'none'", "img-src": "'self' https://tile.openstreetmap.org", "frame-ancestors": "'self'",
    }  # fmt: skip
    assert not re.search(rb"<style|\sstyle=|\son\w+=|<script(?! src=\"/assets/| type=\"application/ld)", body)
    embedded = app.raw("GET", "/embed/events/month/2031-03/")[1]["content-security-policy"]
    assert embedded.endswith("frame-ancestors *")


def test_assets_are_immutable_and_versioned(app: RunningApp) -> None:
    page = get_page(app, "/events/list/")
    names = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)
    assert len(names) == 6
    for name in names:
        status, headers, body = app.raw("GET", name)
        assert (status, headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
        assert body
    for name in ("/assets/site.css", "/assets/../site.css", "/assets/site.000000000000.b3341e.css", "/assets/"):
        assert app.raw("GET", name)[0] == 404
    assert app.raw("POST", names[0])[0] == 405


def test_accent_color_has_sufficient_contrast(app: RunningApp) -> None:
    from kalends.website.assets import (
        DARK_BACKGROUND,
        LIGHT_BACKGROUND,
        contrast,
        ensure_contrast,
        pick_text_colour,
    )

    for accent in ("#ffff00", "#000000", "#ffffff", "#0b5fff", "#b3341e", "#808080", "#00ff88"):
        for ground in (LIGHT_BACKGROUND, DARK_BACKGROUND):
            colour = ensure_contrast(accent, ground)
            assert contrast(colour, ground) >= 4.5, (accent, ground)
            assert contrast(colour, pick_text_colour(colour)) >= 4.5, (accent, ground)


def test_site_settings_configure_view_name_and_logo(app: RunningApp) -> None:
    for key, value in (
        ("default_view", "list"),
        ("name", "Our <town>"),
        ("logo_url", "https://cdn.example/logo.svg"),
    ):
        app.set_site(key, value)
    _, headers, body = app.raw("GET", "/events/")
    assert b"Upcoming events" in body
    assert b"Our &lt;town&gt;" in body or b"<span>Our</span>" in body
    assert "https://cdn.example" in headers["content-security-policy"]
    path = f"/media/1/ab/ab{'0' * 62}.png"
    app.set_site("logo_url", path)
    assert re.search(rf'<meta property="og:image" content="http://[^/"]+{path}">', get_page(app, "/"))
    for key, value in (
        ("default_view", "year"),
        ("accent", "red"),
        ("first_weekday", "0"),
        ("logo_url", "javascript:x"),
        ("logo_url", "/elsewhere/logo.png"),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            app.set_site(key, value)


def test_tile_url_may_use_subdomains(start_app: StartApp) -> None:
    app = start_app({"KALENDS_TILES_URL": "https://{s}.tiles.example/{z}/{x}/{y}.png"})
    _, headers, body = app.raw("GET", "/events/map/")
    assert "img-src 'self' https://*.tiles.example;" in headers["content-security-policy"]
    assert b"images from tiles.example." in body


def test_maps_are_disabled_without_tile_url(start_app: StartApp) -> None:
    app = start_app({"KALENDS_TILES_URL": ""})
    get_page(app, "/events/map/", status=404)
    assert "/events/map/" not in get_page(app, "/events/list/")


@pytest.mark.quick("de-expected0", "en-GB-expected2")
@pytest.mark.parametrize(
    ("language", "expected"),
    [("de", ("Kommende Veranstaltungen", "März 2031", "Freitag, 14. März")),
     ("ja", ("今後のイベント", "2031年3月", "14")),
     ("en-GB", ("Upcoming events", "March 2031", "19:30"))],
)  # fmt: skip
def test_pages_use_site_language(app: RunningApp, language: str, expected: tuple[str, ...]) -> None:
    app.set_site("language", language)
    add_event(app, "Concert", **_start_and_end(EVENING))
    page = get_page(app, "/events/list/")
    assert f'<html lang="{language[:2]}"' in page
    assert [text for text in expected if text not in page] == []


def _start_and_end(times: dict[str, str]) -> dict[str, str]:
    return {"start": times["start_date"], "end": times["end_date"]}
