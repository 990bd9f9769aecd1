"""Under which address a page is found, and which one it calls its own."""

import re
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

import pytest

from tests.api.running_app import RunningApp
from tests.pages.page_client import add_event, get_page


def canonical_path(app: RunningApp, page: str) -> str:
    match = re.search(r'<link rel="canonical" href="([^"]+)">', page)
    assert match
    return match[1].removeprefix(app.base_url)


@pytest.mark.quick("\\u97f3\\u697d", "M\\xfasica / \\u2602")
@pytest.mark.parametrize("name", ["音楽", "Музыка", "Café", "Música / ☂"])
def test_category_url_supports_any_script(app: RunningApp, name: str) -> None:
    editor = app.caller("editor")
    parent = editor.create("categories", name=name)
    child = editor.create("categories", name=f"{name} 2", parent=parent["id"])
    add_event(app, "Concert", "2031-03-14 19:30", "2031-03-14 22:00", categories=[child["id"]])
    for record in (parent, editor.read("categories", child["id"])):
        page = get_page(app, unquote(urlsplit(record["url"]).path), "lang=de")
        assert canonical_path(app, page) == urlsplit(record["url"]).path
    status, headers, _ = app.raw("GET", f"/events/category/{unquote(child['slug'])}/", query=b"lang=de&page=2")
    assert (status, headers["location"]) == (301, f"{record['url']}?lang=de&page=2")
    lists = re.findall(r'<ul class="terms">.*?</ul>', get_page(app, unquote(urlsplit(parent["url"]).path), "lang=de"))
    below = [links for links in lists if "/events/category/" in links]
    assert [link for link in below if urlsplit(record["url"]).path + "?lang=de" in link] == below
    assert below


@pytest.mark.quick("month", "map")
@pytest.mark.parametrize("view", ["month", "week", "day", "list", "map"])
def test_start_page_is_indexable_for_all_views(app: RunningApp, view: str) -> None:
    app.set_site("start_page", "calendar")
    app.set_site("default_view", view)
    for path in ("/", "/events/"):
        page = get_page(app, path)
        assert (canonical_path(app, page), 'name="robots"' in page) == ("/events/", False)
    assert 'content="noindex"' in get_page(app, "/", "search=a")


def test_current_month_is_indexable_and_empty_dated_month_is_not(app: RunningApp) -> None:
    page = get_page(app, "/events/month/")
    assert (canonical_path(app, page), 'name="robots"' in page) == ("/events/month/", False)
    path = f"/events/month/{datetime.now(UTC):%Y-%m}/"
    page = get_page(app, path)
    assert (canonical_path(app, page), 'content="noindex, nofollow"' in page) == (path, True)
