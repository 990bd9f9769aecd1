"""A PostgreSQL cluster with a pgBackRest repository, configured by the files of deploy/pgbackrest."""

import configparser
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.backup.backup_page import read_pgbackrest_commands
from tools import postgres
from tools.release import PROJECT

FILES = PROJECT / "deploy" / "pgbackrest"
STANZA = "kalends"


@dataclass(frozen=True)
class Repository:
    """A backup repository and the directory of its clusters, both below one that the user of PostgreSQL owns."""

    home: Path

    @property
    def configuration(self) -> Path:
        return self.home / "pgbackrest.conf"

    def run(self, *arguments: str) -> str:
        """Run pgBackRest as the user of PostgreSQL and return its output."""
        completed = subprocess.run(
            ["pgbackrest", f"--config={self.configuration}", f"--stanza={STANZA}", *arguments],
            user=postgres.find_other_user(),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed.stdout

    @contextmanager
    def run_cluster(self) -> Iterator[postgres.Server]:
        """Run a cluster that archives, with a repository that is ready for its backups."""
        settings = {**read_archive_settings(self.configuration), "unix_socket_directories": str(self.home)}
        server = postgres.start(self.home / "cluster", settings={**postgres.THROWAWAY, **settings})
        try:
            write_configuration(self, server.port)
            for command in read_pgbackrest_commands():
                if command[0] in ("stanza-create", "check"):
                    self.run(*command)
            yield server
        finally:
            server.stop()

    @contextmanager
    def restore(self, moment: str) -> Iterator[postgres.Server]:
        """Restore the state of a moment into a new cluster, and run it."""
        directory = self.home / "restored"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
        if user := postgres.find_other_user():
            shutil.chown(directory, user)
        (command,) = [command for command in read_pgbackrest_commands() if command[0] == "restore"]
        target = [f"--target={moment}" if part.startswith("--target=") else part for part in command]
        self.run(*target, f"--pg1-path={directory}")
        server = postgres.start(directory, settings={**postgres.THROWAWAY, "archive_mode": "off"})
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def temporary_repository() -> Iterator[Repository]:
    # Short, because the path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="kalends-backup-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        if user := postgres.find_other_user():
            shutil.chown(home, user)
        yield Repository(home)


def write_configuration(repository: Repository, port: int) -> None:
    """Write the configuration of deploy/pgbackrest with the paths of the test."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(FILES / "pgbackrest.conf")
    home = repository.home
    parser["global"].update(
        {
            "repo1-path": str(home / "repository"),
            "log-path": str(home / "log"),
            "lock-path": str(home / "lock"),
            "spool-path": str(home / "spool"),
            "log-level-file": "off",
        }
    )
    parser[STANZA].update(
        {
            "pg1-path": str(home / "cluster"),
            "pg1-port": str(port),
            "pg1-socket-path": str(home),
            "pg1-user": "postgres",
        }
    )
    with repository.configuration.open("w") as file:
        parser.write(file, space_around_delimiters=False)


def read_archive_settings(configuration: Path) -> dict[str, str]:
    """Return the settings of deploy/pgbackrest/archive.conf, with the configuration file of the test."""
    text = (FILES / "archive.conf").read_text()
    settings = dict(re.findall(r"^(\w+) = '?(.*?)'?$", text, re.MULTILINE))
    settings["archive_command"] = settings["archive_command"].replace(
        "pgbackrest ", f"pgbackrest --config={configuration} "
    )
    return settings
