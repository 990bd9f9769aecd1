"""The large run only: the primary dies after its standby fell silent, and the standby takes over.

Every wait for the standby is cut short, as a driver that times out does. What was acknowledged is on the standby.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.store.migrations import migrate
from tests.robustness.consistency import assert_consistent
from tests.robustness.process_control import kill_cluster, list_children, restart_cluster
from tests.robustness.site_fixtures import API_PATH, add_editor, run_application, wait_until
from tests.robustness.test_sync_replication import cancel_waits, set_required_standby
from tests.robustness.write_ledger import assert_no_lost_writes, run_writers
from tests.soak import SOAK
from tools import postgres

SETTINGS = {"fsync": "off", "full_page_writes": "off"}
FROZEN_SECONDS = 10

pytestmark = pytest.mark.skipif(not SOAK, reason="runs with `just soak` only")


@contextmanager
def start_standby(primary: postgres.Server, settings: Mapping[str, str] = SETTINGS) -> Iterator[postgres.Server]:
    directory = primary.directory.with_name("standby")
    directory.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres")
    source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
    postgres._run("pg_basebackup", "-D", directory, "-R", "-X", "stream", "-c", "fast", "-d", source)
    standby = postgres.start(directory, settings=settings)
    try:
        yield standby
    finally:
        standby.stop()


async def test_acknowledged_writes_survive_failover(report: Callable[[object], None]) -> None:
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        login = add_editor(primary.url)
        with start_standby(primary) as standby:
            set_required_standby(primary, "standby")
            async with (
                run_application(primary.url, statement_timeout=1) as transport,
                httpx.AsyncClient(
                    transport=transport, base_url=f"http://x{API_PATH}", auth=login, trust_env=False
                ) as client,
                run_writers(client) as ledger,
            ):
                await wait_until(lambda: len(ledger.acknowledged) > 50, 60)
                [receiver] = [pid for pid in list_children(standby.pid) if "walreceiver" in _command_line(pid)]
                os.kill(receiver, signal.SIGSTOP)
                await asyncio.sleep(0.5)
                acknowledged = len(ledger.acknowledged)
                await asyncio.to_thread(cancel_waits, primary, FROZEN_SECONDS)
                assert len(ledger.acknowledged) == acknowledged, "acknowledged without a standby"
                kill_cluster(primary)
                os.kill(receiver, signal.SIGCONT)
            report(ledger)
            with psycopg.connect(standby.url, autocommit=True) as connection:
                assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
                connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
                connection.execute("SELECT pg_reload_conf()")
            assert_no_lost_writes(ledger, standby.url)
            assert_consistent(standby.url)
        restart_cluster(primary)  # It ends as every other does.


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()
