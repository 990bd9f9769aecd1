"""Move a site to another cell while it is in use.

The steps are idempotent and durable, so a move can be resumed after any crash: `find_next_step` reads the progress
from the databases, not from a mover's memory. The commit of `switch` at the source decides the move. Before this
commit, the source serves the site and the move can be aborted; after it, the target serves the site as soon as
`activate` has run. `fleet/storage/move_steps.py` explains why a suspended mover can do no harm.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kalends.core.errors import InvalidValue
from kalends.fleet.storage import move_source, move_steps, move_tables, move_target
from kalends.fleet.storage.move_source import MoveSurvey, survey
from kalends.fleet.storage.move_steps import Cell, CopyLost, FenceExpired, Move, MoveError, MoveLimits, SourceLock
from kalends.store.problems import connect

log = logging.getLogger(__name__)

COPY_POLL_SECONDS: Final = 0.25
MAX_RESTARTS: Final = 3


class MoveReport(Protocol):
    """Reports a stage's progress; `note` holds figures that are not part of the total."""

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None: ...


def ignore_progress(stage: str, done: int, total: int, note: str = "") -> None:
    pass


def ignore_event(event: str) -> None:
    pass


@dataclass(slots=True)
class SiteMover:
    """Runs one move in one process. `watch` receives events, such as the start and end of each step."""

    directory_url: str
    source: Cell
    target: Cell
    move: Move
    lock: SourceLock
    limits: MoveLimits = field(default_factory=MoveLimits)
    watch: Callable[[str], None] = ignore_event
    report: MoveReport = ignore_progress
    table_rows: dict[str, int] = field(default_factory=dict)
    pause_ms: int | None = None  # unknown if another mover has activated the site

    async def reserve(self) -> None:
        """Mark the site as arriving at the target. The target must not contain any rows of the site."""
        while other := await move_target.reserve(self.target, self.move):
            known = await move_steps.read_move(self.directory_url, other)
            if known is not None and known.ended_at is None:
                raise MoveError(
                    "Site {site} has an unfinished move. Run `kalends site moves`.", site=self.move.site_id
                )
            await self._empty_target(replace(self.move, id=other))

    async def copy(self) -> None:
        """Copy all rows, and wait until the target has nearly caught up."""
        is_new = not await move_target.has_subscription(self.target, self.move)
        if not is_new:
            await move_source.require_slot(self.source, self.move)
        else:
            await move_source.create_slot(self.source, self.move)
            self.watch("slot created")
            await move_target.subscribe(self.target, self.source, self.move)
            self.watch("subscribed")
        async with connect(self.source.url) as at_source:
            sizes = await move_tables.measure_tables(
                at_source, await move_tables.find_tables(at_source), self.move.site_id
            )
        self.table_rows = {size.name: size.rows for size in sizes}
        await self._wait_for_copy()
        await move_target.analyze(self.target, self.table_rows)

    async def _wait_for_copy(self) -> None:
        """Wait until all tables replicate with a small lag; raise if there is no progress for some time."""
        total = sum(self.table_rows.values())
        last: object = None
        last_change = time.monotonic()
        async with connect(self.source.url) as at_source, connect(self.target.url) as at_target:
            while True:
                progress = await move_target.read_progress(at_target, self.move)
                lag, confirmed = await move_source.read_lag(at_source, self.move)
                done = sum(self.table_rows.get(name, 0) for name in progress.ready) + sum(progress.copying.values())
                self.report("rows", min(done, total), total, f"lag {lag / 2**20:.1f} MB")
                self.watch("copying")
                is_ready = len(progress.ready) == progress.tables
                if is_ready and lag <= self.limits.max_lag:
                    return
                # Until all tables are copied, the position advances whether or not the copying makes progress.
                state = confirmed if is_ready else (progress.ready, progress.copying)
                if state != last:
                    last, last_change = state, time.monotonic()
                elif time.monotonic() - last_change > self.limits.patience:
                    raise MoveError(
                        "The copy makes no progress, after {errors} errors of its workers. The log of the target has "
                        "the reason.",
                        errors=progress.errors,
                    )
                await asyncio.sleep(COPY_POLL_SECONDS)

    async def switch(self) -> None:
        """Stop serving the site at the source as soon as the target has received everything."""
        delay = self.limits.first_delay
        for attempt in range(1, self.limits.fence_attempts + 1):
            try:
                async with move_target.open_verification(self.target, self.move) as verify:
                    await move_source.switch(self.source, self.move, self.limits, verify, self.watch)
                return
            except FenceExpired as error:
                log.warning("site %s: attempt %s to switch: %s", self.move.site_id, attempt, error)
                self.watch("fence expired")
                await asyncio.sleep(delay)
                delay = min(delay * 2, self.limits.max_delay)
                await self._wait_for_copy()
        raise MoveError(
            "The site could not be switched in {attempts} attempts. The source still serves it. Run "
            "`kalends site move --resume` when there are fewer writes, or `--abort`.",
            attempts=self.limits.fence_attempts,
        )

    async def activate(self) -> None:
        """Start serving the site at the target once the source has stopped. Warn about standbys that lag behind."""
        departure = await move_source.read_departure(self.source, self.move, self.limits.standby_timeout)
        if departure is None:
            raise CopyLost("The source lost the switch in a failover and serves the site.")
        for standby in departure.lagging:
            log.warning("site %s: the standby %s of %s lags", self.move.site_id, standby, self.source.name)
        if await move_target.activate(self.target, self.move, departure):
            self.pause_ms = await move_source.measure_pause(self.source, self.move)

    async def route(self) -> None:
        """Send all requests to the target, and add any of the site's hosts in the directory that the target lacks."""
        hosts = await move_steps.route_to_target(self.directory_url, self.move, self.pause_ms, "route")
        await move_target.add_hosts(self.target, self.move, hosts)

    async def clean(self) -> None:
        await self._drop_slots()
        await move_source.unpublish(self.source, self.move)
        jobs, late = await move_source.find_late_jobs(self.source, self.move, self.limits.job_patience)
        await move_target.add_jobs(self.target, late)
        await move_source.remove_leftovers(self.source, self.move, jobs, self._count("removed"))
        await move_steps.end_move(self.directory_url, self.move, "clean")

    async def abort(self) -> None:
        """Undo a move before the switch. The first step, at the source, makes the switch impossible."""
        await move_steps.mark_aborting(self.directory_url, self.move)
        self.watch("before retract")
        await move_source.retract(self.source, self.move)
        self.watch("after retract")
        await self._empty_target(self.move)
        self.watch("after empty")
        await move_steps.end_aborted_move(self.directory_url, self.move)

    async def take_back(self) -> None:
        """Undo a move after the switch, because the target lost its copy before serving the site.

        Once the target's mark is gone too, no mover can activate the site there.
        """
        await move_steps.mark_aborting(self.directory_url, self.move)
        await self._empty_target(self.move)
        if await move_target.serves(self.target, self.move):
            raise move_steps.MoveSuperseded
        await move_source.take_back(self.source, self.move)
        await move_steps.end_aborted_move(self.directory_url, self.move)

    async def _empty_target(self, move: Move) -> None:
        await move_target.unsubscribe(self.target, move)
        await self._drop_slots(move)
        await move_target.empty(self.target, move, self._count("removed"))

    async def _drop_slots(self, move: Move | None = None) -> None:
        name = (move or self.move).object_name
        await move_source.drop_slots(self.source, [name], *await move_target.read_cluster(self.target))

    def _count(self, stage: str) -> Callable[[int], None]:
        total, done = sum(self.table_rows.values()), 0

        def count(rows: int) -> None:
            nonlocal done
            done += rows
            self.report(stage, done, max(total, done))
            self.watch("removing")

        return count

    async def run(self, first: str) -> None:
        names = [step.name for step in STEPS]
        for step in STEPS[names.index(first) :]:
            self.watch(f"before {step.name}")
            await self._insist(step)
            if step.is_recorded:
                await move_steps.record_step(self.directory_url, self.move, step.name)
            self.watch(f"after {step.name}")

    async def _insist(self, step: "MoveStep") -> None:
        """Retry a step until it succeeds or a database has been unavailable for too long."""
        patience = self.limits.switched_patience if step.is_switched else self.limits.patience
        failing_since = last_failure = float("-inf")
        delay = self.limits.first_delay
        while True:
            try:
                if not step.is_switched:
                    await self.lock.verify()
                return await step.run(self)
            except Exception as error:
                now = time.monotonic()
                if now - last_failure > patience:
                    failing_since, delay = now, self.limits.first_delay
                last_failure = now
                if not move_steps.is_temporary(error) or now - failing_since > patience:
                    raise
                log.warning("site %s: step %s is repeated: %r", self.move.site_id, step.name, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, self.limits.max_delay)


