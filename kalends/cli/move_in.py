"""Moving a WordPress site with The Events Calendar in."""

import asyncio
import fileinput
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from kalends.cli.runtime import (
    SiteOption,
    load_settings,
    read_site,
    run_in_transaction,
    run_with_library,
    show_progress,
)

if TYPE_CHECKING:
    from kalends.core.egress import AllowedNetwork
    from kalends.core.tec.move_in import MoveIn
    from kalends.operations.media.library import Library
    from kalends.operations.move_in.apply import MoveInJob
    from kalends.operations.move_in.runs import Target
    from kalends.operations.move_in.snapshot import Snapshot
    from kalends.operations.move_in.verify import Difference
    from kalends.store import Row
    from kalends.store.database import Transaction
    from kalends.store.site_database import SiteDatabase

tec = typer.Typer(no_args_is_help=True, help="Move a WordPress site with The Events Calendar in.")

MAX_NAMED = 20  # records that a line of a plan names
SECONDS_PER_RECORD = 0.03
Report = Callable[[str, int, int], None]
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
    float | None,
    typer.Option(help="Maximum requests per second; at most four run at a time.", min=0.1, max=1000),
]
FullOption = Annotated[bool, typer.Option("--full", help="Read all events, not only those that changed.")]
ReportOption = Annotated[Path | None, typer.Option(help="File for the report, as Markdown.")]


@dataclass(frozen=True, slots=True)
class Session:
    """What the steps of a command share: the site into which another one moves, and how that is read."""

    database: "SiteDatabase"
    library: "Library"
    target: "Target"
    progress: Report
    login: str = ""
    password: str = ""
    rate: float | None = None


def run_session[T](
    site: str,
    work: Callable[[Session], Awaitable[T]],
    *,
    login: str = "",
    password: str = "",
    rate: float | None = None,
) -> T:
    """Run the steps of a command, with progress bars."""
    from kalends.operations.move_in.runs import find_target

    async def run(database: "SiteDatabase", library: "Library") -> T:
        target = await find_target(database, read_site(site))
        with show_progress() as progress:
            return await work(Session(database, library, target, progress, login, password, rate))

    result: T = asyncio.run(run_with_library(run))
    return result


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
    """Read the old site and print what would be done; write no record. The last line is the number of the run."""
    options = {
        "without_trash": without_trash,
        "keep_shortcodes": keep_shortcodes,
        "map_ids": map_ids,
        "snapshot": str((snapshot or make_snapshot_path(url)).absolute()),
    }
    password = read_password(password_file) if login else ""
    addresses = old_urls.read_text().split() if old_urls else []

    async def plan(session: Session) -> int:
        run_id, _ = await crawl_and_plan(session, url.rstrip("/"), options, full=full, old_urls=addresses)
        return run_id

    typer.echo(run_session(site, plan, login=login, password=password, rate=rate))


@tec.command("apply")
def apply_move_in(
    run_id: Run,
    accept_deletions: Annotated[
        bool, typer.Option("--accept-deletions", help="Also move records to the trash for which the plan waits.")
    ] = False,
    site: SiteOption = "",
) -> None:
    """Write what was planned. An interrupted run continues."""
    run_session(site, lambda session: apply_run(session, run_id, accept_deletions=accept_deletions))


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
    """Compare every record, address and file with the old site; exit code 1 if anything differs."""
    password = read_password(password_file) if live else ""

    async def verify(session: Session) -> bool:
        return await verify_run(session, run_id, report, live=live)

    if not run_session(site, verify, login=login, password=password, rate=rate):
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
    """Read what has changed, write it, compare everything, and close the move-in: later edits here are safe."""
    from kalends.operations.move_in.switch import CHECKLIST

    text = accept_differences.read_text() if accept_differences else ""

    async def switch(session: Session) -> bool:
        return await close_move_in(session, url.rstrip("/"), report, text, full=full, keep_snapshot=keep_snapshot)

    if not run_session(site, switch, login=login, password=read_password(password_file), rate=rate):
        raise typer.Exit(1)
    typer.echo("The move-in is over. What is left to do:")
    for number, text in enumerate(CHECKLIST, 1):
        typer.echo(f"{number}. {text}")


@tec.command("invite")
def invite_people(site: SiteOption = "") -> None:
    """Print a link for each imported account that cannot sign in yet; it works once, within seven days."""
    from kalends.cli.users import create_link
    from kalends.operations.move_in.switch import list_uninvited
    from kalends.operations.sessions import Purpose

    async def invite(tx: "Transaction") -> list[str]:
        return [
            f"{login} {email}: {await create_link(tx, user_id, Purpose.INVITE)}"
            for user_id, login, email in await list_uninvited(tx)
        ]

    for line in run_in_transaction(site, invite):
        typer.echo(line)


