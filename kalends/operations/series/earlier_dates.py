"""Added dates before an edit of the following ones, which keep their times."""

from collections.abc import Collection
from datetime import datetime

from kalends.core.series import Definition, date_at
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Values
from kalends.kinds.series import TIMES, span_columns
from kalends.operations.series.matching import is_past
from kalends.operations.series.writing import write_prepared
from kalends.operations.writes import prepare_change
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.series import decode_definition
from kalends.store.sql import Sql


async def keep_earlier_times(
    tx: Transaction, series: Row, after: Definition, edited: Collection[int], cause: int
) -> None:
    """Make the times of added dates their own if an edit of later dates gives their slots other times.

    A date that was added before the first one of the rule has the length and the time zone of that rule.
    """
    before = decode_definition(series)
    slots = [
        slot for slot in before.added if slot in after.added and _get_times(before, slot) != _get_times(after, slot)
    ]
    where = Sql(
        "r.site_id = ? AND r.series_id = ? AND r.status <> 'trash' AND r.slot = ANY(?)",
        tx.site.id,
        series["id"],
        slots,
    )
    rows = await tx.fetch_all(EVENTS.select(where)) if slots else []
    kept = [row for row in rows if row["id"] not in edited and not is_past(row, tx.now)]
    own = {row["id"]: sorted({*(row["own_fields"] or ()), TIMES}) for row in kept}
    prepared = [prepare_change(EVENTS, tx, row, {"own_fields": own[row["id"]]}, {}, cause=cause) for row in kept]
    await write_prepared(tx, [change for change in prepared if change is not None])


def _get_times(definition: Definition, slot: datetime) -> Values:
    date = date_at(definition, slot)
    return span_columns(date.part, date.span())
