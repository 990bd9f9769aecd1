"""Separate queues for urgent jobs, e-mails, imports and images."""

from kalends.store.migrations.steps import run_file

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    run_file(__file__)
