"""The documentation site in Chromium: names in one line, a copy button for commands, a home page with a picture."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import BrowserContext, sync_playwright

from tests.docs.page_commands import PROJECT

CHROMIUM = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")
HEIGHTS = "cells => cells.map(cell => cell.getClientRects().length)"

pytestmark = [pytest.mark.docs, pytest.mark.browser]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    configuration = yaml.safe_load((PROJECT / "mkdocs.yml").read_text())
    shutil.copytree(PROJECT / "docs", directory / "docs")
    (directory / "mkdocs.yml").write_text(yaml.safe_dump({**configuration, "site_dir": "site"}))
    zensical = Path(sys.executable).parent / "zensical"
    result = subprocess.run(
        [zensical, "build", "--strict"], cwd=directory, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return directory / "site"


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_context(
            viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
        )
        browser.close()


def test_names_stay_in_one_line(site: Path, context: BrowserContext) -> None:
    page = context.new_page()
    for name in ("settings.html", "reference/events.html"):
        page.goto((site / name).as_uri())
        lines = page.locator("td:first-child code").evaluate_all(HEIGHTS)
        assert len(lines) > 20
        assert set(lines) == {1}


def test_copy_button_copies_commands_only(site: Path, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto((site / "quickstart-developer.html").as_uri())
    block = page.locator(".highlight").first
    assert '{"total":' in block.inner_text()
    block.hover()
    block.locator("button[data-md-type=copy]").click()
    page.wait_for_function("navigator.clipboard.readText()")
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == [
        "NS=http://localhost:8000/api/calendar/events/v1",
        'LOGIN="admin:$(cat .local/password)"',
        'curl -s "$NS/events?per_page=1&_fields=total,events.title"',
    ]


def test_home_page_has_picture_and_entry_points(site: Path, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.locator("img[src$='home.png']").evaluate("image => image.naturalWidth") == 1280
    entries = page.locator(".entry-points li")
    assert entries.count() == 3
    tops = entries.evaluate_all("items => items.map(item => item.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    assert max(tops) < 500
