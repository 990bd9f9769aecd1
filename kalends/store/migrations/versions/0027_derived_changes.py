"""Changes of records that nobody has edited."""

from kalends.store.migrations.steps import run_file

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    run_file(__file__)
