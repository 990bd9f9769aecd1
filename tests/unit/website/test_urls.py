"""URLs in pages, and links that add an event to a calendar."""

from dataclasses import replace
from datetime import date
from urllib.parse import parse_qs, urlsplit

import pytest

from kalends.rendering.page_urls import Frame, UrlBuilder, has_page, make_calendar_links, readable_slug
from tests.unit.website.records import EVENT, HALL, at

LINKS = UrlBuilder("https://x.example", (("search", "tea"),), (("venue", "2"),))
DAY = date(2031, 3, 4)


def test_views_keep_the_filters() -> None:
    assert LINKS.month(DAY) == "/events/month/2031-03/?search=tea"
    assert LINKS.week(DAY) == "/events/week/2031-03-04/?search=tea"
    assert LINKS.view("day", DAY) == LINKS.day(DAY) == "/events/day/2031-03-04/?search=tea"
    assert LINKS.view("list", DAY) == "/events/list/?search=tea"
    assert LINKS.url("/events/list/", ("page", 2), filtered=False) == "/events/list/?page=2"


def test_view_of_a_day_without_pages_is_the_current_one() -> None:
    assert not has_page(date(999, 1, 1))
    assert LINKS.view("month", date(999, 1, 1)) == LINKS.view("month") == "/events/month/?search=tea"


def test_requested_language_is_kept_everywhere() -> None:
    links = replace(LINKS, language="de")
    assert links.day(DAY) == "/events/day/2031-03-04/?search=tea&lang=de"
    assert links.event("tea") == "/event/tea/?lang=de"


def test_links_inside_a_frame_stay_inside_except_to_records() -> None:
    links = replace(LINKS, frame=Frame())
    assert links.day(DAY) == "/embed/events/day/2031-03-04/?search=tea"
    assert links.event("tea") == "/event/tea/"
    assert links.embedding("month") == "/events/embed/?venue=2&view=month"
    assert LINKS.embed("list", Frame(limit=5, theme="dark")) == "/embed/events/list/?venue=2&limit=5&theme=dark"


def test_feeds_use_the_stable_filters() -> None:
    assert LINKS.feed("rss") == "/events.rss?venue=2"
    subscriptions = LINKS.subscriptions()
    assert subscriptions["ics"] == "https://x.example/events.ics?venue=2"
    assert subscriptions["webcal"] == "webcal://x.example/events.ics?venue=2"
    assert parse_qs(urlsplit(subscriptions["google"]).query) == {"cid": [subscriptions["webcal"]]}
    assert parse_qs(urlsplit(subscriptions["outlook"]).query) == {"url": [subscriptions["ics"]]}
    assert LINKS.with_filters([]).feed("ics") == "/events.ics"


@pytest.mark.parametrize(
    ("slug", "readable"), [("tea", "tea"), ("%e4%bc%9a", "会"), ("100%25", "100%25"), ("%zz", "%zz")]
)
def test_slug_is_decoded_if_it_can_be_encoded_again(slug: str, readable: str) -> None:
    assert readable_slug(slug) == readable


def test_calendar_links_have_instants_and_places() -> None:
    links = make_calendar_links(replace(EVENT, venues=(HALL,), excerpt="<p>Come &amp; see</p>"))
    assert links["ics"] == "/event/tea.ics"
    google = parse_qs(urlsplit(links["google"]).query)
    assert google["dates"] == ["20310314T183000Z/20310314T210000Z"]
    assert (google["text"], google["location"]) == (
        ["Tea & talk"],
        ["The & Hall, Am Markt 1, 12345 Lindenstadt, Germany"],
    )
    assert google["details"] == ["Come & see\n\nhttps://x.example/event/tea/"]
    outlook = parse_qs(urlsplit(links["outlook"]).query)
    assert (outlook["startdt"], outlook["enddt"]) == (["2031-03-14T18:30:00Z"], ["2031-03-14T21:00:00Z"])
    assert "allday" not in outlook


def test_calendar_links_of_all_day_events_have_dates() -> None:
    links = make_calendar_links(at("2031-03-14 00:00:00", "2031-03-15 23:59:59", all_day=True))
    assert parse_qs(urlsplit(links["google"]).query)["dates"] == ["20310314/20310316"]
    outlook = parse_qs(urlsplit(links["outlook"]).query)
    assert (outlook["startdt"], outlook["enddt"], outlook["allday"]) == (["2031-03-14"], ["2031-03-15"], ["true"])
