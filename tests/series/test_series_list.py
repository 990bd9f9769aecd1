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


def test_hidden_series_are_listed_only_for_those_who_may_edit_them(editor: Caller, anonymous: Caller) -> None:
    hidden = SeriesClient(editor).create(title="Hidden series", slug="hidden-series", hide_from_listings=True)
    for path in ("/series", "/changes?kind=series&since=0"):
        assert "hidden-series" in editor.get(EXTENSION + path).text
        assert "hidden-series" not in anonymous.get(EXTENSION + path).text
    assert "hidden-series" not in anonymous.get("//sitemap/0.xml").text
    # Like a hidden event, it can be read by those who know its address.
    assert anonymous.get(f"{EXTENSION}/series/{hidden['id']}").status_code == 200
