"""Database migrations. Revisions are plain SQL; concurrent runs are safe."""

from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent


def migrate(database_url: str, *, server_url: str = "", queue_url: str = "", revision: str = "head") -> None:
    """Upgrade the schema to a revision. A concurrent run waits, then has nothing to do.

    The logins in the URLs of the server and of the job queue are granted the rights that they need.
    """
    # A server never migrates and starts in half the time without these imports.
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
    """Return the newest revision: the number at the beginning of the last file name."""
    return max(path.name.partition("_")[0] for path in (HERE / "versions").glob("[0-9]*.py"))
