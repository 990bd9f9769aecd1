"""Brings the database to the current schema. Revisions are plain SQL; two runs at once are safe."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

HERE = Path(__file__).parent


def migrate(database_url: str) -> None:
    """Runs what is missing. A second run at the same moment waits, then finds nothing to do."""
    config = _config()
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")


def newest_revision() -> str:
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(HERE))
    return config
