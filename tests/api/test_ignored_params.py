"""Parameters without effect are named in a header, or rejected with `strict=1`."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kalends.http.bodies import MAX_NAME_LENGTH
from tests.api.running_app import Caller, assert_error, expect_json
from tests.api.sample_records import Sample

HEADER = "x-kalends-ignored-params"
EXTENSION_URL = "//api/kalends/v1"
EVENT = {"title": "Concert", "start_date": "2027-05-01 19:00:00", "end_date": "2027-05-01 21:00:00"}


@pytest.mark.quick("/events-None", "/events?orderby=START_DATE&order=DESC-None")
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/events", None),
        ("/events?per_page=5&_fields=total&_envelope=0&lang=de&strict=0", None),
        ("/events?catgories=music", "catgories"),
        ("/events?catgories[]=a&catgories[]=b&utm_source=x", "catgories, utm_source"),
        ("/events?per_page=1000", "per_page"),
        ("/events?per_page=51&_=123", "_, per_page"),
        ("/events?per_page=50", None),
        ("/tags?hide_empty=0&foo=1", "foo"),
        (
            "/events?" + "&".join(f"p{number}=1" for number in range(30)),
            ", ".join(f"p{number}" for number in range(10)),
        ),
        ("/events?a%0D%0Ab%2C=1&%E6%9D%BE=2&=3", "a%0D%0Ab%2C, %E6%9D%BE"),
        ("/events?" + "x" * 500, "x" * MAX_NAME_LENGTH),
        ("/?foo=1&context=view", "foo"),
        ("/doc?foo=1&lang=de", "foo"),
        (f"{EXTENSION_URL}/changes?sinc=3", "sinc"),
        ("/events?start_date=someday&foo=1", "foo"),
        ("/events?orderby=event_date&order=ascending", "orderby, order"),
        ("/events?orderby=meta_value&order=", "orderby, order"),
        ("/events?orderby=START_DATE&order=DESC", None),
    ],
)
def test_ignored_parameters_of_reads_are_named(anonymous: Caller, path: str, names: str | None) -> None:
    for _ in range(2):  # The second response comes from the cache.
        assert anonymous.get(path).headers.get(HEADER) == names
    assert anonymous.request("HEAD", path).headers.get(HEADER) == names


def test_header_is_not_shared_by_the_response_cache(anonymous: Caller, editor: Caller) -> None:
    editor.create("events", **EVENT)
    first = anonymous.get("/events?search=Concert&foo=1")
    others = [anonymous.get(f"/events?search=Concert{rest}") for rest in ("", "&bar=1", "&foo=1", "&strict=1")]
    assert [response.headers.get(HEADER) for response in (first, *others)] == ["foo", None, "bar", "foo", None]
    assert {response.text for response in others} == {first.text}
    unchanged = anonymous.get("/events?search=Concert&baz=1", headers={"If-None-Match": first.headers["etag"]})
    assert (unchanged.status_code, unchanged.headers[HEADER]) == (304, "baz")
    assert editor.get("/events?search=Concert&baz=1").headers[HEADER] == "baz"
    assert_error(anonymous.get("/events?search=Concert&foo=1&strict=1"), 400, "rest_invalid_param", "foo")
    assert anonymous.get("/events?search=Concert").status_code == 200


@pytest.mark.quick("catgories=music-catgories-`catgories`:", "per_page=51-per_page-`per_page`:")
@pytest.mark.parametrize(
    ("query", "name", "message"),
    [
        ("catgories=music", "catgories", "`catgories`: there is no such parameter here. Did you mean categories?"),
        ("category[]=music", "category", "`category`: there is no such parameter here. Did you mean categories?"),
        ("limit=3", "limit", "`limit`: there is no such parameter here. Did you mean per_page?"),
        ("nonsense=3", "nonsense", "`nonsense`: there is no such parameter here."),
        ("per_page=51", "per_page", "`per_page`: must be an integer from 1 to 50."),
    ],
)
def test_strict_read_is_rejected_with_a_suggestion(anonymous: Caller, query: str, name: str, message: str) -> None:
    for strict in ("strict=1", "strict=true", "strict"):
        response = anonymous.get(f"/events?{query}&{strict}")
        data = assert_error(response, 400, "rest_invalid_param", name)
        assert (data["params"][name], response.headers[HEADER]) == (message, name)
    for strict in ("strict=0", "strict=false", "strict=no"):
        assert anonymous.get(f"/events?{query}&{strict}").status_code == 200


def test_list_with_unknown_order_has_the_default_order(anonymous: Caller, editor: Caller) -> None:
    for day in ("2030-03-02", "2030-03-01"):
        editor.create("events", title="Ordered", start_date=day, end_date=day)
    default = anonymous.get("/events?search=Ordered&end_date=2031-01-01")
    other = anonymous.get("/events?search=Ordered&end_date=2031-01-01&orderby=event_date&order=")
    assert [event["start_date"][:10] for event in default.json()["events"]] == ["2030-03-01", "2030-03-02"]
    assert other.json() == default.json()
    for query in ("orderby[]=date", "order[]=desc"):
        assert anonymous.get(f"/events?{query}").status_code in (200, 400)


def test_strict_descriptions_are_rejected(anonymous: Caller) -> None:
    assert_error(anonymous.get("/?foo=1&strict=1"), 400, "rest_invalid_param", "foo")
    assert_error(anonymous.get("/doc?namespace=1&strict=1"), 400, "rest_invalid_param", "namespace")
    assert anonymous.get("/doc?strict=1&lang=de").status_code == 200


def test_ignored_parameters_of_writes_are_named(editor: Caller, sample: Sample) -> None:
    created = editor.post(f"/{sample.kind}?utm=1&_fields=id", sample.body(colour="red", id=7))
    assert created.headers[HEADER] == "utm, colour, id"
    record_id = expect_json(created, 201)["id"]
    path = f"/{sample.kind}/{record_id}"
    assert HEADER not in editor.patch(f"{path}?lang=de", {sample.name_param: "Other"}).headers
    changed = editor.patch(path, {"colour": "red"})
    assert (changed.status_code, changed.headers[HEADER]) == (200, "colour")
    assert_error(editor.patch(f"{path}?strict=1", {"colour": "red"}), 400, "rest_invalid_param", "colour")
    assert HEADER not in editor.request("POST", f"{path}?_method=DELETE").headers


def test_strict_write_changes_nothing(editor: Caller) -> None:
    response = editor.post("/events?strict=1", {**EVENT, "title": "Strict", "timezon": "UTC", "tz": "UTC"})
    data = assert_error(response, 400, "rest_invalid_param", "timezon", "tz")
    assert {message.partition("Did you mean ")[2] for message in data["params"].values()} == {"timezone?"}
    assert editor.ids("events", search="Strict") == []
    assert editor.post("/events?strict=1", {**EVENT, "title": "Strict"}).status_code == 201


def test_ignored_parameters_of_an_upload_are_named(editor: Caller) -> None:
    data: dict[str, Any] = {"files": {"file": ("a.txt", b"no image")}, "data": {"alt": "x"}}
    rejected = editor.request("POST", f"{EXTENSION_URL}/media?strict=1", **data)
    assert_error(rejected, 400, "rest_invalid_param", "alt")
    assert editor.request("POST", f"{EXTENSION_URL}/media", **data).headers[HEADER] == "alt"


def test_page_links_have_the_reduced_number(anonymous: Caller, editor: Caller) -> None:
    for number in range(51):
        editor.create("tags", name=f"Reduced {number}")
    page = anonymous.page("tags", per_page="1000", hide_empty="0", search="Reduced")
    assert (len(page["tags"]), page["total"], page["total_pages"]) == (50, 51, 2)
    for name in ("rest_url", "next_rest_url"):
        assert parse_qs(urlsplit(page[name]).query)["per_page"] == ["50"]
    assert anonymous.page("tags", per_page="50", hide_empty="0", search="Reduced") == page


def test_maximum_is_described(anonymous: Caller) -> None:
    document = anonymous.get("/doc").json()
    for path in ("/events", "/venues", "/organizers", "/categories", "/tags"):
        parameters = {row.get("name"): row for row in document["paths"][path]["get"]["parameters"]}
        assert parameters["per_page"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 12}


def test_scripts_of_other_origins_may_read_the_header(anonymous: Caller) -> None:
    for _ in range(2):
        headers = anonymous.get("/events?foo=1", headers={"Origin": "https://app.example.org"}).headers
        assert "X-Kalends-Ignored-Params" in headers["access-control-expose-headers"]
        assert headers[HEADER] == "foo"


def test_malformed_list_is_rejected_by_strict_requests(editor: Caller) -> None:
    response = editor.post("/events?strict=1&title[=x", EVENT)
    assert_error(response, 400, "rest_invalid_param")
