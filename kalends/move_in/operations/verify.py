"""Compares everything imported with the snapshot: records as shown by the API, addresses and files.

A difference can have three explanations: the plan warned of it, the old site shows a cost in the wrong currency, or
the server has changed the record since the import, for example to publish it on schedule.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.posts import refer_to_images
from kalends.calendar.operations import calendar_months, site_options
from kalends.calendar.operations.record_verbs import make_render_context
from kalends.calendar.storage import record_tables
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.core.times import DateTimeInput, event_span, format_datetime, utc_now
from kalends.imports.rules.import_records import ImportedRecord
from kalends.imports.storage import import_tables
from kalends.move_in.operations.move_apply import MoveInJob, read_settings
from kalends.move_in.operations.old_snapshot import FILE_HASH, complete, find_references, normalize
from kalends.move_in.rules.mapping import read_tribe_events
from kalends.move_in.rules.old_posts import OTHER_UTC, UNKNOWN_FLAGS, UNKNOWN_ZONE
from kalends.move_in.rules.old_records import KINDS, MoveIn
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

BATCH: Final = 50
# These fields should have the same value in the old API and in Kalends' API.
SAME_FIELDS: Final = (
    *("status", "start_date", "end_date", "utc_start_date", "utc_end_date", "timezone", "all_day", "cost"),
    *("hide_from_listings", "featured", "sticky"),
)
FORMER: Final = " (API)"
# For each plan warning, the fields whose differences it explains.
EXPLAINING: Final[Mapping[str, tuple[str, ...]]] = {
    warning: tuple(name + FORMER for name in names)
    for warning, names in {
        OTHER_UTC: ("utc_start_date", "utc_end_date"),
        UNKNOWN_ZONE: ("timezone", "utc_start_date", "utc_end_date"),
        UNKNOWN_FLAGS: ("hide_from_listings", "featured", "sticky"),
    }.items()
}
MODIFIED: Final = "modified_utc"
MAX_LENGTH: Final = 200
OWN_CHANGE: Final = "The server changed it after the import; nobody edited it."
OWN_CURRENCY: Final = "The text of the cost names a currency, but the old site shows its own one."
Key = tuple[str, str]

_AMOUNT: Final = re.compile(r"\d+(?:[.,]\d+)*")
_SEPARATORS: Final = re.compile(r"[\s.,–-]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs from the old site, with the reason if known."""

    kind: str
    identity: str
    field: str
    expected: str
    found: str
    reason: str = ""


@dataclass(slots=True)
class Verification:
    compared: dict[str, int] = field(default_factory=dict[str, int])
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def unexplained(self) -> list[Difference]:
        return [entry for entry in self.differences if not entry.reason]

    @property
    def explained(self) -> list[Difference]:
        return [entry for entry in self.differences if entry.reason]


@dataclass(frozen=True, slots=True)
class Expectation:
    move_in: MoveIn
    records: Sequence[ImportedRecord]
    ids: Mapping[Key, int]
    tribe: Mapping[int, Mapping[str, Any]]
    keep_ids: bool
    causes: Mapping[tuple[str, str, str], Message]  # why a field differs, by kind, identity and field


Checked = AsyncIterator[tuple[str, list[Difference]]]
Check = Callable[[OperationContext, Expectation], Checked]


async def verify(job: MoveInJob, progress: Callable[[str, int, int], None]) -> Verification:
    """Compare the site with the snapshot without writing anything."""
    expected, result = await _expect(job), Verification()
    checks: list[Check] = [*[partial(_check_kind, kind=kind) for kind in KINDS], *OTHER_CHECKS]
    for number, check in enumerate(checks, 1):
        async with job.database.transaction(job.site_id, utc_now(), writing=False) as tx:
            context = OperationContext(
                transaction=tx, actor=Actor(0, "administrator"), base_url=tx.site.base_url or "http://localhost",
                api_url="", media_url="/media", library=job.library,
            )  # fmt: skip
            async for name, differences in check(context, expected):
                result.compared[name] = result.compared.get(name, 0) + 1
                result.differences += [_name_cause(entry, expected) for entry in differences]
        progress("comparison", number, len(checks))
    async with job.database.transaction(job.site_id, utc_now(), writing=False) as tx:
        result.differences = await _explain_own_changes(tx, expected, result.differences)
    return result


