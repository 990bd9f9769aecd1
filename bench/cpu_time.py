"""CPU time of processes, from /proc: a server with its workers, and the database sessions that serve it."""

import os
from contextlib import suppress
from pathlib import Path

import psycopg

TICKS = os.sysconf("SC_CLK_TCK")
APPLICATION_NAME = "bench"


def cpu_seconds(pid: int) -> float:
    """Return user and system time of one process with all its threads."""
    # The name in parentheses may contain spaces, so the fields are counted after it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def list_process_tree(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    pids = [pid]
    for parent in pids:  # The list grows during the iteration.
        # A process may end in the meantime.
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                pids.extend(int(child) for child in (thread / "children").read_text().split())
    return pids


def list_session_pids(database_url: str) -> list[int]:
    """Return the server processes of all other connections to the database, including one that is just closing."""
    with psycopg.connect(database_url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        rows = connection.execute(
            """SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> %s
                ORDER BY pid""",
            [APPLICATION_NAME],
        ).fetchall()
    return [row[0] for row in rows]
