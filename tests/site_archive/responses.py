"""What a server sends for a site: the API, pages, feeds and images, with the host and the ID of the site replaced."""

import re
from dataclasses import dataclass

import httpx

from tests.robustness.two_sites import API_PATH, EXTENSION_PATH
from tests.servers import Server

ALL_DATES = "?start_date=2000-01-01&end_date=2100-01-01&per_page=50"
PATHS = (
    f"{API_PATH}/events{ALL_DATES}",
    f"{API_PATH}/events?search=text&start_date=2000-01-01",
    f"{API_PATH}/venues",
    f"{API_PATH}/organizers",
    f"{API_PATH}/categories",
    f"{API_PATH}/tags",
    f"{EXTENSION_PATH}/series",
    f"{EXTENSION_PATH}/media",
    f"{EXTENSION_PATH}/changes?since=0",
    "/",
    "/events/list/",
    "/events/map/",
    "/events/month/2021-03/",
    "/events/search/?q=weekly",
    "/sitemap.xml",
    "/events/feed.ics",
    "/events/feed.rss",
    "/agenda/list/",
    "/wp-content/a.png",
)


@dataclass(frozen=True)
class Serving:
    server: Server
    host: str
    site_id: int

    def get(self, path: str) -> tuple[int, str, str]:
        """Return status, location and body."""
        response = httpx.get(self.server.base_url + path, headers={"Host": self.host}, timeout=30)
        return response.status_code, self.neutralize(response.headers.get("location", "")), self._read(response)

    def _read(self, response: httpx.Response) -> str:
        return (
            response.content.hex() if "image" in response.headers["content-type"] else self.neutralize(response.text)
        )

    def neutralize(self, text: str) -> str:
        return re.sub(rf"/media/{self.site_id}/", "/media/0/", text.replace(self.host, "HOST"))


def compare_responses(first: Serving, second: Serving) -> None:
    """Compare the responses of both to all paths, and to those of the records and files that the lists name."""
    paths = [*PATHS, *find_paths(first)]
    assert len(paths) > len(PATHS) + 20
    for path in paths:
        other = path.replace(f"/media/{first.site_id}/", f"/media/{second.site_id}/")
        expected = first.get(path)
        assert second.get(other) == expected, path
        assert expected[0] < 500, path


def find_paths(serving: Serving) -> list[str]:
    """Return the paths of records, pages and files in the lists."""
    found: dict[str, None] = {}
    for path in PATHS[:8]:
        _, _, body = serving.get(path)
        for url in re.findall(r'"http:\\?/\\?/HOST([^"]+)"', body):
            found[url.replace("\\/", "/").replace("/media/0/", f"/media/{serving.site_id}/")] = None
    return list(found)
