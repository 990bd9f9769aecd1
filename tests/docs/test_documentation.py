"""The commands of the documentation work, its generated pages are current, and the reference is complete."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from kalends.api.description import headers
from kalends.api.description.errors import ERROR_CODES
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core.clock import utc_now
from kalends.core.params import Param
from kalends.operations import accounts
from kalends.settings import Settings
from kalends.store.database import Database, Options
from tests.docs.page_commands import (
    CONSOLE_BLOCK,
    PROJECT,
    matches_output,
    needs_server,
    parse_commands,
    run_commands,
)
from tests.servers import Server, make_environment
from tools import differences, docs, reference

DOCS = PROJECT / "docs"
DECISIONS = PROJECT.parent / "shared" / "conformance" / "decisions.json"
PAGES = [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]
EXECUTED_PAGES = [page for page in PAGES if parse_commands(page)]


@pytest.mark.parametrize("page", EXECUTED_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_documented_commands_print_documented_output(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    media = {"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
    if needs_server(page):
        database_url = request.getfixturevalue("database_url")
        password = asyncio.run(add_administrator(database_url))
        with Server.start(database_url, log=tmp_path / "log", environment=media, timeout=120) as server:
            environment = {**make_environment(database_url, media), "PASSWORD": password}
            printed = run_commands(page, database_url, environment, int(server.base_url.rpartition(":")[2]))
    else:
        database_url = request.getfixturevalue("empty_database_url")
        printed = run_commands(page, database_url, make_environment(database_url, media))
    for command, text in printed:
        assert matches_output(command, text), f"$ {command.text}\nprinted\n{text}\ninstead of\n{command.output}"


async def add_administrator(database_url: str) -> str:
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction("127.0.0.1", utc_now(), writing=True) as tx:
            await accounts.add_user(tx, "anna", "administrator", "")
            return await accounts.add_application_password(tx, "anna", "laptop")
    finally:
        await database.close()


def test_quickstarts_contain_commands() -> None:
    names = {page.name for page in EXECUTED_PAGES}
    assert names >= {"quickstart-publisher.md", "quickstart-developer.md", "quickstart-operator.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_appear_only_in_executed_blocks(page: Path) -> None:
    rest = CONSOLE_BLOCK.sub("", page.read_text())
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
    assert [name for name in (*headers.HEADERS, *headers.PARAMETERS) if f"| `{name}`" not in reference_text] == []


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
