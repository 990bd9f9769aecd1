"""Brings the database to the current schema. Revisions are plain SQL; two runs at once are safe."""

from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent


def migrate(database_url: str, *, server_url: str = "", queue_url: str = "", revision: str = "head") -> None:
    """Runs what is missing. A second run at the same moment waits, then finds nothing to do.

    The logins in the addresses of the server and of the job queue are granted the rights that they need.
    """
    # A server never migrates, and starts in half the time without these.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["database_url"] = database_url
    config.attributes["logins"] = {
        "kalends_app": urlsplit(server_url).username,
        "kalends_queue": urlsplit(queue_url).username,
    }
    command.upgrade(config, revision)


def newest_revision() -> str:
    """The revision that a migrated database has: the number in front of the last file."""
    return max(path.name.partition("_")[0] for path in (HERE / "versions").glob("[0-9]*.py"))
