"""Runs the image of `just image` against a PostgreSQL: migrate, serve, write, read, upload, stop.

Each command gets the files of the image as a read-only root, in a mount and PID namespace of its own, with a tmpfs in
/tmp, the media volume, the user of the image and no capabilities. It shares the network of this machine, where
PostgreSQL listens on 127.0.0.1. Needs root, as mounting does.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import httpx
import psycopg
from PIL import Image

from tests.servers import find_free_port
from tools import postgres
from tools.image import ARCHIVE, ImageError, Storage
from tools.timing import timed

API: Final = "/api/calendar/events/v1"
MAX_STOP_SECONDS: Final = 1.0
# Mounts in the namespace of the command, then the command itself as its process 1.
SCRIPT: Final = """
set -eu
root="$1" media="$2" user="$3"
shift 3
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$media" "$root/var/lib/kalends/media"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""


@dataclass(frozen=True)
class Container:
    """The files and the configuration of an image, and the settings of its commands."""

    root: Path
    media: Path
    configuration: Mapping[str, Any]
    settings: Mapping[str, str]

    def start(
        self, *arguments: str, entry_point: list[str] | None = None, output: IO[str] | int | None = None
    ) -> subprocess.Popen[str]:
        """Start a command of the image, by default its entry point."""
        words = entry_point or self.configuration["Entrypoint"]
        environment = dict(text.split("=", 1) for text in self.configuration["Env"])
        namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private"]
        user = self.configuration["User"]
        return subprocess.Popen(
            [*namespace, "sh", "-c", SCRIPT, "sh", self.root, self.media, user, *words, *arguments],
            env={**environment, **self.settings},
            text=True,
            stdout=output,
            stderr=None if output == subprocess.PIPE else output,
        )

    def run(self, *arguments: str, entry_point: list[str] | None = None) -> str:
        """Run a command until its end and return its output."""
        process = self.start(*arguments, entry_point=entry_point, output=subprocess.PIPE)
        output, _ = process.communicate(timeout=300)
        if process.returncode:
            raise ImageError(f"kalends {' '.join(arguments)} failed with exit code {process.returncode}.")
        return output.strip()


def main() -> int:
    if not ARCHIVE.exists():
        print("There is no image; run `just image` first.", file=sys.stderr)
        return 1
    try:
        with ExitStack() as resources:
            directory = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="kalends-image-test-")))
            directory.chmod(0o755)
            database = resources.enter_context(postgres.throwaway())
            check(make_container(directory, database))
    except ImageError as error:
        print(f"The image does not work: {error}", file=sys.stderr)
        return 1
    return 0


def make_container(directory: Path, database: postgres.Server) -> Container:
    """Unpack the image, and create the logins of its database as deploy/compose does."""
    storage = Storage(directory / "storage")
    name = storage.run("from", "--pull-never", f"oci-archive:{ARCHIVE}")
    root = Path(storage.run("mount", name))
    configuration = json.loads(storage.run("inspect", name))["OCIv1"]["config"]
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE kalends_server LOGIN")
        connection.execute("CREATE ROLE kalends_jobs LOGIN")
    media = directory / "media"
    media.mkdir()
    owner = (root / "var/lib/kalends/media").stat()
    os.chown(media, owner.st_uid, owner.st_gid)
    settings = {
        "KALENDS_MIGRATION_URL": database.url,
        "KALENDS_DATABASE_URL": database.url.replace("postgres@", "kalends_server@"),
        "KALENDS_QUEUE_URL": database.url.replace("postgres@", "kalends_jobs@"),
    }
    return Container(root, media, configuration, settings)


def check(container: Container) -> None:
    """Follow the life of a container, and print the time of each step."""
    check_restrictions(container)
    print(timed("migrate", lambda: container.run("migrate")).splitlines()[-1])
    container.run("user", "add", "anna", "--role", "administrator")
    password = container.run("app-password", "create", "anna", "image-test").splitlines()[-1]
    port = find_free_port()
    started = time.monotonic()
    log = (container.media.parent / "log").open("w+")
    server = container.start("serve", "--host", "127.0.0.1", "--port", str(port), "--workers", "2", output=log)
    worker = container.start("worker", output=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", auth=("anna", password), timeout=60) as client:
            wait_until_ready(client, server)
            print(f"{time.monotonic() - started:8.2f} s  ready")
            write_and_read(client)
    except ImageError:
        log.seek(0)
        print(log.read(), file=sys.stderr)
        raise
    finally:
        for name, process in (("server", server), ("worker", worker)):
            stop(name, process)


def check_restrictions(container: Container) -> None:
    """Show that the root is read-only, that /tmp and the volume are not, and that the user is not root."""
    script = (
        "id -u; touch /opt/kalends/x 2>/dev/null && echo writable; touch /tmp/x /var/lib/kalends/media/x && echo ok"
    )
    printed = container.run("-c", script, entry_point=["sh"]).split()
    if printed != ["10001", "ok"]:
        raise ImageError(f"the restrictions of the container are not as expected: {printed}.")


def write_and_read(client: httpx.Client) -> None:
    """Create an event with an uploaded image through the API, and read it from there and from its page."""
    picture = io.BytesIO()
    Image.new("RGB", (640, 480), "teal").save(picture, "PNG")
    upload = {"file": ("teal.png", picture.getvalue(), "image/png")}
    image = timed("upload", lambda: expect(201, client.post("/api/kalends/v1/media", files=upload))).json()
    event = {"title": "Harbour concert", "start_date": "2027-06-01 19:00:00", "end_date": "2027-06-01 21:00:00"}
    body = {**event, "image": image["id"], "status": "publish"}
    created = timed("write", lambda: expect(201, client.post(f"{API}/events", json=body))).json()
    found = timed("read", lambda: expect(200, client.get(f"{API}/events/{created['id']}"))).json()
    page = timed("page", lambda: expect(200, client.get(httpx.URL(found["url"]).path)))
    if found["title"] != event["title"] or event["title"] not in page.text:
        raise ImageError("the event is not what was written.")
    expect(200, client.get(httpx.URL(image["url"]).path))


def expect(status: int, response: httpx.Response) -> httpx.Response:
    if response.status_code != status:
        raise ImageError(f"{response.request.url} responded {response.status_code}: {response.text[:500]}")
    return response


def wait_until_ready(client: httpx.Client, server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if client.get("/readyz").is_success:
                return
        except httpx.TransportError:
            pass  # It does not listen yet.
        time.sleep(0.05)
    raise ImageError("the server was not ready within 120 s.")


def stop(name: str, process: subprocess.Popen[str]) -> None:
    """Send SIGTERM to process 1 of the container, as its runtime would, and check the time until its end."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    started = time.monotonic()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()  # unshare ends its child with it.
        raise ImageError(f"the {name} did not stop within 60 s.") from None
    seconds = time.monotonic() - started
    print(f"{seconds:8.2f} s  {name} stopped by SIGTERM, exit code {process.returncode}")
    if name == "server" and seconds > MAX_STOP_SECONDS:
        raise ImageError(f"the server took {seconds:.2f} s to stop, more than {MAX_STOP_SECONDS:.0f} s.")


if __name__ == "__main__":
    sys.exit(main())
