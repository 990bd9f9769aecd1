"""The documentation says what is so."""

import re
from pathlib import Path

import pytest

from tools import reference

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/**/*.md")])


def test_settings_page_is_current() -> None:
    assert reference.PAGE.read_text() == reference.render()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_point_to_existing_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    broken = [target for target in targets if not (page.parent / target).exists()]
    assert broken == []
