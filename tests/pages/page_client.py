"""How tests ask for pages without a browser."""

from typing import Any

from tests.api.running_app import RunningApp

HTML_HEADERS = [("accept", "text/html")]


def get_page(app: RunningApp, path: str, query: str = "", status: int = 200) -> str:
    actual, headers, body = app.raw("GET", path, query=query.encode(), headers=HTML_HEADERS)
    assert actual == status, body[:500]
    assert headers["content-type"] == "text/html; charset=utf-8"
    return body.decode()


def add_event(app: RunningApp, title: str, start: str, end: str, **more: Any) -> dict[str, Any]:
    return app.caller("editor").create("events", title=title, start_date=start, end_date=end, **more)
