"""Fuzzes a fresh server with Schemathesis by its /doc, anonymously and with every role.

Four checks are disabled: a value that matches its schema may still be rejected (an unknown ID); a value that does not
match may be accepted ("5" for a number); a deleted record is not always 404, because posts are moved to the trash;
and many wrong passwords are answered with 429, which tests/api covers.
"""

import argparse
import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx

from kalends.accounts.operations import user_accounts
from kalends.routes import EXTENSION, INTERFACE
from kalends.store.database import Database, Options
from kalends.store.migrations import migrate
from tools.postgres import throwaway

ROLES = ("subscriber", "contributor", "author", "editor", "administrator")
ALL_PHASES = "examples,coverage,fuzzing,stateful"
COVERAGE_CALLERS = ("", "editor")
EXCLUDED_CHECKS = "positive_data_acceptance,negative_data_rejection,use_after_free,ignored_auth"
# Different requests with the same key are rejected, so hardly anything else would be tested.
CONFIG = """
[generation]
allow-x00 = true

[parameters]
"Idempotency-Key" = ""
"X-Request-ID" = "fuzz"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a taste, for every change")
    parser.add_argument("--requests", type=int, default=20_000, help="rounds go on until so many were made")
    parser.add_argument("--callers", default=",".join(["", *ROLES]), help="roles with commas between; empty: nobody")
    parser.add_argument("--examples", type=int, default=20, help="per operation and round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, throwaway() as postgres:
        migrate(postgres.url)
        passwords = asyncio.run(_add_users(postgres.url))
        log = Path(folder) / "server.log"
        with _running_server(postgres.url, log) as base_url:
            failed = _run(base_url, passwords, options, log, Path(folder))
        text = log.read_text()
    statuses = sorted(re.findall(r'"status":(\d+)', text))
    print({status: statuses.count(status) for status in dict.fromkeys(statuses)}, "failed runs:", failed)
    internal_errors = re.findall(r'^.*"event":"fault".*$', text, re.MULTILINE)
    print("\n".join(internal_errors[:5]))
    return 1 if failed or internal_errors else 0


def _run(base_url: str, passwords: dict[str, str], options: argparse.Namespace, log: Path, folder: Path) -> int:
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG)
    callers = ["editor"] if options.small else options.callers.split(",")
    examples = "1" if options.small else str(options.examples)
    failed, seed = 0, 1
    while True:
        for caller in callers:
            # The coverage phase has twenty thousand requests, which are the same for every role.
            phases = (
                "fuzzing"
                if options.small
                else ALL_PHASES
                if caller in COVERAGE_CALLERS
                else "examples,fuzzing,stateful"
            )
            for namespace in (INTERFACE.namespace, EXTENSION.namespace):
                command = [
                    "schemathesis",
                    "--config-file",
                    str(config),
                    "run",
                    f"{base_url}/api/{namespace}/doc",
                    "--checks",
                    "all",
                    "--exclude-checks",
                    EXCLUDED_CHECKS,
                    "--phases",
                    phases,
                    "--max-examples",
                    examples,
                    "--seed",
                    str(seed),
                    "--no-color",
                    "--continue-on-failure",
                    "--suppress-health-check",
                    "all",
                    *(["--auth", f"{caller}:{passwords[caller]}"] if caller else []),
                ]
                print(f"--- {namespace} as {caller or 'nobody'}, seed {seed}", flush=True)
                failed += subprocess.run(command, check=False).returncode != 0
        requests = log.read_text().count('"event":"request"')
        if options.small or requests >= options.requests:
            print(f"{requests} requests")
            return failed
        seed += 1


async def _add_users(database_url: str) -> dict[str, str]:
    passwords: dict[str, str] = {}
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction("127.0.0.1", datetime.now(UTC).replace(microsecond=0), writing=True) as tx:
            for role in ROLES:
                await user_accounts.add_user(tx, role, role, "")
                passwords[role] = await user_accounts.add_application_password(tx, role, "fuzz")
    finally:
        await database.close()
    return passwords


@contextlib.contextmanager
def _running_server(database_url: str, log: Path) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "kalends", "serve", "--host", "127.0.0.1", "--port", str(port)]
    base_url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        environment = {"KALENDS_DATABASE_URL": database_url, "PATH": "/usr/bin:/bin"}
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{base_url}/readyz").is_success:
                        break
                time.sleep(0.1)
            yield base_url
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
