"""HAProxy in front of servers that are taken out and put back one by one."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lifecycle.processes import wait_until
from tests.servers import find_free_port

CONFIGURATION = """
global
    stats socket {socket} level admin
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
    timeout http-keep-alive 60s
    option redispatch
    retries 3
frontend public
    bind 127.0.0.1:{port}
    default_backend kalends
backend kalends
    balance roundrobin
    option httpchk GET {check}
    http-check expect status 200
    # Idle connections are closed before the server closes them, which it does after 5 s.
    default-server check inter 500ms fall 3 rise 1 slowstart 5s pool-purge-delay 1s
{servers}
"""


class Proxy:
    """Sends requests to the servers whose check succeeds, and none to a server that is being drained."""

    def __init__(self, directory: Path, ports: Sequence[int], *, check: str) -> None:
        self.port = find_free_port()
        self._socket = directory / "haproxy.sock"
        self._file = directory / "haproxy.cfg"
        servers = "\n".join(f"    server s{number} 127.0.0.1:{port}" for number, port in enumerate(ports))
        self._file.write_text(CONFIGURATION.format(socket=self._socket, port=self.port, check=check, servers=servers))
        self._count = len(ports)
        self._log = directory / "haproxy.log"

    def __enter__(self) -> Self:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                ["haproxy", "-db", "-f", str(self._file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(self._socket.exists, 60)
            for number in range(self._count):
                wait_until(lambda number=number: self._read(number, "status") == "UP", 60)
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._socket.unlink(missing_ok=True)  # HAProxy leaves it behind.

    def drain(self, number: int) -> None:
        """Send no more requests to a server, and wait until it has responded to the running ones."""
        self._command(f"set server kalends/s{number} state drain")
        wait_until(lambda: self._read(number, "scur") == "0", 120)

    def put_back(self, number: int) -> None:
        """Send requests to a server again, as soon as its check succeeds."""
        self._command(f"set server kalends/s{number} state ready")
        wait_until(lambda: self._read(number, "status") == "UP", 120)

    def _read(self, number: int, column: str) -> str:
        names, *rows = [line.split(",") for line in self._command("show stat kalends 4 -1").splitlines() if line]
        row = next(row for row in rows if row[1] == f"s{number}")
        return row[names.index(column)]

    def _command(self, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._socket))
            connection.sendall(f"{text}\n".encode())
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts).decode()
