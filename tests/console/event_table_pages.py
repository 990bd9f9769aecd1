"""Events for the tests of the table, and the rows that a page of the table shows."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from typing import Any

from kalends.core.times import utc_now
from tests.api.running_app import Caller, RunningApp
from tests.console.console_client import ConsoleClient

TABLE = "/console/events"
BULK = "/console/events/bulk"
ROW = re.compile(r"<tr data-row>(.*?)</tr>", re.DOTALL)
TITLE = re.compile(r'<th scope="row">(?:<a [^>]*>)?([^<]*)')
CHECKBOX = re.compile(r'name="event" value="(\d+:\d+)"')


def days_from_now(days: int) -> str:
    return (utc_now() + timedelta(days=days)).strftime("%Y-%m-%d")


def make_event(caller: Caller, title: str, days: int = 10, **fields: Any) -> dict[str, Any]:
    """Create an event some days from now, from 19 to 21 o'clock."""
    day = days_from_now(days)
    times = {"start_date": f"{day} 19:00:00", "end_date": f"{day} 21:00:00"}
    return caller.create("events", **{"title": title, **times, **fields})


@dataclass
class Table:
    """A page of the table: the titles of its rows, and the events that can be selected."""

    html: str
    titles: list[str] = field(default_factory=list[str])
    boxes: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def read(cls, client: ConsoleClient, query: str = "") -> "Table":
        table = cls(client.page(f"{TABLE}?{query}").html)
        for row in ROW.findall(table.html):
            match = TITLE.search(row)
            assert match is not None, row
            title = unescape(match[1])
            table.titles.append(title)
            if box := CHECKBOX.search(row):
                table.boxes[title] = box[1]
        return table


def list_titles(client: ConsoleClient, query: str = "") -> list[str]:
    return Table.read(client, query).titles


def change(client: ConsoleClient, action: str, boxes: list[str], **fields: str) -> Any:
    """Send the form of the table with these events selected."""
    return client.post(BULK, {"event": boxes, "action": action, **fields})


def read_statuses(app: RunningApp, ids: list[int]) -> list[str]:
    rows = app.sql("SELECT id, status FROM events WHERE id = ANY($1)", ids)
    by_id = {row["id"]: row["status"] for row in rows}
    return [by_id[entry] for entry in ids]
