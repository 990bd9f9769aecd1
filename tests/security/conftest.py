"""The fixtures of tests/api, here too: an application per module or test, with one user of every role."""

from collections.abc import Callable

import pytest

from tests.api.conftest import fresh, fresh_for_module, peopled

__all__ = ["fresh", "fresh_for_module", "peopled"]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Figures worth publishing: shown at the end of the run."""
    return lambda figures: record_property("figures", str(figures))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [
        f"{report.nodeid.rpartition('/')[2]}: {value}"
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "figures" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("tried and held")
        terminalreporter.write_line("\n".join(lines))