async def _expect(job: MoveInJob) -> Expectation:
    async with job.database.transaction(job.site_id, utc_now(), writing=False) as tx:
        run = await import_tables.find_run(tx, job.run_id)
        items = await import_tables.list_items(tx, run["source_id"]) if run else []
        secret = tx.site.secret
    keep_ids = bool(run and orjson.loads(run["options"]).get("keep_ids"))
    return Expectation(
        job.move_in,
        # Hashing passwords takes longer than a transaction may stay idle.
        normalize(job.move_in, job.exchanges, secret, keep_ids=keep_ids),
        {(item["kind"], item["identity"]): item["record_id"] for item in items},
        read_tribe_events(job.exchanges),
        keep_ids,
        {
            (*key, name): warning.cause
            for warning in job.move_in.warnings
            for key in warning.records
            for name in EXPLAINING.get(warning.cause.text, ())
        },
    )


def _name_cause(difference: Difference, expected: Expectation) -> Difference:
    """Explain a difference from the old API by the plan warning about the same field, if any."""
    cause = expected.causes.get((difference.kind, difference.identity, difference.field))
    return replace(difference, reason=str(cause)) if cause and not difference.reason else difference


async def _explain_own_changes(
    tx: Transaction, expected: Expectation, differences: Sequence[Difference]
) -> list[Difference]:
    """Explain changes that the server made to records that people have not edited since the import."""
    keys = {(entry.kind, expected.ids.get((entry.kind, entry.identity), 0)) for entry in differences}
    changed = await import_tables.list_own_changes(tx, list(keys))

    def explain(entry: Difference) -> Difference:
        fields = changed.get((entry.kind, expected.ids.get((entry.kind, entry.identity), 0)))
        is_own = fields is not None and entry.field.removesuffix(FORMER) in {MODIFIED, *fields}
        return replace(entry, reason=OWN_CHANGE) if is_own and not entry.reason else entry

    return [explain(entry) for entry in differences]


def differ(
    record: ImportedRecord, name: str, expected: object, found: object, reason: str = ""
) -> Iterator[Difference]:
    """Yield a difference unless the two values are equal."""
    if expected != found:
        yield Difference(record.kind, record.identity, name, _shorten(expected), _shorten(found), reason)


def _shorten(value: object) -> str:
    if isinstance(value, bytes):
        return "another one"  # Password hashes do not belong in a report.
    text = format_datetime(value) if isinstance(value, datetime) else str(value)
    if len(text) <= MAX_LENGTH:
        return text
    # The hash tells long texts apart when a person accepts a difference.
    return f"{text[:MAX_LENGTH]}… (SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


# Records ----------------------------------------------------------------------------------------


async def _check_kind(context: OperationContext, expected: Expectation, *, kind: str) -> Checked:
    records = [record for record in expected.records if record.kind == kind]
    for begin in range(0, len(records), BATCH):
        batch = records[begin : begin + BATCH]
        rows = await _load_rows(context, kind, [expected.ids.get((kind, record.identity), 0) for record in batch])
        shown = await _serialize(context, kind, list(rows.values()))
        for record in batch:
            row = rows.get(expected.ids.get((kind, record.identity), 0))
            found = shown.get(row["id"], {}) if row else {}
            yield kind, await _compare_record(context, expected, record, row, found)


