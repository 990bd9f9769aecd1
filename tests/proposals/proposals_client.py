"""A client of proposals in the API, and what the database has about a site."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, Actor
from kalends.core.times import utc_now
from kalends.proposals import storage
from kalends.proposals.jobs import age_proposal, age_proposals
from kalends.proposals.operations.proposal_sending import Draft, send
from kalends.proposals.rules import Origin
from kalends.store.database import Database, Transaction
from tests.api.running_app import Caller, RunningApp

ROOT = "//api/kalends/v1/proposals"
EVENT = {"title": "Choir", "start_date": "2031-05-05 19:00:00", "end_date": "2031-05-05 21:00:00"}
ENDS_AT = datetime.fromisoformat("2031-05-05 21:00:00+00:00")


class ProposalsClient:
    """A caller whose decisions name the version that `read` returns, or another one."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def post(self, path: str = "", body: Any = None, **options: Any) -> httpx.Response:
        return self.caller.post(f"{ROOT}{path}", body, **options)

    def propose(self, status: int = 201, *, values: Mapping[str, Any] = EVENT, **fields: Any) -> Any:
        response = self.post("", {"values": dict(values), **fields})
        assert response.status_code == status, response.text
        return response.json()

    def propose_change(self, event: Any, status: int = 201, **values: Any) -> Any:
        """Propose a change of an event as it is now."""
        return self.propose(status, values=values, record=event["id"], base_revision=self.revision(event["id"]))

    def revision(self, event_id: int) -> int:
        tag = self.caller.get(f"/events/{event_id}").headers["etag"]
        return int(tag.strip('"').partition("-")[0])

    def read(self, proposal: Any) -> Any:
        response = self.caller.get(f"{ROOT}/{proposal['id']}")
        assert response.status_code == 200, response.text
        return response.json()

    def edit(self, proposal: Any, version: int | None = None, **fields: Any) -> httpx.Response:
        return self.caller.patch(f"{ROOT}/{proposal['id']}", fields, headers=if_match(version))

    def act(self, action: str, proposal: Any, version: int | None = None, **fields: Any) -> httpx.Response:
        seen = version or self.read(proposal)["version"]
        return self.post(f"/{proposal['id']}/{action}", fields, headers=if_match(seen))

    def accept(self, proposal: Any, **fields: Any) -> Any:
        return self._decide("accept", proposal, **fields)

    def send_back(self, proposal: Any, comment: str = "Which hall?") -> Any:
        return self._decide("return", proposal, comment=comment)

    def reject(self, proposal: Any, reason: str = "duplicate") -> Any:
        return self._decide("reject", proposal, reason=reason)

    def undo(self, proposal: Any) -> Any:
        return self._decide("undo", proposal)

    def withdraw(self, proposal: Any) -> httpx.Response:
        return self.post(f"/{proposal['id']}/withdraw")

    def ids(self, **query: Any) -> list[str]:
        response = self.caller.get(ROOT, query)
        assert response.status_code == 200, response.text
        return [row["id"] for row in response.json()["proposals"]]

    def _decide(self, action: str, proposal: Any, **fields: Any) -> Any:
        response = self.act(action, proposal, **fields)
        assert response.status_code == 200, response.text
        return response.json()


def if_match(version: int | None) -> dict[str, str]:
    return {"If-Match": f'"{version}-0"'} if version else {}


def send_draft(app: RunningApp, origin: Origin, *, role: str = "contributor", **fields: Any) -> str:
    """Send a proposal as the console, the public form and agents do, below the API; return its ID."""
    user = app.users[role]

    async def run(tx: Transaction) -> str:
        actor, values = Actor(user.id, role), {"values": EVENT, **fields}
        if origin == "public":
            actor, values = ANONYMOUS_ACTOR, {**values, "submitter_id": await add_submitter(tx)}
        row = await send(OperationContext(tx, actor, "", ""), Draft(origin=origin, **values))
        return str(row["id"])

    return app.run_operation(run)


async def add_submitter(tx: Transaction, email: str = "rosa@example.org") -> str:
    from kalends.core.credentials import new_uid
    from kalends.store.sql import Sql

    query = """INSERT INTO submitters (site_id, id, email, last_seen_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (site_id, email) DO UPDATE SET last_seen_at = excluded.last_seen_at RETURNING id::text"""
    return str(await tx.fetch_value(Sql(query, tx.site.id, new_uid(), email, tx.now)))


def add_picture(app: RunningApp, proposal_id: str, content: bytes, alt_text: str) -> None:
    app.sql(
        "INSERT INTO proposal_pictures (site_id, proposal_id, content, alt_text) VALUES ($1, $2, $3, $4)",
        *(app.site_id, proposal_id, content, alt_text),
    )


def age(app: RunningApp, now: datetime | None = None) -> int:
    """Run the job that expires and erases proposals, at a time."""

    async def run(database: Database) -> int:
        return await age_proposals(database, now or utc_now())

    return app.run_with_database(run)


def age_one(app: RunningApp, proposal_id: str, now: datetime) -> None:
    """Let the job look at one proposal, because it looks at all sites of the database."""
    set_columns(app, proposal_id, expires_at=now)

    async def run(database: Database) -> None:
        async with database.transaction(app.site_id, now, writing=True) as tx:
            await age_proposal(tx, proposal_id)

    app.run_with_database(run)


def find_row(app: RunningApp, proposal_id: str) -> dict[str, Any] | None:
    rows = app.sql("SELECT * FROM proposals WHERE id = $1", proposal_id)
    return dict(rows[0]) if rows else None


def set_columns(app: RunningApp, proposal_id: str, **columns: Any) -> None:
    for name, value in columns.items():
        app.sql(f"UPDATE proposals SET {name} = $1 WHERE id = $2", value, proposal_id)


# All that a proposal must not touch before it is accepted.
WATCHED = """
    SELECT jsonb_build_object(
        'site', (SELECT jsonb_build_array(revision, last_post_id, last_term_id) FROM sites WHERE id = $1),
        'changes', (SELECT count(*) FROM changes),
        'records', (SELECT md5(string_agg(e::text, '|' ORDER BY kind, e)) FROM (
            SELECT 'events' AS kind, to_jsonb(events) AS e FROM events
            UNION ALL SELECT 'venues', to_jsonb(venues) FROM venues
            UNION ALL SELECT 'organizers', to_jsonb(organizers) FROM organizers
            UNION ALL SELECT 'categories', to_jsonb(categories) FROM categories
            UNION ALL SELECT 'tags', to_jsonb(tags) FROM tags
            UNION ALL SELECT 'media', to_jsonb(media) FROM media
            UNION ALL SELECT 'links', to_jsonb(event_venues) FROM event_venues) r))::text
"""


def take_picture_of(app: RunningApp) -> Any:
    return app.sql(WATCHED, app.site_id)[0][0]


def later(**period: float) -> datetime:
    return utc_now() + timedelta(**period)


def list_queue(app: RunningApp, **options: Any) -> list[Any]:
    return app.run_operation(lambda tx: storage.list_queue(tx, 50, **options))


def count_queue(app: RunningApp) -> int:
    return app.run_operation(storage.count_queue)
