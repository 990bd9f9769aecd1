"""Records and texts of WordPress, one rule at a time."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from kalends.move_in.rules.exchanges import (
    COMMENTS,
    INDEX,
    SETTINGS,
    WP_LISTS,
    Exchange,
    tribe_event_address,
    wp_address,
)
from kalends.move_in.rules.mapping import list_image_urls, map_snapshot
from kalends.move_in.rules.old_content import Converter, find_video
from kalends.move_in.rules.old_links import build_index
from kalends.move_in.rules.old_posts import choose_role
from kalends.move_in.rules.old_records import (
    Home,
    LegacyFile,
    PrefixRedirect,
    SlugRedirect,
    clean_website,
    find_media_references,
    read_ids,
    read_utc,
    replace_media_references,
)
from tests.move_in.samples import SAMPLES, Sample, edit_event, edit_tribe_event, fill, make_comments

HOME = "https://old.example"
UPLOADS = f"{HOME}/wp-content/uploads/2026"
IMAGE = {
    "id": 8,
    "media_type": "image",
    "source_url": f"{UPLOADS}/hall-scaled.jpg",
    "title": {"raw": "Hall"},
    "caption": {"raw": ""},
    "description": {"raw": "The hall"},
    "alt_text": "A hall",
    "author": 1,
    "media_details": {
        "width": 2560,
        "original_image": "hall.jpg",
        "sizes": {"medium": {"width": 300, "source_url": f"{UPLOADS}/hall-300x200.jpg"}},
    },
}


class Memory:
    """Exchanges without a file."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.exchanges = {
            address: document
            if isinstance(document, Exchange)
            else Exchange(address, 200, {}, orjson.dumps(document))
            for address, document in documents.items()
        }

    def find(self, address: str) -> Exchange | None:
        return self.exchanges.get(address)

    def list(self, prefix: str) -> Iterator[Exchange]:
        return iter([entry for address, entry in sorted(self.exchanges.items()) if address.startswith(prefix)])

    def read_fact(self, name: str, default: Any = None) -> Any:
        return default


def make_event(record_id: int = 7, **changes: Any) -> dict[str, Any]:
    meta = {
        "_EventStartDate": "2027-06-24 21:15:00",
        "_EventEndDate": "2027-06-24 23:15:00",
        "_EventTimezone": "Europe/Berlin",
        **changes.pop("meta", {}),
    }
    return {
        "id": record_id,
        "status": "publish",
        "slug": "concert",
        "link": f"{HOME}/event/concert/",
        "guid": {"raw": f"{HOME}/?post_type=tribe_events&p={record_id}"},
        "date": "2026-01-02T03:04:05",
        "date_gmt": "2026-01-02T02:04:05",
        "modified_gmt": "2026-01-03T02:04:05",
        "title": {"raw": "Concert"},
        "content": {"raw": "Text", "rendered": "<p>Text</p>"},
        "excerpt": {"raw": ""},
        "author": 1,
        "password": "",
        "meta": meta,
        **changes,
    }


def make_site(*events: dict[str, Any], **documents: Any) -> Memory:
    return Memory(
        {
            INDEX: {"name": "Old", "home": HOME, "timezone_string": "Europe/Berlin", "namespaces": ["wp/v2"]},
            SETTINGS: {"title": "Old", "start_of_week": 0, "language": "de_DE"},
            WP_LISTS["users"]: [{"id": 1, "username": "anna", "email": "a@old.example", "roles": ["editor"]}],
            WP_LISTS["media"]: [IMAGE],
            **{wp_address("events", event["id"]): event for event in events},
            **documents,
        }
    )


def convert(raw: str, rendered: str = "", **options: Any) -> str:
    return Converter(build_index(Home.read(HOME), [IMAGE]), **options).convert(raw, rendered).html


# Texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            "<!-- wp:paragraph -->\n<p>One</p>\n<!-- /wp:paragraph -->\n\n\n\n<!-- wp:tribe/event-venue /-->",
            "<p>One</p>",
        ),
        ("One<!--more-->two", "Onetwo"),
        (
            '[caption id="x" width="300"]<img src="a.svg"> A <em>hall</em>[/caption]',
            '<figure><img src="a.svg"><figcaption>A <em>hall</em></figcaption></figure>',
        ),
        (
            '[caption caption="In the hall"]<a href="#x"><img src="a.svg"></a>[/caption]',
            '<figure><a href="#x"><img src="a.svg"></a><figcaption>In the hall</figcaption></figure>',
        ),
        ("[caption]no picture[/caption]", "no picture"),
        ('A [form id="3"] B', "A  B"),
        ("A [box]inner[/box] B", "A inner B"),
        ("The [sic] text, [see below], [1]", "The [sic] text, [see below], [1]"),
        ("Write [[gallery]]", "Write [gallery]"),
        ("Line one\nLine two\r\nthree", "Line one\nLine two\nthree"),
    ],
)
def test_markup_of_wordpress_becomes_html(raw: str, expected: str) -> None:
    assert convert(raw) == expected


def test_brackets_that_wordpress_shows_are_text() -> None:
    assert convert("[note] [clock]", "<p>[note] 12:00</p>") == "[note]"
    assert convert('[note id="1"]', '<p>[note id="1"]</p>') == '[note id="1"]'
    assert convert("[clock]", "<p>12:00</p>", keeps_shortcodes=True) == "[clock]"


@pytest.mark.parametrize(
    "src",
    [
        f"{UPLOADS}/hall.jpg",
        f"{UPLOADS}/hall-scaled.jpg",
        f"{UPLOADS}/hall-300x200.jpg",
        f"{UPLOADS}/hall-1024x768.jpg?ver=2",
        "http://www.old.example/wp-content/uploads/2026/hall.jpg",
        "//old.example/wp-content/uploads/2026/hall.jpg",
        "/wp-content/uploads/2026/hall.jpg",
        "https://cdn.example/x.jpg",
    ],
)
def test_inline_images_become_references(src: str) -> None:
    classes = 'class="size-medium wp-image-8" ' if "cdn" in src else ""
    html = convert(f'<img {classes}src="{src}" srcset="{src} 300w" alt="A &quot;hall&quot;" width=300 />')
    assert html == '<img src="media:8" alt="A &quot;hall&quot;" width="300">'


def test_unknown_files_of_the_site_become_images() -> None:
    text = f'<img src="{UPLOADS}/lost.png"> <img src="https://other.example/x.png"> <img src="/x.php">'
    site = make_site(make_event(content={"raw": text}))
    move_in = map_snapshot(site)
    added = [record for record in move_in.of_kind("media") if record.wanted_id is None]
    assert [(record.values["title"], move_in.image_urls[record.identity]) for record in added] == [
        ("lost", f"{UPLOADS}/lost.png")
    ]
    assert move_in.of_kind("events")[0].values["description"] == (
        f'<img src="media:{added[0].identity}"> <img src="https://other.example/x.png"> <img src="/x.php">'
    )
    assert list_image_urls(site) == [IMAGE["source_url"], f"{UPLOADS}/lost.png"]


def test_files_that_are_not_available_are_rejected() -> None:
    url = str(IMAGE["source_url"])
    move_in = map_snapshot(make_site(**{url: Exchange(url, 404, {}, b"")}))
    assert [(entry.identity, str(entry.reason)) for entry in move_in.rejections] == [
        ("8", f"The file {url} could not be fetched: the site answered 404.")
    ]
    assert (move_in.of_kind("media"), move_in.legacy_files, dict(move_in.image_urls)) == ([], [], {})


def test_references_get_the_ids_of_the_records() -> None:
    html = '<img src="media:8"> <img src="media:file-0a"> media:9'
    assert find_media_references(html) == ["8", "file-0a"]
    assert (
        replace_media_references(html, {"8": 80, "file-0a": 81})
        == '<img src="media:80"> <img src="media:81"> media:9'
    )


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        (f"{HOME}/event/concert/?a=1&amp;b=2#x", "https://new.example/event/concert/?a=1&amp;b=2#x"),
        ("http://www.old.example/", "https://new.example/"),
        ("https://old.example.org/", "https://old.example.org/"),
        ("https://old.example:8443/x", "https://old.example:8443/x"),
        ("/event/concert/", "/event/concert/"),
        ("mailto:a@old.example", "mailto:a@old.example"),
        ("http://[broken", "http://[broken"),
    ],
)
def test_links_to_the_old_host_lead_to_the_new_one(href: str, expected: str) -> None:
    assert convert(f'<a class="x" href="{href}">x</a>', base_url="https://new.example") == (
        f'<a class="x" href="{expected}">x</a>'
    )
    assert convert(f'<a href="{href}">x</a>') == f'<a href="{href}">x</a>'