@dataclass(frozen=True, slots=True)
class MoveStep:
    name: str
    run: Callable[[SiteMover], Awaitable[None]]
    # Whether the directory records the step. Recording must not delay the two steps during which writers wait.
    is_recorded: bool = True
    is_switched: bool = False  # whether the step directly follows the switch; it is retried longer, without the lock


STEPS: Final = (
    MoveStep("reserve", SiteMover.reserve),
    MoveStep("copy", SiteMover.copy),
    MoveStep("switch", SiteMover.switch, is_recorded=False),
    MoveStep("activate", SiteMover.activate, is_recorded=False, is_switched=True),
    MoveStep("route", SiteMover.route, is_recorded=False, is_switched=True),
    MoveStep("clean", SiteMover.clean, is_recorded=False),
)
FIRST_STEP: Final = "reserve"


@dataclass(frozen=True, slots=True)
class MoveSetup:
    directory_url: str
    cells: Mapping[str, str]  # owner URL by cell name
    limits: MoveLimits = field(default_factory=MoveLimits)
    watch: Callable[[str], None] = ignore_event
    report: MoveReport = ignore_progress

    def find_cell(self, name: str) -> Cell:
        url = self.cells.get(name)
        if not url:
            raise MoveError("KALENDS_CELL_OWNERS has no cell {name}.", name=name)
        return Cell(name, url)

    def make_mover(self, move: Move, lock: SourceLock) -> SiteMover:
        source, target = self.find_cell(move.source), self.find_cell(move.target)
        return SiteMover(
            self.directory_url, source, target, move, lock, self.limits, watch=self.watch, report=self.report
        )


