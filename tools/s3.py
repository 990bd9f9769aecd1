"""A throw-away server with the interface of S3 (s3rver), for tests. `just s3-server` installs it into .local."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers import find_free_port

LOCAL: Final = Path(__file__).resolve().parent.parent / ".local" / "s3rver" / "node_modules" / ".bin" / "s3rver"
PROGRAM: Final = shutil.which("s3rver") or (str(LOCAL) if LOCAL.exists() else "")
KEY: Final = "S3RVER"  # The only account that it knows, by name and by secret.


@dataclass(frozen=True)
class Bucket:
    endpoint: str
    name: str = "pictures"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "KALENDS_S3_BUCKET": self.name,
            "KALENDS_S3_ENDPOINT": self.endpoint,
            "KALENDS_S3_REGION": "us-east-1",
            "KALENDS_S3_ACCESS_KEY": KEY,
            "KALENDS_S3_SECRET_KEY": KEY,
        }


@contextmanager
def bucket(directory: Path) -> Iterator[tuple[Bucket, "subprocess.Popen[bytes]"]]:
    """A bucket, and the process that serves it."""
    port = find_free_port()
    made = Bucket(f"http://127.0.0.1:{port}")
    command = [PROGRAM, "--directory", str(directory), "--address", "127.0.0.1", "--port", str(port), "--silent"]
    process = subprocess.Popen([*command, "--no-vhost-buckets", "--configure-bucket", made.name])
    try:
        _wait_until_listening(port)
        yield made, process
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_listening(port: int, patience: float = 30) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
