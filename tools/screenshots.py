"""Takes the pictures in docs/images: the made-up town of `kalends seed --town` on a temporary server, in Chromium."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.servers import Server, make_environment
from tools.postgres import throwaway

PROJECT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = PROJECT / "docs" / "images"
CHROMIUM: Final = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")
COLOURS: Final = 256  # Enough for flat pages, and a third of the size.


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of a page. `path` may name an event by the beginning of its title, as in `event:Film club`."""

    name: str
    path: str
    width: int = 1280
    height: int = 960
    dark: bool = False


SHOTS: Final = (
    Shot("home", "/"),
    Shot("month", "/events/month/"),
    Shot("week", "/events/week/"),
    Shot("list", "/events/list/", dark=True),
    Shot("search", "/events/search/"),
    Shot("event", "event:Harrow Lane"),
    Shot("phone", "/events/list/", 390, 844, dark=True),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the pictures to take (default: all)")
    names = parser.parse_args().names
    shots = [shot for shot in SHOTS if not names or shot.name in names]
    with _run_town() as server, server.client() as client, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for shot in shots:
            _take(browser, shot, _find_url(client, shot.path))
            print(f"docs/images/{shot.name}.png")
        browser.close()
    return 0


@contextmanager
def _run_town() -> Iterator[Server]:
    """Run a server with the town until the end of the block."""
    with throwaway() as postgres, tempfile.TemporaryDirectory() as directory:
        media = {"KALENDS_MEDIA_DIR": f"{directory}/media"}
        for command in (["migrate"], ["seed", "--town"]):
            subprocess.run(
                [sys.executable, "-m", "kalends", *command], env=make_environment(postgres.url, media), check=True
            )
        with Server.start(postgres.url, log=Path(directory, "log"), environment=media, timeout=120) as server:
            yield server


def _take(browser: Browser, shot: Shot, url: str) -> None:
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.dark else "light",
        device_scale_factor=2 if shot.width < 600 else 1,
        locale="en-GB",
        timezone_id="Europe/London",
    )
    page.goto(url)
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{shot.name}.png"
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def _find_url(client: httpx.Client, path: str) -> str:
    """Return the URL of a page; look up an event that is named by its title."""
    if not path.startswith("event:"):
        return str(client.base_url.join(path))
    parameters = {"search": path.removeprefix("event:"), "_fields": "events.url"}
    url: str = client.get("/api/calendar/events/v1/events", params=parameters).json()["events"][0]["url"]
    return url


if __name__ == "__main__":
    sys.exit(main())
