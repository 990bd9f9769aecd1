"""What SQL of somebody else could do inside a transaction of the server: no more than the server itself may."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from kalends.calendar.operations.site_options import CUSTOM_CSS, SITE_KEYS
from kalends.store.migrations import migrate
from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.robustness.site_fixtures import API_PATH, DATES, add_editor
from tests.servers import Server

SECURITY_DEFINER_FUNCTIONS = {
    "enter_site",
    "enter_site_number",
    "enqueue_job",
    "due_imports",
    "due_proposals",
    "count_open_sites",
    "count_recipients",
    "due_follows",
    "forget_refusals",
    "restart_alerts",
    "sites_with_stale_follows",
    "sites_with_idle_submitters",
    "sites_with_queue",
    "due_records",
    "dated_changes",
    "old_trash",
    "sites_with_old_changes",
    "site_changes",
    "site_revisions",
    "geoloc_pending_venues",
    "worker_heartbeat",
    "own_hosts",
    "incomplete_series",
    "take_log_consumers",
    "measure_webhooks",
}


@dataclass(frozen=True)
class DatabaseLogins:
    """Addresses of one database: of its owner, of the server, of the job queue."""

    owner: str
    server: str
    queue: str


@pytest.fixture
def logins(postgres_url: str, empty_database_url: str) -> Iterator[DatabaseLogins]:
    """A database that was migrated by its owner for two logins without rights of their own."""
    names = [f"test_{part}_{secrets.token_hex(4)}" for part in ("server", "queue")]
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for name in names:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        try:
            server, queue = (_with_login(empty_database_url, name) for name in names)
            migrate(empty_database_url, server_url=server, queue_url=queue)
            yield DatabaseLogins(empty_database_url, server, queue)
        finally:
            with psycopg.connect(empty_database_url, autocommit=True) as owner:
                for name in names:
                    owner.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))


def test_security_definer_functions_have_search_path(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            """SELECT p.proname, ARRAY(SELECT c FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%')
                FROM pg_proc p
                WHERE p.prosecdef AND p.pronamespace = current_schema()::regnamespace
                    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"""
        ).fetchall()
    assert dict(rows) == {name: ["search_path=pg_catalog, public, pg_temp"] for name in SECURITY_DEFINER_FUNCTIONS}


def test_row_level_security_covers_every_table_of_sites(database_url: str) -> None:
    """The tables are found, not listed, so a new one cannot be forgotten."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            """SELECT c.relname, c.relrowsecurity,
                    EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polqual IS NOT NULL)
                FROM pg_class c
                WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
                    AND (c.relname = 'sites' OR EXISTS (SELECT FROM pg_attribute a
                        WHERE a.attrelid = c.oid AND a.attname = 'site_id' AND NOT a.attisdropped))
                    AND has_table_privilege('kalends_app', c.oid, 'SELECT, INSERT, UPDATE, DELETE')"""
        ).fetchall()
    tables = {name: (is_enabled, has_policy) for name, is_enabled, has_policy in rows}
    assert {"drafts", "events", "sessions", "sites"} <= tables.keys()
    assert {name: state for name, state in tables.items() if state != (True, True)} == {}


def test_temporary_objects_are_forbidden(logins: DatabaseLogins) -> None:
    for role in ("kalends_app", None):
        with psycopg.connect(logins.server) as connection:
            if role:
                connection.execute("SET ROLE kalends_app")
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute("CREATE TEMPORARY VIEW site_hosts AS SELECT 'x' AS host, 1 AS site_id")


def test_temporary_objects_do_not_affect_security_definer_functions(database_url: str) -> None:
    """Also where they are not refused, as in a database that was restored without its rights."""
    with psycopg.connect(database_url) as connection:
        connection.execute("GRANT TEMPORARY ON DATABASE {} TO kalends_app".format(database_url.rpartition("/")[2]))
        connection.execute("INSERT INTO sites (id) VALUES (2)")
        connection.execute("SET LOCAL ROLE kalends_app")
        connection.execute("CREATE TEMPORARY TABLE site_hosts AS SELECT 'x'::text AS host, 2::bigint AS site_id")
        assert connection.execute("SELECT id FROM enter_site('x')").fetchall() == []
        connection.rollback()


def test_server_changes_only_the_columns_of_a_site_that_it_writes(logins: DatabaseLogins) -> None:
    counters = {"revision", "trimmed_revision", "last_post_id", "last_term_id", "last_user_id"}
    written = {*SITE_KEYS, "custom_css_hash", "former_host", "former_last_id", "submissions", *counters} - {
        CUSTOM_CSS
    }
    with psycopg.connect(logins.server) as connection:
        columns = connection.execute(
            """SELECT a.attname, has_column_privilege('kalends_app', a.attrelid, a.attnum, 'UPDATE')
                FROM pg_attribute a
                WHERE a.attrelid = 'public.sites'::regclass AND a.attnum > 0 AND NOT a.attisdropped"""
        ).fetchall()
        assert {name for name, is_writable in columns if is_writable} == written
        connection.execute("SET ROLE kalends_app")
        connection.execute("SELECT id FROM enter_site('any')")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("UPDATE sites SET secret = ''")


def test_resetting_role_gains_no_privileges(logins: DatabaseLogins) -> None:
    with psycopg.connect(logins.server) as connection:
        as_app = _table_privileges(connection, "SET LOCAL ROLE kalends_app")
        connection.rollback()
        left = _table_privileges(connection, "SELECT set_config('role', 'none', true)")
        connection.rollback()
        assert left == as_app
        assert "events" in as_app
        for statement in ("SET ROLE postgres", "SELECT FROM site_hosts", "SELECT FROM procrastinate_jobs"):
            connection.execute("SELECT set_config('role', 'none', true)")
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement)  # type: ignore[arg-type]
            connection.rollback()
        with pytest.raises(errors.UndefinedObject):
            connection.execute("SELECT FROM events")


@pytest.mark.process
def test_server_works_with_unprivileged_logins(logins: DatabaseLogins, tmp_path: Path) -> None:
    login, password = add_editor(logins.owner)
    queue = {"KALENDS_QUEUE_URL": logins.queue}
    with (
        Server.start(logins.server, log=tmp_path / "server.log", environment=queue) as server,
        server.client(login=login, password=password) as client,
        Worker.start(logins.server, tmp_path / "worker.log", queue),
    ):
        response = client.post(f"{API_PATH}/events", json={"title": "Fair", **DATES, "venue": {"venue": "Hall"}})
        assert response.status_code == 201, response.text
        assert client.get(f"{API_PATH}/events/{response.json()['id']}").status_code == 200
        assert client.get(f"{API_PATH}/events").json()["total"] == 1
        assert client.get("/events/list/").status_code == 200
        assert client.get("/readyz").status_code == 200
        later = client.post(f"{API_PATH}/venues", json={"venue": "Later", "date_utc": "2098-01-01 00:00:00"}).json()[
            "id"
        ]
        with psycopg.connect(logins.owner) as owner:
            owner.execute("UPDATE venues SET published_at = now() - interval '1 minute' WHERE id = %s", [later])
            owner.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE task_name = 'publish'")
        wait_until(lambda: client.get(f"{API_PATH}/venues/{later}").json()["status"] == "publish", 60)
        assert "the login of KALENDS_DATABASE_URL" not in server.read_log()
    listed = run_command(logins.server, "job", "list", settings=queue)
    assert listed.exit_code == 0, listed.output
    owner_url = {"KALENDS_MIGRATION_URL": logins.owner}
    added = run_command(logins.server, "site", "add", "b.example", "--first-host", "a.example", settings=owner_url)
    assert (added.exit_code, added.output.splitlines()[0]) == (0, "Added site 2 at b.example.")
    shown = run_command(logins.server, "site", "show", "--site", "b.example")
    assert shown.exit_code == 0, shown.output
    assert "b.example" in shown.stdout


@pytest.mark.process
def test_server_warns_about_privileged_login(database_url: str, tmp_path: Path) -> None:
    with Server.start(database_url, log=tmp_path / "server.log") as server:
        assert "the login of KALENDS_DATABASE_URL is a superuser" in server.read_log()


def _with_login(database_url: str, login: str) -> str:
    parts = urlsplit(database_url)
    return parts._replace(netloc=parts.netloc.replace("postgres@", f"{login}@")).geturl()


def _table_privileges(connection: psycopg.Connection, statement: str) -> dict[str, list[str]]:
    """What a session may do with each table, after it became somebody."""
    connection.execute(statement)  # type: ignore[arg-type]
    rows = connection.execute(
        """SELECT c.relname, array_agg(r ORDER BY r) FROM pg_class c
            CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) r
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
                AND has_table_privilege(c.oid, r)
            GROUP BY 1"""
    )
    return dict(rows.fetchall())
