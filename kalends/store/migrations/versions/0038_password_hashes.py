"""An index that finds an application password without the login."""

from kalends.store.migrations.steps import run_concurrently

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    run_concurrently(__file__)
