"""JSON and JSON-LD of typed records, without a database."""

from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pytest

from kalends.calendar.kinds.events import FLAGS, hide_protected_attributes, serialize_event
from kalends.calendar.kinds.json_ld import describe_event, describe_organizer, describe_venue
from kalends.calendar.kinds.kind import LinkedRecord, LinkedRecords, RenderContext
from kalends.calendar.kinds.organizers import serialize_organizer
from kalends.calendar.kinds.posts import build_image, serialize_image
from kalends.calendar.kinds.terms import serialize_category, serialize_category_in_event
from kalends.calendar.kinds.venues import serialize_venue
from kalends.calendar.rules.record_types import Event
from kalends.store.sites import Site
from tests.unit.website.records import CLUB, EVENT, HALL, IMAGE, MUSIC, at

SITE = Site(
    **{
        **dict.fromkeys(Site.__dataclass_fields__, ""),
        "id": 1,
        "former_last_id": 0,
        "timezone": "Europe/Vienna",
        "currency_symbol": "€",
        "currency_code": "EUR",
        "currency_position": "prefix",
    }
)
CONTEXT = RenderContext(SITE, "https://x.example", "https://x.example/api", "https://x.example/media")
YARD = replace(HALL, id=20, slug="yard", name="Yard", latitude=None, longitude=None)
LINKED = LinkedRecords(
    venues={venue.id: LinkedRecord(venue, partial(serialize_venue, venue, CONTEXT)) for venue in (HALL, YARD)},
    organizers={CLUB.id: LinkedRecord(CLUB, partial(serialize_organizer, CLUB, CONTEXT))},
    categories={MUSIC.id: LinkedRecord(MUSIC, partial(serialize_category_in_event, MUSIC, CONTEXT))},
)


def serialize(event: Event) -> dict[str, Any]:
    return serialize_event(event, replace(CONTEXT, linked=LINKED))


def test_event_has_local_and_utc_times() -> None:
    record = serialize(EVENT)
    assert (record["start_date"], record["end_date"]) == ("2031-03-14 19:30:00", "2031-03-14 22:00:00")
    assert (record["utc_start_date"], record["utc_end_date"]) == ("2031-03-14 18:30:00", "2031-03-14 21:00:00")
    assert record["start_date_details"] == {
        "year": "2031", "month": "03", "day": "14", "hour": "19", "minutes": "30", "seconds": "00",
    }  # fmt: skip
    assert (record["timezone"], record["timezone_abbr"]) == ("Europe/Berlin", "CET")
    assert (record["date"], record["date_utc"]) == ("2031-01-02 04:04:05", "2031-01-02 03:04:05")


def test_years_before_1000_are_padded() -> None:
    record = serialize(at("0999-03-14 10:00:00", "0999-03-14 11:00:00"))
    assert record["start_date"] == "0999-03-14 10:00:00"
    assert record["utc_start_date"].startswith("0999-03-14 09:")


def test_venue_is_an_object_or_a_list() -> None:
    assert serialize(EVENT)["venue"] == []
    assert serialize(replace(EVENT, venues=(HALL,)))["venue"] == LINKED.venues[2].json
    both = serialize(replace(EVENT, venues=(YARD, HALL)))["venue"]
    assert [venue["id"] for venue in both] == [20, 2]


def test_website_of_event_defaults_to_its_url() -> None:
    assert serialize(EVENT)["website"] == EVENT.url
    assert serialize(replace(EVENT, website="https://tea.example"))["website"] == "https://tea.example"


def test_locked_event_shows_title_dates_and_urls() -> None:
    event = replace(
        EVENT,
        description="<p>Secret</p>",
        image=IMAGE,
        cost="€5",
        website="https://tea.example",
        ticket_url="https://tickets.example",
        event_status="cancelled",
        status_reason="Secret",
        online_url="https://secret.example",
        featured=True,
        all_day=True,
        categories=(MUSIC,),
        venues=(HALL,),
        organizers=(CLUB,),
    )
    open_record, locked = serialize(event), serialize(hide_protected_attributes(event))
    assert list(locked) == list(open_record)
    assert {key: locked[key] for key in ("title", "start_date", "url")} == {
        key: open_record[key] for key in ("title", "start_date", "url")
    }
    unknown = ("all_day", "event_status", *FLAGS)
    assert {name: locked[name] for name in unknown} == dict.fromkeys(unknown)
    assert (locked["status_reason"], locked["online_url"]) == ("", "")
    hidden = ("description", "excerpt", "image", "cost", "website", "ticket_url", "categories", "venue", "organizer")
    assert [locked[name] for name in hidden] == ["", "", False, "", "", "", [], [], []]
    assert locked["cost_details"]["values"] == []
    assert b"Secret" not in orjson.dumps(locked)


