"""Emails about proposals, idle submitters, and indexes for submitters and for passwords without a login."""

from kalends.store.migrations.steps import run_concurrently, run_file

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    run_file(__file__)
    run_concurrently(__file__)
