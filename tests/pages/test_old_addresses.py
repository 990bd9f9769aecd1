"""Addresses of a WordPress site with The Events Calendar redirect to the pages that replace them."""

import pytest

from kalends.website.redirects import translate
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp

HTML = [("accept", "text/html")]
# Old addresses and their targets. `{event}` and so on are IDs.
REDIRECTS = {
    "/events/2031-12/": "/events/month/2031-12/",
    "/events/2031-12": "/events/month/2031-12/",
    "/events/2031-12-05/": "/events/day/2031-12-05/",
    "/events/today/": "/events/day/",
    "/events/list/page/2/?per_page=1": "/events/list/?per_page=1&page=2",
    "/events/page/1/?utm_source=a": "/events/list/?utm_source=a&page=1",
    "/events/month/page/1/": "/events/list/?page=1",
    "/events/list/page/99/?z=1": "/events/list/?z=1",
    "/events/category/music/loud/page/2/?per_page=1": "/events/category/music/loud/?per_page=1&page=2",
    "/events/category/loud/page/99/": "/events/category/music/loud/",
    "/events/category/music/loud/list/": "/events/category/music/loud/",
    "/events/category/loud/list/": "/events/category/music/loud/",
    "/events/category/former/list/": "/events/category/music/loud/",
    "/events/category/music/page/1/": "/events/category/music/?page=1",
    "/events/category/music/loud/2031-12/": "/events/month/2031-12/?categories=loud",
    "/events/category/music/loud/month/2031-12/": "/events/month/2031-12/?categories=loud",
    "/events/category/music/day/2031-12-05/": "/events/day/2031-12-05/?categories=music",
    "/events/category/music/month/": "/events/month/?categories=music",
    "/events/category/music/today/": "/events/day/?categories=music",
    "/events/featured/": "/events/list/?featured=1",
    "/events/tag/winter/": "/tag/winter/",
    "/events/tag/former/": "/tag/winter/",
    "/events/tag/winter/list/?z=%26": "/tag/winter/?z=%26",
    "/tag/winter/page/1/": "/tag/winter/?page=1",
    "/events/list/?tribe-bar-date=2027-05-01": "/events/list/?start_date=2027-05-01",
    "/events/?tribe-bar-date=2027-05-01&z=1": "/events/list/?z=1&start_date=2027-05-01",
    "/events/month/?tribe-bar-date=2027-05-01": "/events/month/2027-05/",
    "/events/month/2026-12/?tribe-bar-date=2027-05": "/events/month/2027-05/",
    "/events/day/?tribe-bar-date=2027-05-01": "/events/day/2027-05-01/",
    "/events/category/music/?tribe-bar-date=2027-05-01": "/events/list/?categories=music&start_date=2027-05-01",
    "/events/?tribe-bar-search=market": "/events/?search=market",
    "/events/month/2031-12/?tribe-bar-search=market&tribe-bar-date=": "/events/month/2031-12/?search=market",
    "/tag/winter/?tribe-bar-search=a%26b": "/events/list/?search=a%26b&tags=winter",
    "/events/?eventDisplay=past": "/events/list/?past=1",
    "/events/list/?tribe_event_display=past&tribe_paged=1": "/events/list/?page=1&past=1",
    "/events/category/music/?eventDisplay=past": "/events/category/music/?past=1",
    "/events/?eventDisplay=list": "/events/list/",
    "/events/month/?eventDisplay=list": "/events/list/",
    "/events/list/?eventDisplay=month&tribe-bar-date=2027-05-01": "/events/month/2027-05/",
    "/events/month/2031-12/?eventDisplay=past": "/events/list/?past=1",
    "/events/list/?tribe-bar-date=5/1/2027": "/events/list/?start_date=2027-05-01",
    "/events/?eventDisplay=month": "/events/month/",
    "/events/?eventDisplay=day&eventDate=2031-12-05": "/events/day/2031-12-05/",
    "/?post_type=tribe_events&eventDisplay=list": "/events/list/",
    "/events/?tribe_events_cat=music": "/events/?categories=music",
    "/?tribe_events=market": "/event/market/",
    "/?tribe_events=bazaar&lang=de": "/event/market/?lang=de",
    "/?tribe_venue=hall": "/venue/hall/",
    "/?p={event}": "/event/market/",
    "/?p={event}&utm_source=a": "/event/market/?utm_source=a",
    "/?post_type=tribe_events&p={event}": "/event/market/",
    "/index.php?p={venue}": "/venue/hall/",
    "/?p={organizer}": "/organizer/club/",
    "/events/feed/": "/events.rss",
    "/feed/?post_type=tribe_events": "/events.rss",
    "/feed/": "/events.rss",
    "/events/category/music/loud/feed/": "/events.rss?categories={loud}",
    "/events/category/former/feed/": "/events.rss?categories={loud}",
    "/events/tag/winter/feed/": "/events.rss?tags={tag}",
    "/feed/atom/": "/events.atom",
    "/event/market/embed/": "/embed/event/market/",
    "/event/bazaar/embed/": "/embed/event/market/",
    "/?feed=rss2&post_type=tribe_events": "/events.rss",
    "/?feed=rss2&post_type=tribe_events&tribe_events_cat=music": "/events.rss?categories={music}",
    "/events/category/music/loud/?feed=rss2": "/events.rss?categories={loud}",
    "/tag/winter/?feed=atom": "/events.atom?tags={tag}",
    "/wp-sitemap.xml": "/sitemap.xml",
    "/wp-sitemap-posts-tribe_events-1.xml": "/sitemap.xml",
    "/wp-sitemap-taxonomies-tribe_events_cat-1.xml": "/sitemap.xml",
    "/index.php": "/",
}  # fmt: skip
# Addresses that stay as they are.
UNCHANGED = {
    "/?p=x": 200,
    "/?post_type=tribe_events": 200,
    "/events/?tribe-bar-date=&tribe-bar-search=": 200,
    "/events/?eventDisplay=default": 200,
    "/events/list/?tribe-bar-date=next": 200,
    "/event/market/?eventDisplay=past": 200,
    "/events/category/music/list-2/": 200,
    "/events/category/music/2030-06/": 200,
    "/?p=999999": 404,
    "/?p={draft}": 404,
    "/?p={event}1": 404,
    "/events/category/nothing/": 404,
    "/events/list/?page=99": 404,
    "/events/2031-13/extra/": 404,
    "/events/summary/": 404,
    "/event/market/feed/": 404,
    "/?feed=none": 200,
    "/venue/hall/?feed=rss2": 200,
    "/wp-sitemap-users-1.xml": 404,
    "/comments/feed/": 404,
    "/xmlrpc.php": 404,
    "/author/admin/": 404,
    "/wp-login.php": 404,
    "/wp-admin/": 404,
}


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module()


