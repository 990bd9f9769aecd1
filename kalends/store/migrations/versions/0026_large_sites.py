"""Plans for the sites that are much larger than the others in their database."""

from kalends.store.migrations.steps import run_file

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    run_file(__file__)
