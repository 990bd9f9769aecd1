"""Manage webhook endpoints, for the API and the console: create, change, pause, rotate, test, replay, delete."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds import LOGGED_KINDS
from kalends.calendar.kinds.event_list import link_clauses
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import JsonObject, Kind
from kalends.calendar.operations.changes import LINK_FILTERS
from kalends.calendar.operations.record_verbs import build_list_query
from kalends.core import date_forms, egress, errors, params, times
from kalends.core.errors import InvalidValue
from kalends.core.params import BOOLEAN, DATE_TIME, Param, param
from kalends.core.sanitize import clean_text
from kalends.push import rules
from kalends.push.storage import webhook_tables
from kalends.store import Row

STATES: Final = ("active", "paused")
SHOWN_STATES: Final = (*STATES, "disabled")
SHOWN_DELIVERIES: Final = 50


# The defaults of `limit` are the maximum lengths shown in /doc.
def read_name(value: str, limit: int = rules.MAX_NAME) -> str:
    return clean_text(value, limit)


def read_url(value: str, limit: int = egress.MAX_URL_LENGTH) -> str:
    url = value.strip()
    clean_text(url, limit)
    egress.read_target(url)  # It refuses the control characters that the line above would remove.
    return url


NAME: Final = param("name", params.text(read_name, allow_empty=False), "The endpoint’s name, which only people read")
URL: Final = param("url", params.text(read_url, allow_empty=False), "Where to post messages: https on port 443")
FILTERS: Final[tuple[Param, ...]] = (
    param(
        "categories", params.terms(allow_empty=True), "Only events in any of these categories; if empty, all events"
    ),
    param("tags", params.terms(allow_empty=True), "Only events with any of these tags; if empty, all events"),
    param("venue", params.ids(allow_empty=True), "Only events at any of these venues; if empty, all events"),
    param("organizer", params.ids(allow_empty=True), "Only events of any of these organizers; if empty, all events"),
)
CHANGES: Final[tuple[Param, ...]] = (
    NAME,
    URL,
    param(
        "kinds",
        params.several_of(*[kind.name for kind in LOGGED_KINDS], allow_empty=True),
        "Only records of these kinds; if empty, all except series, or events if there is a filter",
    ),
    *FILTERS,
    param("thin", BOOLEAN, "Send each record’s ID and address instead of the record"),
    param(
        "state",
        params.one_of(*STATES),
        "paused: nothing is sent; active: resume, also after the endpoint was disabled",
    ),
)
NEW: Final = tuple(replace(row, required=row.name in ("name", "url")) for row in CHANGES if row.name != "state")
BEFORE: Final = param("before", params.integer(minimum=1), "Only deliveries before this number, or a `next_before`")
PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=100), "Maximum number of deliveries", default=SHOWN_DELIVERIES
)
SINCE: Final = param("since", params.integer(), "Send everything that changed after this revision")
DATE: Final = param("date", DATE_TIME, "Send everything that changed after this date")
DELIVERY: Final = param("delivery", params.integer(minimum=1), "Send the record of the delivery with this number")
REPLAY: Final = (SINCE, DATE, DELIVERY)


async def list_webhooks(_: Kind | None, context: OperationContext) -> Outcome:
    _require_administrator(context)
    rows = await webhook_tables.list_webhooks(context.transaction)
    return Outcome({"webhooks": [serialize_webhook(row) for row in rows]})


async def read_webhook(_: Kind | None, context: OperationContext) -> Outcome:
    return Outcome(serialize_webhook(await fetch_webhook(context)))


async def create_webhook(_: Kind | None, context: OperationContext) -> Outcome:
    """Add an endpoint, which receives changes from now on. The response alone contains the secret."""
    _require_administrator(context)
    tx = context.transaction
    if not context.has_base_url:
        raise errors.base_url_required()
    if await webhook_tables.count_webhooks(tx) >= rules.MAX_WEBHOOKS:
        raise errors.too_many_webhooks(rules.MAX_WEBHOOKS)
    await _check(context, context.values, context.values)
    webhook_id = rules.new_webhook_id()
    columns = _to_columns(context.values)
    columns |= {"id": webhook_id, "owner_id": context.actor.user_id, "created_at": tx.now}
    await webhook_tables.add_webhook(tx, columns, tx.changes.revision)
    outcome = await _show_with_secret(context, webhook_id)
    return replace(outcome, status=201, location=f"{context.extension_url}/webhooks/{webhook_id}")


async def update_webhook(_: Kind | None, context: OperationContext) -> Outcome:
    """Change an endpoint. Another URL, like an end of a pause, is tried at once."""
    tx, row, values = context.transaction, await fetch_webhook(context), context.values
    webhook_id = row["id"]
    await _check(context, {**_read_settings(row), **values}, values)
    columns = _to_columns({**webhook_tables.decode_filter(row), **values})
    state, is_active = values.get("state"), row["disabled_at"] is None
    follow_up = None if values.get("url", row["url"]) == row["url"] else webhook_tables.hasten_consumer
    if state == "paused" and is_active:
        columns |= {"disabled_at": tx.now, "disabled_reason": "paused"}
        follow_up = webhook_tables.stop_consumer
    elif state == "active" and not is_active:
        columns |= {"disabled_at": None, "disabled_reason": "", "failing_since": None, "notified_at": None}
        follow_up = webhook_tables.wake_consumer
    # Delivery locks the endpoint before its consumer, too.
    await webhook_tables.change_webhook(tx, webhook_id, columns)
    if follow_up is not None:
        await follow_up(tx, webhook_id)
    return Outcome(serialize_webhook(await fetch_webhook(context)))


async def delete_webhook(_: Kind | None, context: OperationContext) -> Outcome:
    row = await fetch_webhook(context)
    await webhook_tables.remove_webhook(context.transaction, row["id"])
    return Outcome(serialize_webhook(row))


async def rotate_secret(_: Kind | None, context: OperationContext) -> Outcome:
    """Make a new secret, which the response alone contains. The previous one signs as well for a day."""
    row = await fetch_webhook(context)
    columns: dict[LiteralString, object] = {
        "generation": row["generation"] + 1,
        "rotated_at": context.transaction.now,
    }
    await webhook_tables.change_webhook(context.transaction, row["id"], columns)
    return await _show_with_secret(context, row["id"])


async def send_test(_: Kind | None, context: OperationContext) -> Outcome:
    """Send a message without a record."""
    row = await fetch_webhook(context)
    await resend(context, row["id"], rules.TEST_KIND, 0, context.transaction.site.revision)
    return Outcome(serialize_webhook(await fetch_webhook(context)))


async def replay(_: Kind | None, context: OperationContext) -> Outcome:
    """Send again: everything after a revision or a time, or the record of one delivery."""
    tx, row, values = context.transaction, await fetch_webhook(context), context.values
    if len(given := [option.name for option in REPLAY if option.name in values]) != 1:
        names = ", ".join(option.name for option in REPLAY)
        raise errors.invalid(
            given[-1] if given else SINCE.name, "must be the only one of {names} in the request.", names=names
        )
    if DELIVERY.name in values:
        delivery = await webhook_tables.find_delivery(tx, row["id"], values[DELIVERY.name])
        if delivery is None:
            raise errors.webhook_not_found()
        since = max(delivery["revision"] - 1, tx.site.trimmed_revision)
        await resend(context, row["id"], delivery["kind"], delivery["record_id"], since)
    else:
        await _replay_since(context, row["id"], await _find_revision(context))
    return Outcome(serialize_webhook(await fetch_webhook(context)))


async def resend(context: OperationContext, webhook_id: str, kind: str, record_id: int, since: int) -> None:
    """Send one record or message as soon as possible, under a new ID."""
    tx = context.transaction
    await webhook_tables.count_replay(tx, webhook_id)
    await webhook_tables.send_again(tx, webhook_id, kind, record_id, since)
    await webhook_tables.hasten_consumer(tx, webhook_id)


async def _replay_since(context: OperationContext, webhook_id: str, revision: int) -> None:
    tx = context.transaction
    if revision < tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    await webhook_tables.count_replay(tx, webhook_id)
    await webhook_tables.send_all_again(tx, webhook_id)
    await webhook_tables.move_cursor(tx, webhook_id, revision)
    await webhook_tables.hasten_consumer(tx, webhook_id)


async def _find_revision(context: OperationContext) -> int:
    """Return the revision after which a replay begins."""
    tx, values = context.transaction, context.values
    if SINCE.name in values:
        if values[SINCE.name] > tx.site.revision:
            raise errors.invalid(SINCE.name, "is newer than the latest revision.")
        revision: int = values[SINCE.name]
        return revision
    moment = times.to_utc(date_forms.make_absolute(values[DATE.name], tx.now, tx.site.timezone), tx.site.timezone)
    if moment > tx.now:
        raise errors.invalid(DATE.name, "must be in the past.")
    following = await webhook_tables.find_next_revision(tx, moment)
    if following is None:
        return tx.site.revision
    # Nobody knows when the changes happened that the log no longer has.
    is_before_log = following == tx.site.trimmed_revision + 1 and tx.site.trimmed_revision > 0
    return following - 2 if is_before_log else following - 1


async def list_deliveries(_: Kind | None, context: OperationContext) -> Outcome:
    row, values = await fetch_webhook(context), context.values
    limit: int = values.get("per_page", SHOWN_DELIVERIES)
    rows = await webhook_tables.list_deliveries(context.transaction, row["id"], values.get("before"), limit + 1)
    page = rows[:limit]
    next_before = page[-1]["number"] if len(rows) > limit else None
    return Outcome({"deliveries": [serialize_delivery(entry) for entry in page], "next_before": next_before})


async def fetch_webhook(context: OperationContext) -> Row:
    """Return the endpoint in the path. Raise 403 unless the caller is an administrator, and 404 if it is unknown."""
    _require_administrator(context)
    row = await webhook_tables.find_webhook(context.transaction, context.slug or "")
    if row is None:
        raise errors.webhook_not_found()
    return row


def _require_administrator(context: OperationContext) -> None:
    permissions.require_role(context.actor, permissions.ADMINISTRATOR)


async def _check(context: OperationContext, values: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Check what depends on the site and the server: the host, and the records of the filter.

    What the request does not contain may have become invalid: an endpoint can always be paused, for example.
    """
    if "url" in sent:
        try:
            rules.check_url(values["url"], context.allowed_networks)
        except InvalidValue as error:
            raise errors.invalid_params({"url": errors.for_param("url", error.message)}) from None
    if sent.keys().isdisjoint({"kinds", *LINK_FILTERS}):
        return
    given = {name: values[name] for name in LINK_FILTERS if values.get(name)}
    if given and set(values.get("kinds", ())) - {EVENTS.name}:
        raise errors.invalid("kinds", "must be empty or events, because the endpoint filters events.")
    await link_clauses(build_list_query(EVENTS, replace(context, values=given)))


