"""A site that has everything, its archives, and commands that export and import."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.api.running_app import RunningApp, User
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import run_command
from tests.site_archive.full_site import fill_site

HOST = "town.example"


@dataclass(frozen=True)
class Place:
    """A database and its media storage."""

    url: str
    media_dir: Path

    @property
    def settings(self) -> dict[str, str]:
        return {"KALENDS_MEDIA_DIR": str(self.media_dir)}

    def run(self, *arguments: str) -> str:
        result = run_command(self.url, *arguments, settings=self.settings)
        assert result.exit_code == 0, result.output
        return result.stdout

    def fail(self, *arguments: str) -> str:
        result = run_command(self.url, *arguments, settings=self.settings)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert "Traceback" not in result.stderr
        return result.stderr


@pytest.fixture(scope="module")
def full_site(
    postgres_url: str, user_template: tuple[str, dict[str, User]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Return a database whose only site, at town.example, has everything. Tests must not change it."""
    template, users = user_template
    media_dir = tmp_path_factory.mktemp("media")
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        with RunningApp(url, users, {"KALENDS_MEDIA_DIR": str(media_dir)}) as app:
            fill_site(app, media_dir)
        place = Place(url, media_dir)
        place.run("site", "add-host", HOST)
        yield place


@pytest.fixture
def new_place(database_url: str, tmp_path: Path) -> Place:
    """Return a database with an empty site and an empty media storage."""
    return Place(database_url, tmp_path / "media")


@pytest.fixture(scope="module")
def archives(full_site: Place, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """Return a function that gives the archive of the site, with or without accounts."""
    directory = tmp_path_factory.mktemp("archives")

    def get(accounts: bool) -> Path:
        path = directory / f"accounts-{accounts}.zip"
        if not path.exists():
            full_site.run("site", "export", HOST, "--to", str(path), *(["--accounts"] if accounts else []))
        return path

    return get
