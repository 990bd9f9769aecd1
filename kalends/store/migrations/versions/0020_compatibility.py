"""Compatibility: the oldest code that works on this schema, for servers of earlier versions."""

from kalends.store.migrations.steps import run_file

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_file(__file__)