def test_empty_fields_of_venues_and_organizers_are_omitted() -> None:
    venue = serialize_venue(replace(YARD, show_map=False), CONTEXT)
    assert not {"geo_lat", "phone", "image", "description"} & set(venue)
    assert (venue["show_map"], venue["venue"], venue["city"]) == (False, "Yard", "Lindenstadt")
    assert "website" not in serialize_organizer(CLUB, CONTEXT)


def test_only_nested_categories_link_to_a_parent() -> None:
    assert set(serialize_category(MUSIC, CONTEXT)["urls"]) == {"self", "collection"}
    nested = replace(MUSIC, parent=9)
    for record in (serialize_category(nested, CONTEXT), serialize_category_in_event(nested, CONTEXT)):
        assert (record["parent"], record["urls"]["up"]) == (9, "https://x.example/api/categories/9")


def test_image_files_have_absolute_urls() -> None:
    name = "ab" * 32 + ".jpg"
    columns = {
        **{field: getattr(IMAGE, field) for field in ("id", "extension", "width", "height", "filesize")},
        "url": name,
        "alt_text": "",
        "caption": "",
        "focus_x": 0.5,
        "focus_y": 0.5,
        "hue": 3,
        "sizes": {"large": {"width": 5, "url": name, "webp": {"url": name}}, "odd": {"width": 1}},
    }
    url = f"https://x.example/media/1/ab/{name}"
    image = build_image(columns, CONTEXT)
    record = serialize_image(image)
    assert (image.hue, "hue" in record) == (3, False)
    assert record["url"] == url
    assert record["sizes"] == {"large": {"width": 5, "url": url, "webp": {"url": url}}, "odd": {"width": 1}}
    assert "sizes" not in serialize_image(build_image({**columns, "sizes": {}}, CONTEXT))


def test_json_ld_of_event_has_offsets_places_and_organizers() -> None:
    event = replace(EVENT, venues=(HALL, YARD), organizers=(CLUB,), image=IMAGE, excerpt="<p>Come</p>")
    json_ld = describe_event(event, CONTEXT)
    assert (json_ld["startDate"], json_ld["endDate"]) == ("2031-03-14T19:30:00+01:00", "2031-03-14T22:00:00+01:00")
    assert (json_ld["name"], json_ld["description"], json_ld["image"]) == ("Tea & talk", "Come", IMAGE.url)
    assert [place["name"] for place in json_ld["location"]] == ["The & Hall", "Yard"]
    assert (json_ld["organizer"]["@type"], json_ld["organizer"]["email"]) == ("Organization", "a@example.org")
    assert "offers" not in json_ld
    assert describe_event(replace(EVENT, venues=(HALL,)), CONTEXT)["location"]["name"] == "The & Hall"
    several = describe_event(replace(EVENT, organizers=(CLUB, replace(CLUB, email="b@example.org"))), CONTEXT)
    assert [organizer["email"] for organizer in several["organizer"]] == ["a@example.org", "b@example.org"]


@pytest.mark.parametrize(
    ("values", "offer"),
    [
        (["5"], {"@type": "Offer", "price": "5"}),
        (["free"], {"@type": "Offer", "price": "0"}),
        (["5", "12.50"], {"@type": "AggregateOffer", "price": "5", "lowPrice": "5", "highPrice": "12.50"}),
        (["ask-at-the-door"], None),
    ],
)
def test_json_ld_has_numeric_prices(values: list[str], offer: dict[str, str] | None) -> None:
    event = replace(EVENT, cost="…", cost_details={"values": values})
    offers = describe_event(event, CONTEXT).get("offers")
    common = {
        "priceCurrency": "EUR",
        "url": EVENT.url,
        "availability": "https://schema.org/InStock",
        "validFrom": "2031-01-02T03:04:05Z",
    }
    assert offers == ({**offer, **common} if offer else None)


def test_json_ld_of_venue_and_organizer() -> None:
    place = describe_venue(HALL, CONTEXT)
    assert (place["@context"], place["@type"], place["geo"]["latitude"]) == ("https://schema.org", "Place", 52.5186)
    assert place["address"] == {
        "@type": "PostalAddress", "streetAddress": "Am Markt 1", "addressLocality": "Lindenstadt",
        "postalCode": "12345", "addressCountry": "Germany",
    }  # fmt: skip
    assert "geo" not in describe_venue(YARD, CONTEXT)
    assert describe_organizer(CLUB, CONTEXT) == {
        "@context": "https://schema.org", "@type": "Organization", "name": "Club", "url": CLUB.url,
        "telephone": "1", "email": "a@example.org",
    }  # fmt: skip