async def _load_rows(context: OperationContext, kind: str, ids: list[int]) -> dict[int, Row]:
    tx = context.transaction
    where = Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, ids)
    if kind == "users":
        rows = await tx.fetch_all(Sql("SELECT r.* FROM users r WHERE") + where)
    else:
        rows = await tx.fetch_all((MEDIA if kind == "media" else BY_NAME[kind]).select(where))
    extra = await tx.fetch_all(EXTRA[kind] + where) if kind in EXTRA else []
    extras = {row["id"]: dict(row) for row in extra}
    made: Any = {row["id"]: {**dict(row), **extras.get(row["id"], {})} for row in rows}
    return dict(made)


# Columns that the API does not return.
EXTRA: Final = {
    "events": Sql("SELECT r.id, r.password_hash, r.feed_guid, r.trashed_status FROM events r WHERE"),
    "media": Sql("SELECT r.id, r.upload_sha256 FROM media r WHERE"),
}


async def _serialize(context: OperationContext, name: str, rows: list[Row]) -> dict[int, dict[str, Any]]:
    if name == "users":
        return {row["id"]: {"id": row["id"]} for row in rows}
    kind = MEDIA if name == "media" else BY_NAME[name]
    render = await make_render_context(kind, context, rows, is_readable=True)
    return {row["id"]: kind.reads.row_to_json(row, render) for row in rows}


async def _compare_record(
    context: OperationContext,
    expected: Expectation,
    record: ImportedRecord,
    row: Row | None,
    shown: Mapping[str, Any],
) -> list[Difference]:
    if row is None:
        return list(differ(record, "id", "a record", "none"))
    differences = [*differ(record, "id", record.wanted_id or row["id"], row["id"])]
    if record.kind == "users":
        names = ("role", "email")
        return [*differences, *_compare_values(record, {name: record.values[name] for name in names}, row)]
    if record.kind == "media":
        return [*differences, *await _compare_image(context, expected, record, row, shown)]
    differences += await _compare_columns(context, expected, record, row)
    differences += _compare_links(expected, record, row)
    return [*differences, *_compare_shown(expected, record, row, shown)]


def _compare_values(record: ImportedRecord, values: Mapping[str, Any], row: Any) -> Iterator[Difference]:
    for name, value in values.items():
        yield from differ(record, name, value, row.get(name))


async def _compare_columns(
    context: OperationContext, expected: Expectation, record: ImportedRecord, row: Row
) -> list[Difference]:
    """Compare the stored columns with the columns that the API would store for this record."""
    kind, tx = BY_NAME[record.kind], context.transaction
    media_ids = {
        entry: expected.ids[("media", entry)] for entry in find_references(record) if ("media", entry) in expected.ids
    }
    whole = complete(record, row, media_ids, tx.now)
    try:
        arguments = read_params(kind.fields, {k: v for k, v in whole.values.items() if v is not None})
    except ApiError as error:
        return list(differ(record, "values", error.text, ""))
    names = {"name", "description", *kind.writes.passthrough_columns} & set(arguments)
    values = {name: arguments[name] for name in names}
    values.update(
        {name: await refer_to_images(tx, values[name]) for name in ("description", "excerpt") if name in values}
    )
    if kind.title_param in ("venue", "organizer"):
        values["title"] = arguments[kind.title_param]
    return [*_compare_values(record, values, row), *_compare_values(record, dict(_read_columns(record)), row)]


def _read_columns(record: ImportedRecord) -> Iterator[tuple[str, Any]]:
    for name, value in record.columns.items():
        if name == "password_hash":
            yield name, bytes.fromhex(value) if value else None
        elif name in (MODIFIED, "published_at"):
            yield name, datetime.fromisoformat(value)
        elif name != FILE_HASH:
            yield name, value


def _compare_links(expected: Expectation, record: ImportedRecord, row: Row) -> Iterator[Difference]:
    kind = BY_NAME[record.kind]
    targets = {link.param: (link.kind, f"{link.column}s") for link in kind.links}
    single = {"author": ("users", "author_id"), "image": ("media", "image_id"), "parent": ("categories", "parent")}
    for name, identities in record.links.items():
        other, column = targets.get(name) or single[name]
        ids = [expected.ids[(other, entry)] for entry in identities if (other, entry) in expected.ids]
        wanted: object = ids if name in targets else (ids[0] if ids else None)
        yield from differ(record, name, wanted, list(row[column]) if name in targets else row[column] or None)


