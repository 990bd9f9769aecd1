"""The whole schema; it replaces the migrations up to 0034 and never changes."""

from alembic import op
from procrastinate.schema import SchemaManager

from kalends.store.migrations.steps import run_file

revision = "0035"
down_revision = None


def upgrade() -> None:
    # The job queue's tables come from its library.
    op.get_bind().exec_driver_sql(SchemaManager.get_schema().replace("%", "%%"))
    run_file(__file__)
