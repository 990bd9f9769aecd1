"""Brings the database to the current schema. Revisions are plain SQL; two runs at once are safe."""

from pathlib import Path

HERE = Path(__file__).parent


def migrate(database_url: str) -> None:
    """Runs what is missing. A second run at the same moment waits, then finds nothing to do."""
    # A server never migrates, and starts in half the time without these.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")


def newest_revision() -> str:
    """The revision that a migrated database has: the number in front of the last file."""
    return max(path.name.partition("_")[0] for path in (HERE / "versions").glob("[0-9]*.py"))
