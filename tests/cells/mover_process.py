"""A mover as a process of its own, which is killed, suspended or held up at a point of its work.

Its only argument is a JSON object; see `Order`.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass, replace
from typing import Literal

from kalends.fleet.operations import site_move
from kalends.fleet.operations.site_move import MoveSetup
from kalends.fleet.storage.move_steps import list_moves
from tests.cells.move_fixtures import FAST

type Action = Literal["kill", "stop", "wait", ""]
# After this many seconds the directory ends the session of a mover that is suspended.
SESSION_TIMEOUT = 5.0


@dataclass(frozen=True)
class Order:
    """What the process does: a command for a site, and an action at the first event of a name."""

    directory_url: str
    cells: dict[str, str]
    site_id: int
    target: str = ""  # empty: the site is not moved, but its unfinished move is resumed or aborted
    command: Literal["move", "resume", "abort"] = "move"
    event: str = ""
    action: Action = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


async def carry_out(order: Order) -> None:
    is_done = False

    def watch(event: str) -> None:
        nonlocal is_done
        if event != order.event or is_done:
            return
        is_done = True
        if order.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdout.write(f"{event}\n")
        sys.stdout.flush()
        if order.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif order.action == "wait":
            sys.stdin.readline()

    limits = replace(FAST, session_timeout=SESSION_TIMEOUT)
    setup = MoveSetup(order.directory_url, order.cells, limits=limits, watch=watch)
    if order.command == "move":
        await site_move.move_site(setup, order.site_id, order.target)
        return
    for move in await list_moves(order.directory_url, unfinished=True, site_id=order.site_id):
        act = site_move.resume_move if order.command == "resume" else site_move.abort_move
        await act(setup, move)


if __name__ == "__main__":
    asyncio.run(carry_out(Order(**json.loads(sys.argv[1]))))
