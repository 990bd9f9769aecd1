"""Starts Varnish with the configuration in deploy/varnish for tests and benchmarks, on 127.0.0.1 only."""

import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CONFIGURATION = Path(__file__).parent.parent / "deploy" / "varnish" / "default.vcl"
PROGRAM = shutil.which("varnishd") or shutil.which("varnishd", path="/usr/sbin")


@dataclass(frozen=True)
class Varnish:
    process: subprocess.Popen[bytes]
    address: str

    @classmethod
    def start(
        cls, directory: Path, backend_url: str, *, port: int, stream_port: int = 8001, timeout: float = 30
    ) -> Self:
        """Start Varnish in front of a server; return when it listens."""
        if PROGRAM is None:
            raise VarnishError("varnishd was not found (Debian: varnish, varnish-modules).")
        directory = directory.absolute()
        directory.mkdir(parents=True, exist_ok=True)
        backend_port = str(urlsplit(backend_url).port)
        text = CONFIGURATION.read_text()
        if text.count('.port = "8000"') != 1:
            raise VarnishError("the port of the server is not where it was in default.vcl")
        configuration = directory / "test.vcl"
        text = text.replace('.port = "8001"', f'.port = "{stream_port}"')
        configuration.write_text(text.replace('.port = "8000"', f'.port = "{backend_port}"'))
        log = directory / "varnishd.log"
        options = ["-a", f"127.0.0.1:{port}", "-f", str(configuration), "-n", str(directory / "work")]
        limits = ["-s", "malloc,64m", "-p", "vcl_path=/usr/share/varnish/vcl", "-p", "thread_pool_min=50"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [PROGRAM, "-F", "-j", "none", *options, *limits],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        varnish = cls(process, f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + timeout
        while not _is_listening(port):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise VarnishError(f"varnishd did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        return varnish

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class VarnishError(Exception):
    pass


def _is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
