"""Pages of lists: totals, links that keep every filter, limits (behaviour 8.1 and 8.2)."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.api.running_app import Caller, assert_error, expect_json
from tests.api.sample_records import SAMPLES, Sample, unique


@pytest.fixture(scope="module")
def create_five_records(editor: Caller) -> Any:
    """Create five records of a kind that share a unique word, once per kind."""
    records_by_kind: dict[str, tuple[str, list[int]]] = {}

    def create_five(sample: Sample) -> tuple[str, list[int]]:
        if sample.kind not in records_by_kind:
            word = unique("pageful").replace(" ", "")
            names = [f"{word} {letter} & ä=+1" for letter in "abcde"]
            ids = [editor.create(sample.kind, **sample.body(**{sample.name_param: name}))["id"] for name in names]
            records_by_kind[sample.kind] = word, ids
        return records_by_kind[sample.kind]

    return create_five


def parse_query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, strict_parsing=True))


def test_list_envelope(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    word, ids = create_five_records(sample)
    page = expect_json(anonymous.get(f"/{sample.kind}", {"search": word, "hide_empty": 0}))
    extra = {"next_cursor": None} if sample.kind == "events" else {}
    parameters = f"search={word}" if sample.is_post else f"hide_empty=0&search={word}"
    records = page.pop(sample.kind)
    assert sorted(record["id"] for record in records) == ids
    assert page == {
        "rest_url": f"{anonymous.app.api_url}/{sample.kind}/?{parameters}",
        "total": 5,
        "total_pages": 1,
        **extra,
    }


def test_totals_are_repeated_in_headers_of_both_prefixes(
    anonymous: Caller, sample: Sample, create_five_records: Any
) -> None:
    word, _ = create_five_records(sample)
    query = {"search": word, "hide_empty": 0, "per_page": 2}
    for method in ("GET", "HEAD"):
        headers = anonymous.request(method, f"/{sample.kind}", params=query).headers
        totals = {name: headers[name] for name in headers if name.endswith(("total", "totalpages"))}
        assert totals == {"x-tec-total": "5", "x-tec-totalpages": "3", "x-wp-total": "5", "x-wp-totalpages": "3"}


def test_links_lead_through_all_pages_and_back(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    word, ids = create_five_records(sample)
    filters = {"search": f"{word} & ä=+1", "per_page": "2"} if sample.is_post else {"search": word, "per_page": "2"}
    filters |= {} if sample.is_post else {"hide_empty": "0"}
    page = expect_json(anonymous.get(f"/{sample.kind}", {"page": 1, **filters}))
    seen, urls = [], []
    while True:
        seen += [record["id"] for record in page[sample.kind]]
        urls.append(page["rest_url"])
        if "next_rest_url" not in page:
            break
        assert parse_query(page["next_rest_url"]) == {**filters, "page": str(len(urls) + 1)}
        page = expect_json(anonymous.get(page["next_rest_url"]))
    assert sorted(seen) == ids
    assert [parse_query(url) for url in urls] == [
        filters,
        {**filters, "page": "2"},
        {**filters, "page": "3"},
    ]
    previous = expect_json(anonymous.get(page["previous_rest_url"]))
    assert previous["rest_url"] == urls[1]
    first = expect_json(anonymous.get(previous["previous_rest_url"]))
    assert first["rest_url"] == urls[0]
    assert "previous_rest_url" not in first


def test_link_header_matches_body_links(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    word, _ = create_five_records(sample)
    response = anonymous.get(f"/{sample.kind}", {"search": word, "per_page": 2, "page": 2, "hide_empty": 0})
    page = expect_json(response)
    assert response.headers["link"] == (
        f'<{anonymous.app.base_url}/api/>; rel="https://api.w.org/", '
        f'<{page["previous_rest_url"]}>; rel="prev", <{page["next_rest_url"]}>; rel="next"'
    )


def test_links_preserve_list_notation(editor: Caller, post: Sample, create_five_records: Any) -> None:
    word, ids = create_five_records(post)
    page = expect_json(editor.get(f"/{post.kind}?search={word}&status[]=publish&status[]=draft&per_page=3"))
    pairs = parse_qsl(urlsplit(page["next_rest_url"]).query)
    assert pairs == [
        ("per_page", "3"),
        ("search", word),
        ("status[]", "publish"),
        ("status[]", "draft"),
        ("page", "2"),
    ]
    rest = expect_json(editor.get(page["next_rest_url"]))
    assert sorted(record["id"] for record in page[post.kind] + rest[post.kind]) == ids


EVENT_FILTERS = {
    "start_date": "2026-01-01T00:00:00+02:00",
    "end_date": "2040-01-01",
    "starts_before": "2039-01-01",
    "starts_after": "2026-02-01",
    "ends_before": "2039-01-01",
    "ends_after": "2026-01-01",
    "strict_dates": "true",
    "search": "pageful ä",
    "featured": "false",
    "status": "publish,draft",
    "geoloc": "0",
    "ticketed": "no",
    "overlaps_from": "2026-01-01",
    "overlaps_to": "2039-01-01",
    "order": "desc",
    "orderby": "title",
    "per_page": "2",
}


def test_links_of_events_preserve_all_filters(editor: Caller, create_five_records: Any) -> None:
    create_five_records(SAMPLES["events"])
    page = expect_json(editor.get("/events", EVENT_FILTERS))
    assert parse_query(page["rest_url"]) == EVENT_FILTERS
    assert parse_query(page["next_rest_url"]) == {**EVENT_FILTERS, "page": "2"}


def test_invalid_paging_parameters_are_rejected(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    create_five_records(sample)
    for name in ("page", "per_page"):
        for wrong in ("0", "-1", "1.5", "x", "", "1,2", "99999999999999999999", "1e400", "٣x", " "):
            assert_error(anonymous.get(f"/{sample.kind}", {name: wrong}), 400, "rest_invalid_param", name)
    assert_error(anonymous.get(f"/{sample.kind}?per_page[]=1&per_page[]=2"), 400, "rest_invalid_param", "per_page")


def test_unusual_number_notations_are_accepted(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    word, _ = create_five_records(sample)
    for spelled in ("2", "2.0", "+2", " 2", "0002", "2e0"):
        page = anonymous.page(sample.kind, search=word, hide_empty=0, per_page=spelled)
        assert (len(page[sample.kind]), page["total_pages"]) == (2, 3), spelled


def test_per_page_is_capped_at_fifty(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    word = unique("crowd").replace(" ", "")
    for n in range(51):
        editor.create(sample.kind, **sample.body(**{sample.name_param: f"{word} {n}"}))
    for per_page in (51, 1000, 9007199254740991):
        page = anonymous.page(sample.kind, search=word, hide_empty=0, per_page=per_page)
        assert (len(page[sample.kind]), page["total"], page["total_pages"]) == (50, 51, 2)
    assert len(anonymous.page(sample.kind, search=word, hide_empty=0)[sample.kind]) == 12


def test_page_beyond_last_is_404_for_posts_and_empty_for_terms(
    anonymous: Caller, sample: Sample, create_five_records: Any
) -> None:
    word, _ = create_five_records(sample)
    for beyond in (2, 9007199254740991):
        response = anonymous.get(f"/{sample.kind}", {"search": word, "hide_empty": 0, "page": beyond})
        if sample.is_post:
            assert_error(response, 404, f"{sample.singular}-archive-page-not-found")
        else:
            page = expect_json(response)
            assert (page[sample.kind], page["total"], "previous_rest_url" in page) == ([], 5, True)


def test_empty_list_is_an_empty_page(anonymous: Caller, sample: Sample, create_five_records: Any) -> None:
    word, ids = create_five_records(sample)
    assert len(ids) == anonymous.page(sample.kind, search=word, hide_empty=0)["total"]
    page = anonymous.page(sample.kind, search="nothingofthekind", hide_empty=0)
    assert (page[sample.kind], page["total"], page["total_pages"]) == ([], 0, 0)
    assert not {"next_rest_url", "previous_rest_url"} & page.keys()


def test_default_page_size_is_configured_per_site(start_app: Any) -> None:
    app = start_app()
    editor = app.caller("editor")
    for n in range(4):
        editor.create("tags", name=f"Tag {n}")
    app.set_site("per_page", "3")
    page = editor.page("tags", hide_empty=0)
    assert (len(page["tags"]), page["total_pages"]) == (3, 2)
    assert len(editor.page("tags", hide_empty=0, per_page=4)["tags"]) == 4


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_cursors_lead_through_each_event_once(anonymous: Caller, editor: Caller, order: str) -> None:
    """Two of the five events start at the same time, so the ID decides between them."""
    word = unique("cursor").replace(" ", "")
    days = (1, 2, 2, 3, 4)
    ids = [
        editor.create("events", title=word, start_date=f"2031-05-0{day}", end_date=f"2031-05-0{day}")["id"]
        for day in days
    ]
    query = {"search": word, "per_page": 2, "order": order, "start_date": "2031-05-01", "end_date": "2031-06-01"}
    page = anonymous.page("events", **query)
    pages = [page["events"]]
    while page["next_cursor"] and len(pages) < 5:
        page = anonymous.page("events", **query, cursor=page["next_cursor"])
        pages.append(page["events"])
    assert [len(events) for events in pages] == [2, 2, 1]
    seen = [event["id"] for events in pages for event in events]
    assert seen == [event["id"] for event in anonymous.page("events", **{**query, "per_page": 50})["events"]]
    assert sorted(seen) == ids
