"""The list of series."""

from tests.api.running_app import Caller
from tests.series.series_client import EXTENSION, SeriesClient


def test_list_of_series_has_totals(editor: Caller, anonymous: Caller) -> None:
    client = SeriesClient(editor)
    published = client.create(title="Listed series")
    client.create(title="Draft of a series", status="draft")
    page = anonymous.get(f"{EXTENSION}/series").json()
    assert (page["total"], [series["id"] for series in page["series"]]) == (1, [published["id"]])
    assert page["series"][0]["total"] == 17
    assert editor.get(f"{EXTENSION}/series?status=draft").json()["total"] == 1
