"""Changes of a site for caches: which records changed, and what lists need to know about them."""

from pathlib import Path

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))
