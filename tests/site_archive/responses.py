"""What a server sends for a site: the API, pages, feeds and images, with the host and the ID of the site replaced."""

import re
from dataclasses import dataclass
from difflib import unified_diff

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
    f"{EXTENSION_PATH}/changes?since=0",
    "/",
    "/events/list/",
    "/events/map/",
    "/events/month/2021-03/",
    "/events/search/?q=weekly",
    "/sitemap.xml",
    "/sitemap/0.xml",
    "/sitemap/terms.xml",
    "/events.ics",
    "/events.rss",
    "/events.atom",
    "/events.json",
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
        is_image = response.headers.get("content-type", "").startswith("image/")
        return response.content.hex() if is_image else self.neutralize(response.text)

    def neutralize(self, text: str) -> str:
        text = text.replace("\r\n ", "")  # iCalendar folds long lines
        return re.sub(rf"/media/{self.site_id}/", "/media/0/", text.replace(self.host, "HOST"))


def compare_responses(first: Serving, second: Serving) -> None:
    """Compare the responses of both to all paths, and to those of the records and files that the lists name."""
    paths = [*PATHS, *find_paths(first)]
    assert len(paths) > len(PATHS) + 20
    for path in paths:
        other = path.replace(f"/media/{first.site_id}/", f"/media/{second.site_id}/")
        expected, found = first.get(path), second.get(other)
        difference = "\n".join(unified_diff(expected[2].split(">"), found[2].split(">"), lineterm=""))
        assert found == expected, f"{path}\n{difference[:2000]}"
        # The page of the protected event asks for its password.
        assert expected[0] in (200, 301, 302, 308, 403), f"{path}: {expected}"


def find_paths(serving: Serving) -> list[str]:
    """Return the paths of records, pages and files in the lists."""
    found: dict[str, None] = {}
    for path in PATHS[:7]:
        _, _, body = serving.get(path)
        for path_of_record in re.findall(r'"http://HOST([^"\\]+)"', body):
            found[path_of_record.replace("/media/0/", f"/media/{serving.site_id}/")] = None
    return list(found)
