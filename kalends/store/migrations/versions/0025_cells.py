"""Sites in several databases with one directory: hosts, moves, and the lock that a move waits for."""

from kalends.store.migrations.steps import run_file

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    run_file(__file__)
