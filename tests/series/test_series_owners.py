"""Removing the author of a series, and removing a site that has series."""

from kalends.accounts.operations import user_accounts
from kalends.store.sites import add_site, remove_site
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.series.series_client import EXTENSION, SeriesClient


def test_series_of_a_removed_author_are_handed_over(start_app: StartApp) -> None:
    app = start_app()
    editor = SeriesClient(app.caller("editor"))
    series = SeriesClient(app.caller("author")).create(rule="FREQ=WEEKLY;COUNT=3")
    later = f"{EXTENSION}/series/{series['id']}?scope=following&from=2027-01-12"
    assert editor.caller.patch(later, {"title": "Later", "author": app.users["author"].id}).status_code == 200
    count = app.run_operation(lambda tx: user_accounts.remove_user(tx, "author", "editor"))
    assert count == 4
    assert authors(editor.caller, series["id"]) == {str(app.users["editor"].id)}
    editor.post(f"/series/{series['id']}/dates", add=["2027-01-06", "2027-02-01"])
    assert authors(editor.caller, series["id"]) == {str(app.users["editor"].id)}
    assert [event["title"] for event in editor.events(series["id"])][-2:] == ["Later", "Later"]


def authors(caller: Caller, series_id: int) -> set[str]:
    """Return the authors of a series and its dates."""
    client = SeriesClient(caller)
    return {record["author"] for record in (client.read(series_id), *client.events(series_id))}


def test_a_site_with_series_can_be_removed(start_single_site: StartApp) -> None:
    app = start_single_site()
    SeriesClient(app.caller("editor")).create()
    app.run(_replace_site(app))
    assert [row["count"] for row in app.sql("SELECT count(*) FROM series")] == [0]


async def _replace_site(app: RunningApp) -> None:
    await add_site(app.database_url, "other.example", "Other", first_host="first.example")
    await remove_site(app.database_url, 1)