def test_links_stay_if_the_host_stays() -> None:
    event = make_event(content={"raw": f'<a href="{HOME}/event/x/">x</a>'})
    for base_url, expected in (("https://old.example", HOME), ("https://new.example", "https://new.example")):
        move_in = map_snapshot(make_site(event), base_url=base_url)
        assert move_in.of_kind("events")[0].values["description"] == f'<a href="{expected}/event/x/">x</a>'


def test_what_has_no_equivalent_is_listed() -> None:
    text = f'<!-- wp:acme/poll {{"id":1}} /--> [form id="1"] <form></form> <a href="{UPLOADS}/a.pdf">x</a>'
    move_in = map_snapshot(
        make_site(make_event(content={"raw": text}), make_event(9, content={"raw": "[form id=2]"}))
    )
    causes = {str(warning.cause): [identity for _, identity in warning.records] for warning in move_in.warnings}
    flags = "Whether it is hidden, featured or sticky could not be read."
    assert causes == {
        "The shortcode [form] is removed.": ["7", "9"],
        "The block acme/poll has no content here.": ["7"],
        "The element <form> is removed.": ["7"],
        f"It links the file {UPLOADS}/a.pdf; serve the old uploads folder to keep the link working.": ["7"],
        flags: ["7", "9"],
    }
    assert [str(message) for message in move_in.of_kind("events")[1].warnings] == [
        "The shortcode [form] is removed.",
        flags,
    ]


# Each text, its rendered form, and the result. Image 8 has an alternative text, image 9 a caption.
MEDIA = (
    IMAGE,
    {**IMAGE, "id": 9, "source_url": f"{UPLOADS}/stage.jpg", "media_details": {}, "alt_text": "", "post": 7,
     "caption": {"raw": "The <em>stage</em>"}},
    {"id": 10, "media_type": "file", "source_url": f"{UPLOADS}/one.mp3", "title": {"raw": "One & all"}},
)  # fmt: skip
YOUTUBE = "https://www.youtube.com/watch?v=aBcDeFgH123"
TITLED = '<iframe title="A &lt;b&gt;" src="https://www.youtube.com/embed/aBcDeFgH123?feature=oembed"></iframe>'
HALL = '<li><img src="media:8" alt="A hall"></li>'
STAGE = '<li><figure><img src="media:9" alt=""><figcaption>The <em>stage</em></figcaption></figure></li>'


