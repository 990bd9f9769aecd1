"""Database migrations. Revisions are plain SQL; concurrent runs are safe."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent

Report = Callable[[str], None]


def _ignore(line: str) -> None:
    pass


def migrate(
    database_url: str, *, server_url: str = "", queue_url: str = "", revision: str = "head", report: Report = _ignore
) -> None:
    """Upgrade the schema to a revision. A concurrent run waits, then has nothing to do.

    Also grant the necessary rights to the logins in the URLs of the server and the job queue. `report` gets a line
    for each step.
    """
    # Without these imports, a server starts in half the time, and it never migrates.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["database_url"] = database_url
    config.attributes["report"] = report
    config.attributes["logins"] = {
        "kalends_app": urlsplit(server_url).username,
        "kalends_queue": urlsplit(queue_url).username,
    }
    command.upgrade(config, revision)


@cache
def list_revisions() -> list[str]:
    """Return all revisions in order: the numbers at the start of the file names."""
    return sorted(path.name.partition("_")[0] for path in (HERE / "versions").glob("[0-9]*.py"))


def newest_revision() -> str:
    return list_revisions()[-1]
