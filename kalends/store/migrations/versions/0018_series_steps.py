"""The predecessor of each occurrence, to find the first of a series in a list."""

from pathlib import Path

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
