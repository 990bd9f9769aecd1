"""The large run only: the primary dies after its standby fell silent, and the standby takes over.

Every wait for the standby is cut short, as a driver that times out does. What was acknowledged is on the standby.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.store.migrations import migrate
from tests.robustness.consistency import audit
from tests.robustness.process_control import children_of, crash, start_again
from tests.robustness.site_fixtures import NS, add_editor, application, until
from tests.robustness.test_sync_replication import end_waits, wait_for
from tests.robustness.write_ledger import check, writers
from tests.soak import SOAK
from tools import postgres

SETTINGS = {"fsync": "off", "full_page_writes": "off"}
FROZEN_SECONDS = 10

pytestmark = pytest.mark.skipif(not SOAK, reason="the large run only")


@contextmanager
def standby_of(primary: postgres.Server) -> Iterator[postgres.Server]:
    directory = primary.directory.with_name("standby")
    directory.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres")
    source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
    postgres._run("pg_basebackup", "-D", directory, "-R", "-X", "stream", "-c", "fast", "-d", source)
    standby = postgres.start(directory, settings=SETTINGS)
    try:
        yield standby
    finally:
        standby.stop()


async def test_acknowledged_writes_survive_failover(tell: Callable[[object], None]) -> None:
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        login = add_editor(primary.url)
        with standby_of(primary) as standby:
            wait_for(primary, "standby")
            async with (
                application(primary.url, statement_timeout=1) as transport,
                httpx.AsyncClient(
                    transport=transport, base_url=f"http://x{NS}", auth=login, trust_env=False
                ) as client,
                writers(client) as ledger,
            ):
                await until(lambda: len(ledger.acknowledged) > 50, 60)
                [receiver] = [pid for pid in children_of(standby.pid) if "walreceiver" in _command(pid)]
                os.kill(receiver, signal.SIGSTOP)
                await asyncio.sleep(0.5)
                acknowledged = len(ledger.acknowledged)
                await asyncio.to_thread(end_waits, primary, FROZEN_SECONDS)
                assert len(ledger.acknowledged) == acknowledged, "acknowledged without a standby"
                crash(primary)
                os.kill(receiver, signal.SIGCONT)
            tell(ledger)
            with psycopg.connect(standby.url, autocommit=True) as connection:
                assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
                connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
                connection.execute("SELECT pg_reload_conf()")
            check(ledger, standby.url)
            audit(standby.url)
        start_again(primary)  # It ends as every other does.


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()
