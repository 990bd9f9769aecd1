"""Autosave of several editors raises no revision, and survives a kill of the server (`just bench-console`)."""

import asyncio
import time
from collections.abc import Callable

from bench.console_editors import Editor, add_sessions, edit, find_lost, read_revision
from tests.servers import Server


def test_autosave_raises_no_revision_and_loses_nothing(
    database_url: str, start_server: Callable[..., Server]
) -> None:
    server = start_server(database_url)
    editors = add_sessions(database_url, 10)
    before = read_revision(database_url)
    asyncio.run(_edit_all(server.base_url, editors))
    server.kill()
    assert all(editor.acknowledged for editor in editors)
    assert find_lost(database_url, editors) == 0
    assert read_revision(database_url) == before


async def _edit_all(base_url: str, editors: list[Editor]) -> None:
    ends_at = time.monotonic() + 4
    await asyncio.gather(*[edit(base_url, editor, ends_at) for editor in editors])
