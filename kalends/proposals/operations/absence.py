"""Why the public list of events lacks an event, as codes. What the account may not read does not exist here."""

from dataclasses import replace

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.access.permissions import may_edit, readable_condition
from kalends.calendar.kinds.event_list import PASSWORD_GUARDED_FILTERS, build_window
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, has_condition, row_conditions
from kalends.calendar.operations.record_verbs import build_list_query
from kalends.store.sql import Sql, and_, join


async def explain_absence(context: OperationContext) -> list[str]:
    """Return why the list with these parameters lacks the event; nothing if it is on one of its pages.

    Each filter is tested alone. Parameters are checked before the event is looked up, so errors say nothing about it.
    """
    query = build_list_query(EVENTS, replace(context, actor=ANONYMOUS_ACTOR))
    conditions = {"dates": and_(build_window(query).clauses())}
    for row in EVENTS.filters:
        if (name := row.param.name) in context.values:
            clause = await row.clause(context.values[name], query)
            if has_condition(clause):
                (conditions[f"filter:{name}"],) = row_conditions([clause])
    tx, actor = context.transaction, context.actor
    event = await tx.fetch_one(
        Sql("SELECT r.status, r.trashed_status, r.author_id, r.hide_from_listings, r.password_hash, ARRAY[(")
        + join("), (", conditions.values())
        + Sql(")] AS matches FROM events r WHERE r.site_id = ? AND r.id = ? AND", tx.site.id, context.record_id)
        + readable_condition(actor)
    )
    if event is None:
        return ["not_found"]
    guarded = {f"filter:{name}" for name in PASSWORD_GUARDED_FILTERS} & conditions.keys()
    is_guarded = event["password_hash"] is not None and bool(guarded)
    # Whether a filter matches a protected event is a secret, too.
    secret = guarded if is_guarded and not may_edit(actor, event) else set[str]()
    reasons = {
        f"status:{event['status']}": event["status"] != "publish",
        "hidden": event["hide_from_listings"],
        "password": is_guarded,
        **{code: not match for code, match in zip(conditions, event["matches"], strict=True) if code not in secret},
    }
    return [code for code, applies in reasons.items() if applies]
