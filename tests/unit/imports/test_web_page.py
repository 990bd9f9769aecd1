"""Events of stored web pages: every page in `web_pages` has its events or its refusal in `expected.json`."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from kalends.core.errors import InvalidValue
from kalends.imports.rules.import_records import ParsedSource
from kalends.imports.rules.web_page import MAX_EVENTS, read_page

PAGES = Path(__file__).parent / "web_pages"
EXPECTED: dict[str, Any] = json.loads((PAGES / "expected.json").read_text())
URL = "https://page.example/page"
MAX_SECONDS = 3


def read(data: bytes, content_type: str = "text/html", url: str = URL) -> dict[str, Any]:
    try:
        return describe(read_page(data, {"url": url, "content_type": content_type}))
    except InvalidValue as error:
        return {"refused": str(error.message)}


def describe(parsed: ParsedSource) -> dict[str, Any]:
    """Return the events with their venue, organizer and warnings."""
    places = {(record.kind, record.identity): record.values for record in parsed.records}
    return {
        "events": [
            {
                **record.values,
                **{name: places[f"{name}s", identity] for name, (identity,) in record.links.items()},
                **({"warnings": [str(warning) for warning in record.warnings]} if record.warnings else {}),
            }
            for record in parsed.records
            if record.kind == "events"
        ]
    }


def with_json(text: str) -> bytes:
    return f'<html><script type="application/ld+json">{text}</script></html>'.encode()


def with_event(**values: object) -> bytes:
    return with_json(json.dumps({"@type": "Event", "name": "Fair", "startDate": "2027-05-01T10:00", **values}))


def read_event(data: bytes, **options: str) -> dict[str, Any]:
    (event,) = read(data, **options)["events"]
    found: dict[str, Any] = event
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in PAGES.glob("*.html")))
def test_stored_page_has_expected_events(name: str) -> None:
    assert read((PAGES / name).read_bytes()) == EXPECTED[name]


def test_large_page_is_read() -> None:
    page = (PAGES / "venue_concert.html").read_bytes()
    filler = b"<div class='x'><p>Lorem &amp; ipsum</p></div>\n"
    large = page.replace(b"<main>", filler * ((2_000_000 - len(page)) // len(filler)) + b"<main>")
    begun = time.perf_counter()
    assert read(large) == EXPECTED["venue_concert.html"]
    assert time.perf_counter() - begun < MAX_SECONDS


def test_charset_of_header_precedes_the_page() -> None:
    page = with_event(name="Käse").decode().replace("\\u00e4", "ä")
    declared = page.replace("<html>", '<html><meta charset="utf-8">').encode("latin-1")
    assert read_event(declared, content_type='text/html; charset="ISO-8859-1"')["title"] == "Käse"


@pytest.mark.parametrize("charset", ["idna", "zlib", "rot13", "punycode", "utf-7", "unicode_escape", "no-such"])
def test_unusual_codec_is_not_used(charset: str) -> None:
    assert read_event(with_event(name="A"), content_type=f"text/html; charset={charset}")["title"] == "A"


@pytest.mark.parametrize("content_type", ["application/pdf", "image/jpeg", "text/calendar; charset=utf-8"])
def test_file_is_refused(content_type: str) -> None:
    assert read(with_event(), content_type) == {"refused": "leads to a file, not to a web page."}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2027-05-01T10:00Z", None, ("2027-05-01 10:00:00+00:00", None, False)),
        (
            *("2027-05-01T10:00:00+0200", "2027-05-01T09:30Z"),
            ("2027-05-01 10:00:00+02:00", "2027-05-01 09:30:00+00:00", False),
        ),
        ("2027-05-01", "2027-05-01T22:00", ("2027-05-01", "2027-05-01", True)),
        ("2027-05-01T10:00", "2027-05-01", ("2027-05-01 10:00:00", None, False)),
        ("2027-05-01T10:00", "2027-05-03", ("2027-05-01 10:00:00", "2027-05-03 23:59:00", False)),
        ("2027-05-01T00:00", None, ("2027-05-01", "2027-05-01", True)),
        ("2027-05-01T00:00", "2027-05-03T00:00", ("2027-05-01", "2027-05-02", True)),
        ("2027-05-01T00:00", "2027-05-01T03:00", ("2027-05-01 00:00:00", "2027-05-01 03:00:00", False)),
        ("2027-05-01T22:00", "2027-05-01T04:00", ("2027-05-01 22:00:00", "2027-05-02 04:00:00", False)),
        ("2027-05-03", "2027-05-01", ("2027-05-03", "2027-05-03", True)),
        ("0000-00-00", None, (None, None, None)),
        ("2027-05-01T10:00+99:99", None, (None, None, None)),
        (True, None, (None, None, None)),
        ({"@type": "Date", "@value": "2027-05-01"}, None, ("2027-05-01", "2027-05-01", True)),
    ],
)
def test_times(start: object, end: object, expected: tuple[object, ...]) -> None:
    event = read_event(with_event(startDate=start, endDate=end))
    assert tuple(event.get(name) for name in ("start_date", "end_date", "all_day")) == expected


@pytest.mark.parametrize(
    ("offers", "cost", "currency"),
    [
        ({"price": "from €12.50", "priceCurrency": "EUR"}, "12.50", "EUR"),
        ([{"price": 5}, {"price": "12"}, {"price": 8}], "5–12", None),
        ({"price": "0.00", "priceCurrency": "euro"}, "0", None),
        ({"price": "on request"}, None, None),
        ({"lowPrice": "1,000.00", "highPrice": "2,500.00", "priceCurrency": "usd"}, "1000–2500", "USD"),
    ],
)
def test_prices(offers: object, cost: str | None, currency: str | None) -> None:
    event = read_event(with_event(offers=offers))
    assert (event.get("cost"), event.get("currency_code")) == (cost, currency)


def test_number_of_events_is_limited() -> None:
    events = [{"@type": "Event", "name": f"No. {number}", "startDate": "2027-05-01"} for number in range(300)]
    assert len(read(with_json(json.dumps(events)))["events"]) == MAX_EVENTS


# Each would take minutes or much memory if it were read without limits.
HOSTILE = {
    "nested lists": with_json("[" * 1_900_000),
    "nested objects": with_json('{"a":' * 380_000),
    "commas": with_json("[" + ", " * 900_000),
    "many events": with_json("[" + ",".join(['{"@type":"Event","name":"a"}'] * 60_000) + "]"),
    "many scripts": with_json("{}") * 30_000,
    "long date": with_event(startDate="a" * 1_900_000),
    "long digits": with_event(startDate="1 " * 900_000),
    "long price": with_event(offers={"price": "1." * 900_000}),
    "long title": with_event(name="<a &amp;" * 200_000),
    "long address": with_event(url="/.." * 600_000),
    "long type": with_json('{"@type": "%s", "name": "a"}' % ("Event" * 380_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_page_is_read_or_refused_quickly(name: str) -> None:
    begun = time.perf_counter()
    result = read(HOSTILE[name])
    assert time.perf_counter() - begun < MAX_SECONDS
    assert result.keys() <= {"events", "refused"}
