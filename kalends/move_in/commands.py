"""Commands that migrate a WordPress site that uses The Events Calendar."""

import asyncio
import fileinput
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from kalends.cli import runtime
from kalends.cli.runtime import SiteOption
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.media.adapters.library import Library
    from kalends.move_in.operations.move_runs import AppliedRun, Comparison, PlannedRun, Session, Step
    from kalends.store import Row
    from kalends.store.database import Transaction
    from kalends.store.site_database import SiteDatabase

tec = typer.Typer(no_args_is_help=True, help="Move a WordPress site with The Events Calendar in.")

MAX_NAMED = 20  # records named per plan line
SECONDS_PER_RECORD = 0.03
Run = Annotated[int, typer.Argument(help="Number of the run: the last line that `plan` prints.")]
UrlArgument = Annotated[str, typer.Argument(help="URL of the old site, such as https://www.example.org.")]
LoginOption = Annotated[str, typer.Option(help="Login of an administrator of the old site.")]
PasswordOption = Annotated[
    Path | None, typer.Option(help="File with an application password of the administrator; else it is asked for.")
]
SnapshotOption = Annotated[
    Path | None,
    typer.Option(help="File for everything that is read; without --login, plan from it and read nothing."),
]
RateOption = Annotated[
    float | None, typer.Option(help="Maximum requests per second; at most four run at a time.", min=0.1, max=1000)
]
FullOption = Annotated[bool, typer.Option("--full", help="Read all events, not only those that changed.")]
ReportOption = Annotated[Path | None, typer.Option(help="File for the report, as Markdown.")]


def run_steps(
    site: str,
    work: "Callable[[Session], AsyncIterator[Step]]",
    *,
    login: str = "",
    password: str = "",
    rate: float | None = None,
) -> Any:
    """Run a command's steps with progress bars, print each result, and return the last one."""
    from kalends.core.egress import read_allowed_network
    from kalends.move_in.operations.move_runs import Session

    networks = [read_allowed_network(text) for text in runtime.load_settings().fetch_allowed_networks]

    async def run(database: "SiteDatabase", library: "Library") -> "Step | None":
        async with database.transaction(runtime.read_site(site), utc_now(), writing=False) as tx:
            found = tx.site
        last: Step | None = None
        with runtime.show_progress() as progress:
            session = Session(database, library, found.id, found.base_url, progress, networks, login, password, rate)
            async for last in work(session):
                print_step(last)
        return last

    return asyncio.run(runtime.run_with_library(run))


@tec.command("plan")
def plan_move_in(
    url: UrlArgument,
    *,
    login: LoginOption = "",
    password_file: PasswordOption = None,
    snapshot: SnapshotOption = None,
    old_urls: Annotated[Path | None, typer.Option(help="File with former addresses, one per line.")] = None,
    rate: RateOption = None,
    without_trash: Annotated[bool, typer.Option("--without-trash", help="Leave the trash behind.")] = False,
    keep_shortcodes: Annotated[bool, typer.Option("--keep-shortcodes", help="Keep shortcodes as text.")] = False,
    map_ids: Annotated[bool, typer.Option("--map-ids", help="Give records new IDs; the site has others.")] = False,
    full: FullOption = False,
    site: SiteOption = "",
) -> None:
    """Read the old site and print what an import would do and the run's number, without writing records."""
    from kalends.move_in.operations.move_runs import plan_move

    options = {
        "without_trash": without_trash,
        "keep_shortcodes": keep_shortcodes,
        "map_ids": map_ids,
        "snapshot": str((snapshot or make_snapshot_path(url)).absolute()),
    }
    password = read_password(password_file) if login else ""
    addresses = old_urls.read_text().split() if old_urls else []

    def plan(session: "Session") -> "AsyncIterator[Step]":
        return plan_move(session, url.rstrip("/"), options, full=full, old_urls=addresses)

    typer.echo(run_steps(site, plan, login=login, password=password, rate=rate).run["id"])


