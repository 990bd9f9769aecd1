"""A client of the series in the API."""

from typing import Any

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.operations.form_work import Target
from kalends.series.operations.series_joining import join_events
from kalends.store.database import Transaction
from tests.api.running_app import Caller, RunningApp

EXTENSION = "//api/kalends/v1"
WEEKLY = {
    "title": "Yoga",
    "start_date": "2027-01-05 19:30:00",
    "end_date": "2027-01-05 21:00:00",
    "timezone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503",
}


class SeriesClient:
    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def create(self, **fields: object) -> Any:
        response = self.caller.post(f"{EXTENSION}/series", {**WEEKLY, **fields})
        assert response.status_code == 201, response.text
        return response.json()

    def read(self, series_id: int) -> Any:
        return self.caller.get(f"{EXTENSION}/series/{series_id}").json()

    def events(self, series_id: int) -> list[Any]:
        """Return the upcoming and past events of a series in their order."""
        query = f"?series={series_id}&per_page=50&start_date=2000-01-01&end_date=2100-01-01"
        return list(self.caller.get(f"/events{query}").json()["events"])

    def edit(self, event_id: int, scope: str, *, expected: int = 200, options: str = "", **fields: object) -> Any:
        response = self.caller.patch(f"{EXTENSION}/events/{event_id}?scope={scope}{options}", fields)
        assert response.status_code == expected, response.text
        return response.json()

    def occurrences(self, series_id: int, **query: str) -> Any:
        response = self.caller.get(f"{EXTENSION}/series/{series_id}/occurrences", query)
        assert response.status_code == 200, response.text
        return response.json()

    def revision(self, series_id: int) -> int:
        """Return the revision of the site after the last change of a series and its dates."""
        return self.history(series_id)[0]

    def history(self, series_id: int) -> list[int]:
        """Return the revisions of a series, newest first."""
        history = self.caller.get(f"{EXTENSION}/series/{series_id}/history").json()["history"]
        return [change["revision"] for change in history]

    def restore(self, series_id: int, **fields: object) -> Any:
        return self.post(f"/series/{series_id}/restore", **fields)

    def post(self, path: str, **fields: object) -> Any:
        response = self.caller.post(f"{EXTENSION}{path}", fields)
        assert response.status_code == 200, response.text
        return response.json()


def strip_revisions(record: Any) -> Any:
    """Return a record without what every write changes."""
    return {name: value for name, value in record.items() if name not in ("modified", "modified_utc")}


def join(app: RunningApp, ids: list[int], role: str = "editor", *, before: int = 0) -> int:
    """Join events with their revisions, or with revisions that are lower by `before`."""
    rows = app.sql("SELECT id, revision FROM events WHERE id = ANY($1)", ids)
    targets = [Target(row["id"], row["revision"] - before) for row in rows]
    user = app.users[role]

    async def run(tx: Transaction) -> int:
        await tx.lock_site(user.id)
        return await join_events(OperationContext(tx, Actor(user.id, role), "", ""), targets)

    return app.run_operation(run)
