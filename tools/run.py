"""`just run` and `just demo`: PostgreSQL, schema, account, server and worker on this machine, for trying out.

Everything is kept in one directory. Do not use it in production.
"""

import argparse
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Final, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from tools import postgres

LOGIN: Final = "admin"
KALENDS: Final = (sys.executable, "-m", "kalends")
READY_TIMEOUT: Final = 120.0


class StepError(Exception):
    """A step failed; the text tells why."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".local"), help="where everything is kept")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--town", action="store_true", help="add a made-up town, unless it is there already")
    arguments = parser.parse_args()
    try:
        return _run(arguments.directory.absolute(), arguments.host, arguments.port, with_town=arguments.town)
    except (StepError, postgres.PostgresError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(directory: Path, host: str, port: int, *, with_town: bool) -> int:
    recipe = "demo" if with_town else "run"
    if not is_free(host, port):
        raise StepError(f"Port {port} is already in use. Choose another one: just port={port + 1} {recipe}")
    database = _step("Database", "PostgreSQL", lambda: postgres.ensure(directory / "postgres"))
    environment = {
        **os.environ,
        "KALENDS_DATABASE_URL": database.url,
        "KALENDS_MEDIA_DIR": str(directory / "media"),
    }
    _step("Migration", "schema of the database", lambda: _kalends(environment, "migrate"))
    password = _step("Account", LOGIN, lambda: _ensure_account(environment, directory / "password"))
    if with_town:
        if "KALENDS_SMTP_URL" not in environment:
            environment["KALENDS_SMTP_URL"] = _print_emails()
        print("Town       Larkford, with its programme and pictures", flush=True)
        subprocess.run([*KALENDS, "seed", "--town"], env=environment, check=True)
    base_url = f"http://{'localhost' if host == '127.0.0.1' else host}:{port}"
    log = directory / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*KALENDS, "serve", "--host", host, "--port", str(port), "--with-worker"],
            # Absolute links in pages and responses begin with the address that is printed below.
            env={"KALENDS_BASE_URL": base_url, "KALENDS_LOG_FORMAT": "plain", **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    _step("Server", "with a worker for background jobs", lambda: _wait_until_ready(server, f"{host}:{port}", log))
    console_url = _kalends({"KALENDS_BASE_URL": base_url, **environment}, "user", "link", LOGIN)
    _print_addresses(base_url, console_url, password, with_town=with_town)
    print(f"The log is in {log.relative_to(Path.cwd()) if log.is_relative_to(Path.cwd()) else log}.", flush=True)
    return _wait(server)


def _step[T](name: str, what: str, work: Callable[[], T]) -> T:
    """Print a line for a step before it begins, and its duration when it is done."""
    print(f"{name:<10} {what} …", end="", flush=True)
    started = time.monotonic()
    result = work()
    print(f" {time.monotonic() - started:.1f} s", flush=True)
    return result


def _kalends(environment: Mapping[str, str], *arguments: str) -> str:
    """Run a command and return what it prints."""
    completed = subprocess.run([*KALENDS, *arguments], env=environment, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise StepError(completed.stderr.strip() or f"kalends {' '.join(arguments)} failed.")
    return completed.stdout.strip()


def _ensure_account(environment: Mapping[str, str], path: Path) -> str:
    """Return the password of the account that an earlier run has created; create it if there is none."""
    if path.exists() and (password := path.read_text().strip()):
        return password
    if LOGIN not in _kalends(environment, "user", "list").split():
        _kalends(environment, "user", "add", LOGIN, "--role", "administrator")
    # The name is unique, because a run that was interrupted here may have left a password nobody knows.
    name = f"local-{secrets.token_hex(3)}"
    password = _kalends(environment, "app-password", "create", LOGIN, name).splitlines()[-1]
    path.touch(mode=0o600)
    path.write_text(f"{password}\n")
    return password


def is_free(host: str, port: int) -> bool:
    """Return whether nothing listens on a port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


class EmailPrinter:
    """An SMTP server that prints whom an email is for, and the links in it."""

    async def handle_DATA(self, server: object, session: object, envelope: Envelope) -> str:
        message = message_from_bytes(cast("bytes", envelope.content), policy=default)
        links = re.findall(r"https?://\S+", message.get_content())
        print(f"\nEmail to {', '.join(envelope.rcpt_tos)}: {message['Subject']}", *links, sep="\n  ", flush=True)
        return "250 OK"


def _print_emails() -> str:
    """Receive the emails of the server and print their links; return the URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    Controller(EmailPrinter(), hostname="127.0.0.1", port=port).start()
    print("Email      links in emails are printed here; nothing is sent", flush=True)
    return f"smtp://127.0.0.1:{port}"


def _wait_until_ready(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise StepError(f"The server ended with the exit code {server.returncode}.\n{log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://{address}/readyz"):
                return
        except OSError:
            time.sleep(0.1)
    server.terminate()
    raise StepError(f"The server was not ready after {READY_TIMEOUT:.0f} seconds.")


def _print_addresses(base_url: str, console_url: str, password: str, *, with_town: bool) -> None:
    rows: Sequence[tuple[str, str]] = (
        ("Calendar", f"{base_url}/"),
        ("Console", console_url),
        ("Documentation", f"{base_url}/docs"),
        ("API", f"{base_url}/api/calendar/events/v1"),
        ("API login", LOGIN),
        ("API password", password),
    )
    print("\n" + "\n".join(f"  {name:<14} {value}" for name, value in rows) + "\n")
    print("The address of the console signs you in once, within one hour.")
    hint = "" if with_town else " `just demo` fills the calendar with a made-up town."
    print(f"Ctrl+C stops the server, `just stop` also PostgreSQL.{hint}", flush=True)


def _wait(server: subprocess.Popen[bytes]) -> int:
    """Wait for the server, which Ctrl+C also reaches."""
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main())
