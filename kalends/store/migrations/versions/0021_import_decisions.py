"""Imports: decisions on possible duplicates, and e-mail addresses of organizers in calendars."""

from pathlib import Path

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
