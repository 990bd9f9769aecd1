"""Push: followers of the change log, webhooks, their pending records and deliveries."""

from kalends.store.migrations.steps import run_file

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    run_file(__file__)