@pytest.mark.parametrize(
    ("raw", "rendered", "expected"),
    [
        ('[gallery ids="9, 8"]', "", f"<ul>\n{STAGE}\n{HALL}\n</ul>"),
        ("[gallery include='8']", "", f"<ul>\n{HALL}\n</ul>"),
        ("[gallery]", "<div class='gallery'></div>", f"<ul>\n{STAGE}\n</ul>"),
        ("[[gallery]] [gallery]", "<p>[gallery] [gallery]</p>", "[gallery] [gallery]"),
        (
            '<!-- wp:gallery -->\n<figure class="wp-block-gallery"><ul class="blocks-gallery-grid"><li>'
            f'<figure><a href="{UPLOADS}/hall.jpg"><img src="{UPLOADS}/hall.jpg" alt="x"/></a></figure></li></ul>'
            '<figcaption class="blocks-gallery-caption">All</figcaption></figure>\n<!-- /wp:gallery -->',
            "",
            f'<ul>\n<li><a href="{UPLOADS}/hall.jpg"><img src="media:8" alt="x"></a></li>\n</ul>\n<p>All</p>',
        ),
        ('[playlist ids="10"]', "", f'<ul>\n<li><a href="{UPLOADS}/one.mp3">One &amp; all</a></li>\n</ul>'),
        (f'[audio mp3="{UPLOADS}/one.mp3"][/audio]', "", f'<a href="{UPLOADS}/one.mp3">one.mp3</a>'),
        (f'[video src="{UPLOADS}/a.mp4"]', "", f'<a href="{UPLOADS}/a.mp4">a.mp4</a>'),
        ("[embed width=5]https://youtu.be/aBcDeFgH123[/embed]", TITLED, f'<a href="{YOUTUBE}">A &lt;b&gt;</a>'),
        ("<p>https://youtu.be/aBcDeFgH123</p>", TITLED, f'<p><a href="{YOUTUBE}">A &lt;b&gt;</a></p>'),
        ("See\nhttps://youtu.be/aBcDeFgH123?t=9\n", TITLED, f'See\n<a href="{YOUTUBE}">A &lt;b&gt;</a>'),
        ("https://youtu.be/aBcDeFgH123", "", f'<a href="{YOUTUBE}">{YOUTUBE}</a>'),
        ("https://other.example/a", "<p>https://other.example/a</p>", "https://other.example/a"),
        (
            "https://songs.example/a?b=1&amp;c=2",
            '<iframe src="https://songs.example/embed/a"></iframe>',
            '<a href="https://songs.example/a?b=1&amp;c=2">https://songs.example/a?b=1&amp;c=2</a>',
        ),
        (f'<audio><source src="{UPLOADS}/one.mp3"></audio>', "", f'<a href="{UPLOADS}/one.mp3">one.mp3</a>'),
        (f'<video src="{UPLOADS}/a.mp4" controls />x', "", f'<a href="{UPLOADS}/a.mp4">a.mp4</a>x'),
        (f'<object data="{UPLOADS}/a.pdf"></object>', "", f'<a href="{UPLOADS}/a.pdf">a.pdf</a>'),
        (f'<embed src="{UPLOADS}/a.pdf">x', "", f'<a href="{UPLOADS}/a.pdf">a.pdf</a>x'),
        ('<iframe src="https://www.youtube.com/embed/aBcDeFgH123">', "", f'<a href="{YOUTUBE}">{YOUTUBE}</a>'),
        ('a<iframe data-x="1"></iframe>b', "", "ab"),
        (
            f'<div style="background-image:url({UPLOADS}/hall.jpg)">x</div>',
            "",
            f'<div style="background-image:url({UPLOADS}/hall.jpg)"><img src="media:8">x</div>',
        ),
    ],
)  # fmt: skip
def test_galleries_and_players(raw: str, rendered: str, expected: str) -> None:
    converter = Converter(build_index(Home.read(HOME), MEDIA))
    assert converter.convert(raw, rendered, post_id=7).html == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://www.youtube-nocookie.com/embed/aBcDeFgH123?start=9", YOUTUBE),
        ("//www.youtube.com/embed/aBcDeFgH123", YOUTUBE),
        ("https://m.youtube.com/watch?x=1&v=aBcDeFgH123", YOUTUBE),
        ("https://www.youtube.com/shorts/aBcDeFgH123", YOUTUBE),
        ("https://www.youtube.com/embed/videoseries?list=PL12", "https://www.youtube.com/playlist?list=PL12"),
        ("https://player.vimeo.com/video/123?h=a1b2", "https://vimeo.com/123/a1b2"),
        ("https://vimeo.com/channels/staff/123", "https://vimeo.com/123"),
        ("https://www.dailymotion.com/embed/video/x7abc", "https://www.dailymotion.com/video/x7abc"),
        ("https://geo.dailymotion.com/player.html?video=x7abc", "https://www.dailymotion.com/video/x7abc"),
        ("https://dai.ly/x7abc", "https://www.dailymotion.com/video/x7abc"),
        ("https://player.twitch.tv/?channel=jazz&parent=x", "https://www.twitch.tv/jazz"),
        ("https://embed.ted.com/talks/a_talk", "https://www.ted.com/talks/a_talk"),
        (
            "https://www.facebook.com/plugins/video.php?href=https%3A%2F%2Fwww.facebook.com%2Fx%2Fvideos%2F12%2F&t=0",
            "https://www.facebook.com/x/videos/12/",
        ),
        ("https://www.facebook.com/plugins/video.php?href=https%3A%2F%2Fevil.example%2F", None),
        ("https://www.facebook.com/plugins/page.php?href=x", None),
        ("https://youtube.com.evil.example/embed/aBcDeFgH123", None),
        ("https://www.youtube.com/@channel", None),
        ("https://www.google.com/maps/embed?pb=1", None),
        ("javascript:alert(1)", None),
        ("https://[broken", None),
    ],
)
def test_pages_of_videos(address: str, expected: str | None) -> None:
    assert find_video(address) == expected


