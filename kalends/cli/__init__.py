"""The command line: one module per group of commands."""

import typer

from kalends.cli import demo, jobs, media, records, serve, sites, users
from kalends.cli.runtime import load_settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Importing rich takes longer than everything else that --help does.
    help="Kalends, a calendar-events server.",
)
app.add_typer(users.user, name="user")
app.add_typer(users.app_password, name="app-password")
app.add_typer(sites.group, name="site")
app.add_typer(jobs.job, name="job")
app.add_typer(sites.timezone, name="timezone")
app.add_typer(media.media, name="media")


def main() -> None:
    app()


@app.command()
def migrate() -> None:
    """Upgrade the database schema. Safe to run concurrently."""
    settings = load_settings()
    from kalends.store.migrations import migrate as run_migrations

    run_migrations(settings.owner_url, server_url=settings.database_url, queue_url=settings.queue_url)


app.command()(serve.serve)
app.command("seed")(demo.add_demo_records)
app.command()(serve.worker)
app.command()(records.history)
