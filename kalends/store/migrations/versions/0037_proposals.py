"""Proposals: changes that editors decide on, their senders and pictures."""

from kalends.store.migrations.steps import run_file

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    run_file(__file__)
