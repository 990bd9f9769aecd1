"""The documentation says what is so."""

import re
from pathlib import Path

import pytest

from tools import reference

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/**/*.md")])


def test_the_page_of_settings_is_the_one_the_code_makes() -> None:
    assert reference.PAGE.read_text() == reference.render()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    broken = [target for target in targets if not (page.parent / target).exists()]
    assert broken == []