def read_causes(site: Memory) -> dict[str, list[str]]:
    return {
        str(warning.cause): [identity for _, identity in warning.records] for warning in map_snapshot(site).warnings
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_part_of_a_sample_is_kept_or_listed(sample: Sample) -> None:
    images = [(entry["id"], entry["source_url"]) for entry in MEDIA[:2]]
    event, tribe = make_event(), {"id": 7, "status": "publish", "cost": ""}
    plain = {**make_event(8, meta={"_EventCost": "5"}), "slug": "plain"}
    edit_event(event, sample, images)
    edit_tribe_event(tribe, sample)
    site = make_site(
        event,
        plain,
        **{
            WP_LISTS["media"]: MEDIA[:2],
            tribe_event_address(7): tribe,
            tribe_event_address(8): {"id": 8, "status": "publish", "cost": "$5"},
        },
    )
    move_in = map_snapshot(site)
    record = move_in.of_kind("events")[0]
    for part in sample.kept:
        assert fill(part, images) in record.values["description"]
    expected = {"online_url": "", **sample.columns}
    assert {name: record.values[name] for name in expected} == expected
    losses = [fill(entry, images) for entry in sample.losses]
    assert [str(message) for message in record.warnings] == losses
    assert {cause: ids for cause, ids in read_causes(site).items() if ids == ["7"]} == {
        cause: ["7"] for cause in losses
    }


def test_images_that_a_gallery_lacks_are_listed() -> None:
    causes = read_causes(make_site(make_event(content={"raw": '[gallery ids="8,77"]'})))
    assert causes["Its gallery shows image 77, which is missing."] == ["7"]


def test_fields_without_an_equivalent_are_listed() -> None:
    event = make_event(
        acf={"doors": "19:00", "note": "", "group": {"a": ""}}, event_series=[4], class_list=["x"], sticky=False,
        meta={"_EventCostDescription": "at the door", "rating": 0, "footnotes": ""},
    )  # fmt: skip
    venue = {**make_event(5), "meta": {"_VenueCity": "Bonn", "parking": "yes"}, "excerpt": {"raw": "Near"}}
    user = {"id": 1, "username": "anna", "roles": ["editor"], "description": "A life", "meta": {"tel": "1"}}
    tag = {"id": 3, "name": "x", "slug": "x", "meta": {"colour": "red"}}
    tribe = {"id": 7, "status": "publish", "cost": "", "ticketed": ["rsvp"], "custom_fields": []}
    lists = {WP_LISTS["venues"]: [venue], WP_LISTS["users"]: [user], WP_LISTS["tags"]: [tag]}
    causes = read_causes(make_site(event, **lists, **{tribe_event_address(7): tribe}))
    fields = {"doors": "7", "event_series": "7", "_EventCostDescription": "7", "tickets": "7"}
    fields |= {"parking": "5", "excerpt": "5", "description": "1", "tel": "1", "colour": "3"}
    assert causes == {
        f"The field {name} has no equivalent here and stays behind.": [key] for name, key in fields.items()
    }


def test_comments_are_counted() -> None:
    def read(comments: Any) -> dict[str, list[str]]:
        causes = read_causes(make_site(make_event(), make_event(9), **{COMMENTS: comments} if comments else {}))
        return {cause: ids for cause, ids in causes.items() if "comments" in cause}

    assert read(make_comments([7, 9])) == {"4 comments stay behind.": ["7", "9"]}
    assert read([]) == {}
    many = Exchange(COMMENTS, 200, {"x-wp-total": "5000", "x-wp-totalpages": "50"}, b'[{"id": 1, "post": 7}]')
    assert read(many) == {"5000 comments stay behind.": []}
    for answer in (Exchange(COMMENTS, 403, {}, b"{}"), Exchange(COMMENTS, 200, {}, b"1")):
        assert read(answer) == {"The comments could not be read; they stay behind.": []}


# Events -----------------------------------------------------------------------------------------


def test_both_words_for_a_currency_behind_the_amount() -> None:
    for word in ("suffix", "postfix"):
        assert map_event(meta={"_EventCurrencyPosition": word}).values["currency_position"] == "postfix"
    assert map_event(meta={"_EventCurrencyPosition": "prefix"}).values["currency_position"] == "prefix"
    assert map_event(meta={"_EventCurrencyPosition": "x"}).values["currency_position"] == ""


def map_event(**changes: Any) -> Any:
    return map_snapshot(make_site(make_event(**changes))).of_kind("events")[0]


def test_times_and_uid() -> None:
    event = map_event()
    assert {name: event.values[name] for name in ("start_date", "end_date", "timezone", "all_day")} == {
        "start_date": "2027-06-24 21:15:00",
        "end_date": "2027-06-24 23:15:00",
        "timezone": "Europe/Berlin",
        "all_day": False,
    }
    # The local times as if they were UTC.
    assert event.columns["uid"] == "7-1813871700-1813878900@old.example"


def test_all_day_events_of_sites_whose_days_end_at_night() -> None:
    dates = {"_EventStartDate": "2027-06-24 06:00:00", "_EventEndDate": "2027-06-25 05:59:59", "_EventAllDay": True}
    event = map_event(meta=dates)
    assert (event.values["start_date"][:10], event.values["end_date"][:10]) == ("2027-06-24", "2027-06-24")
    assert event.columns["uid"] == "7-1813816800-1813903199@old.example"


def test_local_time_wins_over_utc() -> None:
    assert map_event(meta={"_EventStartDateUTC": "2027-06-24 19:15:00"}).warnings[0].text.startswith("Whether")
    event = map_event(meta={"_EventStartDateUTC": "2027-06-24 20:15:00"})
    assert event.values["start_date"] == "2027-06-24 21:15:00"
    assert "The UTC time differs from the local time; the local time counts." in map(str, event.warnings)


def test_unknown_zones_become_that_of_the_site() -> None:
    event = map_event(meta={"_EventTimezone": "Mars/Olympus"})
    assert event.values["timezone"] == "Europe/Berlin"
    assert "The time zone Mars/Olympus is unknown; the site’s time zone is used." in map(str, event.warnings)
    assert map_event(meta={"_EventTimezone": ""}).values["timezone"] == "Europe/Berlin"


def test_missing_dates_are_rejected() -> None:
    move_in = map_snapshot(make_site(make_event(meta={"_EventEndDate": ""})))
    assert [(entry.identity, entry.title, str(entry.reason)) for entry in move_in.rejections] == [
        ("7", "Concert", "It has no start or end.")
    ]


def test_drafts_may_have_no_utc_date_and_no_title() -> None:
    event = map_event(status="draft", slug="", date_gmt=None, title={"raw": ""})
    assert (event.values["date_utc"], event.values["title"], event.columns["slug"]) == (
        *("2026-01-02 02:04:05", "(no title)", ""),
    )


def test_invalid_values_are_left_out() -> None:
    event = map_event(
        meta={"_EventURL": "javascript:alert(1)", "_EventCurrencyCode": "Euro", "_tribe_events_status": "x"}
    )
    assert (event.values["website"], event.values["currency_code"], event.values["event_status"]) == (
        "",
        "",
        "scheduled",
    )
    assert "The event status x is unknown; it is left out." in map(str, event.warnings)
    assert "The address of the website is not valid; it is left out." in map(str, event.warnings)


def test_authors_without_an_account() -> None:
    event = map_event(author=99)
    assert "author" not in event.links
    assert "Its author has no account on the site." in map(str, event.warnings)
    assert map_event().links["author"] == ["1"]


def test_passwords_are_only_a_value() -> None:
    event = map_event(password="secret")
    assert event.values["new_password"] == "secret"
    assert "secret" not in str(event.columns) + str(event.links)


def test_trash_can_be_left_out() -> None:
    site = make_site(make_event(), make_event(9, status="trash"), make_event(10, status="auto-draft"))
    assert [record.identity for record in map_snapshot(site).of_kind("events")] == ["7", "9"]
    assert [record.identity for record in map_snapshot(site, without_trash=True).of_kind("events")] == ["7"]


def test_trashed_slugs_of_published_records() -> None:
    def find_slugs(*events: dict[str, Any]) -> list[str]:
        return [record.columns["slug"] for record in map_snapshot(make_site(*events)).of_kind("events")]

    assert find_slugs(make_event(slug="concert__trashed")) == ["concert"]
    assert find_slugs(make_event(slug="concert__trashed-2"), make_event(9)) == ["concert__trashed-2", "concert"]
    assert find_slugs(make_event(slug="concert__trashed", status="trash")) == ["concert__trashed"]


# The site ---------------------------------------------------------------------------------------


def test_settings() -> None:
    site = map_snapshot(make_site(make_event())).site
    assert (site.host, site.language, site.first_weekday, site.highest_post_id) == ("old.example", "de", 7, 8)


@pytest.mark.parametrize(
    ("index", "zone"),
    [
        ({"timezone_string": "", "gmt_offset": 5.5}, "UTC+5:30"),
        ({"timezone_string": "", "gmt_offset": "-3"}, "UTC-3"),
        ({"timezone_string": "", "gmt_offset": 0}, "UTC+0"),
    ],
)
def test_sites_with_an_offset_instead_of_a_zone(index: dict[str, Any], zone: str) -> None:
    assert map_snapshot(make_site(**{INDEX: {"home": HOME, **index}})).site.timezone == zone


def test_former_slugs() -> None:
    old = Exchange("/event/old-%E9%9F%B3/", 301, {"location": f"{HOME}/event/concert/"}, b"")
    others = {
        "/event/a/": Exchange("/event/a/", 301, {"location": f"{HOME}/events/"}, b""),
        "/event/b/": Exchange("/event/b/", 404, {}, b""),
        "/": Exchange("/", 301, {"location": f"{HOME}/event/concert/"}, b""),
    }
    move_in = map_snapshot(make_site(make_event(), **{old.address: old}, **others))
    assert move_in.redirects == [SlugRedirect("events", "7", "old-%e9%9f%b3")]


def test_other_beginnings_of_paths() -> None:
    event = make_event(link=f"{HOME}/veranstaltung/concert/")
    category = {"id": 3, "name": "A &amp; B", "slug": "ab", "link": f"{HOME}/programm/kategorie/ab/"}
    move_in = map_snapshot(make_site(event, **{WP_LISTS["categories"]: [category]}))
    assert move_in.prefixes == [
        PrefixRedirect("/veranstaltung/", "/event/"),
        PrefixRedirect("/programm/kategorie/", "/events/category/"),
    ]
    assert move_in.of_kind("categories")[0].values["name"] == "A & B"
    assert map_snapshot(make_site(make_event(link=f"{HOME}/?p=7"))).prefixes == []


def test_files_of_images() -> None:
    assert map_snapshot(make_site()).legacy_files == [
        LegacyFile("/wp-content/uploads/2026/hall-scaled.jpg", "8", 2560),
        LegacyFile("/wp-content/uploads/2026/hall.jpg", "8", 2560),
        LegacyFile("/wp-content/uploads/2026/hall-300x200.jpg", "8", 300),
    ]


def test_parents_come_before_their_children() -> None:
    terms = [
        {"id": 1, "name": "c", "slug": "c", "parent": 2},
        {"id": 2, "name": "b", "slug": "b", "parent": 3},
        {"id": 3, "name": "a", "slug": "a", "parent": 0},
        {"id": 4, "name": "d", "slug": "d", "parent": 99},
    ]
    records = map_snapshot(make_site(**{WP_LISTS["categories"]: terms})).of_kind("categories")
    assert [(record.identity, record.links["parent"]) for record in records] == [
        *(("3", []), ("2", ["3"]), ("1", ["2"]), ("4", [])),
    ]


@pytest.mark.parametrize(
    ("roles", "capabilities", "role"),
    [
        (["author", "editor"], {}, "author"),
        (["shop_manager"], {"edit_others_tribe_events": True, "edit_tribe_events": True}, "editor"),
        (["custom"], {"manage_options": False, "edit_tribe_events": True}, "contributor"),
        (["customer"], {}, "subscriber"),
        ([], {"manage_options": True}, "administrator"),
    ],
)
def test_roles(roles: list[str], capabilities: dict[str, bool], role: str) -> None:
    assert choose_role({"roles": roles, "capabilities": capabilities}) == role


def test_fields() -> None:
    assert read_ids([3, "4", 0, "x", True, 3]) == ["3", "4"]
    assert read_ids("5") == ["5"]
    assert clean_website("www.example.org/a") == "http://www.example.org/a"
    assert read_utc({"date_gmt": "0000-00-00T00:00:00", "date": "bad"}, "date", "UTC") is None
