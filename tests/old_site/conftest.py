"""An application with the records of a recorded WordPress site, at the time of the recording."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.operations.event_links import resolve_links
from kalends.calendar.operations.writes import add_record, change_record
from kalends.core.params import read_params
from kalends.store.database import Database, Options, Transaction
from kalends.store.sql import Sql
from tests.api.conftest import StartApp, start_single_site_for_module as start_app_for_module
from tests.api.running_app import HOST, RunningApp

__all__ = ["start_app_for_module"]

RECORDED_AT = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
KINDS = {"category": "categories", "tag": "tags", "venue": "venues", "organizer": "organizers", "event": "events"}
LINES: list[list[Any]] = [
    json.loads(line) for line in Path(__file__).with_name("site.jsonl").read_text().splitlines()
]


@pytest.fixture(scope="module")
def old_site(start_app_for_module: StartApp) -> Iterator[RunningApp]:
    app = start_app_for_module()
    app.set_site("timezone", "America/New_York")
    app.set_site("default_view", "list")
    editor = Actor(app.users["editor"].id, "editor", "editor")
    app.run(load_site(app.database_url, editor))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kalends.asgi.utc_now", lambda: RECORDED_AT)
        yield app


async def load_site(database_url: str, editor: Actor) -> None:
    database = await Database.open(Options(database_url, size=1, transaction_timeout=600))
    try:
        async with database.transaction(HOST, RECORDED_AT, writing=True) as tx:
            await load_records(tx, editor)
    finally:
        await database.close()


async def load_records(tx: Transaction, editor: Actor) -> None:
    """Add the records with their IDs and slugs. Unpublished records become drafts."""
    await tx.lock_site(editor.user_id)
    records = [line for line in LINES if line[0] in KINDS]
    parents = {line[1]: line[4] for line in records if line[0] == "category"}

    def read_order(line: list[Any]) -> tuple[int, int]:
        """Terms come before posts, and categories after their parents."""
        if line[0] != "category":
            return (0 if line[0] == "tag" else 10), line[1]
        depth, parent = 0, line[4]
        while parent:
            depth, parent = depth + 1, parents[parent]
        return depth, line[1]

    for line in sorted(records, key=read_order):
        await add_line(tx, editor, line)
    tx.changes.last_post_id = max(line[1] for line in records if line[0] in ("venue", "organizer", "event"))
    tx.changes.last_term_id = max(line[1] for line in records if line[0] in ("category", "tag"))


async def add_line(tx: Transaction, editor: Actor, line: list[Any]) -> None:
    kind, (name, record_id, slug) = BY_NAME[KINDS[line[0]]], line[:3]
    tx.changes.last_post_id = tx.changes.last_term_id = record_id - 1
    values = read_params(kind.fields, make_fields(line))
    context = OperationContext(
        transaction=tx, actor=editor, base_url=f"http://{HOST}", api_url=f"http://{HOST}", values=values
    )
    assert await add_record(kind, context, values, (await resolve_links(kind, context, values)).ids) == record_id
    row = await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, record_id)))
    assert row is not None
    if name == "event" and line[5]:
        await change_record(kind, context, row, {"slug": slug})
    elif row["slug"] != slug:
        await tx.execute(Sql("UPDATE " + kind.name + " SET slug = ? WHERE id = ?", slug, record_id))


def make_fields(line: list[Any]) -> dict[str, object]:
    name, _, slug, title, *more = line
    if name in ("category", "tag"):
        return {"name": title, "slug": slug, **({"parent": more[0]} if name == "category" and more[0] else {})}
    status = "publish" if more[0] == "publish" else "draft"
    if name != "event":
        return {name: title, "status": status}
    _, old_slug, start, end, zone, is_all_day, is_hidden, is_protected, categories, tags = more
    return {
        "title": title,
        "slug": old_slug or slug,
        "status": status,
        "start_date": start,
        "end_date": end,
        "timezone": zone,
        "all_day": bool(is_all_day),
        "hide_from_listings": bool(is_hidden),
        "categories": categories,
        "tags": tags,
        **({"new_password": "secret password"} if is_protected else {}),
    }
