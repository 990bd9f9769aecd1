"""`kalends check` names each problem with its cure; `kalends status` shows sites, sizes, queues and backups."""

import json
import shutil
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psycopg
import pytest
from minio.error import S3Error

from kalends.adapters.backup_tool import BackupToolFailed, list_newest_backups
from kalends.commands.check_commands import (
    check_proxies,
    judge_free_space,
    judge_public_form,
    judge_python,
    judge_queue,
    judge_server,
    judge_state,
    judge_time,
)
from kalends.commands.status_commands import format_backups, format_size
from kalends.media.adapters.file_store import describe_storage_error
from kalends.settings import Settings
from kalends.store.checks import DatabaseState, ServerFacts
from kalends.store.job_queue import QueueSummary
from kalends.store.migrations import newest_revision
from kalends.store.problems import SchemaVersion
from tests.console.smtp_server import run_smtp_server
from tests.lifecycle.processes import run_command
from tests.servers import find_free_port

FACTS = ServerFacts(
    version_number=150004,
    version="15.4",
    database="kalends",
    login="kalends",
    is_standby=False,
    missing_extensions=(),
    has_role=True,
    max_connections=97,
    connections=5,
    has_fsync=True,
    synchronous_commit="on",
    size=1,
    seconds_ahead=0.1,
)
STATE = DatabaseState(SchemaVersion(newest_revision()), (), 3.0)
QUEUE = QueueSummary(waiting=0, scheduled=2, failed=0, oldest_seconds=None, heartbeat_seconds=2.0)


