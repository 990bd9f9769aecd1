"""The frame of the pages: legal links, languages, icon, fonts and custom CSS."""

import re

import pytest

from kalends.core.messages import LANGUAGES
from kalends.website.assets import DARK_BACKGROUND, LIGHT_BACKGROUND, contrast, make_theme
from tests.api.running_app import RunningApp
from tests.pages.page_client import add_event, get_page


def test_footer_links_to_legal_pages_and_parent_site(app: RunningApp) -> None:
    page = get_page(app, "/events/list/")
    assert "Imprint" not in page
    for key in ("imprint", "privacy", "parent"):
        app.set_site(f"{key}_url", f"https://www.town.example/{key}")
    page = get_page(app, "/events/list/", "lang=de")
    footer = page[page.index("<footer") :]
    assert '<a href="https://www.town.example/imprint">Impressum</a>' in footer
    assert '<a href="https://www.town.example/privacy">Datenschutz</a>' in footer
    assert '<a href="https://www.town.example/parent">town.example</a>' in footer
    with pytest.raises(ValueError, match="imprint_url"):
        app.set_site("imprint_url", "javascript:alert(1)")


def test_language_switch_keeps_filters_and_canonical_has_no_language(app: RunningApp) -> None:
    page = get_page(app, "/events/list/", "search=tea&lang=fr&x=1")
    links = dict(re.findall(r'<a href="([^"]+)" lang="([^"]+)" hreflang', page))
    assert links == {
        "?search=tea": "en",
        **{f"?search=tea&amp;lang={tag}": tag for tag in LANGUAGES if tag != "en"},
    }
    assert 'data-offer="Diese Seite auf Deutsch">Deutsch</a>' in page
    assert re.search(r'hreflang="fr" aria-current="true">Français</a>', page)
    assert f'rel="canonical" href="{app.base_url}/events/list/"' in page
    plain = get_page(app, "/events/list/", "lang=fr")
    alternates = re.findall(r'<link rel="alternate" hreflang="([^"]+)" href="([^"]+)">', plain)
    url = f"{app.base_url}/events/list/"
    assert dict(alternates) == {"x-default": url, **{tag: f"{url}?lang={tag}" for tag in LANGUAGES}}
    # A page that search engines do not index has no alternates.
    assert 'rel="alternate" hreflang' not in page


def test_every_page_leads_to_another_category_in_one_click(app: RunningApp) -> None:
    editor = app.caller("editor")
    music, film = (editor.create("categories", name=name) for name in ("Music", "Film"))
    jazz = editor.create("categories", name="Jazz", parent=music["id"])
    tag = editor.create("tags", name="Fun")
    venue, organizer = editor.create("venues", venue="Hall"), editor.create("organizers", organizer="Club")
    for category in (music, film, jazz):
        event = add_event(app, category["name"], "2031-03-01 20:00", "2031-03-01 22:00", venue=venue["id"],
                          categories=[category["id"]], organizer=[organizer["id"]], tags=[tag["id"]])  # fmt: skip
    records = (music, jazz, tag, venue, organizer, event)
    paths = [record["url"].removeprefix(app.base_url) for record in records]
    views = [f"/events/{view}/" for view in ("month", "week", "day", "list", "search")]
    current: dict[str, str] = {}
    for address in (*paths, *views, "/events/list/?categories=music", "/nowhere/"):
        path, _, query = address.partition("?")
        page = get_page(app, path, query, 404 if path == "/nowhere/" else 200)
        links = dict(re.findall(r'<a href="/events/category/([a-z]+)/"(.*?)>', page.partition("<main")[0]))
        assert set(links) == {"music", "film"}, path
        assert links["film"] == ""
        current[address] = links["music"].strip()
    assert {path: mark for path, mark in current.items() if mark} == {
        "/events/category/music/": 'aria-current="page"',
        "/events/category/music/jazz/": 'aria-current="true"',
        "/events/list/?categories=music": 'aria-current="true"',
    }
    assert 'class="category-nav"' not in get_page(app, "/embed/events/category/music/")


def test_favicon_is_the_logo_or_the_built_in_icon(app: RunningApp) -> None:
    status, headers, body = app.raw("GET", "/favicon.ico")
    assert (status, headers["content-type"], body[:4]) == (200, "image/x-icon", b"\0\0\1\0")
    app.set_site("logo_url", "https://cdn.example/logo.svg")
    status, headers, _ = app.raw("GET", "/favicon.ico")
    assert (status, headers["location"]) == (302, "https://cdn.example/logo.svg")
    assert '<link rel="icon" href="https://cdn.example/logo.svg">' in get_page(app, "/")


def test_second_accent_and_fonts_are_part_of_the_style(app: RunningApp) -> None:
    for key, value in (("accent", "#0b5fff"), ("second_accent", "#ff8800"), ("fonts", "sans")):
        app.set_site(key, value)
    name = re.findall(r'href="(/assets/site\.[^"]+)"', get_page(app, "/"))[0]
    assert name.endswith(".0b5fff-ff8800.sans.css")
    assert b"--heading:var(--body,var(--sans))" in app.raw("GET", name)[2]
    assert app.raw("GET", name.replace(".sans.", ".unknown."))[0] == 404
    for key, value in (("fonts", "comic"), ("second_accent", "orange")):
        with pytest.raises(ValueError, match=key):
            app.set_site(key, value)
    app.set_site("second_accent", "")


@pytest.mark.parametrize("second", ["#ffff00", "#000000", "#ff8800"])
def test_second_accent_has_sufficient_contrast(second: str) -> None:
    light, dark = re.findall(r"--second:(#[0-9a-f]{6});--on-second:(#[0-9a-f]{6})", make_theme("#b3341e", second))
    for (colour, text), background in ((light, LIGHT_BACKGROUND), (dark, DARK_BACKGROUND)):
        assert contrast(colour, background) >= 4.5
        assert contrast(colour, text) >= 4.5


def test_custom_css_is_served_from_the_own_host(app: RunningApp) -> None:
    assert app.raw("GET", "/custom.000000000000.css")[0] == 404
    app.set_site("custom_css", "/* ours */ .brand { letter-spacing: .1em }")
    page = get_page(app, "/events/list/")
    (path,) = re.findall(r'<link rel="stylesheet" href="(/custom\.[0-9a-f]{12}\.css)">', page)
    status, headers, body = app.raw("GET", path)
    assert (status, headers["content-type"], body) == (
        200,
        "text/css; charset=utf-8",
        b".brand { letter-spacing: .1em }",
    )
    # After the styles of the page, so that it can change them.
    assert page.index(path) > page.index("/assets/site.")
    app.set_site("custom_css", "a { color: red }")
    assert app.raw("GET", path)[2] == b"a { color: red }"
    app.set_site("custom_css", "")
    assert "/custom." not in get_page(app, "/events/list/")
