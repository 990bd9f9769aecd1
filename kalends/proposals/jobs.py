"""The job that ends proposals whose event is over, and erases what is no longer needed."""

from datetime import datetime, timedelta
from typing import LiteralString

from kalends.proposals import storage
from kalends.proposals.operations.proposal_values import find_end
from kalends.proposals.rules import OPEN, TRANSITIONS, plan_ageing
from kalends.store import job_queue
from kalends.store.database import Database, Transaction


async def age_proposals(database: Database, now: datetime) -> int:
    """Look at all proposals that are due, on all sites; return their number."""
    number, has_more = 0, True
    while has_more:
        has_more = False
        for row in await storage.find_due_proposals(database, now):
            with job_queue.skipping_unknown_sites():
                async with database.transaction(row["site_id"], now, writing=True) as tx:
                    await age_proposal(tx, row["id"])
                number, has_more = number + 1, True
    return number


async def age_proposal(tx: Transaction, proposal_id: str) -> None:
    """Expire, erase or delete a proposal if it is time, or set when to look at it again."""
    row = await storage.find_proposal(tx, proposal_id, locked=True)
    if row is None or row["expires_at"] > tx.now:
        return
    has_event = row["state"] in (*OPEN, "accepted")
    plan = plan_ageing(row, await find_end(tx, row) if has_event else tx.now, tx.now, tx.site.trimmed_revision)
    if plan.is_deleted:
        await storage.remove_proposal(tx, proposal_id)
        return
    columns: dict[LiteralString, object] = {"state": TRANSITIONS["expire"][1]} if plan.expires else {}
    if plan.erases_content and (row["values"] != "{}" or row["note"] or row["source"] or row["submitter_name"]):
        columns |= {"values": "{}", "guessed": [], "submitter_name": "", "note": "", "source": ""}
        await storage.remove_picture(tx, proposal_id)
    if plan.erases_sender and (row["submitter_id"] is not None or row["comment"]):
        columns |= {"submitter_id": None, "token_hashes": [], "comment": ""}
    if columns:
        await storage.change_proposal(tx, proposal_id, columns)
    await storage.postpone(tx, proposal_id, max(plan.due_at, tx.now + timedelta(seconds=1)))