@tec.command("missing")
def list_missing(
    logs: Annotated[
        list[Path] | None, typer.Argument(help="Files with the log of the server; else standard input.")
    ] = None,
) -> None:
    """List the paths that were requested and not found, by count, from the log of the server."""
    from kalends.operations.move_in.switch import count_missing

    with fileinput.input(logs or ("-",), encoding="utf-8") as lines:
        missing = count_missing(lines)
    for number, path in missing:
        typer.echo(f"{number:>8}  {path}")


# Steps ------------------------------------------------------------------------------------------


async def crawl_and_plan(
    session: Session, url: str, options: Mapping[str, Any], *, full: bool = False, old_urls: Iterable[str] = ()
) -> "tuple[int, MoveIn]":
    """Read the old site into the snapshot, unless there is no login, and store the plan; return what was planned."""
    from kalends.operations.move_in import planning, runs
    from kalends.operations.move_in.snapshot import Snapshot

    database, target = session.database, session.target
    with Snapshot.open(Path(options["snapshot"])) as snapshot:
        if session.login or snapshot.read_fact("crawl") is None:
            await read_old_site(session, snapshot, url, full=full, old_urls=old_urls)
        session.progress("plan", 0, 1)
        move_in = runs.map_move_in(snapshot, target.base_url, options)
        source_id = await runs.open_source(database, target.site_id, url)
        run_id = await planning.plan(
            database, target.site_id, source_id, move_in, snapshot, options=options,
            input_hash=runs.hash_input(snapshot),
        )  # fmt: skip
        session.progress("plan", 1, 1)
    await print_plan(database, target, run_id)
    return run_id, move_in


async def find_named_networks(url: str) -> "list[AllowedNetwork]":
    """Return the addresses of the old site. The operator has named it, so it may be in a private network."""
    from kalends.adapters.safe_fetch import resolve_host
    from kalends.core.egress import AllowedNetwork, read_target

    target = read_target(url)
    try:
        ips = [target.ip_literal] if target.ip_literal else await resolve_host(target.host, target.port)
    except OSError:
        return []  # The crawl will say so.
    return [AllowedNetwork(ip_network(ip), target.port) for ip in ips]


async def read_old_site(
    session: Session, snapshot: "Snapshot", url: str, *, full: bool = False, old_urls: Iterable[str] = ()
) -> None:
    from kalends.adapters.safe_fetch import Fetcher
    from kalends.core.egress import read_allowed_network
    from kalends.operations.move_in.crawl import CRAWL_TIMEOUT, crawl

    networks = [read_allowed_network(text) for text in load_settings().fetch_allowed_networks]
    fetcher = Fetcher([*networks, *await find_named_networks(url)], seconds=CRAWL_TIMEOUT)
    result = await crawl(
        fetcher, url, session.login, session.password, snapshot, rate=session.rate, full=full, old_urls=old_urls,
        progress=lambda step: session.progress(step.step, step.done, step.total),
    )  # fmt: skip
    typer.echo(f"{result.events:,} events, {result.requests:,} requests.")
    for warning in result.warnings:
        typer.echo(f"warning: {warning}")


async def apply_run(
    session: Session, run_id: int, move_in: "MoveIn | None" = None, *, accept_deletions: bool = False
) -> None:
    from kalends.operations.move_in import apply, runs

    run = await runs.find_run(session.database, session.target.site_id, run_id)
    started = time.monotonic()
    with runs.open_snapshot(run) as snapshot:
        counts = await apply.apply(
            make_job(session, run, snapshot, move_in), session.progress, accept_deletions=accept_deletions
        )
    await print_failures(session.database, session.target, run_id)
    typer.echo(
        f"Run {run_id}: {counts.get('applied', 0):,} records written, {counts.get('failed', 0):,} refused, "
        f"{counts.get('waiting', 0):,} waiting, in {time.monotonic() - started:.1f} s."
    )


async def verify_run(session: Session, run_id: int, report: Path | None, *, live: bool = False) -> bool:
    """Compare and write the report; return whether nothing differs."""
    from kalends.operations.move_in import runs

    run = await runs.find_run(session.database, session.target.site_id, run_id)
    with runs.open_snapshot(run) as snapshot:
        if live:
            await read_old_site(session, snapshot, snapshot.read_fact("url"), full=True)
        job = make_job(session, run, snapshot, is_same=not live)
        remaining, _ = await compare(session, job, report)
    return not remaining


async def compare(
    session: Session, job: "MoveInJob", report: Path | None, accepted_report: str = ""
) -> "tuple[list[Difference], list[Difference]]":
    """Compare and write the report; return the differences without an explanation: unexpected and accepted ones."""
    from kalends.operations.move_in import verify, verify_report

    lines = verify_report.read_accepted(accepted_report, job.move_in.site.url) if accepted_report else ()
    result = await verify.verify(job, session.progress)
    accepted = [entry for entry in result.unexplained if verify_report.write_row(entry) in lines]
    remaining = [entry for entry in result.unexplained if entry not in accepted]
    path = report or Path(f"move-in-{job.run_id}.md")
    text = verify_report.write_report(result, job.move_in, job.run_id, accepted)
    await asyncio.to_thread(path.write_text, text)
    for entry in remaining[:MAX_NAMED]:
        typer.echo(
            f"{entry.kind} {entry.identity}: {entry.field}: {entry.expected!r} expected, {entry.found!r} found"
        )
    for reason in dict.fromkeys(entry.reason for entry in result.explained):
        records = [[entry.kind, entry.identity] for entry in result.explained if entry.reason == reason]
        typer.echo(f"warning: a difference is explained: {reason} ({name_records(records)})")
    compared = ", ".join(f"{number:,} {name}" for name, number in result.compared.items())
    typer.echo(f"{compared} compared: {len(remaining):,} differences. See {path}.")
    return remaining, accepted


