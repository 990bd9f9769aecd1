"""Everything that the documentation refers to exists: files, commands, recipes, variables, import contracts."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from kalends.commands import app
from kalends.settings import Settings
from tests.docs.page_commands import PROJECT

DOCS = PROJECT / "docs"
PACKAGE = PROJECT / "kalends"
PAGES = sorted(
    [
        *PROJECT.glob("*.md"),
        *PROJECT.glob("deploy/*/README.md"),
        *[page for page in DOCS.rglob("*.md") if page.parent.name != "reference"],
    ]
)
PAGES.remove(PROJECT / "CHANGELOG.md")  # It also describes earlier versions.
FENCE = re.compile(r"^ *```[^`\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
# Relative paths, and the names of files.
# A date such as 11/15/2027 has no letter.
PATH = re.compile(
    r"(?=.*[a-z])(?:[\w.<>*-]+(?:/[\w.<>*-]+)+/?|[\w.-]+/|[\w.-]+\.(?:html|json|md|py|sh|sql|toml|vcl|ya?ml))"
)
# Text with the form of a path that does not name a file of the repository.
OTHER_PATHS = {
    ".local/image",
    ".local/password",
    ".local/site",
    "move-in-1.md",
    ".concurrent.sql",
    "app.sql",  # a method of a fixture
    "tec/v1",
    "Asia/Calcutta",
    "Asia/Kolkata",
    "Europe/Berlin",
    "compose.override.yaml",
    # Members of an archive of a site.
    "manifest.json",
    "media/",
    "dist/",
    # Files that readers of the quickstarts write.
    "events.html",
    "quickstart.py",
    "text/event-stream",
    "tribe/events/v1",
    "users/me",
    "wp/v2",
}
# Variables of the tests and of .ci/run, which are not settings of the server.
DEVELOPMENT_VARIABLES = {
    "KALENDS_COVERAGE",
    "KALENDS_FAILOVERS",
    "KALENDS_CHROMIUM",
    "KALENDS_POSTGRES",
    "KALENDS_RECORDED_SITE",
    "KALENDS_TEST_DATABASE_URL",
}


def list_code(page: Path) -> list[str]:
    """Return the inline code of a page and the lines of its code blocks."""
    text = page.read_text()
    lines = [line for block in FENCE.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [*CODE.findall(FENCE.sub("", text)), *lines]


def file_exists(name: str, page: Path) -> bool:
    """Look below the repository, the package and the page's folder; file names without a folder anywhere."""
    pattern = re.sub(r"<\w+>", "*", name.rstrip("/"))
    if "/" not in name:
        folders = (PACKAGE, PROJECT / "deploy", PROJECT / ".github", PROJECT / "tests", PROJECT / "docs")
        if any(next(folder.rglob(pattern), None) for folder in folders):
            return True
    return any(next(folder.glob(pattern), None) for folder in (PROJECT, PACKAGE, page.parent))


def find_missing_files(page: Path) -> Iterator[str]:
    names = {text for text in CODE.findall(FENCE.sub("", page.read_text())) if PATH.fullmatch(text)}
    yield from (f"no file {name}" for name in sorted(names - OTHER_PATHS) if not file_exists(name, page))


@cache
def list_recipes() -> set[str]:
    just = Path(sys.executable).parent / "just"
    completed = subprocess.run([just, "--summary"], cwd=PROJECT, capture_output=True, text=True, check=True)
    return set(completed.stdout.split())


def find_missing_recipes(page: Path) -> Iterator[str]:
    call = re.compile(r"(?:^|[ (&])just (?:\w+=\S+ )*([a-z][\w-]*)")
    named = {name for code in list_code(page) for name in call.findall(code)}
    yield from (f"no recipe {name}" for name in sorted(named - list_recipes()))


def find_wrong_commands(page: Path) -> Iterator[str]:
    for code in list_code(page):
        for words in find_commands(code):
            yield from check(words)


def find_commands(code: str) -> Iterator[list[str]]:
    """Yield the words after `kalends`, up to the end of each command."""
    for match in re.finditer(r"(?:^|[\s(]|bin/)kalends ((?:[a-z]|--)[^;&|)>]*)", code):
        try:
            yield shlex.split(match[1])
        except ValueError:  # A quotation mark of the surrounding command, as in PASSWORD="$(kalends …)".
            yield match[1].replace('"', " ").split()


@cache
def load_commands() -> Any:
    return typer.main.get_command(app)


def check(words: list[str]) -> Iterator[str]:
    """Yield a description of each word that is not a command or an option."""
    command: Any = load_commands()
    names = ["kalends"]
    rest = list(words)
    while rest and hasattr(command, "commands") and not rest[0].startswith(("-", "[", "…")):
        # Some groups have a command for everything that is not the name of a command.
        default = getattr(command, "default_command", "")
        names.append(rest.pop(0) if rest[0] in command.commands or not default else default)
        if names[-1] not in command.commands:
            yield f"no command {' '.join(names)}"
            return
        command = command.commands[names[-1]]
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    for word in rest:
        option = word.strip("[]").partition("=")[0]
        if option.startswith("--") and option not in options:
            yield f"no option {option} of {' '.join(names)}"