def _compare_shown(
    expected: Expectation, record: ImportedRecord, row: Row, shown: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare what the API shows with the record and with the old API's responses."""
    if "date_utc" in record.values:
        yield from differ(record, "date_utc", record.values["date_utc"], shown["date_utc"])
    if record.kind != "events":
        return
    for name in ("start_date", "end_date", "timezone", "all_day", "uid"):
        yield from differ(record, name, record.columns.get(name, record.values.get(name)), shown[name])
    for name, value in _compute_instants(record).items():
        yield from differ(record, name, value, shown[name])
    former = expected.tribe.get(int(record.identity), {})
    for name in SAME_FIELDS:
        if former.get(name) is not None:
            reason = _explain_cost(record, str(former[name]), shown[name]) if name == "cost" else ""
            yield from differ(record, name + FORMER, former[name], shown[name], reason)


def _explain_cost(record: ImportedRecord, former: str, shown: str) -> str:
    """Return why the costs differ: TEC adds the site's currency even to amounts in another currency."""
    written = str(record.values.get("cost") or "")
    names_currency = _SEPARATORS.sub("", _AMOUNT.sub("", written)) != ""
    is_same = _AMOUNT.findall(former) == _AMOUNT.findall(shown) == _AMOUNT.findall(written) != []
    return OWN_CURRENCY if names_currency and is_same else ""


def _compute_instants(record: ImportedRecord) -> dict[str, str]:
    start, end = (
        DateTimeInput(datetime.fromisoformat(record.values[name]), None, False) for name in ("start_date", "end_date")
    )
    span = event_span(start, end, record.values["timezone"], record.values["all_day"])
    return {"utc_start_date": format_datetime(span.start.utc), "utc_end_date": format_datetime(span.end.utc)}


async def _compare_image(
    context: OperationContext, expected: Expectation, record: ImportedRecord, row: Row, shown: Mapping[str, Any]
) -> list[Difference]:
    arguments = read_params(MEDIA.fields, dict(record.values))
    differences = [
        *_compare_values(
            record, {name: value for name, value in arguments.items() if value or name != "title"}, shown
        )
    ]
    differences += differ(record, FILE_HASH, record.columns[FILE_HASH], row["upload_sha256"].hex())
    for name in ("added_at", MODIFIED):
        if name in record.columns:
            differences += differ(record, name, datetime.fromisoformat(record.columns[name]), row[name])
    author = next((expected.ids.get(("users", entry)) for entry in record.links.get("author", ())), None)
    differences += differ(record, "author", author, row["author_id"])
    has_file = context.library is not None and await context.library.has_files(
        context.transaction.site.id, [row["url"]]
    )
    return [*differences, *differ(record, "file", True, has_file)]


# Settings and addresses -------------------------------------------------------------------------


async def _check_settings(context: OperationContext, expected: Expectation) -> Checked:
    current = await site_options.read_settings(context.transaction)
    for name, value in read_settings(expected.move_in.site).items():
        record = ImportedRecord("settings", name, {})
        yield "settings", list(differ(record, name, value, current[name]))


async def _check_redirects(context: OperationContext, expected: Expectation) -> Checked:
    for entry in expected.move_in.redirects:
        kind = BY_NAME[entry.kind]
        rows = await record_tables.find_current(context.transaction, kind.name, [entry.slug], is_post=kind.is_post)
        found = rows[0]["id"] if rows else None
        record = ImportedRecord(entry.kind, entry.identity, {})
        wanted = expected.ids.get((entry.kind, entry.identity))
        yield "former slugs", list(differ(record, f"redirect from {entry.slug}", wanted, found))


async def _check_permanent_links(context: OperationContext, expected: Expectation) -> Checked:
    """Check `/?p=ID` for every published record."""
    anonymous = replace(context, actor=Actor())
    for record in expected.records if expected.keep_ids else ():
        if record.kind in ("events", "venues", "organizers") and record.columns.get("status") == "publish":
            found = await calendar_months.find_record_url(anonymous, int(record.identity))
            slug = found[1] if found else None
            yield "permanent links", list(differ(record, "/?p=", record.columns.get("slug"), slug))


async def _check_files(context: OperationContext, expected: Expectation) -> Checked:
    known = {row["path"]: row["media_id"] for row in await record_tables.list_files(context.transaction)}
    for file in expected.move_in.legacy_files:
        record = ImportedRecord("media", file.identity, {})
        wanted = expected.ids.get(("media", file.identity))
        yield "former files", list(differ(record, f"redirect from {file.path}", wanted, known.get(file.path)))


async def _check_prefixes(context: OperationContext, expected: Expectation) -> Checked:
    known = await record_tables.list_prefixes(context.transaction)
    for prefix in expected.move_in.prefixes:
        record = ImportedRecord("settings", prefix.old, {})
        yield "former prefixes", list(differ(record, "redirect", prefix.new, known.get(prefix.old)))


OTHER_CHECKS: Final[tuple[Check, ...]] = (
    *(_check_settings, _check_redirects, _check_permanent_links, _check_files, _check_prefixes),
)


# The report --------------------------------------------------------------------------------------

COLUMNS = ("Kind", "ID", "Field", "Expected", "Found")
DIFFERENCES = "## Differences"


def write_report(result: Verification, move_in: MoveIn, run_id: int, accepted: Sequence[Difference] = ()) -> str:
    """Return the result as Markdown, with accepted differences in a separate table."""
    remaining = [entry for entry in result.unexplained if entry not in accepted]
    lines = [
        f"# Comparison of run {run_id} with {move_in.site.url}",
        "",
        f"{len(remaining)} differences; {len(accepted)} more are accepted, and {len(result.explained)} explained.",
        "",
        "| Compared | Number |",
        "|---|--:|",
        *[f"| {name} | {number} |" for name, number in result.compared.items()],
        *("", DIFFERENCES, "", *_write_table(COLUMNS, map(write_row, remaining))),
        *("", "## Accepted", "", *_write_table(COLUMNS, map(write_row, accepted))),
        *("", "## Explained", "", *_write_table((*COLUMNS, "Why"), map(write_row, result.explained))),
        *("", "## Warnings of the plan", ""),
    ]
    for warning in move_in.warnings:
        lines.append(f"- {warning.cause} ({', '.join(f'{kind} {identity}' for kind, identity in warning.records)})")
    lines += [] if move_in.warnings else ["None."]
    return "\n".join([*lines, ""])


def write_row(entry: Difference) -> str:
    """Return a table row. Equal differences have equal rows."""
    values = (entry.kind, entry.identity, entry.field, entry.expected, entry.found)
    return _join(map(_escape, (*values, entry.reason) if entry.reason else values))


def read_accepted(report: str, url: str) -> Collection[str]:
    """Return the difference lines from a report about the site at `url`."""
    title, _, rest = report.partition("\n")
    _, found, table = rest.partition(f"\n{DIFFERENCES}\n")
    if not title.startswith("# Comparison of run ") or not title.endswith(f" with {url}") or not found:
        raise InvalidValue("--accept-differences must name a report on {url}.", url=url)
    return frozenset(line for line in table.partition("\n## ")[0].splitlines() if line.startswith("| "))


def _write_table(columns: Sequence[str], rows: Iterable[str]) -> Iterable[str]:
    lines = list(rows)
    return [_join(columns), "|" + "---|" * len(columns), *lines] if lines else ["None."]


def _join(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
