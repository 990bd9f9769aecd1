"""Project files name packages, settings and recipes that exist, and `just release` edits the right lines."""

import json
import re
from datetime import date

import pytest
import yaml

from kalends.settings import Settings
from tests.docs.page_commands import PROJECT
from tools import release

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Tags.

## [0.1.0] - 2020-01-01

### Added

- Events.
"""

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
SETTINGS_FILES = [
    PROJECT / "Dockerfile",
    PROJECT / "compose.yaml",
    PROJECT / "deploy" / "compose" / "varnish.yaml",
    PROJECT / "deploy" / "nginx" / "kalends.conf",
    PROJECT / "deploy" / "caddy" / "Caddyfile",
    *sorted((PROJECT / "deploy" / "systemd").glob("*.service")),
    PROJECT / "deploy" / "systemd" / "kalends.env.example",
    PROJECT / "deploy" / "systemd" / "README.md",
]


def test_changelog_entries_move_to_a_dated_section() -> None:
    dated = release.date_changelog(CHANGELOG, "0.2.0", date(2020, 2, 3))
    assert dated == CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2020-02-03\n")


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        (CHANGELOG, "0.1.0", "already has a section"),
        (CHANGELOG.replace("### Added\n\n- Tags.\n\n", ""), "0.2.0", "no entries"),
        (CHANGELOG.replace("[Unreleased]", "[Next]"), "0.2.0", "no section"),
    ],
)
def test_changelog_without_new_entries_is_rejected(text: str, version: str, reason: str) -> None:
    with pytest.raises(release.ReleaseError, match=reason):
        release.date_changelog(text, version, date(2020, 2, 3))


def test_every_file_with_the_version_is_updated() -> None:
    name = "CHANGELOG.md"
    changes = release.prepare_files(PROJECT, "9.8.7", date(2020, 2, 3))
    assert set(changes) == {"kalends/__init__.py", "pyproject.toml", "uv.lock", name}
    assert release.find_version(changes["kalends/__init__.py"]) == "9.8.7"
    for file, text in changes.items():
        before = (PROJECT / file).read_text().splitlines()
        added = [line for line in text.splitlines() if line not in before]
        assert len(added) == 1, file
        assert "9.8.7" in added[0]


def test_versions_are_ordered() -> None:
    versions = ["0.9.10", "0.10.0a1", "0.10.0b2", "0.10.0rc1", "0.10.0rc10", "0.10.0", "0.10.1"]
    assert sorted(set(versions), key=release.sort_key) == versions


@pytest.mark.parametrize("version", ["v1.0.0", "1.0", "1.0.0-rc1", ""])
def test_malformed_version_is_rejected(version: str) -> None:
    with pytest.raises(release.ReleaseError, match="not a version"):
        release.check_repository(version)


@pytest.mark.parametrize("path", SETTINGS_FILES, ids=lambda path: path.name)
def test_deployment_files_name_existing_settings(path) -> None:
    known = {f"KALENDS_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"KALENDS_[A-Z0-9_]+", path.read_text()))
    assert named
    assert named - known == set()


def test_development_container_has_the_packages_of_ci() -> None:
    script = (PROJECT / ".ci" / "run").read_text().replace("$postgres", "15")
    groups = re.findall(r"packages\+?=\(([^)]+)\)", script)
    packages = {name.strip('"') for group in groups for name in group.split()}
    assert {"postgresql-15", "chromium", "npm"} <= packages
    assert packages <= set((PROJECT / ".devcontainer" / "Dockerfile").read_text().split())


def test_development_container_calls_existing_recipes() -> None:
    text = (PROJECT / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    recipes = re.findall(r"just ([a-z0-9-]+)", container["postCreateCommand"])
    assert recipes
    justfile = (PROJECT / "justfile").read_text()
    assert [name for name in recipes if not re.search(rf"(?m)^{name}( .*)?:", justfile)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_actions_and_only_read_by_default(path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    actions = [step["uses"] for job in workflow["jobs"].values() for step in job.get("steps", []) if "uses" in step]
    assert actions
    assert [action for action in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []
