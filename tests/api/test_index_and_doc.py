"""The interface describes itself: the index, `/doc`, and other paths for the same namespace."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from kalends.calendar.api import ROUTES
from kalends.core.params import Param
from kalends.http.router import Endpoint
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import Sample
from tests.servers import WITH_CELLS

ALIAS = "//wp-json/tribe/events/v1"
# The tables of interface.md: parameters that may be sent, by route and method.
EVENT_PARAMS = """
    title start_date end_date author date date_utc description slug excerpt status timezone all_day image cost
    website show_map show_map_link hide_from_listings sticky featured categories tags venue organizer"""
VENUE_PARAMS = """
    venue author date date_utc description status show_map show_map_link address city country province state
    zip phone stateprovince website image"""
ORGANIZER_PARAMS = "organizer author date date_utc description status phone website email image"
EVENT_LIST_PARAMS = """
    page per_page start_date end_date starts_before starts_after ends_before ends_after strict_dates search
    categories tags venue organizer featured status geoloc geoloc_lat geoloc_lng include post_parent ticketed"""
PLACE_LIST_PARAMS = "page per_page search event has_events only_with_upcoming status"
TERM_LIST_PARAMS = "page per_page search exclude include order orderby hide_empty post event slug"
DECLARED_PARAMS = {
    ("/events", "GET"): EVENT_LIST_PARAMS,
    ("/events", "POST"): EVENT_PARAMS,
    ("/events/1", "GET"): "id password",
    ("/events/1", "DELETE"): "id password",
    ("/events/1", "PATCH"): "id password " + EVENT_PARAMS,
    ("/events/by-slug/a", "GET"): "slug",
    ("/events/by-slug/a", "PUT"): EVENT_PARAMS,
    ("/venues", "GET"): PLACE_LIST_PARAMS,
    ("/venues", "POST"): VENUE_PARAMS,
    ("/venues/1", "POST"): "id " + VENUE_PARAMS,
    ("/venues/by-slug/a", "PATCH"): "slug " + VENUE_PARAMS,
    ("/organizers", "GET"): PLACE_LIST_PARAMS,
    ("/organizers", "POST"): ORGANIZER_PARAMS,
    ("/organizers/by-slug/a", "DELETE"): "slug",
    ("/categories", "GET"): TERM_LIST_PARAMS + " parent",
    ("/categories", "POST"): "name description slug parent",
    ("/categories/1", "PATCH"): "id name description slug parent",
    ("/tags", "GET"): TERM_LIST_PARAMS,
    ("/tags", "POST"): "name description slug",
    ("/tags/1", "DELETE"): "id",
}


@pytest.mark.quick("/events-GET", "/tags/1-DELETE")
@pytest.mark.parametrize(("path", "method"), DECLARED_PARAMS)
def test_all_parameters_are_declared(anonymous: Caller, path: str, method: str) -> None:
    described = expect_json(anonymous.request("OPTIONS", path))
    (endpoint,) = [entry for entry in described["endpoints"] if method in entry["methods"]]
    assert set(DECLARED_PARAMS[path, method].split()) <= set(endpoint["args"])


def test_required_parameters_differ_between_create_and_update(anonymous: Caller, sample: Sample) -> None:
    required = {sample.name_param, *sample.required}
    create = expect_json(anonymous.request("OPTIONS", f"/{sample.kind}"))["endpoints"][1]["args"]
    assert {name for name, row in create.items() if row["required"]} == required
    update = expect_json(anonymous.request("OPTIONS", f"/{sample.kind}/1"))["endpoints"][2]["args"]
    assert {name for name, row in update.items() if row["required"]} == {"id"}


def iter_params() -> Iterator[tuple[str, Endpoint, Param]]:
    for route in ROUTES:
        for endpoint in route.endpoints:
            for param in endpoint.params:
                yield route.pattern, endpoint, param


def test_index_lists_all_parameters_with_schema(anonymous: Caller) -> None:
    index = expect_json(anonymous.get("/"))
    assert index.keys() == {"namespace", "routes", "_links"}
    assert index["namespace"] == "calendar/events/v1"
    assert index["_links"] == {"up": [{"href": f"{anonymous.app.base_url}/api/"}]}
    expected = ["", "/doc", *(route.pattern for route in ROUTES)]
    assert list(index["routes"]) == [f"/calendar/events/v1{pattern}" for pattern in expected]
    for pattern, endpoint, param in iter_params():
        endpoint_rows = index["routes"][f"/calendar/events/v1{pattern}"]["endpoints"]
        (args,) = [entry["args"] for entry in endpoint_rows if entry["methods"] == list(endpoint.methods)]
        row = args[param.name]
        assert row["description"]
        assert {name: row.get(name) for name in param.type.schema} == dict(param.type.schema)


def test_index_contains_computed_defaults(anonymous: Caller) -> None:
    args = expect_json(anonymous.request("OPTIONS", "/events"))["endpoints"][0]["args"]
    assert (args["page"]["default"], args["per_page"]["default"]) == (1, 12)
    start, end = args["start_date"]["default"], args["end_date"]["default"]
    assert (start[10:], end[10:]) == (" 00:00:00", " 23:59:59")
    assert int(end[:4]) == int(start[:4]) + 2
    assert "default" not in expect_json(anonymous.request("OPTIONS", "/events"))["endpoints"][1]["args"]["start_date"]


def test_index_links_to_routes_without_placeholders(anonymous: Caller) -> None:
    routes = expect_json(anonymous.get(""))["routes"]
    linked = {path: row["_links"]["self"][0]["href"] for path, row in routes.items() if "_links" in row}
    paths = ["", "/doc", "/events", "/venues", "/organizers", "/categories", "/tags"]
    assert linked == {f"/calendar/events/v1{path}": f"{anonymous.app.api_url}{path}" for path in paths}
    for href in linked.values():
        assert anonymous.get(href).status_code == 200


def test_index_accepts_its_own_namespace_only(anonymous: Caller) -> None:
    same = anonymous.get("/?namespace=calendar/events/v1&context=view")
    assert expect_json(same) == expect_json(anonymous.get("/"))
    assert_error(anonymous.get("/?namespace=wp/v2"), 404, "rest_invalid_namespace")


def test_doc_is_openapi_document_of_same_routes(anonymous: Caller) -> None:
    doc = expect_json(anonymous.get("/doc"))
    assert doc["openapi"].startswith("3.")
    assert doc["info"].keys() >= {"title", "version", "description"}
    assert doc["servers"] == [{"url": anonymous.app.api_url}]
    methods_by_path = {path: sorted(operations) for path, operations in doc["paths"].items()}
    expected = {
        route.pattern.replace(r"(?P<id>\d+)", "{id}").replace("(?P<slug>[^/]+)", "{slug}"): sorted(
            method.lower() for method in route.methods
        )
        for route in ROUTES
    }
    assert methods_by_path == {"/": ["get"], "/doc": ["get"], **expected}
    assert len(methods_by_path) == 15
    body = doc["paths"]["/events"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/EventNew"}
    create = doc["components"]["schemas"]["EventNew"]
    assert create["required"] == ["title", "start_date", "end_date"]
    assert set(create["properties"]) >= set(EVENT_PARAMS.split())
    names = [row["name"] for row in doc["paths"]["/events"]["get"]["parameters"] if "name" in row]
    assert set(names) >= set(EVENT_LIST_PARAMS.split())
    in_path = [row for row in doc["paths"]["/events/{id}"]["get"]["parameters"] if row.get("in") == "path"]
    assert [(row["name"], row["required"]) for row in in_path] == [("id", True)]


# Other paths ----------------------------------------------------------------------------------


@pytest.fixture
def app_with_aliases(start_app: Callable[..., RunningApp]) -> RunningApp:
    return start_app({"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1, /other/calendar/v1/"})


def iter_urls(value: Any) -> Iterator[str]:
    """Every address of the interface in an answer, however deep."""
    if isinstance(value, dict):
        for entry in value.values():
            yield from iter_urls(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from iter_urls(entry)
    elif isinstance(value, str) and "/v1" in value:
        yield value


def test_links_keep_requested_path_prefix(app_with_aliases: RunningApp) -> None:
    editor = app_with_aliases.caller("editor")
    body = {
        "title": "Aliased", "start_date": "2027-01-01", "end_date": "2027-01-01", "venue": {"venue": "Hall"},
        "organizer": {"organizer": "Olga"}, "categories": ["Music"], "tags": ["Red"],
    }  # fmt: skip
    response = editor.post(f"{ALIAS}/events", body)
    event = expect_json(response, 201)
    assert response.headers["location"] == event["rest_url"] == editor.app.make_url(f"{ALIAS}/events/{event['id']}")
    assert response.headers["link"].startswith(f"<{editor.app.base_url}/wp-json/>;")
    editor.create("events", **{**body, "title": "Second"})
    paths = [
        "/events?per_page=1",
        f"/events/{event['id']}",
        "/categories?per_page=1",
        "/tags",
        "/",
        "/doc",
        "/venues",
    ]
    for path in paths:
        for prefix in map(editor.app.make_url, (ALIAS, "//other/calendar/v1", "")):
            urls = set(iter_urls(expect_json(editor.get(f"{prefix}{path}"))))
            urls = {url for url in urls if url.startswith("http")}
            if path != "/venues?":
                assert all(address.startswith(prefix) for address in urls), (path, prefix, urls)


def test_index_of_alias_has_its_own_namespace(app_with_aliases: RunningApp) -> None:
    caller = app_with_aliases.caller()
    index = expect_json(caller.get(ALIAS))
    assert index["namespace"] == "tribe/events/v1"
    assert index["_links"] == {"up": [{"href": f"{caller.app.base_url}/wp-json/"}]}
    assert "/tribe/events/v1/events" in index["routes"]
    assert expect_json(caller.get(f"{ALIAS}?namespace=tribe/events/v1")) == index
    assert_error(caller.get(f"{ALIAS}?namespace=calendar/events/v1"), 404, "rest_invalid_namespace")
    assert_error(caller.get(f"{ALIAS}/nothing"), 404, "rest_no_route")


def test_aliases_are_disabled_by_default(anonymous: Caller) -> None:
    assert_error(anonymous.get(f"{ALIAS}/events"), 404, "rest_no_route")


def test_api_root_is_configurable(start_app: Callable[..., RunningApp]) -> None:
    for root, api_path in (("/rest", "/rest/calendar/events/v1"), ("", "/calendar/events/v1")):
        caller = start_app({"KALENDS_API_ROOT": root}).caller()
        page = caller.get(f"/{api_path}/events")
        assert urlsplit(expect_json(page)["rest_url"]).path == f"{api_path}/events/"
        assert page.headers["link"].startswith(f"<{caller.app.base_url}{root}/>;")
        assert_error(caller.get("/events"), 404, "rest_no_route")


# Watching -------------------------------------------------------------------------------------


def test_health_and_readiness(start_app: Callable[..., RunningApp]) -> None:
    anonymous = start_app({"KALENDS_API_ROOT": "/api"}).caller()  # A server that has just started waits for a worker.
    for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
        response = anonymous.get(f"/{path}")
        assert (response.status_code, response.text) == (200, text)
        assert response.headers["x-request-id"]


@pytest.mark.skipif(not WITH_CELLS, reason="needs cells (`just test-cells`)")
def test_readiness_of_three_cells(app: RunningApp, anonymous: Caller) -> None:
    response = anonymous.get("//readyz")
    assert response.text == "ready\ncell b: ready\ncell a: ready\ncell c: ready\n"


def test_schema_mismatch_is_healthy_but_not_ready(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    caller = app.caller()
    (row,) = app.sql("UPDATE alembic_version SET version_num = '0000' RETURNING version_num")
    assert row["version_num"] == "0000"
    response = caller.get("//readyz")
    assert_error(response, 503, "rest_unavailable")
    assert "kalends migrate" in response.json()["message"]
    assert response.headers["retry-after"]
    app.sql("DROP TABLE alembic_version")
    assert_error(caller.get("//readyz"), 503, "rest_unavailable")
    assert caller.get("//healthz").status_code == 200
