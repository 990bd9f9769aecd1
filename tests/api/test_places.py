"""Venues and organizers: every field, what clears it and what keeps it (behaviour 5.2, 5.3)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import SAMPLES, Sample, unique

# Values as they are sent and as they are returned; empty ones are left out.
FULL_FIELDS: dict[str, dict[str, tuple[Any, Any]]] = {
    "venues": {
        "description": ("A hall.\n\nWith <b>seats</b>.", "<p>A hall.</p>\n<p>With <b>seats</b>.</p>"),
        "address": ("1 <i>High</i> Street", "1 High Street"),
        "city": ("Zürich", "Zürich"),
        "country": ("Switzerland", "Switzerland"),
        "province": ("ZH", "ZH"),
        "state": ("none", "none"),
        "zip": ("08000", "08000"),
        "phone": ("+41 44 000 00 00", "+41 44 000 00 00"),
        "website": ("https://hall.example/a?b=c&d=é", "https://hall.example/a?b=c&d=é"),
        "stateprovince": ("Zürich & area", "Zürich & area"),
    },
    "organizers": {
        "description": ("People.", "<p>People.</p>"),
        "phone": ("<b>0</b>", "0"),
        "website": ("http://people.example", "http://people.example"),
        "email": ("people@example.org", "people@example.org"),
    },
}
PLAIN_FIELDS = [
    *[
        ("venues", name)
        for name in ("address", "city", "country", "province", "state", "zip", "phone", "stateprovince")
    ],
    ("organizers", "phone"),
]
ALL_FIELDS = [(kind, name) for kind, fields in FULL_FIELDS.items() for name in fields]


def create_full_record(caller: Caller, place: Sample, **more: Any) -> dict[str, Any]:
    fields = {name: value for name, (value, _) in FULL_FIELDS[place.kind].items()}
    return caller.create(place.kind, **place.body(**fields, **more))


def without_field(record: dict[str, Any], name: str) -> dict[str, Any]:
    """What must stay when a field changes: all but its time, itself, and what is derived from it."""
    derived = {"stateprovince"} if name in ("state", "province", "country") else set()
    omitted = {"modified", "modified_utc", name, *derived}
    return {key: value for key, value in record.items() if key not in omitted}


def test_record_with_all_fields_has_exact_representation(anonymous: Caller, editor: Caller, place: Sample) -> None:
    name = unique("Große Halle")
    record = create_full_record(editor, place, **{place.name_param: name, "date": "2025-05-01 10:00:00"})
    slug = name.lower().replace("ß", "ss").replace(" ", "-")
    expected = {
        "id": record["id"],
        "global_id": f"{editor.app.host}?id={record['id']}",
        "global_id_lineage": [f"{editor.app.host}?id={record['id']}"],
        "author": str(editor.id),
        "status": "publish",
        "date": "2025-05-01 10:00:00",
        "date_utc": "2025-05-01 10:00:00",
        "modified": record["modified"],
        "modified_utc": record["modified"],
        "url": f"{editor.app.base_url}/{place.singular}/{slug}/",
        place.name_param: name,
        "slug": slug,
        **{key: output for key, (_, output) in FULL_FIELDS[place.kind].items()},
        **({"show_map": True, "show_map_link": True} if place.kind == "venues" else {}),
    }
    assert record == expected
    read = anonymous.read(place.kind, record["id"])
    read.pop("json_ld", None)
    assert read == expected


def test_record_with_name_only_omits_empty_fields(editor: Caller, place: Sample) -> None:
    record = editor.create(place.kind, **place.body())
    common = {
        "id",
        "global_id",
        "global_id_lineage",
        "author",
        "status",
        "date",
        "date_utc",
        "modified",
        "modified_utc",
    }
    switches = {"show_map", "show_map_link"} if place.kind == "venues" else set()
    assert record.keys() == common | {"url", "slug", place.name_param} | switches


@pytest.mark.quick("-venues-description", "None-organizers-email")
@pytest.mark.parametrize(("kind", "name"), ALL_FIELDS)
@pytest.mark.parametrize("empty", ["", None])
def test_empty_value_clears_only_that_field(editor: Caller, kind: str, name: str, empty: str | None) -> None:
    record = create_full_record(editor, SAMPLES[kind])
    changed = editor.change(kind, record["id"], **{name: empty})
    assert name not in changed
    assert without_field(changed, name) == without_field(record, name)


@pytest.mark.quick("venues-description", "organizers-email")
@pytest.mark.parametrize(("kind", "name"), ALL_FIELDS)
def test_fields_can_be_changed_separately(editor: Caller, kind: str, name: str) -> None:
    record = create_full_record(editor, SAMPLES[kind])
    value = {"website": "https://new.example/", "email": "new@example.org"}.get(name, "new")
    expected = "<p>new</p>" if name == "description" else value
    changed = editor.change(kind, record["id"], **{name: value})
    assert changed[name] == expected
    assert without_field(changed, name) == without_field(record, name)


def test_empty_update_changes_nothing(editor: Caller, place: Sample) -> None:
    record = create_full_record(editor, place)
    before = editor.get(f"/{place.kind}/{record['id']}")
    assert expect_json(editor.patch(f"/{place.kind}/{record['id']}", {})) == record
    assert (
        expect_json(editor.patch(f"/{place.kind}/{record['id']}", {place.name_param: record[place.name_param]}))
        == record
    )
    assert editor.get(f"/{place.kind}/{record['id']}").headers["etag"] == before.headers["etag"]


@pytest.mark.quick("venues-address", "organizers-phone")
@pytest.mark.parametrize(("kind", "name"), PLAIN_FIELDS)
def test_plain_fields_are_plain_text(editor: Caller, kind: str, name: str) -> None:
    record = editor.create(kind, **SAMPLES[kind].body(**{name: " <script>x</script>a\n<b>b</b>\x00 &amp; c "}))
    assert record[name] == "a b & c"
    assert editor.change(kind, record["id"], **{name: "0"})[name] == "0"
    for wrong in (5, True, [], {}, "x" * 1001):
        assert_error(editor.patch(f"/{kind}/{record['id']}", {name: wrong}), 400, "rest_invalid_param", name)


@pytest.mark.quick("venues-ftp://a.example", "organizers-http://a.example:99999")
@pytest.mark.parametrize(
    "website",
    ["ftp://a.example", "javascript://a.example/%0aalert(1)", "mailto:a@b.example", "a.example", "//a.example", "http://",
     "http://a b", "https://user:word@a.example", 5, True, ["http://a.example"], "http://a.example:99999"],
)  # fmt: skip
def test_website_must_be_http_url(editor: Caller, place: Sample, website: object) -> None:
    assert_error(editor.post(f"/{place.kind}", place.body(website=website)), 400, "rest_invalid_param", "website")


@pytest.mark.quick("x", "email8")
@pytest.mark.parametrize("email", ["x", "a@", "@b", "a@b@c", "<b>a@b</b>", "a b@c", 5, ["a@b"], "a" * 251 + "@b.c"])
def test_email_must_contain_single_at_sign(editor: Caller, email: object) -> None:
    response = editor.post("/organizers", {"organizer": unique("o"), "email": email})
    assert_error(response, 400, "rest_invalid_param", "email")


@pytest.mark.quick("fields0-Texas", "fields5-Own")
@pytest.mark.parametrize(
    ("fields", "stateprovince"),
    [
        ({"state": "Texas"}, "Texas"),
        ({"state": "Texas", "country": "US"}, "Texas"),
        ({"state": "Texas", "province": "P", "country": "United States"}, "Texas"),
        ({"province": "Ontario", "country": "Canada"}, "Ontario"),
        ({"state": "S", "province": "Ontario", "country": "Canada"}, "Ontario"),
        ({"state": "S", "province": "P", "stateprovince": "Own", "country": "Canada"}, "Own"),
    ],
)
def test_stateprovince_is_derived_from_state_or_province(
    editor: Caller, fields: dict[str, str], stateprovince: str
) -> None:
    record = editor.create("venues", venue=unique("v"), **fields)
    assert record["stateprovince"] == stateprovince
    assert {name: record[name] for name in fields} == fields


def test_derived_stateprovince_follows_its_sources(editor: Caller) -> None:
    record = editor.create("venues", venue=unique("v"), state="Texas", province="P")
    assert record["stateprovince"] == "Texas"
    assert editor.change("venues", record["id"], phone="1")["stateprovince"] == "Texas"
    assert editor.change("venues", record["id"], state="Ohio")["stateprovince"] == "Ohio"
    assert editor.change("venues", record["id"], country="Canada")["stateprovince"] == "P"
    assert "stateprovince" not in editor.change("venues", record["id"], stateprovince="")


def test_explicit_stateprovince_is_preserved(editor: Caller) -> None:
    record = editor.create("venues", venue=unique("v"), state="Texas", province="P", stateprovince="Own")
    assert editor.change("venues", record["id"], phone="1")["stateprovince"] == "Own"
    assert editor.change("venues", record["id"], country="Canada")["stateprovince"] == "Own"


@pytest.mark.parametrize("name", ["show_map", "show_map_link"])
def test_venue_booleans_accept_all_notations(editor: Caller, name: str) -> None:
    for value, expected in (
        (True, True),
        (False, False),
        (1, True),
        (0, False),
        ("yes", True),
        ("OFF", False),
        ("1", True),
    ):
        record = editor.create("venues", venue=unique("v"), **{name: value})
        assert record[name] is expected
        assert editor.change("venues", record["id"], phone="1")[name] is expected
    for wrong in ("", "bogus", 2, [], {}, "y"):
        response = editor.post("/venues", {"venue": unique("v"), name: wrong})
        assert_error(response, 400, "rest_invalid_param", name)
    assert editor.create("venues", venue=unique("v"), **{name: None})[name] is True


def test_coordinates_must_be_set_together(editor: Caller) -> None:
    record = editor.create("venues", venue=unique("v"), geo_lat="47.37", geo_lng=8.54)
    assert (record["geo_lat"], record["geo_lng"]) == (47.37, 8.54)
    assert editor.change("venues", record["id"], geo_lat=-90)["geo_lat"] == -90
    assert "geo_lat" not in editor.change("venues", record["id"], geo_lat=None, geo_lng=None)
    for wrong in ({"geo_lat": 1}, {"geo_lng": 1}, {"geo_lat": 91, "geo_lng": 1}, {"geo_lat": 1, "geo_lng": -181}):
        assert editor.post("/venues", {"venue": unique("v"), **wrong}).status_code == 400
    assert editor.patch(f"/venues/{record['id']}", {"geo_lat": 1}).status_code == 400


def test_zero_coordinates_are_preserved(editor: Caller) -> None:
    record = editor.create("venues", venue=unique("v"), geo_lat=0, geo_lng=0)
    assert (record["geo_lat"], record["geo_lng"]) == (0, 0)


def test_equal_names_create_separate_records(author: Caller, editor: Caller, place: Sample) -> None:
    body = place.body(phone="1", description="same")
    first = editor.create(place.kind, **body)
    second = author.create(place.kind, **{**body, "phone": "2"})
    assert (second["slug"], second["author"], second["phone"]) == (f"{first['slug']}-2", str(author.id), "2")
    assert editor.read(place.kind, first["id"])["phone"] == "1"


def test_slug_is_immutable(editor: Caller, place: Sample) -> None:
    record = editor.create(place.kind, **place.body(slug="my-own"))
    assert record["slug"] == record[place.name_param].lower().replace(" ", "-")
    changed = editor.change(place.kind, record["id"], **{place.name_param: unique("renamed"), "slug": "my-own"})
    assert changed["slug"] == record["slug"]


# Images ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(app: RunningApp) -> dict[str, Any]:
    """An image of the media library, as records show it."""
    app.sql(
        """INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, sizes)
            SELECT id, 900000, 1, 'http://calendar.test/media/a.jpg', 'jpg', 10, 20, 300,
                '{"thumb": {"width": 5}}' FROM sites"""
    )
    return {
        "url": "http://calendar.test/media/a.jpg", "id": 900000, "extension": "jpg", "width": 10, "height": 20,
        "filesize": 300, "sizes": {"thumb": {"width": 5}}, "alt_text": "", "caption": "", "focus_x": 0.5,
        "focus_y": 0.5,
    }  # fmt: skip


@pytest.mark.quick("events-900000_0", "organizers-http://calendar.test/media/a.jpg")
@pytest.mark.parametrize("named", [900000, "900000", "http://calendar.test/media/a.jpg"])
def test_image_is_set_by_id_or_url(editor: Caller, post: Sample, image: dict[str, Any], named: object) -> None:
    record = editor.create(post.kind, **post.body(image=named))
    assert record["image"] == image
    assert editor.change(post.kind, record["id"], description="x")["image"] == image


@pytest.mark.quick("events-", "organizers-None")
@pytest.mark.parametrize("none", ["", 0, "0", False, None])
def test_image_can_be_removed(editor: Caller, post: Sample, image: dict[str, Any], none: object) -> None:
    record = editor.create(post.kind, **post.body(image=image["id"]))
    assert editor.change(post.kind, record["id"], image=none).get("image", False) is False
    assert editor.create(post.kind, **post.body(image=none)).get("image", False) is False


@pytest.mark.quick("events-999999", "organizers-1152921504606846976")
@pytest.mark.parametrize(
    "wrong", [999999, "x", -1, 1.5, True, [], [900000], {}, "http://calendar.test/none.jpg", 2**60]
)
def test_unknown_image_is_rejected(editor: Caller, post: Sample, image: object, wrong: object) -> None:
    assert image
    assert_error(editor.post(f"/{post.kind}", post.body(image=wrong)), 400, "rest_invalid_param", "image")


def test_image_url_needs_permission_to_publish(
    author: Caller, contributor: Caller, post: Sample, image: dict[str, Any]
) -> None:
    assert author.create(post.kind, **post.body(image=image["url"]))["image"] == image
    assert contributor.create(post.kind, **post.body(image=image["id"]))["image"] == image
    response = contributor.post(f"/{post.kind}", post.body(image=image["url"]))
    assert_error(response, 400, "rest_invalid_param", "image")
