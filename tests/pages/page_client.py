"""How tests ask for pages without a browser."""

from typing import Any

from tests.api.running_app import Interface

HTML = [("accept", "text/html")]


def get(interface: Interface, path: str, query: str = "", status: int = 200) -> str:
    found, headers, body = interface.raw("GET", path, query=query.encode(), headers=HTML)
    assert found == status, body[:500]
    assert headers["content-type"] == "text/html; charset=utf-8"
    return body.decode()


def add(interface: Interface, title: str, start: str, end: str, **more: Any) -> dict[str, Any]:
    return interface.caller("editor").create("events", title=title, start_date=start, end_date=end, **more)
