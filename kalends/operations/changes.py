"""What changed since a revision, for this caller: how an app keeps a copy without polling lists."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.event_filters import link_clauses
from kalends.kinds.kind import Clause, Kind, Represented, View, for_each
from kalends.operations import event_passwords, permissions
from kalends.operations.context import Call, Outcome
from kalends.operations.records import listing_of
from kalends.store import Row, history
from kalends.store.sql import Sql, and_

LINK_FILTERS = ("categories", "tags", "venue", "organizer")


async def list_changes(_: Kind | None, call: Call) -> Outcome:
    """Records in the order of their latest revision. What the caller cannot see is gone for them."""
    tx, values = call.transaction, call.values
    since, settled = values.get("since", (0, None))
    if settled is None:
        # A copy that begins knows nothing yet: what is gone by now it need not be told.
        settled = since or tx.site.revision
    if settled < tx.site.trimmed_revision or max(since, settled) > tx.site.revision:
        raise errors.expired(tx.site.trimmed_revision)
    most: int = values.get("per_page", 100)
    found = await history.list_changed_records(tx, since, settled, _kinds(values), most + 1)
    page, more = found[:most], len(found) > most
    shown = await _shown(call, page)
    missing = [(row["kind"], row["id"]) for row in page if (row["kind"], row["id"]) not in shown]
    told = await _told(call, settled, missing)
    entries = [
        _entry(row, shown.get((row["kind"], row["id"])))
        for row in page
        if (row["kind"], row["id"]) in shown or (row["kind"], row["id"]) in told
    ]
    return Outcome(
        {
            "changes": entries,
            "since": since,
            "next_since": f"{page[-1]['revision']}.{settled}" if more else str(tx.site.revision),
            "more": more,
        }
    )


def flat(kind: Kind, row: Row, view: View) -> Represented:
    """A record by itself: links as IDs, as a write takes them, and no counts, which are others' doing."""
    if not kind.is_post:
        term = kind.represent(row, view)
        return {key: value for key, value in term.items() if key not in ("count", "url")}
    if not kind.links:
        return kind.represent(row, view)
    record = kind.represent(row, view)
    if row["id"] in view.shut:
        return record
    return {**record, **{link.param: row[f"{link.column}s"] for link in kind.links}}


def _kinds(values: Any) -> list[str]:
    """Links are an event's, so filters by them leave only events."""
    if any(name in values for name in LINK_FILTERS):
        return ["events"]
    return [values["kind"]] if "kind" in values else [kind.name for kind in KINDS]


async def _shown(call: Call, page: list[Row]) -> dict[tuple[str, int], Represented]:
    """The records of a page that this caller may see, kind by kind."""
    ids: dict[str, list[int]] = defaultdict(list)
    for row in page:
        if not row["gone"]:
            ids[row["kind"]].append(row["id"])
    shown: dict[tuple[str, int], Represented] = {}
    for name, wanted in ids.items():
        kind = BY_NAME[name]
        of_page = Sql("r.site_id = ? AND r.id = ANY(?)", call.transaction.site.id, wanted)
        rows = await call.transaction.fetch_all(kind.select(and_([of_page, *await _visible(kind, call)])))
        shut = event_passwords.shut_of(call, rows)
        view = replace(call.view, linked={k.name: {} for k in KINDS}, shut=shut)
        shown.update({(name, row["id"]): flat(kind, row, view) for row in rows})
    return shown


async def _visible(kind: Kind, call: Call) -> list[Sql]:
    if not kind.is_post:
        return []
    clauses = [permissions.embedded(call.actor)]
    if kind.links:
        # A list does not show hidden events; those who may edit them keep them in their copy.
        clauses.append(Sql("(NOT r.hide_from_listings OR") + permissions.editable(call.actor) + Sql(")"))
        clauses += for_each(await _links(kind, call))
        if kind.guarded & set(call.values):
            clauses.append(event_passwords.opened(call))
    return clauses


async def _links(kind: Kind, call: Call) -> list[Clause]:
    """The filters by link. To those who have a copy already, what is linked to a vanished record is gone."""
    try:
        return await link_clauses(listing_of(kind, call))
    except ApiError:
        if call.values.get("since", (0, None))[0] == 0:
            raise
        return [Sql("false")]


async def _told(call: Call, settled: int, missing: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Of which records it is said that they are gone: to the public only of those that were public."""
    if permissions.rank(call.actor) >= permissions.CONTRIBUTOR:
        return set(missing)
    return await history.find_once_visible(call.transaction, settled, missing, call.actor.user_id)


def _entry(row: Row, record: Represented | None) -> dict[str, Any]:
    entry = {"revision": row["revision"], "kind": row["kind"], "id": row["id"]}
    return {**entry, "deleted": True} if record is None else {**entry, "deleted": False, "record": record}
