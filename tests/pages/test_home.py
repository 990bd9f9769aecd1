"""The calendar as the start page: featured events and the weekend above the default view."""

import re
from datetime import UTC, datetime, timedelta

from kalends.core.search_words import find_weekend
from tests.api.running_app import RunningApp
from tests.pages.page_client import add_event, get_page

DAY = timedelta(days=1)


def list_highlights(page: str) -> dict[str, list[str]]:
    """Return the titles below each heading of the highlights."""
    if '<div class="highlights">' not in page:
        return {}
    part = page[page.index('<div class="highlights">') : page.index('<div class="view-header">')]
    return {
        name: re.findall(r"<h3><a [^>]+>([^<]+)</a></h3>", text)
        for name, text in re.findall(r"<h2>([^<]+)</h2>(.*?)</section>", part, re.DOTALL)
    }


def test_home_page_shows_featured_events_and_weekend(app: RunningApp) -> None:
    app.set_site("timezone", "UTC")
    app.set_site("start_page", "calendar")
    today = datetime.now(UTC).date()
    first, last = find_weekend(today)
    assert list_highlights(get_page(app, "/")) == {}
    add_event(app, "Exhibition", str(today - DAY), str(last + 30 * DAY), all_day=True)
    add_event(app, "Sunday walk", f"{last} 10:00", f"{last} 12:00")
    add_event(app, "Gala", f"{last} 20:00", f"{last} 22:00", featured=True)
    add_event(app, "Monday club", f"{last + DAY} 20:00", f"{last + DAY} 22:00")
    add_event(app, "Long ago", "2020-01-01 10:00", "2020-01-01 12:00", featured=True)
    expected = {"Featured events": ["Gala"], "This weekend": ["Sunday walk"]}
    assert list_highlights(get_page(app, "/")) == expected
    assert list_highlights(get_page(app, "/events/", "lang=de")) == {
        "Besonders empfohlen": ["Gala"],
        "Dieses Wochenende": ["Sunday walk"],
    }
    for path, query in (("/events/month/", ""), ("/", "search=walk"), ("/embed/events/", "")):
        assert list_highlights(get_page(app, path, query)) == {}, path
    assert first <= last
