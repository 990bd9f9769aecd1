"""Records what clients get and the SQL behind it, with a fixed time and random values, to compare two versions.

`record DIR` plays the examples of /doc and the requests of wire_requests.py; `compare DIR DIR` prints what differs.
"""

import argparse
import asyncio
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kalends.asgi import Application
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.conftest import TRANSACTION_METHODS
from tools.examples import freeze
from tools.wire_requests import play_all

FILES = ("exchanges", "statements", "texts")
SHOWN, WIDTH = 60, 400


class Recorder:
    """Keeps the exchanges of all applications of this process, and the statements of each."""

    def __init__(self) -> None:
        self.part = ""
        self.exchanges: dict[str, Any] = {}
        self.statements: dict[str, list[str]] = {}
        self._current = ContextVar("current", default="")

    @contextmanager
    def attach(self) -> Iterator[None]:
        with ExitStack() as patches:
            patches.enter_context(patch.object(random, "_urandom", random.Random(1).randbytes))  # noqa: S311
            patches.enter_context(patch.object(Application, "__call__", self._wrap_call(Application.__call__)))
            for name in TRANSACTION_METHODS:
                wrapped = self._wrap_statement(getattr(Transaction, name))
                patches.enter_context(patch.object(Transaction, name, wrapped))
            yield

    def _wrap_statement(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def run(transaction: Transaction, sql: Sql) -> Any:
            text = " ".join(sql.text.split())
            if (name := self._current.get()) and text not in self.statements[name]:
                self.statements[name].append(text)
            return await method(transaction, sql)

        return run

    def _wrap_call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def respond(app: Application, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await method(app, scope, receive, send)
                return
            query = scope["query_string"].decode("latin-1")
            line = f"{self.part}: {scope['method']} {scope['path']}{'?' if query else ''}{query}"
            name = next(name for n in range(1, 1000) if (name := f"{line} #{n}") not in self.exchanges)
            if name.endswith(" #1"):  # Only repeated requests get compressed responses.
                scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
            messages, earlier, self.statements[name] = list[Any](), asyncio.all_tasks(), list[str]()

            async def keep(message: Any) -> None:
                messages.append(message)
                await send(message)

            with patch.object(random, "_urandom", random.Random(name).randbytes):  # noqa: S311  It must be repeatable.
                token = self._current.set(name)
                await method(app, scope, receive, keep)
                if later := asyncio.all_tasks() - earlier:
                    await asyncio.wait(later, timeout=5)
                self._current.reset(token)
            body = b"".join(message.get("body", b"") for message in messages[1:])
            headers = [b": ".join(pair).decode("latin-1") for pair in messages[0]["headers"]]
            content = text if (text := body.decode(errors="ignore")).encode() == body else _hash(body)
            self.exchanges[name] = {"status": messages[0]["status"], "headers": headers, "body": content}

        return respond

    def write(self, directory: Path) -> None:
        texts = {_hash(text.encode()): text for rows in self.statements.values() for text in rows}
        statements = {name: [_hash(text.encode()) for text in rows] for name, rows in self.statements.items()}
        directory.mkdir(parents=True, exist_ok=True)
        for file, rows in zip(FILES, (self.exchanges, statements, dict(sorted(texts.items()))), strict=True):
            (directory / f"{file}.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def record(directory: Path) -> int:
    recorder = Recorder()
    with freeze(), recorder.attach():
        for part in play_all():
            recorder.part = part
    recorder.write(directory)
    return 0


def compare(directories: list[Path], skipped: str) -> int:
    """Print the requests whose responses or statements differ, and the texts that only one side has."""
    (old, old_runs, old_texts), (new, new_runs, new_texts) = [
        [json.loads((directory / f"{file}.json").read_text()) for file in FILES] for directory in directories
    ]
    names = [name for name in {**old, **new} if not (skipped and re.search(skipped, name))]
    lines = [f"{name}: {reason}" for name in names if (reason := _differ(old.get(name), new.get(name)))]
    lines += [f"{name}: other SQL" for name in names if old_runs.get(name) != new_runs.get(name)]
    changed = [f"- {old_texts[key]}" for key in old_texts.keys() - new_texts.keys()]
    changed += [f"+ {new_texts[key]}" for key in new_texts.keys() - old_texts.keys()]
    for rows in (lines, sorted(changed, key=lambda row: row[2:])):
        print("\n".join([*[row[:WIDTH] for row in rows[:SHOWN]], f"and {len(rows) - SHOWN:,} more"][: len(rows)]))
    print(f"{len(names):,} requests, {len(lines):,} differences, {len(changed):,} statements that only one side has")
    return 1 if lines else 0


def _differ(old: Any, new: Any) -> str:
    """Return what first differs between two responses, or an empty text."""
    if old is None or new is None:
        return "only in the first" if old else "only in the second"
    lines = [[str(row["status"]), *row["headers"], *row["body"].splitlines()] for row in (old, new)]
    pair = next((pair for pair in zip_longest(*lines, fillvalue="") if pair[0] != pair[1]), None)
    if pair is None:
        return ""
    start = next((n for n, letters in enumerate(zip(*pair, strict=False)) if letters[0] != letters[1]), 0)
    return " → ".join(repr(line[max(start - 40, 0) : start + 80]) for line in pair)


def main() -> int:
    parser = argparse.ArgumentParser(prog="just wire", description=__doc__)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--skip", default="", metavar="PATTERN", help="ignore requests that match: ' /embed/'")
    arguments = parser.parse_args()
    if arguments.command == "record":
        return record(*arguments.directories)
    return compare(arguments.directories, arguments.skip)


if __name__ == "__main__":
    sys.exit(main())
