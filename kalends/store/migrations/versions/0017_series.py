"""Series of recurring events."""

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
