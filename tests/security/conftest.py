"""Attacks that held once, repeated: a sample in every run, all of them with `just soak tests/security`.

Hidden records, protected filters, hidden links   test_hidden_records.py; api/test_permissions.py
Permissions by role and status                    lifecycle/test_permission_matrix.py, test_status_transitions.py
Forbidden writes                                  test_forbidden_writes.py
Names of the other site                           test_two_hosts.py; robustness/test_isolation.py
Malformed HTTP                                    test_raw_http.py
Path traversal                                    test_paths.py
Injection into pages, feeds and headers           test_injection.py; pages/test_hostile_texts.py (Chromium)
Odd reads and malformed writes                    test_odd_reads.py, test_odd_writes.py; api/test_hostile_*.py
URLs that must not be fetched                     test_fetching_by_address.py; media/test_safe_fetch.py
A shared cache in front                           test_varnish.py; varnish/test_purge.py
Secrets in the log                                test_logs.py
Hostile images                                    media/test_hostile_files.py
Row-level security                                robustness/test_row_level_security.py
"""

from collections.abc import Callable, Iterator

import pytest

from tests.api.conftest import fresh, fresh_for_module, peopled
from tests.api.running_app import Person
from tests.security.instance import Place, opened
from tests.servers import Server
from tests.varnish.conftest import stage

__all__ = ["fresh", "fresh_for_module", "peopled", "stage"]


@pytest.fixture(scope="module")
def place(
    postgres_url: str, peopled: tuple[str, dict[str, Person]], start_server: Callable[..., Server]
) -> Iterator[Place]:
    """A server that the tests of a module share."""
    with opened(postgres_url, peopled, start_server) as made:
        yield made


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