def _to_columns(values: Mapping[str, Any]) -> dict[LiteralString, object]:
    """Return the columns of the given parameters, and the filter as a whole."""
    columns: dict[LiteralString, object] = {
        column: values[name] for name, column in _COLUMNS.items() if name in values
    }
    filters = {name: values[name] for name in LINK_FILTERS if values.get(name)}
    return {**columns, "filter": webhook_tables.encode_filter(filters)}


_COLUMNS: Final[Mapping[str, LiteralString]] = {"name": "name", "url": "url", "kinds": "kinds", "thin": "is_thin"}


async def _show_with_secret(context: OperationContext, webhook_id: str) -> Outcome:
    site = context.transaction.site
    row = await fetch_webhook(replace(context, slug=webhook_id))
    secret = rules.derive_secret(site.secret, site.id, webhook_id, row["generation"])
    return Outcome({**serialize_webhook(row), "secret": secret}, shown_once=("secret",))


# Endpoints and deliveries as JSON -----------------------------------------------------------------


def find_state(row: Row) -> str:
    """Return whether an endpoint is active, was paused by a person, or was disabled because it is gone or fails."""
    if row["disabled_at"] is None:
        return "active"
    return "paused" if row["disabled_reason"] == "paused" else "disabled"


def _read_settings(row: Row) -> JsonObject:
    filters = webhook_tables.decode_filter(row)
    return {
        **{name: row[column] for name, column in _COLUMNS.items()},
        **{name: filters.get(name, []) for name in LINK_FILTERS},
    }


def serialize_webhook(row: Row) -> JsonObject:
    return {
        "id": row["id"],
        **_read_settings(row),
        "state": find_state(row),
        "disabled_reason": row["disabled_reason"],
        "owner": row["owner_id"],
        "cursor": row["handled"],
        "waiting": row["waiting"],
        "given_up": row["given_up"],
        **{f"{name}_utc": _format(row[column]) for name, column in _MOMENTS.items()},
    }


_MOMENTS: Final[Mapping[str, LiteralString]] = {
    "created": "created_at",
    "rotated": "rotated_at",
    "failing_since": "failing_since",
    "disabled": "disabled_at",
}


def serialize_delivery(row: Row) -> JsonObject:
    return {
        "number": row["number"],
        "sent_utc": _format(row["sent_at"]),
        "record": row["record_id"] or None,
        **{name: row[name] for name in ("message_id", "type", "kind", "revision", "attempt")},
        **{name: row[name] for name in ("status", "error", "milliseconds")},
    }


def _format(moment: Any) -> str | None:
    return None if moment is None else times.format_datetime(moment)
