"""Pages of the console that appear after a form was sent, or that need a draft or a link. None changes a record."""

from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
from playwright.sync_api import Page, Response

from kalends.accounts.operations.sign_in_methods import hash_token
from kalends.http.auth import COOKIE
from tests.console.console_client import Page as FormPage

LINK_TOKEN = "link-of-the-tests"
# Sends a form as a user would. The page must be one of the same server.
SUBMIT_SCRIPT = """([action, fields]) => {
  const form = document.createElement('form');
  Object.assign(form, {method: 'post', action});
  for (const [name, value] of fields) {
    const input = document.createElement('input');
    Object.assign(input, {type: 'hidden', name, value});
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}"""


@dataclass(frozen=True)
class PageRequest:
    """A page: its address, the fields of the form that shows it, if any, and the expected status."""

    path: str
    fields: tuple[tuple[str, str], ...] = ()
    status: int = 200

    def open(self, page: Page, base_url: str, query: str = "") -> Response:
        address = f"{base_url}{self.path}{'&' if '?' in self.path else '?'}{query}"
        if not self.fields:
            response = page.goto(address)
        else:
            with page.expect_navigation() as navigation:
                page.evaluate(SUBMIT_SCRIPT, [address, self.fields])
            response = navigation.value
        assert response is not None
        return response


def make_submitted_pages(
    base_url: str, token: str, ids: dict[str, list[int]], person_id: int, hostile: str
) -> list[PageRequest]:
    """Return the pages for the records of a site. The first event must have been changed once."""
    headers = {"Cookie": f"{COOKIE}={token}", "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    with httpx.Client(base_url=base_url, headers=headers, timeout=30) as client:
        event = f"/console/events/{ids['events'][0]}"
        form = FormPage.parse(client.get(event).raise_for_status().text).form()
        draft = f"/console/drafts/events/{ids['events'][0]}"
        changed = {**form, "title": f"Mine {hostile}", "excerpt": hostile, "cost": "12"}
        client.post(draft, json={"fields": flatten(changed)}).raise_for_status()
    stale = {**changed, "base_revision": str(int(form["base_revision"]) - 1), "action": "save"}
    invalid = {**form, "title": "", "website": hostile, "action": "save"}
    return [
        PageRequest(draft),
        PageRequest(f"{event}?draft={ids['events'][0]}"),
        PageRequest(event, flatten(stale), 409),
        PageRequest(event, flatten(invalid), 400),
        PageRequest(event, flatten({**invalid, "action": "preview"}), 400),
        *_make_bulk_pages(ids["events"]),
        *(PageRequest(f"/console/{kind}/{ids[kind][0]}/merge?into={ids[kind][1]}") for kind in MERGED),
        PageRequest(f"/console/media/{ids['media'][0]}/delete"),
        PageRequest(f"/console/people/{person_id}/link", (("purpose", "sign_in"),)),
        PageRequest("/console/people/new", (("login", hostile), ("role", "editor")), 400),
        PageRequest("/console/settings", (("name", ""), ("timezone", hostile), ("version", "")), 400),
        PageRequest(f"/console/link/{LINK_TOKEN}"),
        PageRequest("/console/link/unknown", status=404),
        PageRequest("/console/nothing", status=404),
    ]


MERGED = ("venues", "organizers", "categories", "tags")


def _make_bulk_pages(event_ids: list[int]) -> list[PageRequest]:
    """Return the pages of bulk changes: a confirmation, a result with conflicts, and an error."""
    outdated = [("event", f"{event_id}:1") for event_id in event_ids]
    bulk = "/console/events/bulk"
    return [
        PageRequest(bulk, (*outdated[:21], ("action", "publish"))),
        PageRequest(bulk, (*outdated[:2], ("event", "999999:1"), ("action", "feature"))),
        PageRequest(bulk, (outdated[0], ("action", "add_category")), 400),
    ]


def flatten(form: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a form as pairs; a list gives several of the same name."""
    return tuple(
        (name, str(entry))
        for name, value in form.items()
        for entry in (value if isinstance(value, list) else [value])  # pyright: ignore[reportUnknownVariableType]
    )


def add_link(connection: psycopg.Connection[tuple[object, ...]], user_id: int) -> None:
    connection.execute(
        "INSERT INTO one_time_tokens VALUES (1, %s, 'invite', %s, now() + interval '1 day')",
        [hash_token(LINK_TOKEN), user_id],
    )
