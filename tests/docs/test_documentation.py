"""The commands of the documentation work, its generated pages are current, and the reference is complete."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.api.description import error_codes
from kalends.api.description.error_codes import ERROR_CODES
from kalends.core.params import Param
from kalends.routes import EXTENSION, INTERFACE
from kalends.settings import Settings
from tests.docs.page_commands import (
    CONSOLE_BLOCK,
    OPERATOR_QUICKSTART,
    PROJECT,
    SERVER_QUICKSTARTS,
    PrintedCommand,
    add_administrator,
    compare,
    hide_settings,
    parse_commands,
    read_setup,
    run_commands,
)
from tests.servers import Server, make_environment
from tools import differences, docs, install_test, postgres, reference

DOCS = PROJECT / "docs"
DECISIONS = PROJECT.parent / "shared" / "conformance" / "decisions.json"
PAGES = [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]
EXECUTED_PAGES = [page for page in PAGES if parse_commands(page)]
QUICKSTARTS = [OPERATOR_QUICKSTART, *SERVER_QUICKSTARTS]
SINGLE_PAGES = [page for page in EXECUTED_PAGES if page not in QUICKSTARTS]


@pytest.mark.parametrize("page", SINGLE_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_documented_commands_print_documented_output(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    media = {"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
    if (setup := read_setup(page)) in ("server", "events"):
        database_url = request.getfixturevalue("database_url")
        password = asyncio.run(add_administrator(database_url, "anna"))
        with Server.start(database_url, log=tmp_path / "log", environment=media, timeout=120) as server:
            for number, title in enumerate(("Story time", "Pub quiz") if setup == "events" else (), 1):
                day = date.today() + timedelta(days=number)
                event = {"title": title, "start_date": f"{day} 10:00", "end_date": f"{day} 11:00"}
                url = f"{server.base_url}/api/calendar/events/v1/events"
                httpx.post(url, json=event, auth=("anna", password)).raise_for_status()
            environment = {**make_environment(database_url, media), "PASSWORD": password}
            printed = run_commands(page, tmp_path, environment, read_port(server))
    else:
        environment = make_environment(request.getfixturevalue("empty_database_url"), media)
        printed = run_commands(page, tmp_path, environment)
    compare(printed)


def test_quickstarts_work_on_one_server(database_url: str, tmp_path: Path) -> None:
    """Follow all quickstarts on an empty site; tests/startup/test_run.py follows them backwards after `just demo`."""
    (tmp_path / ".local").mkdir()
    password = asyncio.run(add_administrator(database_url, "admin"))
    (tmp_path / ".local" / "password").write_text(f"{password}\n")
    environment = make_environment(database_url, {"KALENDS_MEDIA_DIR": str(tmp_path / "media")})
    shell = hide_settings(environment)
    with Server.start(database_url, log=tmp_path / "log", environment=environment, timeout=120) as server:
        compare(run_in_cluster(OPERATOR_QUICKSTART, tmp_path, shell))
        for page in SERVER_QUICKSTARTS:
            compare(run_commands(page, tmp_path, shell, read_port(server)))


def run_in_cluster(page: Path, directory: Path, environment: Mapping[str, str]) -> list[PrintedCommand]:
    """Run the commands of a page with a PostgreSQL that has the user postgres only, as after its installation."""
    programs = directory / "bin"
    programs.mkdir()
    sudo = programs / "sudo"
    sudo.write_text('#!/bin/sh\n[ "$1 $2" = "-u postgres" ] || exit 1\nshift 2\nPGUSER=postgres exec "$@"\n')
    sudo.chmod(0o755)
    with postgres.throwaway() as cluster:
        with psycopg.connect(cluster.build_url("postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE kalends")
        address = {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port)}
        path = f"{programs}{os.pathsep}{environment['PATH']}"
        return run_commands(page, directory, {**environment, **address, "PATH": path})


def read_port(server: Server) -> int:
    return int(server.base_url.rpartition(":")[2])


def test_quickstarts_contain_commands() -> None:
    names = {page.name for page in EXECUTED_PAGES}
    assert names >= {page.name for page in QUICKSTARTS}
    # Publishers work in the console; the guide that shows the same by API has commands.
    guides = {*DOCS.glob("quickstart-*.md"), DOCS / "how-to/event-by-api.md"} - {DOCS / "quickstart-publisher.md"}
    assert set(QUICKSTARTS) == guides


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_appear_only_in_executed_blocks(page: Path) -> None:
    rest = CONSOLE_BLOCK.sub("", page.read_text())
    if page == install_test.PAGE:
        # `just install-test` runs these; an installation takes too long for the tests.
        for script in install_test.read_scripts(rest):
            rest = rest.replace(script, "")
    assert not re.findall(r"^\s*(?:\$ |curl |kalends \w+)", rest, re.MULTILINE)


def test_all_pages_are_reachable_from_start() -> None:
    seen, queue = set(), [PROJECT / "README.md", DOCS / "README.md"]
    while queue:
        page = queue.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        queue += [
            page.parent / target.partition("#")[0]
            for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
            if (page.parent / target.partition("#")[0]).exists()
        ]
    assert {page for page in PAGES if page.resolve() not in seen} == set()


def test_generated_reference_is_current() -> None:
    current = {page.name: page.read_text() for page in (DOCS / "reference").glob("*.md")}
    assert current == docs.render(), "run `just reference`"


def test_compatibility_page_is_current() -> None:
    assert (DOCS / "compatibility.md").read_text() == differences.render(), "run `just reference`"


@pytest.mark.skipif(not DECISIONS.exists(), reason="the conformance kit is not available")
def test_all_conformance_decisions_are_documented() -> None:
    documented = {name for rows in differences.TABLES.values() for row in rows for name in row.decisions}
    assert documented | differences.KIT_ONLY == {row["id"] for row in json.loads(DECISIONS.read_text())["decisions"]}


def test_settings_page_is_current() -> None:
    assert reference.PAGE.read_text() == reference.render(), "run `just reference`"


def test_all_settings_codes_parameters_and_headers_are_documented() -> None:
    settings = (DOCS / "settings.md").read_text()
    assert [name for name in Settings.model_fields if f"`KALENDS_{name.upper()}`" not in settings] == []
    reference_text = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    assert [row.code for row in ERROR_CODES if f"`{row.code.replace('*', '…')}`" not in reference_text] == []
    assert [p.name for p in list_params() if f"| `{p.name}`" not in reference_text] == []
    assert [
        name for name in (*error_codes.HEADERS, *error_codes.PARAMETERS) if f"| `{name}`" not in reference_text
    ] == []


def test_documented_error_codes_exist() -> None:
    patterns = [row.code.replace("*", "[a-z]+") for row in ERROR_CODES]
    for page in EXECUTED_PAGES:
        for code in re.findall(r'"code":"([\w-]+)"', page.read_text()):
            assert any(re.fullmatch(pattern, code) for pattern in patterns), (page.name, code)


def list_params() -> list[Param]:
    return [
        p
        for interface in (INTERFACE, EXTENSION)
        for route in interface.routes
        for endpoint in route.endpoints
        for p in (*endpoint.path_params, *endpoint.params)
    ]