def make_job(
    session: Session, run: "Row", snapshot: "Snapshot", move_in: "MoveIn | None" = None, *, is_same: bool = True
) -> "MoveInJob":
    from kalends.operations.move_in import runs

    return runs.make_job(
        session.database, session.library, session.target, run, snapshot, move_in=move_in, is_same=is_same
    )


async def close_move_in(
    session: Session, url: str, report: Path | None, accepted_report: str, *, full: bool, keep_snapshot: bool
) -> bool:
    """Do the last run and close the source; return whether it is closed."""
    from kalends.operations.move_in import runs
    from kalends.operations.move_in.switch import close_source

    database, site_id = session.database, session.target.site_id
    source = await runs.find_open_source(database, site_id, url)
    options = runs.read_options(await runs.find_last_run(database, site_id, source["id"]))
    run_id, move_in = await crawl_and_plan(session, source["url"], options, full=full)
    await apply_run(session, run_id, move_in)
    run = await runs.find_run(database, site_id, run_id)
    with runs.open_snapshot(run) as snapshot:
        job = make_job(session, run, snapshot, move_in)
        remaining, accepted = await compare(session, job, report, accepted_report)
    if remaining:
        typer.echo(
            "The move-in stays open, because there are differences. Read the report. If they are acceptable, run the "
            "command again with --accept-differences and the report.",
            err=True,
        )
        return False
    await close_source(database, site_id, run, accepted)
    if accepted:
        typer.echo(f"{len(accepted):,} differences were accepted; run {run_id} keeps them.")
    if not keep_snapshot:
        await asyncio.to_thread(Path(options["snapshot"]).unlink, missing_ok=True)
    return True


# Output -----------------------------------------------------------------------------------------


async def print_plan(database: "SiteDatabase", target: "Target", run_id: int) -> None:
    """Print one line per kind, the warnings by cause, and the estimates."""
    import orjson

    from kalends.core.tec.move_in import KINDS
    from kalends.operations.move_in import runs
    from kalends.store.imports import decode_message

    run = await runs.find_run(database, target.site_id, run_id)
    stored: dict[str, dict[str, int]] = orjson.loads(run["options"])["kinds"]
    kinds = {kind: stored[kind] for kind in KINDS}
    actions = ("new", "changed", "unchanged", "gone", "rejected")
    typer.echo(f"{'':<12}" + "".join(f"{action:>10}" for action in actions))
    for kind, counts in kinds.items():
        typer.echo(f"{kind:<12}" + "".join(f"{counts.get(action, 0):>10,}" for action in actions))
    for entry in orjson.loads(run["warnings"]):
        typer.echo(f"warning: {decode_message(entry)} ({name_records(entry.get('records', []))})")
    for row in await runs.read_rows(database, target.site_id, run_id, ("gone", "rejected")):
        typer.echo(f"{row['action']}: {row['kind']} {row['identity']} {row['title']}: {join_reasons(row)}")
    rows = sum(counts.get(action, 0) for counts in kinds.values() for action in ("new", "changed", "gone"))
    typer.echo(f"{rows:,} records to write, about {rows * SECONDS_PER_RECORD + 1:,.0f} s.")


async def print_failures(database: "SiteDatabase", target: "Target", run_id: int) -> None:
    from kalends.operations.move_in import runs

    for row in await runs.read_rows(database, target.site_id, run_id, ("new", "changed", "gone")):
        if row["state"] == "failed":
            typer.echo(f"refused: {row['kind']} {row['identity']} {row['title']}: {join_reasons(row)}", err=True)


def join_reasons(row: "Row") -> str:
    from kalends.operations.move_in.planning import list_reasons

    return " ".join(str(reason) for reason in list_reasons(row))


def name_records(records: list[list[str]]) -> str:
    names = [f"{kind} {identity}" for kind, identity in records[:MAX_NAMED]]
    more = [f"{len(records) - MAX_NAMED} more"] if len(records) > MAX_NAMED else []
    return ", ".join([*names, *more])


def make_snapshot_path(url: str) -> Path:
    return Path(f"move-in-{urlsplit(url).hostname or 'site'}.snapshot")


def read_password(path: Path | None) -> str:
    """Return the application password; it is never an argument, which other users of the machine could see."""
    if path is not None:
        return path.read_text().strip()
    password: str = typer.prompt("Application password", hide_input=True)
    return password
