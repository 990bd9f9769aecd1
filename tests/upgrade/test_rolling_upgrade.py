"""Servers and workers are replaced one by one by those of a later version, under load: no error, no lost write.

In CI, the oldest compatible version is replaced by this one. `just upgrade-test` goes on to a made-up next version,
with 200 requests and 10 writes per second.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.soak import SOAK, scaled
from tests.upgrade.proxy import Proxy
from tests.upgrade.rolling import (
    Installation,
    describe,
    find_lost_writes,
    pause,
    send_load,
    wait_for_publication,
)
from tests.upgrade.versions import Version, current_version, next_version, oldest_version
from tools.postgres import throwaway

RATES = {"reads": scaled(20, 200), "writes": scaled(2, 10)}
# Seconds of load before the first and after the last replacement.
MARGIN = scaled(1, 20)
MAX_REJECTED = scaled(3, 0)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with throwaway() as postgres:
        installed = Installation(postgres.url, tmp_path_factory.mktemp("upgrade"), oldest_version())
        try:
            installed.set_up(events=scaled(100, 1000))
            yield installed
        finally:
            installed.stop()


@pytest.mark.skipif(not SOAK, reason="the figures to compare with; run with `just upgrade-test`")
def test_load_without_an_upgrade(installation: Installation, report: Callable[[object], None]) -> None:
    with (
        Proxy(installation.directory, installation.ports, check="/readyz") as proxy,
        send_load(installation, proxy, name="baseline", **RATES) as figures,
    ):
        pause(scaled(2, 60))
    assert_nothing_lost(installation, figures)
    report(describe(figures))


def test_oldest_compatible_version_is_replaced(installation: Installation, report: Callable[[object], None]) -> None:
    version = current_version()
    if not SOAK and version.schema == installation.version.schema:
        version = next_version()  # There is no later migration yet.
    report(upgrade(installation, version))


@pytest.mark.skipif(not SOAK, reason="takes minutes; run with `just upgrade-test`")
def test_next_version_replaces_this_one(installation: Installation, report: Callable[[object], None]) -> None:
    report(upgrade(installation, next_version()))


def upgrade(installation: Installation, version: Version) -> str:
    """Migrate and replace all processes under load, and return the figures."""
    with (
        Proxy(installation.directory, installation.ports, check="/readyz") as proxy,
        send_load(installation, proxy, name=f"to {version.name}", **RATES) as figures,
    ):
        pause(MARGIN)
        printed = version.run(installation.database_url, "migrate")
        before = installation.version.schema
        pending = f"The schema is {before}, the target is {version.schema}."
        assert printed.startswith(pending if version.schema > before else f"The schema is up to date ({before}).")
        assert installation.read_readiness() == [200, 200]
        pause(MARGIN)
        installation.roll(version, proxy, settle_seconds=scaled(1, 10))
        pause(MARGIN)
    assert installation.read_readiness() == [200, 200]
    assert_nothing_lost(installation, figures)
    retries = printed.count("trying again")
    return f"{describe(figures)}; the migration gave way {retries} times"


def assert_nothing_lost(installation: Installation, figures: dict[str, Any]) -> None:
    # A server that gets no time of the processor rejects a request that has waited for the database; in CI, not in a
    # soak, that may happen. Errors of the proxy and lost connections never may.
    rejected = [line for line in figures["failures"] if "rest_unavailable" in line]
    assert figures["failures"] == rejected[:MAX_REJECTED]
    assert figures["acknowledged"]
    assert find_lost_writes(installation.database_url, figures["acknowledged"]) == []
    wait_for_publication(installation.database_url, figures["scheduled"])
    expected = RATES["reads"] * figures["seconds"]
    # A busy machine sends less.
    assert sum(figures["reads"].values()) >= expected * scaled(2, 8) / 10