@contextmanager
def run_cache(status: int) -> Iterator[str]:
    """Run a shared cache that responds to PURGE with a status; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_PURGE(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def run_check(url: str, settings: dict[str, str], tmp_path: Path) -> tuple[int, dict[str, tuple[str, str, str]]]:
    """Return the exit code and the level, text and cure by subject; the last one of several wins."""
    result = run_command(url, "check", "--json", settings={"KALENDS_MEDIA_DIR": f"{tmp_path}/media", **settings})
    findings = json.loads(result.stdout)
    assert all(list(finding) == ["subject", "level", "text", "cure"] for finding in findings)
    assert all(finding["cure"] or finding["level"] == "ok" for finding in findings)
    return result.exit_code, {row["subject"]: (row["level"], row["text"], row["cure"]) for row in findings}


def test_healthy_server_has_no_errors(database_url: str, tmp_path: Path) -> None:
    with run_cache(200) as cache, run_smtp_server() as smtp:
        settings = {
            "KALENDS_BASE_URL": "https://calendar.example.org",
            "KALENDS_TRUSTED_PROXIES": "127.0.0.1",
            "KALENDS_PURGE_URLS": cache,
            "KALENDS_SMTP_URL": smtp.url,
        }
        code, findings = run_check(database_url, settings, tmp_path)
    assert code == 0, findings
    levels = {subject: level for subject, (level, _, _) in findings.items()}
    # The tests run as a superuser, on a PostgreSQL that does not sync, without a worker.
    assert levels == {
        "Database": "ok",
        "Durability": "warning",
        "Connections": "ok",
        "Time": "ok",
        "Login": "warning",
        "Schema": "ok",
        "Search": "ok",
        "Worker": "warning",
        "Queue": "ok",
        "Storage": "ok",
        "Email": "ok",
        "Cache": "ok",
        "Address": "ok",
        "Proxies": "ok",
        "Python": judge_python(sysconfig.get_config_var("CONFIG_ARGS")).level,
    }
    assert smtp.messages == []


def test_each_broken_service_is_an_error_with_a_cure(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with run_cache(403) as cache:
        settings = {
            "KALENDS_MEDIA_DIR": f"{tmp_path}/file/media",
            "KALENDS_PURGE_URLS": cache,
            "KALENDS_SMTP_URL": f"smtp://ada:s3cret@127.0.0.1:{find_free_port()}",
            "KALENDS_TRUSTED_PROXIES": "0.0.0.0/0",
        }
        code, findings = run_check(database_url, settings, tmp_path)
    assert code == 1
    assert findings["Cache"][1] == f"{cache} does not accept purges: {cache} responded to PURGE with 403"
    assert findings["Storage"][1] == f"{tmp_path}/file/media: Not a directory."
    assert findings["Email"][1].startswith("The SMTP server does not respond: ")
    assert findings["Proxies"][1] == "KALENDS_TRUSTED_PROXIES has 0.0.0.0/0."
    broken = {subject for subject, (level, _, _) in findings.items() if level == "error"}
    assert broken == {"Cache", "Storage", "Email", "Proxies"}
    assert "s3cret" not in str(findings)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        (f"http://127.0.0.1:{find_free_port()}", "Connection refused."),
        ("http://storage.invalid", "Name or service not known."),
    ],
    ids=["refused", "unknown"],
)
def test_unreachable_bucket_is_explained_in_words(
    database_url: str, tmp_path: Path, endpoint: str, reason: str
) -> None:
    bucket = {"KALENDS_S3_BUCKET": "pictures", "KALENDS_S3_ACCESS_KEY": "a", "KALENDS_S3_SECRET_KEY": "b"}
    code, findings = run_check(database_url, {**bucket, "KALENDS_S3_ENDPOINT": endpoint}, tmp_path)
    assert code == 1
    assert findings["Storage"][1] == f"The bucket pictures does not respond: {reason}"


def test_errors_of_the_bucket_are_explained_in_words() -> None:
    message = "The specified bucket does not exist"
    refused = S3Error(None, "NoSuchBucket", message, "/x", None, None)  # type: ignore[arg-type]
    assert describe_storage_error(refused) == "The specified bucket does not exist (NoSuchBucket)."


def test_unusable_databases_are_errors(empty_database_url: str, tmp_path: Path) -> None:
    port = find_free_port()
    url = f"postgresql://kalends:s3cret@127.0.0.1:{port}/kalends"
    code, findings = run_check(url, {}, tmp_path)
    detail = f"Cannot reach PostgreSQL at 127.0.0.1:{port}. Is it running? Check `KALENDS_DATABASE_URL`."
    assert (code, findings["Database"]) == (1, ("error", detail, "The setting is `KALENDS_DATABASE_URL`."))
    # The rest is checked nevertheless.
    assert findings["Storage"][0] == "ok"
    code, findings = run_check(empty_database_url, {}, tmp_path)
    expected = ("error", "The database has no Kalends schema.", "Run `kalends migrate`.")
    assert (code, findings["Schema"]) == (1, expected)
    code, findings = run_check(empty_database_url, {"KALENDS_QUEUE_URL": url}, tmp_path)
    assert findings["Database"][2] == "The setting is `KALENDS_QUEUE_URL`."


def test_text_has_the_cure_below_the_finding(database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    result = run_command(database_url, "check", settings={"KALENDS_MEDIA_DIR": str(tmp_path)})
    assert result.exit_code == 1
    newest = newest_revision()
    assert (
        f"error    Schema      The schema is 9999, this version needs {newest}.\n{'':<20} Upgrade Kalends.\n"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (judge_server(replace(FACTS, version_number=140009), "h:1"), "Upgrade PostgreSQL to 15 or later."),
        (judge_server(replace(FACTS, is_standby=True), "h:1"), "to the primary"),
        (judge_server(replace(FACTS, has_fsync=False), "h:1"), "fsync = on"),
        (judge_server(replace(FACTS, synchronous_commit="off"), "h:1"), "synchronous_commit = on"),
        (judge_server(replace(FACTS, connections=90), "h:1"), "max_connections"),
        (judge_time(replace(FACTS, seconds_ahead=3.0)), "NTP"),
        (judge_time(replace(FACTS, seconds_ahead=-3600.0)), "NTP"),
        (judge_state(STATE, replace(FACTS, missing_extensions=("pg_trgm",))), "CREATE EXTENSION pg_trgm;"),
        (judge_state(STATE, replace(FACTS, has_role=False)), "kalends migrate"),
        (judge_state(replace(STATE, missing_marks=("ALTER …",)), FACTS), "kalends migrate"),
        (judge_state(replace(STATE, heartbeat_age=None), FACTS), "kalends worker"),
        (judge_state(replace(STATE, heartbeat_age=61.0), FACTS), "kalends worker"),
        (judge_public_form(replace(STATE, open_sites=1), Settings()), "KALENDS_SMTP_URL"),
        (judge_public_form(replace(STATE, open_sites=1, nameless_sites=1), Settings()), "KALENDS_BASE_URL"),
        (judge_queue(replace(QUEUE, failed=2)), "job retry"),
        (judge_queue(replace(QUEUE, waiting=9, oldest_seconds=61.0)), "a second one"),
        ([judge_python("'--prefix=/opt/python' '--enable-shared'")], "--enable-optimizations"),
        (check_proxies(Settings(base_url="https://calendar.example.org")), "KALENDS_TRUSTED_PROXIES"),
    ],
)
def test_bad_facts_have_a_cure(findings: list, expected: str) -> None:
    bad = [finding for finding in findings if finding.level != "ok"]
    assert len(bad) == 1, findings
    assert expected in bad[0].cure


def test_good_facts_have_none() -> None:
    good = [*judge_server(FACTS, "h:1"), *judge_time(FACTS), *judge_state(STATE, FACTS), *judge_queue(QUEUE)]
    good += judge_public_form(STATE, Settings())
    assert {finding.level for finding in good} == {"ok"}
    assert not any(finding.cure for finding in good)


@pytest.mark.parametrize(
    "options", ["'--enable-optimizations' '--with-lto'", "'--enable-shared' '--prefix=/usr' '--enable-ipv6'"]
)
def test_optimized_pythons_are_recognized(options: str) -> None:
    assert judge_python(options).level == "ok"


def test_time_that_differs_is_measured(database_url: str, tmp_path: Path) -> None:
    """tests/faults starts the command with another time; here both are the same."""
    assert run_check(database_url, {}, tmp_path)[1]["Time"] == ("ok", "This machine and the database agree.", "")


def test_little_space_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_free_space(tmp_path).level in ("ok", "warning")
    monkeypatch.setattr("kalends.commands.check_commands.MIN_FREE_BYTES", 2**60)
    assert judge_free_space(tmp_path).level == "warning"


# Status ---------------------------------------------------------------------------------------


def test_status_shows_sites_and_queue(database_url: str) -> None:
    seeded = run_command(database_url, "seed", "--events", "20")
    assert seeded.exit_code == 0, seeded.output
    shown = run_command(database_url, "status")
    assert shown.exit_code == 0, shown.output
    first, database, site, queue, *backups = shown.stdout.splitlines()
    assert first.startswith("Kalends ")
    assert f", schema {newest_revision()}, PostgreSQL 1" in first
    assert database.startswith("Database  kalends_test_")
    assert site.startswith("Site 1 ")
    assert "(all hosts): 20 events, " in site
    assert queue.startswith("Queue     ")
    assert backups
    report = json.loads(run_command(database_url, "status", "--json").stdout)
    assert list(report) == ["version", "schema", "database", "sites", "totals", "queue", "backups", "backup_problem"]
    assert report["sites"][0]["events"] == 20


@pytest.mark.skipif(not shutil.which("pgbackrest"), reason="needs pgBackRest")
def test_pgbackrest_without_a_stanza_is_shown() -> None:
    assert format_backups(list_newest_backups()) == ["pgBackRest has no stanza."]


@pytest.mark.skipif(not shutil.which("pgbackrest"), reason="needs pgBackRest")
def test_message_of_pgbackrest_is_shown(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBACKREST_CONFIG", str(tmp_path / "missing.conf"))
    with pytest.raises(BackupToolFailed, match="unable to open missing file"):
        list_newest_backups()
    shown = run_command(database_url, "status")
    assert shown.exit_code == 0
    assert "unable to open missing file" in shown.stdout.splitlines()[-1]


def test_missing_pgbackrest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert format_backups(list_newest_backups()) == ["pgBackRest is not installed on this machine."]


def test_sizes_have_units() -> None:
    assert [format_size(n) for n in (0, 999, 1000, 1_500_000, 2_000_000_000, 10**16)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "1.5 MB",
        "2.0 GB",
        "10000.0 TB",
    ]
