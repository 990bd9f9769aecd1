"""Every address of a recorded WordPress site leads to its content after the move, or is a documented exception."""

import re
from typing import Any
from urllib.parse import unquote

from tests.api.running_app import RunningApp
from tests.old_site.conftest import LINES

# Addresses that do not exist here; docs/compatibility.md lists them.
MISSING = re.compile(r"/author/.*|/comments/feed/|/event/[^/]+/feed/|/xmlrpc\.php\?rsd|/wp-login\.php.*")
# Addresses of the API.
REST_ROUTE = "/?rest_route="
HTML = [("accept", "text/html")]
PROTECTED = {f"/event/{line[2]}/" for line in LINES if line[0] == "event" and line[11]}


def get(app: RunningApp, address: str) -> tuple[int, str, str]:
    """Return status, media type and location."""
    path, _, query = address.removeprefix("http://calendar.test").partition("?")
    status, headers, _ = app.raw("GET", unquote(path), query=query.encode(), headers=HTML)
    return status, headers.get("content-type", "").partition(";")[0], headers.get("location", "")


def find_media_type(app: RunningApp, address: str) -> str:
    """Return the media type of the content, which is at the address or one redirect away."""
    status, media_type, location = get(app, address)
    if status == 301:
        address = location
        status, media_type, _ = get(app, address)
    # The page of a protected event asks for its password.
    assert status == (403 if address in PROTECTED else 200), address
    return media_type


def test_every_recorded_address_leads_to_its_content(old_site: RunningApp) -> None:
    counts = dict.fromkeys(("calendar", "redirect", "missing", "page"), 0)
    for _, address, status, media_type, location in [line for line in LINES if line[0] == "address"]:
        if address.startswith(REST_ROUTE):
            continue
        if "ical=1" in address:
            # The reference also answered with HTML or 404 if a page of the calendar had no events.
            assert get(old_site, address) == (200, "text/calendar", ""), address
            counts["calendar"] += 1
        elif status == 301:
            assert get(old_site, address)[::2] == (301, location), address
            assert find_media_type(old_site, location) == "text/html"
            counts["redirect"] += 1
        elif MISSING.fullmatch(address):
            assert get(old_site, address)[0] == 404, address
            counts["missing"] += 1
        else:
            found = find_media_type(old_site, address)
            assert media_type in ("", found) or status == 404, address
            counts["page"] += 1
    assert all(counts.values()), counts


def test_permanent_links_of_all_records(old_site: RunningApp) -> None:
    posts: list[list[Any]] = [line for line in LINES if line[0] in ("event", "venue", "organizer")]
    for name, record_id, slug, _, status, *_ in posts:
        expected = (301, f"/{name}/{slug}/".lower()) if status == "publish" else (404, "")
        found_status, _, location = get(old_site, f"/?p={record_id}")
        assert (found_status, location.lower()) == expected, (name, record_id)


def test_unpublished_records_stay_hidden(old_site: RunningApp) -> None:
    hidden = [line for line in LINES if line[0] in ("event", "venue", "organizer") and line[4] != "publish"]
    assert hidden
    for name, _, slug, *_ in hidden:
        if slug:
            assert get(old_site, f"/{name}/{slug}/")[0] == 404, slug
            assert get(old_site, f"/{name}/{slug}/?ical=1")[0] == 404, slug
