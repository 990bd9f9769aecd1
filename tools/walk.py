"""Counts the files, functions and calls of kalends in six warm requests; resuming a coroutine is no call."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from sys import monitoring
from types import CodeType
from typing import Any, NamedTuple

import httpx

import kalends
from kalends.store.migrations import migrate
from tests.api.running_app import RunningApp, add_users
from tests.console.console_client import ConsoleClient
from tools.postgres import throwaway

PACKAGE = f"{Path(kalends.__file__).parent}/"
DAY = {"start_date": "2027-04-01 19:30:00", "end_date": "2027-04-01 21:00:00"}
EVENT = {**DAY, "description": "<p>Hello</p>", "venue": {"venue": "Hall"}, "categories": ["Music"]}
ROUNDS = 8  # The median counts: the first rounds fill caches, and periodic work may run in others.


class Walk(NamedTuple):
    files: int
    functions: int
    calls: int


def measure_all(app: RunningApp) -> dict[str, Walk]:
    editor, reader, console = app.caller("editor"), app.caller(), ConsoleClient.signed_in(app, "editor")
    titles = (f"Concert {n}" for n in count(1))
    ids = [editor.create("events", title=next(titles), **EVENT)["id"] for _ in range(5)]
    form = f"/console/events/{ids[1]}"

    def change() -> Any:
        """Make what caches have of the lists and the first event outdated."""
        return editor.change("events", ids[0], title=next(titles))

    # What precedes each request, and the request itself.
    requests: dict[str, tuple[Callable[[], Any], Callable[[Any], httpx.Response]]] = {
        "GET event, cached": (lambda: None, lambda _: reader.get(f"/events/{ids[2]}")),
        "GET event": (change, lambda _: reader.get(f"/events/{ids[0]}")),
        "GET five events": (change, lambda _: reader.get("/events?start_date=2027-01-01&per_page=5")),
        "POST event": (lambda: {"title": next(titles), **EVENT}, lambda body: editor.post("/events", body)),
        "Month page": (change, lambda _: reader.get("//events/month/2027-04/")),
        "Save in the console": (
            lambda: console.page(form).form(title=next(titles), action="save"),
            lambda fields: console.post(form, fields),
        ),
    }
    walks = {
        name: [_measure(app, send, prepare()) for _ in range(ROUNDS)] for name, (prepare, send) in requests.items()
    }
    return {name: sorted(found, key=lambda walk: walk.calls)[ROUNDS // 2 - 1] for name, found in walks.items()}


def _measure(app: RunningApp, send: Callable[[Any], httpx.Response], argument: Any) -> Walk:
    app.flush_log()  # Otherwise, the access log may be written during the request.
    calls: Counter[CodeType] = Counter()

    def note(code: CodeType, _: int) -> None:
        if code.co_filename.startswith(PACKAGE):
            calls[code] += 1

    tool, started = monitoring.PROFILER_ID, monitoring.events.PY_START
    monitoring.use_tool_id(tool, "walk")
    monitoring.register_callback(tool, started, note)
    monitoring.set_events(tool, started)
    response = send(argument)
    monitoring.set_events(tool, 0)
    monitoring.free_tool_id(tool)
    if response.status_code not in (200, 201, 303):
        raise SystemExit(f"{response.status_code} {response.text[:1000]}")
    return Walk(len({code.co_filename for code in calls}), len(calls), calls.total())


def main() -> None:
    with throwaway() as postgres:
        migrate(postgres.url)
        with RunningApp(postgres.url, asyncio.run(add_users(postgres.url))) as app:
            results = measure_all(app)
    print(f"{'':<22}{'files':>8}{'functions':>12}{'calls':>8}")
    for name, walk in results.items():
        print(f"{name:<22}{walk.files:>8}{walk.functions:>12}{walk.calls:>8}")


if __name__ == "__main__":
    main()
