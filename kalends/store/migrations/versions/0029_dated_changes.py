"""Changes of a site with their time and whether they hide or protect an event."""

from kalends.store.migrations.steps import run_file

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    run_file(__file__)
