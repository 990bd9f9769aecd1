"""RSS, Atom, JSON Feed and sitemaps, as functions of events."""

from dataclasses import replace
from xml.etree import ElementTree

import orjson

from kalends.feeds.syndication import (
    Channel,
    Item,
    write_atom,
    write_json,
    write_rss,
    write_sitemap,
    write_sitemap_index,
)
from tests.unit.website.records import EVENT, IMAGE, MUSIC

CHANNEL = Channel("Town & events", "https://x.example/events/", "https://x.example/events.rss?a=1&b=2", "en")
ITEM = Item(replace(EVENT, categories=(MUSIC,), excerpt="<p>Come</p>"), "March 14", "Hall & yard")
ATOM = "{http://www.w3.org/2005/Atom}"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def texts(parent: ElementTree.Element | None) -> dict[str, str | None]:
    assert parent is not None
    return {child.tag.removeprefix(ATOM): child.text for child in parent if child.text}


def test_rss_item() -> None:
    root = ElementTree.fromstring(write_rss(CHANNEL, [ITEM]))
    assert root.findtext("channel/title") == "Town & events"
    assert texts(root.find("channel/item")) == {
        "title": "Tea & talk",
        "link": "https://x.example/event/tea/",
        "guid": "urn:uuid:01900000-0000-7000-8000-000000000000",
        "pubDate": "Thu, 02 Jan 2031 03:04:05 +0000",
        "category": "Music, loud",
        "description": "<p>March 14 · Hall &amp; yard</p>\n<p>Come</p>",
    }


def test_atom_entry() -> None:
    root = ElementTree.fromstring(write_atom(CHANNEL, [ITEM]))
    assert root.findtext(f"{ATOM}updated") == "2031-01-02T03:04:05Z"
    assert texts(root.find(f"{ATOM}entry")) == {
        "id": "urn:uuid:01900000-0000-7000-8000-000000000000",
        "title": "Tea & talk",
        "published": "2031-01-02T03:04:05Z",
        "updated": "2031-01-02T03:04:05Z",
        "content": "<p>March 14 · Hall &amp; yard</p>\n<p>Come</p>",
    }


def test_atom_feed_without_entries_has_a_fixed_date() -> None:
    assert "<updated>1970-01-01T00:00:00Z</updated>" in write_atom(CHANNEL, [])


def test_json_item() -> None:
    (entry,) = orjson.loads(write_json(CHANNEL, [ITEM]))["items"]
    assert entry == {
        "id": "urn:uuid:01900000-0000-7000-8000-000000000000",
        "url": "https://x.example/event/tea/",
        "title": "Tea & talk",
        "content_html": "<p>March 14 · Hall &amp; yard</p>\n<p>Come</p>",
        "summary": "March 14",
        "date_published": "2031-01-02T03:04:05Z",
        "date_modified": "2031-01-02T03:04:05Z",
        "tags": ["Music, loud"],
        "_event": {
            "start_date": "2031-03-14 19:30:00",
            "end_date": "2031-03-14 22:00:00",
            "timezone": "Europe/Berlin",
            "utc_start_date": "2031-03-14 18:30:00",
            "utc_end_date": "2031-03-14 21:00:00",
            "all_day": False,
            "location": "Hall & yard",
            "event_status": "scheduled",
            "status_reason": "",
            "online_url": "",
        },
    }


def test_json_item_has_an_image_and_hides_the_duration_of_locked_events() -> None:
    item = replace(ITEM, event=replace(EVENT, image=IMAGE, is_locked=True))
    (entry,) = orjson.loads(write_json(CHANNEL, [item]))["items"]
    assert entry["image"] == "https://x.example/1600.jpg"
    assert (entry["_event"]["all_day"], entry["_event"]["event_status"]) == (None, None)


def test_characters_that_xml_forbids_are_removed() -> None:
    root = ElementTree.fromstring(write_rss(replace(CHANNEL, name="a\x00\ufffe\tb"), []))
    assert root.findtext("channel/title") == "a\tb"


def test_sitemaps() -> None:
    root = ElementTree.fromstring(
        write_sitemap([("https://x.example/?a&b", "2031-01-02"), ("https://x.example/", "")])
    )
    assert [(url.findtext(f"{SITEMAP}loc"), url.findtext(f"{SITEMAP}lastmod")) for url in root] == [
        ("https://x.example/?a&b", "2031-01-02"),
        ("https://x.example/", None),
    ]
    root = ElementTree.fromstring(write_sitemap_index(["https://x.example/sitemap/0.xml"]))
    assert [entry.findtext(f"{SITEMAP}loc") for entry in root] == ["https://x.example/sitemap/0.xml"]
