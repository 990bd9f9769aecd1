"""An index of changes by date, so that the job that trims the change logs does not visit every site."""

from kalends.store.migrations.steps import run_concurrently, run_file

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    run_concurrently(__file__)
    run_file(__file__)
