"""Which messages an endpoint receives for a page of changes, and their bodies: what an anonymous reader sees now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.event_list import link_clauses
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, CALENDAR_NAMESPACE, JsonObject, LinkCondition
from kalends.calendar.operations.changes import LINK_FILTERS, load_visible, read_changes, select_kinds
from kalends.calendar.operations.record_history import INTERNAL_COLUMNS, param_name
from kalends.calendar.operations.record_verbs import build_list_query
from kalends.calendar.storage import history_tables
from kalends.calendar.storage.history_tables import NetChange
from kalends.core.errors import ApiError
from kalends.push import rules
from kalends.push.rules import MAX_PENDING, MAX_RECORD_BYTES, PAGE_RECORDS, name_message
from kalends.push.storage import delivery_tables
from kalends.push.storage.delivery_tables import Pending, RecordKey, Webhook
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

# Messages without a record, by the kind of their pending row.
SPECIAL_TYPES: Final = {rules.TEST_KIND: rules.TEST_TYPE, rules.RESET_KIND: rules.RESET_TYPE}


@dataclass(frozen=True, slots=True)
class PublicUrls:
    """Where the server's readers find records. A site's base URL takes precedence."""

    base_url: str
    api_root: str
    media_url: str = ""  # empty: below the base URL


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    type: str
    revision: int
    body: bytes
    pending: Pending  # what to store if the delivery fails
    is_retry: bool


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages in the order in which to send them: changed records by revision, then retries.

    If retries came first, records that an endpoint cannot handle would make it look as if it were down.
    """

    messages: Sequence[Message] = ()
    dropped: Sequence[RecordKey] = ()  # pending records without anything left to say
    # The consumer's cursor and position once all messages are handled.
    cursor: int = 0
    position: int | None = None
    has_more: bool = False


async def read_page(tx: Transaction, webhook: Webhook, urls: PublicUrls) -> MessagePage:
    """Return the messages that are due: the next page of changes, and retries."""
    context = _make_context(tx, webhook, urls)
    writer = _MessageWriter(context, webhook)
    due = await delivery_tables.list_due(tx, webhook.id, PAGE_RECORDS) if webhook.due else []
    retried = {pending.key: pending for pending in due if pending.kind not in SPECIAL_TYPES}
    rows = await history_tables.find_changed_records(tx, list(retried)) if retried else []
    special = [writer.write_special(pending) for pending in due if pending.kind in SPECIAL_TYPES]
    retries = await writer.write_all(rows, await load_visible(context, rows), retried, is_retry=True)
    sent = {message.pending.key for message in (*special, *retries)}
    dropped = [pending.key for pending in due if pending.key not in sent]
    if webhook.waiting >= MAX_PENDING:
        return MessagePage([*special, *retries], dropped, webhook.cursor, webhook.position)
    kinds = list(webhook.kinds) if webhook.kinds else select_kinds(context.values)
    page = await read_changes(context, webhook.position, webhook.position, kinds, PAGE_RECORDS)
    # Records come in the order of their latest changes, so earlier ones may be anywhere after the cursor.
    starts = {(row["kind"], row["id"]): Pending(row["kind"], row["id"], webhook.cursor) for row in page.rows}
    if webhook.pending:
        # A record that is tried again anyway is left to its pending row; one that was given up starts again.
        known = await delivery_tables.find_pending(tx, webhook.id, list(starts))
        starts |= {key: replace(pending, attempts=0) for key, pending in known.items()}
        starts = {key: pending for key, pending in starts.items() if pending.next_attempt_at is None}
    fresh = [row for row in page.rows if (row["kind"], row["id"]) in starts]
    changed = await writer.write_all(fresh, page.records, starts, is_retry=False)
    cursor, reached = (webhook.cursor, page.rows[-1]["revision"]) if page.has_more else (tx.site.revision, None)
    has_more = page.has_more or webhook.due > len(due)
    return MessagePage([*special, *changed, *retries], dropped, cursor, reached, has_more)


def _make_context(tx: Transaction, webhook: Webhook, urls: PublicUrls) -> OperationContext:
    base_url = tx.site.base_url or urls.base_url
    return OperationContext(
        transaction=tx,
        actor=ANONYMOUS_ACTOR,
        base_url=base_url,
        api_url=f"{base_url}{urls.api_root}/{CALENDAR_NAMESPACE}",
        extension_url=f"{base_url}{urls.api_root}/kalends/v1",
        media_url=urls.media_url or f"{base_url}/media",
        # With a revision, a filter by a deleted record matches nothing instead of being an error.
        values={**webhook.filter, "since": (1, None)},
    )