@pytest.fixture(scope="module")
def ids(app: RunningApp) -> dict[str, int]:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")
    loud = editor.create("categories", name="Loud", slug="former", parent=music["id"])
    editor.change("categories", loud["id"], slug="loud")
    # Categories whose slugs look like a part of an old address.
    for slug in ("2030-06", "list-2"):
        editor.create("categories", name=slug, slug=slug, parent=music["id"])
    tag = editor.create("tags", name="Winter", slug="former")
    editor.change("tags", tag["id"], slug="winter")
    times = {"start_date": "2031-12-05 10:00", "end_date": "2031-12-05 12:00"}
    event = editor.create("events", title="Market", slug="bazaar", **times, categories=[loud["id"]], tags=["winter"],
                          venue={"venue": "Hall"}, organizer=[{"organizer": "Club"}])  # fmt: skip
    editor.change("events", event["id"], slug="market")
    editor.create("events", title="Second", **times, categories=[loud["id"]])
    draft = editor.create("events", title="Draft", status="draft", **times)
    linked = {"venue": event["venue"]["id"], "organizer": event["organizer"][0]["id"]}
    return {**linked, "event": event["id"], "draft": draft["id"], "music": music["id"], "loud": loud["id"],
            "tag": tag["id"]}  # fmt: skip


def get(app: RunningApp, address: str, method: str = "GET") -> tuple[int, str]:
    path, _, query = address.partition("?")
    status, headers, _ = app.raw(method, path, query=query.encode(), headers=HTML)
    return status, headers.get("location", "")


def test_every_old_address_redirects_once(app: RunningApp, ids: dict[str, int]) -> None:
    for old, target in REDIRECTS.items():
        address, expected = old.format(**ids), target.format(**ids)
        assert get(app, address) == (301, expected), address
        assert get(app, address, "HEAD") == (301, expected), address
        assert get(app, expected) == (200, ""), expected


def test_other_addresses_do_not_redirect(app: RunningApp, ids: dict[str, int]) -> None:
    for address, status in UNCHANGED.items():
        assert get(app, address.format(**ids)) == (status, ""), address


def test_redirects_expire_after_an_hour(app: RunningApp, ids: dict[str, int]) -> None:
    for path, query in (("/", f"p={ids['event']}"), ("/events/today/", ""), ("/events/", "eventDisplay=past")):
        _, headers, body = app.raw("GET", path, query=query.encode())
        assert (headers["cache-control"], body) == ("public, max-age=3600", b"")


@pytest.mark.quick("/?tribe_events=//evil.example", "/events/tag/{slug}/")
@pytest.mark.parametrize(
    "address",
    [
        "/?tribe_events=//evil.example",
        "/?tribe_events=%0d%0aSet-Cookie:a=b",
        "/?tribe_events=x%3Fnext=//evil.example",
        "//evil.example/events/today/",
        "/?p=1%0d%0a",
        "/events/?tribe-bar-date=//evil.example",
        "/events/?tribe-bar-search=%0d%0aLocation:%20//evil.example",
        "/events/?eventDisplay=//evil.example",
        "/events/?eventDisplay=list&%0d%0aX:=1",
        "/events/category/%0d%0aX:%20y/list/",
        "/events/tag/%2F%2Fevil.example/",
        "/events/tag/{slug}/",
    ],
)
def test_targets_stay_on_the_site(app: RunningApp, address: str) -> None:
    status, location = get(app, address.replace("%0d", "\r").replace("%0a", "\n") if "?" not in address else address)
    assert status in (200, 301, 404)
    assert not location or (location.startswith(("/event", "/tag/")) and not location.startswith("//"))
    assert "\r" not in location
    assert "\n" not in location


def test_translation_leads_to_current_addresses() -> None:
    for target in REDIRECTS.values():
        path, _, query = target.partition("?")
        assert translate(path, [("z", query)]) is None, target
