"""Takes the pictures in docs/images: the made-up town of `kalends seed --town` on a temporary server, in Chromium.

Pages of the console are shown to an administrator, who signs in with a link. A page that does not exist is skipped.
`--all DIR` instead writes every public page in four widths, light and dark, with a contact sheet; the exit code is 1
if a page scrolls sideways, clips a text, logs an error or responds with an unexpected status.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from PIL import Image
from playwright.sync_api import Browser, StorageState, sync_playwright

from tests.servers import Server, make_environment
from tools.page_pictures import PAGES, PROTECTED, take_pictures
from tools.postgres import throwaway

PROJECT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = PROJECT / "docs" / "images"
COLOURS: Final = 256  # Enough for flat pages, and a third of the size.
CHROMIUM: Final = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of a page. `path` may name an event by the beginning of its title, as in `event:Film club`."""

    name: str
    path: str
    width: int = 1280
    height: int = 960
    dark: bool = False

    @property
    def needs_session(self) -> bool:
        return self.path.startswith("/console/") and self.path != "/console/sign-in"


ADMINISTRATOR: Final = "anna"
# Login, role and e-mail address of the accounts on the page of people.
PEOPLE: Final = (
    (ADMINISTRATOR, "administrator", "anna@larkford.example"),
    ("ben", "editor", "ben@larkford.example"),
    ("chloe", "author", "chloe@museum.example"),
    ("library", "contributor", "events@library.example"),
)
SHOTS: Final = (
    Shot("home", "/"),
    Shot("month", "/events/month/", height=1130),
    Shot("week", "/events/week/", height=1250),
    Shot("list", "/events/list/", dark=True),
    Shot("search", "/events/search/"),
    Shot("event", "event:Harrow Lane"),
    Shot("phone", "/events/list/", 390, 844, dark=True),
    Shot("console-sign-in", "/console/sign-in", height=620),
    Shot("console-today", "/console/"),
    Shot("console-calendar", "/console/calendar?view=week"),
    Shot("console-events", "/console/events"),
    Shot("console-event", "/console/events/new", height=1200),
    Shot("console-media", "/console/media"),
    Shot("console-people", "/console/people", height=520),
    Shot("console-invitation", "/console/people/new", height=860),
    Shot("console-settings", "/console/settings", height=1100),
    Shot("console-appearance", "/console/settings/appearance"),
    Shot("console-account", "/console/account", height=1100),
    Shot("console-phone", "/console/events/new", 390, 844, dark=True),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the pictures to take (default: all)")
    parser.add_argument(
        "--all",
        nargs="?",
        type=Path,
        const=Path(".local/screenshots"),
        metavar="DIR",
        help="write all public pages to this directory instead (default: .local/screenshots)",
    )
    arguments = parser.parse_args()
    names, directory = arguments.names, arguments.all
    shots = [shot for shot in SHOTS if not names or shot.name in names]
    with run_town() as town, town.server.client() as client, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if directory:
            _add_protected_event(town)
            faults = take_pictures(browser, directory, PAGES, lambda path: find_url(client, path))
            browser.close()
            print("\n".join([*faults, f"{directory}/index.html"]))
            return 1 if faults else 0
        session = _sign_in(browser, town.sign_in_url) if any(shot.needs_session for shot in shots) else None
        for shot in shots:
            is_taken = _take(browser, shot, find_url(client, shot.path), session if shot.needs_session else None)
            print(f"docs/images/{shot.name}.png" if is_taken else f"{shot.path} does not exist")
        browser.close()
    return 0


@dataclass(frozen=True, slots=True)
class Town:
    """A running server with the town, a link that signs the administrator in, and a password for the API."""

    server: Server
    sign_in_url: str
    password: str


@contextmanager
def run_town() -> Iterator[Town]:
    """Run a server with the town until the end of the block."""
    with throwaway() as postgres, tempfile.TemporaryDirectory() as directory:
        environment = {"KALENDS_MEDIA_DIR": f"{directory}/media"}
        accounts = [["user", "add", login, "--role", role, "--email", email] for login, role, email in PEOPLE]
        for command in (["migrate"], ["seed", "--town"], ["media", "check"], *accounts):
            _run_command(command, make_environment(postgres.url, environment))
        with Server.start(postgres.url, log=Path(directory, "log"), environment=environment, timeout=120) as server:
            address = {**environment, "KALENDS_BASE_URL": server.base_url}
            printed = _run_command(["user", "link", ADMINISTRATOR], make_environment(postgres.url, address))
            password = ["app-password", "create", ADMINISTRATOR, "pictures"]
            yield Town(server, printed.split()[-1], _run_command(password, make_environment(postgres.url)).strip())


def _add_protected_event(town: Town) -> None:
    with town.server.client(login=ADMINISTRATOR, password=town.password) as client:
        client.post("/api/calendar/events/v1/events", json=PROTECTED).raise_for_status()


def _run_command(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Run a command of Kalends and return what it prints."""
    command = [sys.executable, "-m", "kalends", *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def _sign_in(browser: Browser, url: str) -> StorageState:
    """Use the link of the administrator, and return the cookies of the session."""
    page = browser.new_page()
    page.goto(url)
    page.click("main form button")
    page.wait_for_load_state()
    state = page.context.storage_state()
    page.close()
    return state


def _take(browser: Browser, shot: Shot, url: str, session: StorageState | None) -> bool:
    """Take a picture; return False if there is no such page."""
    page = browser.new_page(
        storage_state=session,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.dark else "light",
        device_scale_factor=2 if shot.width < 600 else 1,
        locale="en-GB",
        timezone_id="Europe/London",
    )
    response = page.goto(url)
    if response is None or response.status == 404:
        page.close()
        return False
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{shot.name}.png"
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as image:
        # Choosing colours by coverage keeps the rare ones, such as buttons; one round of k-means corrects the others.
        small = image.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
        )
        small.save(path, optimize=True)
    return True


def find_url(client: httpx.Client, path: str) -> str:
    """Return the URL of a page; look up an event that is named by its title."""
    if not path.startswith("event:"):
        return str(client.base_url.join(path))
    parameters = {"search": path.removeprefix("event:"), "_fields": "events.url"}
    url: str = client.get("/api/calendar/events/v1/events", params=parameters).json()["events"][0]["url"]
    return url


if __name__ == "__main__":
    sys.exit(main())
