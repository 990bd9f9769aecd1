"""Recording the SQL statements of a request, and converting them to a pgbench script."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from datetime import date, datetime
from typing import Any
from unittest.mock import patch

import httpx

from bench.seeded_sites import LOGIN, NS, SeededSite
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.running_app import HOST, Caller, RunningApp

METHODS = ("fetch_all", "fetch_one", "fetch_value", "execute")
Statement = tuple[str, Sequence[object]]


class StatementRecorder:
    """Runs the application in this process without caches and records its statements."""

    def __init__(self, site: SeededSite) -> None:
        self._site = site
        with redirect_stderr(io.StringIO()):  # Hides log messages.
            self._interface = RunningApp(site.url, {}, {"KALENDS_CACHE_MB": "0"})

    def __enter__(self) -> "StatementRecorder":
        self._interface.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._interface.__exit__(*error)

    def record(self, method: str, path: str, **options: Any) -> tuple[list[Statement], httpx.Response]:
        auth = httpx.BasicAuth(LOGIN, self._site.password) if method != "GET" else None
        caller = Caller(self._interface, 0, auth)
        with _record_statements() as statements:
            response = caller.request(method, f"http://{HOST}{NS}{path}", **options)
        response.raise_for_status()
        return statements, response


@contextmanager
def _record_statements() -> Iterator[list[Statement]]:
    statements: list[Statement] = []

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        async def recorded(self: Transaction, sql: Sql) -> Any:
            statements.append((sql.render(), sql.values))
            return await original(self, sql)

        return recorded

    with ExitStack() as patched:
        for name in METHODS:
            patched.enter_context(patch.object(Transaction, name, wrap(getattr(Transaction, name))))
        yield statements


def make_script(statements: Sequence[Statement], *, writing: bool) -> tuple[str, dict[str, str]]:
    """Return the statements as one transaction on the site. A write is rolled back, because its IDs can be used only
    once."""
    begin = "BEGIN;" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    lines = [begin, f"SELECT * FROM enter_site('{HOST}');"]
    variables: dict[str, str] = {}
    for number, (text, values) in enumerate(statements):
        for place in range(len(values), 0, -1):
            value = values[place - 1]
            name = f"v{number}_{place}"
            text = text.replace(f"${place}", "NULL" if value is None else f":{name}")  # noqa: PLW2901
            if value is not None:
                variables[name] = _literal(value)
        lines.append(" ".join(text.split()) + ";")
    lines.append("ROLLBACK;" if writing else "COMMIT;")
    return "\n".join(lines) + "\n", variables


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return "\\x" + bytes(value).hex()
    if isinstance(value, list | tuple):
        return "{" + ",".join("NULL" if entry is None else _quote(entry) for entry in value) + "}"
    if isinstance(value, Mapping):
        raise TypeError("no statement takes a mapping")
    return str(value)


def _quote(entry: object) -> str:
    text = _literal(entry).replace("\\", "\\\\").replace('"', '\\"')
    return text if isinstance(entry, int | float) else f'"{text}"'
