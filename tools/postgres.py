"""Starts a local PostgreSQL from the installed programs: persistent for `just run`, throw-away for tests.

It listens on 127.0.0.1 only and trusts all connections. Do not use it in production.
"""

import argparse
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DATABASE = "kalends"

PERSISTENT: Mapping[str, str] = {}

# A throw-away cluster may be lost in a crash, so nothing is synced to disk.
THROWAWAY: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
}

MEMORY = Path("/dev/shm")  # noqa: S108 -- only the parent of a directory with a random name
MEMORY_NEEDED = 8 * 2**30


@dataclass(frozen=True)
class Server:
    directory: Path
    port: int
    pid: int

    @property
    def url(self) -> str:
        return self.build_url(DATABASE)

    def build_url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        # "fast" ends open sessions; "immediate" would be even faster but leaves shared memory behind.
        _run("pg_ctl", "stop", "-D", self.directory, "-m", "fast", "-w")


def start(directory: Path, *, port: int | None = None, settings: Mapping[str, str] = PERSISTENT) -> Server:
    """Start the cluster in `directory`; create it if it does not exist."""
    directory = directory.absolute()
    if not (directory / "PG_VERSION").exists():
        _make_cluster(directory, checksums=settings.get("fsync") != "off")
    port = port or _find_free_port()
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        **settings,
    }
    arguments = " ".join(f"-c {name}='{value}'" for name, value in options.items())
    log = directory / "server.log"
    try:
        _run("pg_ctl", "start", "-D", directory, "-l", log, "-w", "-t", "60", "-o", arguments)
    except PostgresError as error:
        raise PostgresError(f"{error}\n{log.read_text() if log.exists() else ''}") from None
    server = find_running(directory)
    if server is None:
        raise PostgresError(f"PostgreSQL in {directory} stopped right after its start; see {log}.")
    _create_database(server)
    return server


def find_running(directory: Path) -> Server | None:
    """Return the running server of `directory`, if there is one."""
    directory = directory.absolute()
    try:
        _run("pg_ctl", "status", "-D", directory)
        lines = (directory / "postmaster.pid").read_text().splitlines()
    except (PostgresError, OSError):
        return None
    return Server(directory, port=int(lines[3]), pid=int(lines[0]))


def ensure(directory: Path, *, port: int | None = None) -> Server:
    """Return the running server of `directory`; start it if it is not running."""
    return find_running(directory) or start(directory, port=port)


@contextmanager
def throwaway(settings: Mapping[str, str] = THROWAWAY) -> Iterator[Server]:
    """Run a fast server in a temporary directory, which is removed afterwards."""
    # The user that runs PostgreSQL owns the directory below and needs access through this one.
    with tempfile.TemporaryDirectory(prefix="kalends-postgres-", dir=_find_memory()) as parent:
        Path(parent).chmod(0o755)
        server = start(Path(parent) / "cluster", settings=settings)
        try:
            yield server
        finally:
            server.stop()


class PostgresError(Exception):
    pass


def _find_memory() -> Path | None:
    """Return a directory in memory if it has room for a throw-away cluster.

    A copy of a database has about a thousand files. Copying them costs a tenth of the CPU time there.
    """
    enough = os.path.ismount(MEMORY) and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED
    return MEMORY if enough else None


def _make_cluster(directory: Path, *, checksums: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    if user := find_other_user():
        shutil.chown(directory, user)
        _check_reachable(directory, user)
    safety = "--data-checksums" if checksums else "--no-sync"
    locale = ("-E", "UTF8", "--locale=C.UTF-8")
    _run("initdb", "-D", directory, "-U", "postgres", "-A", "trust", *locale, safety)


def _create_database(server: Server) -> None:
    connection = ("-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres")
    names = _run("psql", *connection, "-d", "postgres", "-Atc", "SELECT datname FROM pg_database")
    if DATABASE not in names.splitlines():
        _run("createdb", *connection, DATABASE)


def _run(program: str, *arguments: str | Path) -> str:
    # The output goes to a file, because the server started by pg_ctl would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        completed = subprocess.run(
            [_find_program(program), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=find_other_user(),
            cwd="/",
            check=False,
        )
        output.seek(0)
        text = output.read().strip()
    if completed.returncode:
        raise PostgresError(f"{program} failed with exit code {completed.returncode}:\n{text}")
    return text


def _find_program(name: str) -> str:
    # On Debian the server programs are not on the PATH.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: _number(path.parent.name))
    for directory in reversed(versions):
        if (directory / "initdb").exists() and (directory / name).exists():
            return str(directory / name)
    if path_program := shutil.which(name):
        return path_program
    raise PostgresError(f"{name} was not found: install PostgreSQL 15 or newer (Debian: postgresql).")


def _number(version: str) -> int:
    digits = re.match(r"\d+", version)
    return int(digits[0]) if digits else 0


def find_other_user() -> str | None:
    """Return the user of Debian's package if this is root, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise PostgresError("PostgreSQL does not run as root, and there is no user 'postgres'.") from None


def _check_reachable(directory: Path, user: str) -> None:
    completed = subprocess.run(["test", "-w", str(directory)], user=user, cwd="/", check=False)
    if completed.returncode:
        raise PostgresError(f"The user '{user}' cannot reach {directory}: some directory above it is closed.")


def _find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("ensure", "stop"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, help="the port of a server to be started (default: a free one)")
    arguments = parser.parse_args()
    try:
        if arguments.command == "ensure":
            print(ensure(arguments.directory, port=arguments.port).url)
        elif server := find_running(arguments.directory):
            server.stop()
    except PostgresError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