@tec.command("apply")
def apply_move_in(
    run_id: Run,
    accept_deletions: Annotated[
        bool, typer.Option("--accept-deletions", help="Also move records to the trash for which the plan waits.")
    ] = False,
    site: SiteOption = "",
) -> None:
    """Write what was planned. If a run was interrupted, continue it."""
    from kalends.move_in.operations.move_runs import apply_run

    run_steps(site, lambda session: apply_run(session, run_id, accept_deletions=accept_deletions))


@tec.command("verify")
def verify_move_in(
    run_id: Run,
    *,
    report: ReportOption = None,
    live: Annotated[bool, typer.Option("--live", help="Read the old site again and compare with it.")] = False,
    login: LoginOption = "",
    password_file: PasswordOption = None,
    rate: RateOption = None,
    site: SiteOption = "",
) -> None:
    """Compare every record, address and file with the old site; exit with status 1 if anything differs."""
    from kalends.move_in.operations.move_runs import verify_run

    password = read_password(password_file) if live else ""

    def verify(session: "Session") -> "AsyncIterator[Step]":
        return verify_run(session, run_id, report, live=live)

    if run_steps(site, verify, login=login, password=password, rate=rate).remaining:
        raise typer.Exit(1)


@tec.command("switch")
def switch_site(
    url: Annotated[str, typer.Argument(help="URL of the old site; needed if several sites are moving in.")] = "",
    *,
    login: LoginOption = "",
    password_file: PasswordOption = None,
    rate: RateOption = None,
    report: ReportOption = None,
    accept_differences: Annotated[
        Path | None,
        typer.Option(
            help="Report that you have read: the differences in it do not stop the switch.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    full: FullOption = False,
    keep_snapshot: Annotated[bool, typer.Option("--keep-snapshot", help="Keep the file with the snapshot.")] = False,
    site: SiteOption = "",
) -> None:
    """Import the latest changes, compare everything, and close the move-in unless differences remain."""
    from kalends.move_in.operations.move_runs import CHECKLIST, ClosedMove, switch

    text = accept_differences.read_text() if accept_differences else ""

    def work(session: "Session") -> "AsyncIterator[Step]":
        return switch(session, url.rstrip("/"), report, text, full=full, keep_snapshot=keep_snapshot)

    last = run_steps(site, work, login=login, password=read_password(password_file), rate=rate)
    if not isinstance(last, ClosedMove):
        typer.echo(
            "The move-in stays open, because there are differences. Read the report. If they are acceptable, run the "
            "command again with --accept-differences and the report.",
            err=True,
        )
        raise typer.Exit(1)
    typer.echo("The move-in is over. What is left to do:")
    for number, text in enumerate(CHECKLIST, 1):
        typer.echo(f"{number}. {text}")


@tec.command("invite")
def invite_people(site: SiteOption = "") -> None:
    """Print a link for each imported account that cannot sign in yet. Each link works once, within seven days."""
    from kalends.accounts.operations.sign_in_methods import Purpose
    from kalends.move_in.operations.move_runs import list_uninvited

    async def invite(tx: "Transaction") -> list[str]:
        return [
            f"{login} {email}: {await runtime.create_link(tx, user_id, Purpose.INVITE)}"
            for user_id, login, email in await list_uninvited(tx)
        ]

    for line in runtime.run_in_transaction(site, invite):
        typer.echo(line)


@tec.command("missing")
def list_missing(
    logs: Annotated[
        list[Path] | None, typer.Argument(help="Files with the log of the server; else standard input.")
    ] = None,
) -> None:
    """List requested paths that were not found, most frequent first, from the server's log."""
    from kalends.move_in.operations.move_runs import count_missing

    with fileinput.input(logs or ("-",), encoding="utf-8") as lines:
        missing = count_missing(lines)
    for number, path in missing:
        typer.echo(f"{number:>8}  {path}")


# Output -----------------------------------------------------------------------------------------


def print_step(step: "Step") -> None:
    from kalends.move_in.operations import move_runs
    from kalends.move_in.operations.crawl import CrawlResult

    match step:
        case CrawlResult():
            typer.echo(f"{step.events:,} events, {step.requests:,} requests.")
            for warning in step.warnings:
                typer.echo(f"warning: {warning}")
        case move_runs.PlannedRun():
            print_plan(step)
        case move_runs.AppliedRun():
            print_applied(step)
        case move_runs.Comparison():
            print_comparison(step)
        case move_runs.ClosedMove() if step.accepted:
            typer.echo(f"{step.accepted:,} differences were accepted; run {step.run_id} keeps them.")
        case _:
            pass


def print_plan(planned: "PlannedRun") -> None:
    import orjson

    from kalends.imports.storage.import_tables import decode_message
    from kalends.move_in.rules.old_records import KINDS

    stored: dict[str, dict[str, int]] = orjson.loads(planned.run["options"])["kinds"]
    kinds = {kind: stored[kind] for kind in KINDS}
    actions = ("new", "changed", "unchanged", "gone", "rejected")
    typer.echo(f"{'':<12}" + "".join(f"{action:>10}" for action in actions))
    for kind, counts in kinds.items():
        typer.echo(f"{kind:<12}" + "".join(f"{counts.get(action, 0):>10,}" for action in actions))
    for entry in orjson.loads(planned.run["warnings"]):
        typer.echo(f"warning: {decode_message(entry)} ({name_records(entry.get('records', []))})")
    for row in planned.rows:
        typer.echo(f"{row['action']}: {row['kind']} {row['identity']} {row['title']}: {join_reasons(row)}")
    rows = sum(counts.get(action, 0) for counts in kinds.values() for action in ("new", "changed", "gone"))
    typer.echo(f"{rows:,} records to write, about {rows * SECONDS_PER_RECORD + 1:,.0f} s.")


def print_applied(applied: "AppliedRun") -> None:
    for row in applied.refused:
        typer.echo(f"refused: {row['kind']} {row['identity']} {row['title']}: {join_reasons(row)}", err=True)
    written, refused, waiting = (applied.counts.get(state, 0) for state in ("applied", "failed", "waiting"))
    typer.echo(
        f"Run {applied.run_id}: {written:,} records written, {refused:,} refused, {waiting:,} waiting, "
        f"in {applied.seconds:.1f} s."
    )


def print_comparison(compared: "Comparison") -> None:
    for entry in compared.remaining[:MAX_NAMED]:
        typer.echo(
            f"{entry.kind} {entry.identity}: {entry.field}: {entry.expected!r} expected, {entry.found!r} found"
        )
    explained = compared.result.explained
    for reason in dict.fromkeys(entry.reason for entry in explained):
        records = [[entry.kind, entry.identity] for entry in explained if entry.reason == reason]
        typer.echo(f"warning: a difference is explained: {reason} ({name_records(records)})")
    numbers = ", ".join(f"{number:,} {name}" for name, number in compared.result.compared.items())
    typer.echo(f"{numbers} compared: {len(compared.remaining):,} differences. See {compared.report}.")


def join_reasons(row: "Row") -> str:
    from kalends.imports.operations.requests import read_messages

    return " ".join(str(reason) for reason in read_messages(row["reasons"]))


def name_records(records: list[list[str]]) -> str:
    names = [f"{kind} {identity}" for kind, identity in records[:MAX_NAMED]]
    more = [f"{len(records) - MAX_NAMED} more"] if len(records) > MAX_NAMED else []
    return ", ".join([*names, *more])


def make_snapshot_path(url: str) -> Path:
    return Path(f"move-in-{urlsplit(url).hostname or 'site'}.snapshot")


def read_password(path: Path | None) -> str:
    """Read the application password from a file or a prompt; other users could see a command-line argument."""
    if path is not None:
        return path.read_text().strip()
    password: str = typer.prompt("Application password", hide_input=True)
    return password
