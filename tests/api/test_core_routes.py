"""`wp/v2`: the lists, records, images and accounts that WordPress clients ask for."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.media.image_fixtures import make_image
from tests.media.media_client import generate_sizes

CORE = "//wp-json/wp/v2"
EXTENSION = "//api/kalends/v1"
WITH_ALIAS = {"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1", "KALENDS_PURGE_URLS": "http://127.0.0.1:9/"}
LISTS = ("tribe_events", "tribe_venue", "tribe_organizer", "tribe_events_cat", "tags", "media")
RENDERED = {"rendered": str}
PROTECTABLE = {"rendered": str, "protected": bool}
POST_KEYS = {
    "id": int, "date": str, "date_gmt": str, "guid": RENDERED, "modified": str, "modified_gmt": str, "slug": str,
    "status": str, "type": str, "link": str, "title": RENDERED, "content": PROTECTABLE, "excerpt": PROTECTABLE,
    "author": int, "featured_media": int, "template": str, "meta": dict, "_links": dict,
}  # fmt: skip
EVENT_META = {
    "_EventAllDay": bool, "_EventTimezone": str, "_EventStartDate": str, "_EventEndDate": str,
    "_EventStartDateUTC": str, "_EventEndDateUTC": str, "_EventShowMap": bool, "_EventShowMapLink": bool,
    "_EventURL": str, "_EventCost": str, "_EventCurrencySymbol": str, "_EventCurrencyCode": str,
    "_EventCurrencyPosition": str, "_EventOrganizerID": list, "_EventVenueID": list, "_tribe_events_status": str,
    "_tribe_events_status_reason": str,
}  # fmt: skip
VENUE_META = {
    **dict.fromkeys(
        [f"_Venue{name}" for name in (
            "Address", "City", "Country", "Province", "State", "Zip", "Phone", "URL", "StateProvince", "Lat", "Lng")],
        str,
    ),
    "_VenueShowMap": bool,
    "_VenueShowMapLink": bool,
}  # fmt: skip
ORGANIZER_META = dict.fromkeys(["_OrganizerEmail", "_OrganizerPhone", "_OrganizerWebsite"], str)
TERM_KEYS = {
    "id": int, "count": int, "description": str, "link": str, "name": str, "slug": str, "taxonomy": str, "meta": list,
    "_links": dict,
}  # fmt: skip
MEDIA_KEYS = {
    "id": int, "date": str, "date_gmt": str, "guid": RENDERED, "modified": str, "modified_gmt": str, "slug": str,
    "status": str, "type": str, "link": str, "title": RENDERED, "author": int, "featured_media": int,
    "template": str, "meta": dict, "description": RENDERED, "caption": RENDERED, "alt_text": str, "media_type": str,
    "mime_type": str, "media_details": {
        "width": int, "height": int, "file": str, "filesize": int, "sizes": dict, "image_meta": dict,
    }, "post": type(None), "source_url": str, "_links": dict,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "tribe_events": {**POST_KEYS, "meta": EVENT_META, "tags": list, "tribe_events_cat": list},
    "tribe_venue": {**POST_KEYS, "meta": VENUE_META},
    "tribe_organizer": {**POST_KEYS, "meta": ORGANIZER_META},
    "tribe_events_cat": {**TERM_KEYS, "parent": int},
    "tags": TERM_KEYS,
    "media": MEDIA_KEYS,
}


def describe(value: Any, shape: Any) -> Any:
    """Return the keys and types of a value, as deep as the shape goes."""
    if not isinstance(shape, dict) or not isinstance(value, dict):
        return type(value)
    return {key: describe(entry, shape.get(key)) for key, entry in value.items()}


def get(caller: Caller, path: str, **query: Any) -> httpx.Response:
    return caller.get(f"{CORE}{path}", query)


def list_ids(caller: Caller, name: str, **query: Any) -> list[int]:
    response = get(caller, f"/{name}", **query)
    assert response.status_code == 200, response.text
    return [record["id"] for record in response.json()]


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module(WITH_ALIAS)


class Records:
    """One record of each list, and the IDs of events that some callers do not see."""

    def __init__(self, app: RunningApp) -> None:
        editor = app.caller("editor")

        def upload(name: str, **fields: str) -> int:
            files = {"file": (name, make_image(width=400, height=300))}
            body = expect_json(editor.request("POST", f"{EXTENSION}/media", files=files, data=fields), 201)
            number: int = body["id"]
            return number

        self.images = {name: upload(f"{name}.jpg", title=f"{name} & co", caption="By <em>us</em>") for name in (
            "shown", "draft", "secret", "unused")}  # fmt: skip
        self.parent = editor.create("categories", name="Music")["id"]
        self.category = editor.create("categories", name="Jazz", parent=self.parent, description="Blue")["id"]
        self.empty = editor.create("tags", name="Empty")["id"]
        self.tag = editor.create("tags", name="Late")["id"]
        self.venue = editor.create("venues", venue="Hall & Co", city="Bremen", geo_lat=53.0793, geo_lng=8.8017)["id"]
        self.organizer = editor.create("organizers", organizer="Choir", email="choir@example.org")["id"]
        links = {"venue": self.venue, "organizer": self.organizer, "tags": [self.tag], "categories": [self.category]}
        self.event = self._create(
            editor, "Concert & more", date="2026-01-02 10:00:00", image=self.images["shown"], cost="10", **links,
            description="First\n\nSecond", excerpt="Short", website="https://concert.example/",
        )  # fmt: skip
        self.past = self._create(editor, "Past", date="2026-01-03 10:00:00", start="2001-01-01 10:00:00")
        self.hidden = self._create(editor, "Hidden", hide_from_listings=True)
        self.draft = self._create(editor, "Draft", status="draft", image=self.images["draft"])
        self.private = self._create(editor, "Private", status="private")
        self.secret = self._create(
            editor, "Secret", date="2026-01-04 10:00:00", image=self.images["secret"], new_password="open sesame",
            description="Hush", cost="99", **links,
        )  # fmt: skip

    def _create(self, editor: Caller, title: str, start: str = "2031-05-05 18:00:00", **fields: Any) -> int:
        day = start[:10]
        number: int = editor.create("events", title=title, start_date=start, end_date=f"{day} 20:00:00", **fields)[
            "id"
        ]
        return number

    def id_of(self, name: str) -> int:
        ids = (self.event, self.venue, self.organizer, self.category, self.tag, self.images["shown"])
        return dict(zip(LISTS, ids, strict=True))[name]


@pytest.fixture(scope="module")
def records(app: RunningApp) -> Records:
    return Records(app)


# Shapes --------------------------------------------------------------------------------------


@pytest.mark.quick("tribe_events", "media")
@pytest.mark.parametrize("name", LISTS)
def test_records_have_the_keys_and_types_of_wordpress(anonymous: Caller, records: Records, name: str) -> None:
    record_id, shape = records.id_of(name), SHAPES[name]
    single = expect_json(get(anonymous, f"/{name}/{record_id}"))
    assert describe(single, shape) == shape
    listed = next(entry for entry in get(anonymous, f"/{name}", per_page=100).json() if entry["id"] == record_id)
    assert listed == single
    assert single["_links"]["self"] == [{"href": anonymous.app.make_url(f"{CORE}/{name}/{record_id}")}]
    assert single["_links"]["collection"] == [{"href": anonymous.app.make_url(f"{CORE}/{name}")}]


def test_event_in_full(app: RunningApp, anonymous: Caller, editor: Caller, records: Records) -> None:
    event = expect_json(get(anonymous, f"/tribe_events/{records.event}"))
    assert event["modified_gmt"] == event["modified"]
    del event["modified"], event["modified_gmt"], event["_links"]
    assert event == {
        "id": records.event,
        "date": "2026-01-02T10:00:00",
        "date_gmt": "2026-01-02T10:00:00",
        "guid": {"rendered": f"{app.base_url}/event/concert-more/"},
        "slug": "concert-more",
        "status": "publish",
        "type": "tribe_events",
        "link": f"{app.base_url}/event/concert-more/",
        "title": {"rendered": "Concert & more"},
        "content": {"rendered": "<p>First</p>\n<p>Second</p>", "protected": False},
        "excerpt": {"rendered": "<p>Short</p>", "protected": False},
        "author": editor.id,
        "featured_media": records.images["shown"],
        "template": "",
        "meta": {
            "_EventAllDay": False,
            "_EventTimezone": "UTC",
            "_EventStartDate": "2031-05-05 18:00:00",
            "_EventEndDate": "2031-05-05 20:00:00",
            "_EventStartDateUTC": "2031-05-05 18:00:00",
            "_EventEndDateUTC": "2031-05-05 20:00:00",
            "_EventShowMap": event["meta"]["_EventShowMap"],
            "_EventShowMapLink": event["meta"]["_EventShowMapLink"],
            "_EventURL": "https://concert.example/",
            "_EventCost": "10",
            "_EventCurrencySymbol": "",
            "_EventCurrencyCode": "",
            "_EventCurrencyPosition": "",
            "_EventOrganizerID": [records.organizer],
            "_EventVenueID": [records.venue],
            "_tribe_events_status": "",
            "_tribe_events_status_reason": "",
        },
        "tags": [records.tag],
        "tribe_events_cat": [records.category],
    }
    edited = expect_json(get(editor, f"/tribe_events/{records.event}", context="edit"))
    assert edited["title"] == {"raw": "Concert & more", "rendered": "Concert & more"}
    assert edited["content"]["raw"] == "First\n\nSecond"
    assert expect_json(get(anonymous, f"/tribe_venue/{records.venue}"))["meta"]["_VenueLat"] == "53.0793"


def test_image_in_full(anonymous: Caller, records: Records) -> None:
    image = expect_json(get(anonymous, f"/media/{records.images['shown']}"))
    assert (image["title"], image["caption"]) == (
        {"rendered": "shown &amp; co"},
        {"rendered": "<p>By <em>us</em></p>"},
    )
    details = image["media_details"]
    assert details["sizes"]["full"]["source_url"] == image["source_url"] == image["guid"]["rendered"]
    assert image["source_url"].endswith(details["file"])
    assert (image["mime_type"], image["media_type"], image["status"]) == ("image/jpeg", "image", "inherit")


def test_generated_sizes_are_listed(app: RunningApp, anonymous: Caller, records: Records) -> None:
    generate_sizes(app, {"id": records.images["shown"]})
    sizes = expect_json(get(anonymous, f"/media/{records.images['shown']}"))["media_details"]["sizes"]
    keys = {"file": str, "width": int, "height": int, "mime_type": str, "source_url": str}
    assert describe(sizes["full"], keys) == keys
    assert {"thumbnail", "medium", "full"} <= set(sizes)
    for size in (sizes[name] for name in sizes if name != "full"):
        assert describe(size, keys) == {**keys, "filesize": int}
        assert size["source_url"].endswith(f"/{size['file']}")


def test_hidden_links_are_not_disclosed(anonymous: Caller, editor: Caller) -> None:
    venue = editor.create("venues", venue="Private hall", status="private")["id"]
    times = {"start_date": "2031-05-05 18:00:00", "end_date": "2031-05-05 20:00:00"}
    event = editor.create("events", title="In private", hide_from_listings=True, venue=venue, **times)["id"]
    for caller, expected in ((editor, [venue]), (anonymous, [])):
        assert expect_json(get(caller, f"/tribe_events/{event}"))["meta"]["_EventVenueID"] == expected
    assert_error(get(anonymous, f"/tribe_venue/{venue}"), 401, "rest_forbidden")


def test_linked_records_are_embedded(anonymous: Caller, records: Records) -> None:
    for query in ({"_embed": ""}, {"_embed": "wp:featuredmedia,wp:term"}, {"_embed": "1"}):
        event = expect_json(get(anonymous, f"/tribe_events/{records.event}", **query))
        (image,) = event["_embedded"]["wp:featuredmedia"]
        assert image == expect_json(get(anonymous, f"/media/{records.images['shown']}"))
        tags, categories = event["_embedded"]["wp:term"]
        assert [term["slug"] for term in (*tags, *categories)] == ["late", "jazz"]
    (secret,) = [entry for entry in get(anonymous, "/tribe_events", _embed=1).json() if entry["id"] == records.secret]
    assert secret["_embedded"] == {"wp:term": [[], []]}
    assert "_embedded" not in get(anonymous, f"/tribe_events/{records.event}", _embed="false").json()


# Visibility ----------------------------------------------------------------------------------


def test_lists_show_what_the_caller_may_see(
    anonymous: Caller, editor: Caller, contributor: Caller, records: Records
) -> None:
    public = [records.secret, records.past, records.event]
    for caller in (anonymous, contributor, editor):
        assert list_ids(caller, "tribe_events") == public
    assert list_ids(editor, "tribe_events", status="draft") == [records.draft]
    assert set(list_ids(editor, "tribe_events", status="publish,private,draft")) == {
        *public, records.draft, records.private
    }  # fmt: skip
    assert list_ids(contributor, "tribe_events", status="draft") == []
    assert_error(get(anonymous, "/tribe_events", status="draft"), 400, "rest_invalid_param", "status")


def test_unpublished_records_need_the_right_to_read_them(
    app: RunningApp, anonymous: Caller, contributor: Caller, editor: Caller, records: Records
) -> None:
    for event_id in (records.draft, records.private):
        assert expect_json(get(editor, f"/tribe_events/{event_id}"))["id"] == event_id
        assert_error(get(anonymous, f"/tribe_events/{event_id}"), 401, "rest_forbidden")
        assert_error(get(contributor, f"/tribe_events/{event_id}"), 403, "rest_forbidden")
    assert expect_json(get(anonymous, f"/tribe_events/{records.hidden}"))["slug"] == "hidden"
    for name in ("tribe_events", "tribe_venue", "tribe_organizer"):
        assert_error(get(anonymous, f"/{name}/99999"), 404, "rest_post_invalid_id")
    assert_error(get(contributor, "/media/99999"), 404, "rest_post_invalid_id")
    for name in ("tags", "tribe_events_cat"):
        assert_error(get(anonymous, f"/{name}/99999"), 404, "rest_term_invalid")
    assert_error(get(anonymous, f"/tribe_venue/{records.event}"), 404, "rest_post_invalid_id")


def test_protected_event_shows_its_title_and_nothing_else(
    anonymous: Caller, editor: Caller, contributor: Caller, records: Records
) -> None:
    path = f"/tribe_events/{records.secret}"
    listed = next(entry for entry in get(anonymous, "/tribe_events").json() if entry["id"] == records.secret)
    for event in (get(anonymous, path).json(), listed, get(anonymous, path, password="wrong").json()):
        assert event["content"] == event["excerpt"] == {"rendered": "", "protected": True}
        assert (event["meta"], event["tags"], event["tribe_events_cat"], event["featured_media"]) == ({}, [], [], 0)
        assert event["title"] == {"rendered": "Secret"}
        assert "wp:featuredmedia" not in event["_links"]
    unlocked = get(anonymous, path, password="open sesame")
    assert unlocked.json()["content"] == {"rendered": "<p>Hush</p>", "protected": True}
    assert unlocked.json()["meta"]["_EventCost"] == "99"
    assert unlocked.headers["cache-control"] == "private, no-store"
    assert get(anonymous, path).json()["meta"] == {}
    assert expect_json(get(editor, path, context="edit"))["content"]["raw"] == "Hush"
    assert "password" not in get(editor, path, context="edit").json()
    assert_error(get(contributor, path, context="edit"), 403, "rest_forbidden_context")
    # Filters do not disclose what the password protects.
    assert list_ids(anonymous, "tribe_events", tags=records.tag) == [records.event]
    assert list_ids(anonymous, "tribe_events", search="hush") == []
    assert list_ids(editor, "tribe_events", search="hush") == [records.secret]


def test_images_are_visible_if_a_public_record_shows_them(
    anonymous: Caller, subscriber: Caller, contributor: Caller, editor: Caller, records: Records
) -> None:
    assert list_ids(anonymous, "media") == list_ids(subscriber, "media") == [records.images["shown"]]
    assert set(list_ids(contributor, "media")) == set(records.images.values())
    for name in ("draft", "secret", "unused"):
        assert_error(get(anonymous, f"/media/{records.images[name]}"), 401, "rest_forbidden")
        assert_error(get(subscriber, f"/media/{records.images[name]}"), 403, "rest_forbidden")
        assert expect_json(get(contributor, f"/media/{records.images[name]}"))["id"] == records.images[name]
    venue = editor.create("venues", venue="With a picture", image=records.images["unused"])
    assert set(list_ids(anonymous, "media")) == {records.images["shown"], records.images["unused"]}
    editor.change("venues", venue["id"], status="draft")
    assert list_ids(anonymous, "media") == [records.images["shown"]]
    assert_error(get(anonymous, f"/media/{records.images['unused']}"), 401, "rest_forbidden")


def test_edit_context_needs_the_right_to_edit(
    anonymous: Caller, subscriber: Caller, contributor: Caller, author: Caller, records: Records
) -> None:
    for name in LISTS:
        for path in (f"/{name}", f"/{name}/{records.id_of(name)}"):
            assert_error(get(anonymous, path, context="edit"), 401, "rest_forbidden_context")
            assert_error(get(subscriber, path, context="edit"), 403, "rest_forbidden_context")
    for event in get(author, "/tribe_events", context="edit").json():
        assert "raw" not in event["content"]
    own = contributor.create(
        "events", title="Own", start_date="2031-01-01 10:00:00", end_date="2031-01-01 11:00:00", description="Mine"
    )
    (draft,) = get(contributor, "/tribe_events", context="edit", status="draft").json()
    assert (draft["id"], draft["content"]["raw"]) == (own["id"], "Mine")


# Lists ---------------------------------------------------------------------------------------


def test_pages_have_totals_and_links(anonymous: Caller, records: Records) -> None:
    response = get(anonymous, "/tribe_events", per_page=1, page=2, order="asc")
    assert [event["id"] for event in response.json()] == [records.past]
    assert (response.headers["x-wp-total"], response.headers["x-wp-totalpages"]) == ("3", "3")
    root = anonymous.app.make_url("//wp-json/")
    address = f"{root}wp/v2/tribe_events?order=asc&per_page=1"
    assert response.headers["link"] == (
        f'<{root}>; rel="https://api.w.org/", <{address}&page=1>; rel="prev", <{address}&page=3>; rel="next"'
    )
    for name in ("tribe_events", "media", "tribe_venue"):
        for page in (99, 10**15):
            assert_error(get(anonymous, f"/{name}", page=page), 400, "rest_post_invalid_page_number")
    assert list_ids(anonymous, "tags", page=99) == []
    for per_page in (0, 101, -1, "x"):
        assert_error(get(anonymous, "/tribe_events", per_page=per_page), 400, "rest_invalid_param", "per_page")
    assert len(list_ids(anonymous, "tribe_events", per_page=100)) == 3
    assert get(anonymous, "/tribe_events", _fields="id,title.rendered").json()[0] == {
        "id": records.secret, "title": {"rendered": "Secret"}
    }  # fmt: skip


def test_filters(anonymous: Caller, records: Records) -> None:
    events = (records.secret, records.past, records.event)
    secret, past, event = events

    def find(**query: Any) -> list[int]:
        return list_ids(anonymous, "tribe_events", **query)

    assert find(search="concert") == [event]
    assert find(search="", slug="", include="", exclude="") == [*events]
    assert find(slug="past,concert-more") == [past, event]
    assert find(include=f"{event},{past},{records.draft},{records.hidden}") == [past, event]
    assert find(include=f"{event},{secret}", orderby="include") == [event, secret]
    assert find(exclude=[event, past]) == [secret]
    assert find(after="2026-01-02T12:00:00") == [secret, past]
    assert find(after="2026-01-02T12:00:00", before="2026-01-03T12:00:00Z") == [past]
    assert find(tags=records.tag) == find(tribe_events_cat=records.category) == [event]
    assert find(tribe_events_cat=records.parent) == [event]
    assert find(tags=9999) == find(tags=records.empty) == find(tribe_events_cat=9999) == []
    assert find(orderby="id", order="asc") == sorted(events)
    assert find(orderby="title", order="asc") == [event, past, secret]
    assert find(orderby="slug", order="desc") == [secret, past, event]
    assert find(orderby="id", order="asc", per_page=1, page=2) == [sorted(events)[1]]
    assert_error(get(anonymous, "/tribe_events", orderby="rand"), 400, "rest_invalid_param", "orderby")
    assert_error(
        get(anonymous, "/tribe_events", after="9999-12-31T23:59:59-12:00"), 400, "rest_invalid_param", "after"
    )
    ignored = get(anonymous, "/tribe_events", wanted=1)
    assert (ignored.status_code, ignored.headers["x-kalends-ignored-params"]) == (200, "wanted")


def test_filters_of_other_lists(anonymous: Caller, records: Records) -> None:
    assert list_ids(anonymous, "tags") == [records.empty, records.tag]
    assert list_ids(anonymous, "tags", hide_empty="true") == [records.tag]
    assert list_ids(anonymous, "tags", slug="late") == list_ids(anonymous, "tags", search="LAT") == [records.tag]
    assert list_ids(anonymous, "tags", post=records.event) == [records.tag]
    assert list_ids(anonymous, "tags", post=9999) == list_ids(anonymous, "tags", post=records.secret) == []
    assert list_ids(anonymous, "tags", include="9999", orderby="include") == []
    assert list_ids(anonymous, "tags", orderby="count", order="desc") == [records.tag, records.empty]
    assert list_ids(anonymous, "tribe_events_cat", parent=0) == [records.parent]
    assert list_ids(anonymous, "tribe_events_cat", parent=records.parent) == [records.category]
    assert list_ids(anonymous, "tribe_events_cat", parent=9999) == []
    assert list_ids(anonymous, "tribe_venue", search="bremen", orderby="title") == [records.venue]
    assert list_ids(anonymous, "tribe_organizer", slug="choir") == [records.organizer]
    assert list_ids(anonymous, "media", search="shown", orderby="id") == [records.images["shown"]]


def test_responses_are_cached_until_a_write(anonymous: Caller, editor: Caller, records: Records) -> None:
    first = get(anonymous, "/tribe_organizer")
    assert first.headers["cache-control"].startswith("public")
    site_tag = first.headers["surrogate-key"].split()[0]
    known = {"If-None-Match": first.headers["etag"]}
    assert anonymous.get(f"{CORE}/tribe_organizer", headers=known).status_code == 304
    editor.change("organizers", records.organizer, phone="123")
    assert get(anonymous, "/tribe_organizer").json()[0]["meta"]["_OrganizerPhone"] == "123"
    # A published event can make an image visible.
    tags = get(anonymous, "/media").headers["surrogate-key"].split()
    assert {f"{site_tag}-{kind}" for kind in ("media", "events", "venues", "organizers")} <= set(tags)


# Images --------------------------------------------------------------------------------------


def test_upload_as_body_and_as_form(author: Caller, anonymous: Caller) -> None:
    headers = {"Content-Type": "image/jpeg", "Content-Disposition": 'attachment; filename="a.jpg"'}
    sent = author.request("POST", f"{CORE}/media?alt_text=A%20poster", content=make_image(), headers=headers)
    image = expect_json(sent, 201)
    assert sent.headers["location"] == author.app.make_url(f"{CORE}/media/{image['id']}")
    assert (image["alt_text"], image["title"]) == ("A poster", {"raw": "a", "rendered": "a"})
    assert image["author"] == author.id
    form = {"title": "B & C", "caption": "By <b>me</b>", "alt_text": "B"}
    files = {"file": ("b.png", make_image("png"))}
    image = expect_json(author.request("POST", f"{CORE}/media", files=files, data=form), 201)
    assert image["title"] == {"raw": "B & C", "rendered": "B &amp; C"}
    assert image["caption"] == {"raw": "By <b>me</b>", "rendered": "<p>By <b>me</b></p>"}
    assert describe(image, MEDIA_KEYS) == {
        **MEDIA_KEYS, **{key: {"raw": str, "rendered": str} for key in ("guid", "title", "description", "caption")}
    }  # fmt: skip
    changed = author.post(f"{CORE}/media/{image['id']}", {"title": {"raw": "New"}, "alt_text": "C", "caption": ""})
    assert expect_json(changed)["title"] == {"raw": "New", "rendered": "New"}
    stored = expect_json(author.get(f"{EXTENSION}/media/{image['id']}"))
    assert (stored["title"], stored["alt_text"], stored["caption"]) == ("New", "C", "")


def test_uploads_have_the_rights_and_limits_of_the_media_library(
    anonymous: Caller, contributor: Caller, author: Caller, editor: Caller, records: Records
) -> None:
    files = {"file": ("a.jpg", make_image())}
    assert_error(anonymous.request("POST", f"{CORE}/media", files=files), 401, "rest_forbidden")
    assert_error(contributor.request("POST", f"{CORE}/media", files=files), 403, "rest_forbidden")
    for content in (b"no image", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b""):
        refused = author.request("POST", f"{CORE}/media", files={"file": ("a.jpg", content)})
        assert_error(refused, 400, "rest_invalid_param", "file")
    assert_error(author.post(f"{CORE}/media", {"title": "x"}), 400, "rest_missing_callback_param")
    path = f"{CORE}/media/{records.images['shown']}"
    assert_error(author.post(path, {"alt_text": "x"}), 403, "rest_forbidden")
    assert_error(anonymous.post(path, {"alt_text": "x"}), 401, "rest_forbidden")
    assert_error(editor.post(f"{CORE}/media/99999", {"alt_text": "x"}), 404, "rest_post_invalid_id")
    assert_error(editor.post(path, {"title": {"other": 1}}), 400, "rest_invalid_param", "title")


# Accounts, types, settings -------------------------------------------------------------------

ACCOUNT_KEYS = {"id", "name", "url", "description", "link", "slug", "avatar_urls", "meta", "_links"}
EDIT_KEYS = {
    "username", "first_name", "last_name", "email", "locale", "nickname", "roles", "registered_date", "capabilities",
    "extra_capabilities",
}  # fmt: skip


def test_caller_learns_its_own_account(app: RunningApp, anonymous: Caller, editor: Caller) -> None:
    assert_error(get(anonymous, "/users/me"), 401, "rest_not_logged_in")
    wrong = Caller(app, 0, httpx.BasicAuth("editor", "wrong"))
    assert_error(get(wrong, "/users/me"), 401, "incorrect_password")
    me = get(editor, "/users/me")
    assert set(expect_json(me)) == ACCOUNT_KEYS
    assert (me.json()["id"], me.json()["name"]) == (editor.id, "editor")
    assert me.headers["cache-control"] == "private, no-store"
    edited = expect_json(get(editor, "/users/me", context="edit"))
    assert set(edited) == ACCOUNT_KEYS | EDIT_KEYS
    assert (edited["roles"], edited["email"]) == (["editor"], "editor@example.org")


@pytest.mark.quick("subscriber-read-edit_tribe_events", "administrator-manage_options-anything")
@pytest.mark.parametrize(
    ("role", "capability", "missing"),
    [
        ("subscriber", "read", "edit_tribe_events"),
        ("contributor", "edit_tribe_events", "publish_tribe_events"),
        ("author", "upload_files", "edit_others_tribe_events"),
        ("editor", "edit_others_tribe_venues", "manage_options"),
        ("administrator", "manage_options", "anything"),
    ],
)
def test_capabilities_follow_the_role(app: RunningApp, role: str, capability: str, missing: str) -> None:
    capabilities = get(app.caller(role), "/users/me", context="edit").json()["capabilities"]
    assert capabilities[capability] is True
    assert missing not in capabilities


def test_accounts_are_not_public(
    anonymous: Caller, subscriber: Caller, contributor: Caller, editor: Caller, administrator: Caller
) -> None:
    for path in ("/users", f"/users/{editor.id}", "/users/99999"):
        assert_error(get(anonymous, path), 401, "rest_forbidden")
        assert_error(get(subscriber, path), 403, "rest_forbidden")
    accounts = get(contributor, "/users", per_page=2)
    assert [account["name"] for account in accounts.json()] == ["administrator", "author"]
    assert {frozenset(account) for account in accounts.json()} == {frozenset(ACCOUNT_KEYS)}
    assert (accounts.headers["x-wp-total"], accounts.headers["x-wp-totalpages"]) == ("5", "3")
    assert f'<{anonymous.app.make_url(CORE)}/users?per_page=2&page=2>; rel="next"' in accounts.headers["link"]
    beyond = get(contributor, "/users", page=99)
    assert (beyond.json(), beyond.headers["x-wp-total"]) == ([], "5")
    assert_error(get(editor, "/users", context="edit"), 403, "rest_forbidden")
    assert_error(get(editor, f"/users/{administrator.id}", context="edit"), 403, "rest_forbidden")
    assert get(editor, f"/users/{editor.id}", context="edit").json()["username"] == "editor"
    assert get(administrator, "/users", context="edit").json()[0]["email"] == "administrator@example.org"
    assert_error(get(administrator, "/users/99999"), 404, "rest_user_invalid_id")


def test_types_and_settings(anonymous: Caller, editor: Caller, administrator: Caller) -> None:
    types = expect_json(get(anonymous, "/types"))
    assert set(types) == {"tribe_events", "tribe_venue", "tribe_organizer", "attachment"}
    assert set(types["tribe_events"]) == {
        "description", "hierarchical", "has_archive", "name", "slug", "icon", "taxonomies", "rest_base",
        "rest_namespace", "_links",
    }  # fmt: skip
    for name, described in types.items():
        assert expect_json(get(anonymous, f"/types/{name}")) == described
        assert get(anonymous, f"/{described['rest_base']}").status_code == 200
    assert_error(get(anonymous, "/types/post"), 404, "rest_type_invalid")
    assert_error(get(anonymous, "/settings"), 401, "rest_forbidden")
    assert_error(get(editor, "/settings"), 403, "rest_forbidden")
    settings = expect_json(get(administrator, "/settings"))
    assert set(settings) == {
        "title", "description", "url", "email", "timezone", "date_format", "time_format", "start_of_week", "language",
        "posts_per_page",
    }  # fmt: skip
    assert settings["url"] == administrator.app.base_url
    assert (settings["timezone"], settings["start_of_week"]) == ("UTC", 1)


# Methods and odd requests --------------------------------------------------------------------


def test_other_writes_are_405_with_the_allowed_methods(editor: Caller, records: Records) -> None:
    for name in ("tribe_events", "tribe_venue", "tribe_organizer", "tribe_events_cat", "tags"):
        for method, path in (("POST", f"/{name}"), ("DELETE", f"/{name}/{records.id_of(name)}"), ("PUT", f"/{name}")):
            refused = editor.request(method, f"{CORE}{path}", json={"title": "x"})
            assert_error(refused, 405, "rest_method_not_allowed")
            assert refused.headers["allow"] == "GET"
    for path in ("/settings", "/users", "/users/me", "/types", "/types/attachment"):
        assert_error(editor.post(f"{CORE}{path}", {"title": "x"}), 405, "rest_method_not_allowed")
    image = f"{CORE}/media/{records.images['unused']}"
    deleted = editor.request("DELETE", image)
    assert (deleted.status_code, deleted.headers["allow"]) == (405, "GET, POST, PUT, PATCH")
    assert_error(editor.post(f"{image}?_method=DELETE", {}), 405, "rest_method_not_allowed")
    assert expect_json(editor.post(f"{image}?_method=PATCH", {"alt_text": "y"}))["alt_text"] == "y"


def test_head_and_options_and_unknown_routes(anonymous: Caller, records: Records) -> None:
    for name in LISTS:
        head = anonymous.request("HEAD", f"{CORE}/{name}")
        assert (head.status_code, head.content, head.headers["x-wp-totalpages"]) == (200, b"", "1")
        options = anonymous.request("OPTIONS", f"{CORE}/{name}")
        assert options.json()["namespace"] == "wp/v2"
        assert options.json()["endpoints"][0]["args"]["per_page"]["default"] == 10
    for path in ("/doc", "/posts", "/pages", "/comments", "/tribe_events/x", "/tribe_events/1/revisions", "/../x"):
        for accept in ("application/json", "text/html"):
            response = anonymous.get(f"{CORE}{path}", headers={"Accept": accept})
            assert_error(response, 404, "rest_no_route")
    assert_error(get(anonymous, f"/tribe_events/{'9' * 40}"), 404, "rest_post_invalid_id")


@pytest.mark.quick("tribe_events", "media")
@pytest.mark.parametrize("name", ["tribe_events", "tags", "media"])
def test_odd_values_are_client_errors(editor: Caller, records: Records, name: str) -> None:
    odd = ("\0", "x" * 5000, "-1", "1e99", "9" * 30, "a,b", "2026-13-45")
    names = (
        "page", "per_page", "context", "_embed", "search", "slug", "include", "exclude", "after", "before", "tags",
        "tribe_events_cat", "parent", "hide_empty", "orderby", "order", "status", "post", "password", "_fields",
    )  # fmt: skip
    for param in names:
        for value in odd:
            assert get(editor, f"/{name}", **{param: value}).status_code in (200, 400), (param, value)
        assert get(editor, f"/{name}", **{f"{param}[x][]": "1"}).status_code in (200, 400), param


def test_core_routes_exist_only_beside_an_alias(start_app: StartApp) -> None:
    anonymous = start_app().caller()
    for path in ("/wp-json/wp/v2/tribe_events", "/api/wp/v2/tribe_events", "/wp/v2/tribe_events"):
        assert anonymous.get(f"/{path}").status_code == 404


@pytest.mark.quick("cancelled-canceled", "sold_out-")
@pytest.mark.parametrize(
    ("state", "expected"),
    [("cancelled", "canceled"), ("postponed", "postponed"), ("sold_out", "")],
)
def test_state_of_an_event_is_in_its_meta(
    anonymous: Caller, editor: Caller, records: Records, state: str, expected: str
) -> None:
    editor.change("events", records.past, event_status=state, status_reason="Storm")
    meta = expect_json(get(anonymous, f"/tribe_events/{records.past}"))["meta"]
    assert meta["_tribe_events_status"] == expected
    assert meta["_tribe_events_status_reason"] == ("Storm" if expected else "")


def test_lists_with_relative_dates_are_not_stored(anonymous: Caller, records: Records) -> None:
    assert records.venue in list_ids(anonymous, "tribe_venue", after="yesterday")
    assert list_ids(anonymous, "tribe_venue", before="-1 day") == []
    assert "no-store" in get(anonymous, "/tribe_venue", after="yesterday").headers["cache-control"]
    assert list_ids(anonymous, "media", before="-1 day") == []


def test_image_of_a_hidden_event_is_in_no_list(anonymous: Caller, editor: Caller, records: Records) -> None:
    image = records.images["unused"]
    editor.change("events", records.hidden, image=image)
    assert image not in list_ids(anonymous, "media", per_page=100)
    assert image in list_ids(editor, "media", per_page=100)


def test_unknown_and_unpublished_images_get_the_same_response(anonymous: Caller, records: Records) -> None:
    responses = [get(anonymous, f"/media/{number}") for number in (records.images["draft"], 999_999)]
    assert [response.status_code for response in responses] == [401, 401]
    assert responses[0].json() == responses[1].json()


def test_unknown_terms_among_others_are_ignored(anonymous: Caller, records: Records) -> None:
    assert list_ids(anonymous, "tribe_events", tags=f"{records.tag},999999") == [records.event]
    assert list_ids(anonymous, "tribe_events", tags="999999") == []


def test_own_account_is_the_same_by_id(app: RunningApp) -> None:
    caller = app.caller("contributor")
    me = expect_json(get(caller, "/users/me", context="edit"))
    assert expect_json(get(caller, f"/users/{me['id']}", context="edit")) == me


def test_embedded_images_are_in_the_cache_tags(anonymous: Caller, records: Records) -> None:
    tags = get(anonymous, "/tribe_events", _embed="1").headers["surrogate-key"].split()
    assert [tag for tag in tags if tag.endswith("-media")]
