"""Imports: sources, items, runs and plans; identities of records that come from another calendar."""

from pathlib import Path

from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
