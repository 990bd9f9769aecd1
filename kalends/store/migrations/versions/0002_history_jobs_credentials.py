"""History, tombstones, scheduled publication, trash, the job queue, and protection of credentials."""

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # The tables of the job queue come from its library.
    for sql in (SchemaManager.get_schema(), Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")):
        op.get_bind().exec_driver_sql(sql.replace("%", "%%"))