class UnmetConditions(InvalidValue):
    """Raised if a move cannot start; the message lists the problems."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


async def survey_move(setup: MoveSetup, site: str | int, target: str) -> MoveSurvey:
    """Return what a move would copy and what prevents it, without changing anything."""
    found = await move_steps.find_site(setup.directory_url, site)
    if found.cell == target:
        raise MoveError("Site {site} is in the cell {target} already.", site=found.site_id, target=target)
    await move_steps.check_target(setup.directory_url, target)
    surveyed = await survey(setup.find_cell(found.cell), setup.find_cell(target), found.site_id)
    unfinished = await move_steps.list_moves(setup.directory_url, unfinished=True, site_id=found.site_id)
    if not unfinished:
        return surveyed
    problem = f"Site {found.site_id} has an unfinished move. Run `kalends site move --resume` or `--abort`."
    return replace(surveyed, problems=[problem, *surveyed.problems])


async def move_site(setup: MoveSetup, site: str | int, target: str) -> Move:
    surveyed = await survey_move(setup, site, target)
    if surveyed.problems:
        raise UnmetConditions(surveyed.problems)
    found = await move_steps.find_site(setup.directory_url, site)
    async with move_steps.lock_source(setup.directory_url, found.cell, setup.limits.session_timeout) as lock:
        return await _start_move(setup, lock, found.site_id, found.cell, target)


async def resume_move(setup: MoveSetup, move: Move) -> Move:
    """Complete an interrupted move, or finish aborting it. If the copy is lost, make a new one."""
    async with move_steps.lock_source(setup.directory_url, move.source, setup.limits.session_timeout) as lock:
        move = await _read(setup, move)
        if move.ended_at is not None:
            return move
        mover = setup.make_mover(move, lock)
        first = await find_next_step(mover)
        if first != "abort":
            return await _run(setup, mover, first)
        await mover.abort()
        return await _read(setup, move)


async def abort_move(setup: MoveSetup, move: Move) -> Move:
    """Undo a move before the switch. The source keeps serving the site."""
    async with move_steps.lock_source(setup.directory_url, move.source, setup.limits.session_timeout) as lock:
        await setup.make_mover(move, lock).abort()
        return await _read(setup, move)


async def find_next_step(mover: SiteMover) -> str:
    """Return the step at which a move continues, according to the databases."""
    if mover.move.outcome == "moved":
        return "clean"
    if await move_source.read_departure(mover.source, mover.move) is not None:
        return "activate"
    is_aborting = mover.move.step == "abort" or not await move_source.may_switch(mover.source, mover.move)
    return "abort" if is_aborting else FIRST_STEP


async def _start_move(setup: MoveSetup, lock: SourceLock, site_id: int, source: str, target: str) -> Move:
    unfinished = await move_steps.list_moves(setup.directory_url, unfinished=True)
    slots = await move_source.sweep(setup.find_cell(source), {move.object_name for move in unfinished})
    cluster = await move_target.read_cluster(setup.find_cell(target))
    await move_source.drop_slots(setup.find_cell(source), slots, *cluster)
    move = await _begin(setup, site_id, source, target)
    return await _run(setup, setup.make_mover(move, lock), FIRST_STEP)


async def _begin(setup: MoveSetup, site_id: int, source: str, target: str) -> Move:
    """Permit the switch, then store the move in the directory, where other movers can find and abort it."""
    move_id = uuid.uuid4()
    setup.watch("before publish")
    await move_source.publish(setup.find_cell(source), site_id, move_id)
    setup.watch("before begin")
    move = await move_steps.begin_move(setup.directory_url, move_id, site_id, source, target)
    setup.watch("after begin")
    return move


async def _run(setup: MoveSetup, mover: SiteMover, first: str, restarts: int = 0) -> Move:
    try:
        await mover.run(first)
    except CopyLost as error:
        if restarts == MAX_RESTARTS:
            raise MoveError(
                "The copy was lost {count} times. {reason}", count=restarts + 1, reason=str(error)
            ) from error
        log.warning("site %s: the copy is made again: %s", mover.move.site_id, error)
        # Start a new move, because the permission to switch must not outlast the copy.
        is_departed = await move_source.read_departure(mover.source, mover.move) is not None
        await (mover.take_back() if is_departed else mover.abort())
        move = await _begin(setup, mover.move.site_id, mover.source.name, mover.target.name)
        return await _run(setup, setup.make_mover(move, mover.lock), FIRST_STEP, restarts + 1)
    return await _read(setup, mover.move)


async def _read(setup: MoveSetup, move: Move) -> Move:
    found = await move_steps.read_move(setup.directory_url, move.id)
    if found is None:
        raise MoveError("The directory has no move {id}.", id=move.id)
    return found
