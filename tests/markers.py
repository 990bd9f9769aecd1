"""The markers `quick`, which chooses parameter sets of a slow test, and `quarantined`, whose tests cannot fail a run.

@pytest.mark.quick("events", "tags")  # `just test-quick` runs these sets only; the others become `exhaustive`.
@pytest.mark.quarantined(reason="the disk of the forge stalls")
"""

from collections.abc import Iterator
from typing import Any

import pytest

MAX_QUARANTINED = 5


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Iterator[None]:
    made: Any = yield
    sets = [item for item in made or () if hasattr(item, "callspec")] if isinstance(made, list) else []
    marker = sets[0].get_closest_marker("quick") if sets else None
    if marker:
        chosen = [find_set(sets, name) for name in marker.args]
        if None in chosen:
            unknown = [name for name, item in zip(marker.args, chosen, strict=True) if item is None]
            raise collector.CollectError(f"{sets[0].nodeid}: not one parameter set begins with {unknown}")
        for item in sets:
            if item not in chosen:
                item.add_marker("exhaustive")
    return made


def find_set(sets: list[Any], name: str) -> Any:
    """Return the parameter set with this ID, or else the only one whose ID begins with it."""
    found = [item for item in sets if item.callspec.id == name]
    found = found or [item for item in sets if item.callspec.id.startswith(name)]
    return found[0] if len(found) == 1 else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    quarantined = [(item, marker) for item in items if (marker := item.get_closest_marker("quarantined"))]
    names = {item.nodeid.partition("[")[0] for item, _ in quarantined}
    if len(names) > MAX_QUARANTINED:
        raise pytest.UsageError(f"{len(names)} tests are quarantined, {MAX_QUARANTINED} may be: {sorted(names)}")
    for item, marker in quarantined:
        item.add_marker(pytest.mark.xfail(reason=f"quarantined: {marker.kwargs['reason']}", strict=False))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        f"{report.nodeid.rpartition('/')[2]}: {outcome}, {report.wasxfail}"
        for outcome, category in (("passed", "xpassed"), ("failed", "xfailed"))
        for report in terminalreporter.stats.get(category, [])
        if "quarantined" in report.keywords
    ]
    if lines:
        terminalreporter.section("quarantined")
        terminalreporter.write_line("\n".join(lines))
