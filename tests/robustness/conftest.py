"""What the robustness tests add to the fixtures of all tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.conftest import address, temporary_database
from tests.robustness.two_sites import Pair, copied, fill_two_sites


@pytest.fixture(scope="module")
def module_database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """A fresh migrated database for the tests of one module; each of them adds a site of its own."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield address(postgres_url, name)


@pytest.fixture(scope="module")
def filled_pair(module_database_url: str) -> Pair:
    """Two sites with the same IDs and slugs, to be copied."""
    return asyncio.run(fill_two_sites(module_database_url))


@pytest.fixture
async def pair(postgres_url: str, filled_pair: Pair) -> AsyncIterator[Pair]:
    """Two sites with the same IDs and slugs, for this one test."""
    template = filled_pair.database_url.rpartition("/")[2]
    with temporary_database(postgres_url, template=template) as name:
        async with copied(filled_pair, address(postgres_url, name)) as pair:
            yield pair


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Figures worth publishing: shown at the end of the run."""
    return lambda figures: record_property("figures", str(figures))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "figures" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(lines))
