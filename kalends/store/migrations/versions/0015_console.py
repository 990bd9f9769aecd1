"""Sessions, passkeys, one-time tokens, drafts and saved filters of the console."""

from pathlib import Path

from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
