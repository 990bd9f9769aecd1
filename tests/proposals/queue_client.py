"""What the tests of the queue send and read: mixed entries of a site, and the pages of the console."""

import re
from html import unescape
from typing import Any

import httpx

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.proposals.proposals_client import ProposalsClient, find_row, send_draft

QUEUE = "/console/queue"
DECIDE = "/console/queue/decide"
ROW = re.compile(r"<li data-row.*?</li>", re.DOTALL)
KEY = re.compile(r'href="/console/queue/([0-9a-f-]+)')
TITLE = re.compile(r'<span class="queue-title">([^<]*)<')
ENTRY = re.compile(r'name="entry" value="([^"]*)"')


def make_values(title: str, day: int = 1, **fields: Any) -> dict[str, Any]:
    times = {"start_date": f"2031-06-{day:02} 19:00:00", "end_date": f"2031-06-{day:02} 21:00:00"}
    return {"title": title, **times, **fields}


def make_mixed_entries(app: RunningApp, number: int) -> list[str]:
    """Make entries of all origins in turn, one day after the other; return their keys in this order."""
    editor, contributor = app.caller("editor"), app.caller("contributor")
    published = editor.create("events", **make_values("Town council", 30))
    keys: list[str] = []
    for n in range(number):
        values = make_values(f"Entry {n:02} {'abcdefghij'[n % 10] * 6}", 1 + n % 28)
        if n % 5 == 0:
            event = contributor.create("events", **values, status="pending")
            keys.append(str(event["id"]))
        elif n % 5 == 1:
            event = app.caller("author").create("events", **values)
            client = ProposalsClient(contributor)
            keys.append(client.propose_change(event, title=f"{values['title']} moved", cost="12")["id"])
        else:
            origin = ("public", "api", "agent")[n % 5 - 2]
            draft = {"values": values, "program": "Posters" if origin == "agent" else ""}
            keys.append(send_draft(app, origin, **draft))
    assert published["status"] == "publish"
    return keys


def list_keys(page: Page) -> list[str]:
    return [match[1] for row in ROW.findall(page.html) if (match := KEY.search(row))]


def list_titles(page: Page) -> list[str]:
    return [unescape(match[1]) for row in ROW.findall(page.html) if (match := TITLE.search(row))]


def read_entry(client: ConsoleClient, key: str) -> str:
    """Return the entry as its page sends it: the key and the version."""
    html = client.page(f"{QUEUE}/{key}").html
    article = html[html.index('<article class="queue-entry') :]
    match = ENTRY.search(article)
    assert match is not None, article
    return match[1]


def decide(client: ConsoleClient, action: str, *entries: str, **fields: str) -> httpx.Response:
    return client.post(DECIDE, {"action": action, "entry": list(entries), **fields})


def read_states(app: RunningApp, keys: list[str]) -> list[str]:
    """Return the state of each entry; of pending events, the event's status."""
    states: list[str] = []
    for key in keys:
        if key.isdecimal():
            states.append(app.sql("SELECT status FROM events WHERE id = $1", int(key))[0][0])
        else:
            row = find_row(app, key)
            assert row is not None
            states.append(row["state"])
    return states
