"""The life of a record: history, tombstones, schedule, trash; credentials under attack."""

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # The tables of the job queue are the queue's own; ours begin after them.
    for sql in (SchemaManager.get_schema(), Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")):
        op.get_bind().exec_driver_sql(sql.replace("%", "%%"))
