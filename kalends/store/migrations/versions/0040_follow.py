"""Following lists by email: followers, follows, and the numbers of emails per day."""

from kalends.store.migrations.steps import run_file

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    run_file(__file__)
