"""CPU time of processes, from /proc: a server with its workers, and the database sessions that serve it."""

import os
from contextlib import suppress
from pathlib import Path

import psycopg

TICKS = os.sysconf("SC_CLK_TCK")
APPLICATION_NAME = "bench"


def cpu_seconds(pid: int) -> float:
    """User and system time of one process, all its threads included."""
    # The name in parentheses may contain spaces; the fields count from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def list_process_tree(pid: int) -> list[int]:
    """The process and all that descend from it."""
    pids = [pid]
    for parent in pids:  # It grows while it is walked.
        # A process may end while the others are read.
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                pids.extend(int(child) for child in (thread / "children").read_text().split())
    return pids


def list_session_pids(database_url: str) -> list[int]:
    """The processes behind all connections to this database but our own, of which one may still be closing."""
    with psycopg.connect(database_url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        rows = connection.execute(
            """SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> %s
                ORDER BY pid""",
            [APPLICATION_NAME],
        ).fetchall()
    return [row[0] for row in rows]
