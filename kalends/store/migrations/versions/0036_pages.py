"""Image hues, the start page of sites, and the time when users last opened the console."""

from kalends.store.migrations.steps import run_file

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    run_file(__file__)
