"""A database that cannot be used is explained: by commands, in the log, by /readyz, and on a page for browsers."""

import asyncio
import errno
import os
import pty
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg import sql

from kalends.core.messages import LANGUAGES, translator
from kalends.store import problems
from kalends.store.database import Database, Options
from kalends.store.migrations import newest_revision
from tests.api.running_app import API_PATH
from tests.conftest import replace_database
from tests.lifecycle.processes import run_command, wait_until
from tests.servers import Server, find_free_port, make_environment

UNMIGRATED = "The database has no Kalends schema. Run `kalends migrate`."


@pytest.fixture
def plain_login(empty_database_url: str) -> Iterator[str]:
    """Return the URL of an empty database with a login that owns it but is no superuser."""
    name = f"test_plain_{secrets.token_hex(4)}"
    login, database = sql.Identifier(name), sql.Identifier(urlsplit(empty_database_url).path.lstrip("/"))
    with psycopg.connect(empty_database_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(login))
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, login))
        yield change_login(empty_database_url, name)
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(database))
        admin.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(login))


def change_login(url: str, login: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{login}@{parts.hostname}:{parts.port}").geturl()


def failure(url: str, *arguments: str) -> str:
    """Run a command that fails and return its message."""
    result = run_command(url, *arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert "Traceback" not in result.stderr
    return result.stderr.strip()


COMMANDS = (("migrate",), ("migrate", "--check"), ("site", "list"), ("user", "list"), ("job", "list"))


def test_commands_explain_an_unreachable_database() -> None:
    port = find_free_port()
    url = f"postgresql://kalends:s3cret@127.0.0.1:{port}/kalends"
    expected = f"Cannot reach PostgreSQL at 127.0.0.1:{port}. Is it running? Check `KALENDS_DATABASE_URL`."
    for command in (*COMMANDS, ("seed",)):
        assert failure(url, *command).splitlines()[-1] == expected, command
    debugged = run_command(url, "--debug", "site", "list")
    assert debugged.exit_code == 1
    assert "Traceback (most recent call last)" in debugged.stderr
    assert "s3cret" not in debugged.output


def test_commands_explain_a_missing_database_and_a_rejected_login(postgres_url: str) -> None:
    missing = replace_database(postgres_url, "kalends_missing")
    unknown = change_login(postgres_url, "nobody_here")
    for command in COMMANDS:
        message = "The database kalends_missing does not exist. Create it with `createdb kalends_missing`."
        assert failure(missing, *command) == message
        assert failure(unknown, *command) == "PostgreSQL rejected the user nobody_here. Check `KALENDS_DATABASE_URL`."


def test_home_directory_of_another_user_is_explained() -> None:
    """`setpriv` changes the user but not HOME, where the driver looks for certificates."""
    error = PermissionError(errno.EACCES, "Permission denied", "/root/.postgresql/root.crt")
    problem = problems.explain(error, "postgresql://127.0.0.1/kalends")
    assert problem is not None
    assert (
        problem.detail == "This user may not read /root/.postgresql/root.crt. Set `HOME` to its own home directory."
    )


def test_commands_explain_a_missing_schema(empty_database_url: str) -> None:
    for command in (("site", "show"), ("site", "list"), ("user", "list"), ("job", "list"), ("seed",)):
        assert failure(empty_database_url, *command).splitlines()[-1] == UNMIGRATED, command


def test_commands_explain_an_older_and_a_newer_schema(database_url: str) -> None:
    newest = newest_revision()
    for found, advice in (("0009", "Run `kalends migrate`."), ("9999", "Upgrade Kalends.")):
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE alembic_version SET version_num = %s", [found])
        expected = f"The schema is {found}, this version needs {newest}. {advice}"
        checked = run_command(database_url, "migrate", "--check")
        assert (checked.exit_code, checked.stdout.startswith(expected)) == (1, True)
    assert failure(database_url, "migrate") == expected
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE users DROP COLUMN disabled_at")
    assert failure(database_url, "user", "list") == expected


def test_first_migration_asks_for_a_superuser(plain_login: str) -> None:
    result = run_command(plain_login, "migrate")
    assert result.exit_code == 1
    assert result.stderr.strip().startswith(
        "The first migration creates extensions and a role. Run it once as a superuser"
    )


def test_missing_extension_is_explained(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute("CREATE EXTENSION kalends_missing")
    problem = problems.explain_migration(raised.value)
    assert problem is not None
    assert problem.detail.startswith("PostGIS is not installed on the database server (Debian: `postgresql-15-")


def test_unexpected_error_has_no_traceback_and_no_password(tmp_path: Path) -> None:
    url = "postgresql://kalends:s3cret@[::1/kalends"
    message = failure(url, "site", "list")
    assert message.endswith("Run `kalends --debug …` to see the traceback.")
    assert "s3cret" not in message


def test_errors_are_red_on_a_terminal() -> None:
    leader, follower = pty.openpty()
    environment = make_environment("mysql://kalends:s3cret@localhost/x", {"TERM": "xterm"})
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "kalends", "site", "list"]
    with subprocess.Popen(command, env=environment, stdin=follower, stdout=follower, stderr=follower) as process:
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 1000):
                shown += part
        except OSError:  # The terminal is closed when the command ends.
            pass
    os.close(leader)
    assert process.returncode == 1
    expected = rb"\x1b\[31mKALENDS_DATABASE_URL=mysql://kalends:\*\*\*@localhost/x: must begin with postgresql://"
    assert re.match(expected, shown), shown


def test_silent_server_is_not_called_busy() -> None:
    """A server that accepts the connection but does not respond has connections left."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://kalends@127.0.0.1:{silent.getsockname()[1]}/kalends"

        async def use() -> None:
            database = await Database.open(Options(url=url, pool_timeout=0.2))
            try:
                await database.check_schema(newest_revision())
            finally:
                await database.close()

        with pytest.raises(problems.DatabaseUnavailable) as raised:
            asyncio.run(use())
    assert raised.value.text == "The database is not responding."
    assert raised.value.detail.endswith("does not respond. Is it overloaded, or behind a firewall?")


# Server ---------------------------------------------------------------------------------------


def start_unready(database_url: str, log: Path) -> Server:
    """Start a server that does not become ready; return when it responds."""
    port = find_free_port()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kalends", "serve", "--port", str(port)],
            env=make_environment(database_url),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, f"http://127.0.0.1:{port}", log)

    def responds() -> bool:
        try:
            return httpx.get(f"{server.base_url}/healthz").is_success
        except httpx.TransportError:
            return False

    wait_until(responds, 60)
    return server


def test_server_explains_a_missing_schema_to_everybody(empty_database_url: str, tmp_path: Path) -> None:
    with start_unready(empty_database_url, tmp_path / "log") as server:
        summary = "The database has no Kalends schema; run `kalends migrate`."
        for path in ("/readyz", f"{API_PATH}/events"):
            response = httpx.get(server.base_url + path, headers={"Accept": "application/json"})
            assert (response.status_code, response.json()["message"]) == (503, summary)
        for language in LANGUAGES:
            headers = {"Accept": "text/html,application/xhtml+xml", "Accept-Language": language}
            page = httpx.get(f"{server.base_url}/events/month/", headers=headers)
            assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
            assert (page.headers["retry-after"], page.headers["content-language"]) == ("1", language)
            heading, reason = translator(language)("Temporarily unavailable"), translator(language)(summary)
            assert f'<html lang="{language}">' in page.text
            assert f"<h1>{heading}</h1>" in page.text
            command = "<code>kalends migrate</code>"
            assert f'<p class="reason">{reason.replace("`kalends migrate`", command)}</p>' in page.text
            assert language == "en" or heading != "Temporarily unavailable"
        browser = {"Accept": "text/html"}
        assert httpx.get(f"{server.base_url}{API_PATH}/events", headers=browser).json()["message"] == summary
        assert httpx.get(f"{server.base_url}/events.ics").json()["message"] == summary
        migrated = run_command(empty_database_url, "migrate")
        assert migrated.exit_code == 0, migrated.output
        wait_until(lambda: httpx.get(f"{server.base_url}/events/month/", headers=browser).is_success, 20)
        assert server.stop() == 0
    # Once as a warning at start, and once for all these requests.
    assert server.read_log().count(UNMIGRATED) == 2


def test_server_does_not_disclose_the_address_of_the_database(tmp_path: Path) -> None:
    url = f"postgresql://kalends:s3cret@127.0.0.1:{find_free_port()}/kalends"
    with start_unready(url, tmp_path / "log") as server:
        texts = [httpx.get(server.base_url + path, headers={"Accept": "text/html"}).text for path in ("/readyz", "/")]
        for text in texts:
            assert "The database is unreachable." in text
            assert "127.0.0.1" not in text
        server.stop()
    log = server.read_log()
    assert f"Cannot reach PostgreSQL at {urlsplit(url).netloc.rpartition('@')[2]}." in log
    assert "s3cret" not in log