@pytest.mark.parametrize(
    ("code", "problems"),
    [
        ("kalends user add anna --role author", []),
        ('PASSWORD="$(kalends app-password create anna laptop)"', []),
        ("kalends user create anna", ["no command kalends user create"]),
        ("kalends user list --host-name a.example", ["no option --host-name of kalends user list"]),
        ("/opt/kalends/bin/kalends serv", ["no command kalends serv"]),
    ],
)
def test_unknown_commands_and_options_are_found(code: str, problems: list[str]) -> None:
    assert [problem for words in find_commands(code) for problem in check(words)] == problems


def find_unknown_variables(page: Path) -> Iterator[str]:
    settings = {f"KALENDS_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"\bKALENDS_[A-Z0-9_]*[A-Z0-9]\b", page.read_text()))
    yield from (f"no variable {name}" for name in sorted(named - settings - DEVELOPMENT_VARIABLES))


def test_development_variables_are_used() -> None:
    files = [PROJECT / ".ci" / "run", *PROJECT.glob("tests/**/conftest.py")]
    text = "\n".join(file.read_text() for file in files)
    assert [name for name in sorted(DEVELOPMENT_VARIABLES) if name not in text] == []


def find_broken_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        linked = (page.parent / path) if path else page
        if not linked.exists() or (heading and heading not in list_anchors(linked)):
            yield f"nothing at {target}"


@cache
def list_anchors(page: Path) -> set[str]:
    headings = [line.lstrip("# ").lower() for line in page.read_text().splitlines() if line[:1] == "#"]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}


def test_everything_that_pages_name_exists() -> None:
    finders = [
        find_missing_files,
        find_missing_recipes,
        find_wrong_commands,
        find_unknown_variables,
        find_broken_links,
    ]
    checks = [(page, find) for page in PAGES for find in finders]
    checks += [(page, find_broken_links) for page in sorted(DOCS.glob("reference/*.md"))]
    problems = [f"{page.relative_to(PROJECT)}: {problem}" for page, find in checks for problem in find(page)]
    assert problems == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("`docs/glossary.md`, `just run`, `KALENDS_POOL_SIZE`, [terms](docs/glossary.md#glossary)", []),
        ("`docs/no.md`", ["no file docs/no.md"]),
        ("```\njust no-recipe\n```", ["no recipe no-recipe"]),
        ("`KALENDS_" + "NO_SETTING`", ["no variable KALENDS_" + "NO_SETTING"]),
        ("[a](docs/no.md), [b](docs/glossary.md#no)", ["nothing at docs/no.md", "nothing at docs/glossary.md#no"]),
    ],
)
def test_names_of_nothing_are_found(text: str, problems: list[str], tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(DOCS)
    page = tmp_path / "page.md"
    page.write_text(text)
    finders = (find_missing_files, find_missing_recipes, find_unknown_variables, find_broken_links)
    assert [problem for find in finders for problem in find(page)] == problems


def load_contracts() -> dict[str, dict[str, Any]]:
    configuration = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    return {contract["name"]: contract for contract in configuration["tool"]["importlinter"]["contracts"]}


def test_architecture_page_lists_layers_and_contracts() -> None:
    contracts = load_contracts()
    page = (DOCS / "architecture.md").read_text()
    layers = [layer.replace("kalends.", "") for layer in contracts["Order"]["layers"]]
    assert "\n".join(["```", *layers, "```"]) in page
    assert [name for name in contracts if f"| {name} |" not in page] == []


def test_architecture_page_describes_rooms_frames_and_units() -> None:
    contracts = load_contracts()
    cells = [line.split("|")[1] for line in (DOCS / "architecture.md").read_text().splitlines() if line[:2] == "| "]
    described = set(CODE.findall("\n".join(cells)))
    packages = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    units = re.findall(r"\w+", " ".join(contracts["Units of a room"]["layers"]))
    assert {f"{name}/" for name in packages} - described == set()
    assert set(units) - described == set()


def test_contributing_page_finds_every_room_and_frame() -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text()
    named = {name.split("/")[1] for name in CODE.findall(page) if name.startswith("kalends/")}
    assert {file.parent.name for file in PACKAGE.glob("*/__init__.py")} - named == set()
    assert f"with {len(load_contracts())} import contracts in `pyproject.toml`" in page


def test_navigation_contains_all_pages() -> None:
    configuration = yaml.safe_load((PROJECT / "mkdocs.yml").read_text())
    targets = set(list_targets(configuration["nav"]))
    assert [target for target in sorted(targets) if not (DOCS / target).exists()] == []
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "decisions"}
    assert pages - targets == set()


def list_targets(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for inner in entry.values() if isinstance(entry, dict) else entry:
        yield from list_targets(inner)
