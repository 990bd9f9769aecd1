"""Linked records of an event: "ID, slug, name or data" -> IDs, and their representations."""

import asyncio
from collections.abc import Mapping
from typing import Any

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID, read_integer, read_params
from kalends.core.sanitize import clean_name, fold
from kalends.core.slugs import normalize_lookup
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.kind import Kind, Link, Represented, View, names_of
from kalends.operations import permissions
from kalends.operations.context import Call
from kalends.operations.representation_cache import Fragments, Key, key_of
from kalends.operations.writes import add_record
from kalends.store import Row
from kalends.store.sql import Sql, and_, join


async def resolve_links(kind: Kind, call: Call, sent: Mapping[str, Any]) -> dict[Link, list[int]]:
    """The IDs behind each link parameter that was sent; new records are made on the way."""
    resolved: dict[Link, list[int]] = {}
    for link in kind.links:
        if link.param in sent:
            other = BY_NAME[link.kind]
            find = _resolve_post if other.is_post else _resolve_term
            ids = [await find(link, other, call, entry) for entry in sent[link.param]]
            resolved[link] = list(dict.fromkeys(ids))
    return resolved


async def load_linked(kind: Kind, call: Call, rows: list[Row]) -> dict[str, dict[int, Represented]]:
    """Representations of what these events link to, as far as the caller may read it."""
    wanted = {link.kind: list({entry for row in rows for entry in row[f"{link.column}s"]}) for link in kind.links}
    loaded: dict[str, dict[int, Represented]] = {name: {} for name in wanted}
    if call.fragments is not None and any(wanted.values()):
        wanted = await _recall(call, call.fragments, wanted, loaded)
    parts = [
        Sql("SELECT '" + other.name + "' AS kind, x AS row FROM (")
        + other.select(Sql("r.site_id = ? AND", call.transaction.site.id) + _visible(other, call, wanted[other.name]))
        + Sql(") x")
        for other in KINDS
        if wanted.get(other.name)
    ]
    view = call.view
    # One question for all kinds: their rows differ, so each comes as one value.
    for kind_name, values in await call.transaction.fetch_all(join(" UNION ALL ", parts)) if parts else ():
        other = BY_NAME[kind_name]
        row: Any = dict(zip(names_of(other.columns), values, strict=True))
        loaded[kind_name][row["id"]] = record = other.represent(row, view)
        if call.fragments is not None:
            call.fragments.put(_key(view, kind_name, row), record)
    return loaded


async def _recall(
    call: Call, fragments: Fragments, wanted: dict[str, list[int]], loaded: dict[str, dict[int, Represented]]
) -> dict[str, list[int]]:
    """Fills in what is kept, by one question about revisions; what is left is to be read."""
    parts = [
        Sql("SELECT '" + other.name + "' AS kind, r.id, r.revision, "
            + ("0::bigint AS count" if other.is_post else "r.count") + " FROM " + other.name
            + " r WHERE r.site_id = ? AND", call.transaction.site.id) + _visible(other, call, wanted[other.name])
        for other in KINDS
        if wanted.get(other.name)
    ]  # fmt: skip
    missing: dict[str, list[int]] = {}
    view = call.view
    for row in await call.transaction.fetch_all(join(" UNION ALL ", parts)):
        record = fragments.get(_key(view, row["kind"], row))
        if record is None:
            missing.setdefault(row["kind"], []).append(row["id"])
        else:
            loaded[row["kind"]][row["id"]] = record
    return missing


def _visible(kind: Kind, call: Call, ids: list[int]) -> Sql:
    visible = permissions.embedded(call.actor) if kind.is_post else Sql("true")
    return Sql("r.id = ANY(?) AND", ids) + visible


def _key(view: View, kind: str, row: Row) -> Key:
    return key_of(view, kind, row["id"], row["revision"], row.get("count", 0))


async def _read(kind: Kind, call: Call, where: Sql) -> list[Row]:
    return await call.transaction.fetch_all(kind.select(Sql("r.site_id = ? AND", call.transaction.site.id) + where))


async def _resolve_post(link: Link, kind: Kind, call: Call, entry: int | dict[str, Any]) -> int:
    if isinstance(entry, dict) and "id" in entry:
        entry = _entry_id(link, entry["id"])
    if isinstance(entry, int):
        visible = permissions.embedded(call.actor)
        if not await _read(kind, call, Sql("r.id = ? AND", entry) + visible):
            raise errors.invalid(link.param, "nothing here has the ID {ids}.", ids=entry)
        return entry
    try:
        # Cleaning long texts takes time, and everybody else waits for the event loop.
        sent = await asyncio.to_thread(read_params, kind.fields, entry)
    except ApiError as refusal:
        raise errors.invalid_params({link.param: errors.for_param(link.param, refusal.message)}) from refusal
    permissions.require_writer(call.actor, kind)
    return await _identical(kind, call, sent) or await add_record(kind, call, sent)


def _entry_id(link: Link, value: object) -> int:
    try:
        number = read_integer(value)
    except errors.InvalidValue as problem:
        raise errors.invalid(link.param, "`id` is not an ID.") from problem
    if not 0 < number <= MAX_ID:
        raise errors.invalid(link.param, "`id` is not an ID.")
    return number


async def _identical(kind: Kind, call: Call, sent: Mapping[str, Any]) -> int | None:
    """A published record that says exactly what was sent; it is used again but never changed."""
    plain = {name: value for name, value in sent.items() if isinstance(value, str) and name != "status"}
    rows = await _read(
        kind,
        call,
        and_([Sql("r.title = ? AND length(r.title) < 500", plain[kind.singular]), Sql("r.status = 'publish'")])
        + Sql("ORDER BY r.id LIMIT 5"),
    )
    others = {name: value for name, value in plain.items() if name != kind.singular}
    unknown = [name for name in sent if name not in plain]
    for row in rows:
        if not unknown and all(row[name] == value for name, value in others.items()):
            found: int = row["id"]
            return found
    return None


async def _resolve_term(link: Link, kind: Kind, call: Call, entry: int | str) -> int:
    """By ID, by slug, by name; a name that is not there is made by those who may."""
    if isinstance(entry, int):
        if not await _read(kind, call, Sql("r.id = ?", entry)):
            raise errors.invalid(link.param, "nothing here has the ID {ids}.", ids=entry)
        return entry
    try:
        name = clean_name(entry)
    except errors.InvalidValue as problem:
        raise errors.invalid_params({link.param: errors.for_param(link.param, problem.message)}) from problem
    if not name:
        raise errors.invalid(link.param, "a name is not empty.")
    rows = await _read(
        kind,
        call,
        Sql("(r.slug = ? OR r.name_folded = ?) ORDER BY r.slug <> ?, r.id LIMIT 1",
            normalize_lookup(entry), fold(name), normalize_lookup(entry)),
    )  # fmt: skip
    if rows:
        found: int = rows[0]["id"]
        return found
    if not permissions.may_write(call.actor, kind):
        why = N_("{name} does not exist yet, and to create it {right}")
        raise permissions.refused(call.actor, Message(why, name=name, right=permissions.needs(kind)))
    return await add_record(kind, call, {"name": name})