class _MessageWriter:
    """Decides between created, updated, deleted and nothing, and writes the bodies."""

    def __init__(self, context: OperationContext, webhook: Webhook) -> None:
        self._context = context
        self._tx = context.transaction
        self._webhook = webhook

    def write_special(self, pending: Pending) -> Message:
        message_type = SPECIAL_TYPES[pending.kind]
        message_id = f"{name_message(self._webhook.id, pending.since, self._webhook.replays)}_{pending.kind}"
        body = self._encode(message_type, {"revision": pending.since})
        return Message(message_id, message_type, pending.since, body, pending, is_retry=True)

    async def write_all(
        self,
        rows: Sequence[Row],
        records: Mapping[RecordKey, JsonObject],
        starts: Mapping[RecordKey, Pending],
        *,
        is_retry: bool,
    ) -> list[Message]:
        """Write the messages of changed records. `starts` says after which revision each record's changes count."""
        if not rows:
            return []
        changes = await history_tables.find_net_changes(
            self._tx, [(*key, pending.since) for key, pending in starts.items()]
        )
        # A record that was deleted and restored has a tombstone, too; only its last state counts.
        latest = {(row["kind"], row["id"]): row for row in rows}
        gone = {key for key, row in latest.items() if key not in records and row["gone"]}
        vanished = await self._find_vanished(
            [starts[key] for key in latest if key not in records and key not in gone and _was_shown(changes.get(key))]
        )
        messages: list[Message] = []
        for key, row in latest.items():
            change = changes.get(key)
            if key in records:
                suffix = "updated" if change is None or change.was_public else "created"
                data = self._describe(key, records[key], change)
            elif key in vanished or (key in gone and _was_shown(change)):
                suffix, data = "deleted", {"record": {"id": key[1]}}
            else:
                continue
            pending, revision = starts[key], row["revision"]
            message_type = f"{BY_NAME[key[0]].singular}.{suffix}"
            body = self._encode(message_type, {"revision": revision, "since": pending.since, **data})
            message_id = name_message(self._webhook.id, revision, self._webhook.replays)
            messages.append(Message(message_id, message_type, revision, body, pending, is_retry))
        return messages

    async def _find_vanished(self, candidates: Sequence[Pending]) -> set[RecordKey]:
        """Return the records to report as deleted: with a filter, those with a link to one of its records."""
        links = await self._read_links() if any(name in self._webhook.filter for name in LINK_FILTERS) else None
        if links is None or not candidates:
            return {pending.key for pending in candidates}
        events = [(pending.record_id, pending.since) for pending in candidates]
        found = await history_tables.find_once_linked(self._tx, events, _group_ids(links))
        ids = [record_id for record_id, _ in events]
        linked = Sql("SELECT r.id FROM events r WHERE r.site_id = ? AND r.id = ANY(?) AND (", self._tx.site.id, ids)
        any_link = join(" OR ", [Sql("false"), *[link.row_condition() for link in links]])
        found |= {row["id"] for row in await self._tx.fetch_all(linked + any_link + Sql(")"))}
        return {(EVENTS.name, record_id) for record_id in found}

    async def _read_links(self) -> list[LinkCondition]:
        """Return the records of the filter, also those that no longer exist."""
        columns = {link.param: link for link in EVENTS.links}
        links = [
            LinkCondition(self._tx.site.id, columns[name].table, columns[name].column, ids)
            for name in LINK_FILTERS
            if (ids := [entry for entry in self._webhook.filter.get(name, ()) if isinstance(entry, int)])
        ]
        try:
            clauses = await link_clauses(build_list_query(EVENTS, self._context))
        except ApiError:
            return links
        return [*links, *[clause for clause in clauses if isinstance(clause, LinkCondition)]]

    def _describe(self, key: RecordKey, record: JsonObject, change: NetChange | None) -> dict[str, Any]:
        """Return a record with the names of its changed fields; a large one only by its ID and address."""
        kind = BY_NAME[key[0]]
        columns = change.columns if change is not None and change.was_public else ()
        names = {param_name(kind, column) for column in columns if column not in INTERNAL_COLUMNS}
        if self._webhook.is_thin or len(orjson.dumps(record)) > MAX_RECORD_BYTES:
            url = f"{self._context.collection_url(kind)}/{key[1]}"
            return {"changed": sorted(names & record.keys()), "record": {"id": key[1], "rest_url": url}}
        return {"changed": sorted(names & record.keys()), "record": record}

    def _encode(self, message_type: str, data: dict[str, Any]) -> bytes:
        timestamp = self._tx.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        message = {"type": message_type, "timestamp": timestamp, "cursor": self._webhook.handled, "data": data}
        return orjson.dumps(message)


def _was_shown(change: NetChange | None) -> bool:
    """Return whether the receiver may have the record: it was public at some time since the last delivery."""
    return change is not None and change.was_once_public


def _group_ids(links: Iterable[LinkCondition]) -> dict[str, list[int]]:
    """Return linked IDs by the column that the change log has."""
    grouped: dict[str, list[int]] = {}
    for link in links:
        grouped.setdefault(f"{link.column}s", []).extend(link.ids)
    return grouped
