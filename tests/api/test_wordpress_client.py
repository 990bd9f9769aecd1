"""A stock WordPress client: it knows the address of the site and a login, and finds everything else by discovery."""

import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.media.image_fixtures import make_image


@dataclass
class WordPressClient:
    """What a client library does. No line of it depends on the server."""

    caller: Caller
    root: str = ""

    def discover(self, home: str) -> dict[str, Any]:
        """Find the REST root in the headers of the home page, and read its document."""
        links = self.caller.request("HEAD", home).headers["link"]
        self.root = re.findall(r'<([^>]+)>; rel="https://api.w.org/"', links)[0]
        document: dict[str, Any] = self.caller.get(self.root).json()
        return document

    def request(self, method: str, route: str, **options: Any) -> httpx.Response:
        # Without pretty permalinks the root already has a query string.
        address = self.root + (route.replace("?", "&") if "?" in self.root else route)
        response = self.caller.request(method, address, **options)
        response.raise_for_status()
        return response


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module({"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"})


@pytest.mark.quick("", "//index.php/wp-json/")
@pytest.mark.parametrize("root", ["", "//?rest_route=/", "//index.php/wp-json/"])
def test_client_signs_in_uploads_an_image_and_publishes_an_event(app: RunningApp, root: str) -> None:
    client = WordPressClient(app.caller("author"))
    document = client.discover("//")
    client.root = root or client.root
    assert {"wp/v2", "tribe/events/v1"} <= set(document["namespaces"])
    assert "/wp/v2/media" in document["routes"]

    me = client.request("GET", "wp/v2/users/me?context=edit").json()
    assert me["capabilities"]["upload_files"]

    headers = {"Content-Disposition": 'attachment; filename="poster.jpg"', "Content-Type": "image/jpeg"}
    raw = client.request("POST", "wp/v2/media", content=make_image(seed=7), headers=headers)
    poster = client.caller.get(raw.headers["location"]).json()
    client.request("POST", f"wp/v2/media/{poster['id']}", json={"alt_text": "A poster"})
    form = {"file": ("flyer.png", make_image("PNG", seed=8), "image/png")}
    flyer = client.request("POST", "wp/v2/media", files=form, data={"title": "Flyer", "alt_text": "A flyer"}).json()
    assert (poster["author"], flyer["title"]["raw"]) == (me["id"], "Flyer")

    for image in (poster, flyer):
        event = client.request(
            "POST",
            "tribe/events/v1/events",
            json={
                "title": f"Concert with image {image['id']}",
                "start_date": "2031-05-05 18:00:00",
                "end_date": "2031-05-05 20:00:00",
                "status": "publish",
                "image": image["id"],
            },
        ).json()
        visitor = WordPressClient(app.caller(), client.root)
        found = visitor.request("GET", f"wp/v2/tribe_events/{event['id']}?_embed").json()
        (embedded,) = found["_embedded"]["wp:featuredmedia"]
        assert (found["featured_media"], embedded["source_url"]) == (image["id"], image["source_url"])
        (listed,) = visitor.request("GET", f"wp/v2/media?include={image['id']}").json()
        assert listed["alt_text"] == embedded["alt_text"] == ("A poster" if image is poster else "A flyer")
