"""Following lists by email: followers, follows, and the numbers of emails per day."""

from kalends.store.migrations.steps import run_file

revision = "0041"
down_revision = "0038"


def upgrade() -> None:
    run_file(__file__)
