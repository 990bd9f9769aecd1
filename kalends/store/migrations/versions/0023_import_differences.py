"""An index of the rows of imports with events that people have declared different."""

from kalends.store.migrations.steps import run_concurrently

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    run_concurrently(__file__)
