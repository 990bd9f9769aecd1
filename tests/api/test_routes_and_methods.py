"""Paths and methods: which exist, who may use them, and how one method stands for another (behaviour 1.1)."""

from typing import Any

import pytest

from kalends.calendar.api import ROUTES
from tests.api.running_app import API_PATH, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import POSTS, SAMPLES, Sample, format_text

RECORD_METHODS = "GET, DELETE, POST, PUT, PATCH"


@pytest.fixture
def record(editor: Caller, sample: Sample) -> dict[str, Any]:
    return editor.create(sample.kind, **sample.body(**{sample.text_param: "before"}))


@pytest.mark.quick("events-POST", "tags-PATCH")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_post_put_and_patch_are_equivalent_updates(
    editor: Caller, sample: Sample, record: dict[str, Any], method: str
) -> None:
    path = f"/{sample.kind}/{record['id']}"
    changed = expect_json(editor.request(method, path, json={sample.text_param: "after"}))
    unstable = ("modified", "modified_utc")
    expected = {**record, sample.text_param: format_text(sample, "after")}
    assert {k: v for k, v in changed.items() if k not in unstable} == {
        k: v for k, v in expected.items() if k not in unstable
    }


@pytest.mark.quick("events-POST", "organizers-PATCH")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_by_slug_route_updates_same_record(editor: Caller, post: Sample, method: str) -> None:
    record = editor.create(post.kind, **post.body())
    response = editor.request(method, f"/{post.kind}/by-slug/{record['slug']}", json={post.text_param: "by slug"})
    assert expect_json(response)["id"] == record["id"]
    assert editor.read(post.kind, record["id"])[post.text_param] == format_text(post, "by slug")


def test_by_slug_and_by_id_reads_are_identical(anonymous: Caller, editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body())
    by_id = anonymous.get(f"/{post.kind}/{record['id']}")
    for spelled in (record["slug"], record["slug"].upper()):
        by_slug = anonymous.get(f"/{post.kind}/by-slug/{spelled}")
        assert (by_slug.json(), by_slug.headers["etag"]) == (by_id.json(), by_id.headers["etag"])


def test_number_in_by_slug_route_is_not_an_id(editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body())
    assert_error(editor.get(f"/{post.kind}/by-slug/{record['id']}"), 404, f"rest-{post.singular}-not-found")


def test_head_has_headers_of_get_and_no_body(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    paths = ["/", "/doc", f"/{sample.kind}", f"/{sample.kind}/{record['id']}", f"/{sample.kind}/999999"]
    plain = {"Accept-Encoding": "identity"}
    for path in paths:
        actual, headed = anonymous.get(path, headers=plain), anonymous.request("HEAD", path, headers=plain)
        assert headed.content == b""
        assert headed.status_code == actual.status_code
        varying = {"x-request-id", "etag"} if path == "/" else {"x-request-id"}
        assert {k: v for k, v in headed.headers.items() if k not in varying} == {
            k: v for k, v in actual.headers.items() if k not in varying
        }


@pytest.mark.quick("/events", "/tags/(?P<id>\\\\d+)")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.pattern)
def test_options_describes_route_like_index(anonymous: Caller, route: Any) -> None:
    path = route.pattern.replace(r"(?P<id>\d+)", "1").replace("(?P<slug>[^/]+)", "some-slug")
    described = expect_json(anonymous.request("OPTIONS", path))
    index = expect_json(anonymous.get("/"))
    assert described == index["routes"][f"/calendar/events/v1{route.pattern}"]


def test_options_of_index_and_doc(anonymous: Caller) -> None:
    for path in ("/", "/doc"):
        response = anonymous.request("OPTIONS", path)
        assert (expect_json(response)["methods"], response.headers["allow"]) == (["GET"], "GET")


@pytest.mark.quick("events-anonymous", "tags-editor")
@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor"])
def test_allow_header_lists_permitted_methods(app: RunningApp, sample: Sample, role: str) -> None:
    caller = app.caller(role)
    writers = {"categories": ("author", "editor"), "tags": ("editor",)}
    writes = role in writers.get(sample.kind, ("contributor", "author", "editor"))
    for method in ("GET", "OPTIONS"):
        assert caller.request(method, f"/{sample.kind}").headers["allow"] == ("GET, POST" if writes else "GET")
    record = app.caller("editor").create(sample.kind, **sample.body())
    response = caller.get(f"/{sample.kind}/{record['id']}")
    assert response.headers["allow"] == (RECORD_METHODS if writes else "GET")


@pytest.mark.quick("events-PUT", "tags-PURGE")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PURGE"])
def test_unsupported_method_of_collection_is_405(editor: Caller, sample: Sample, method: str) -> None:
    response = editor.app.raw(method, f"/api/calendar/events/v1/{sample.kind}")
    assert (response[0], response[1]["allow"]) == (405, "GET, POST")


@pytest.mark.quick("POST-", "DELETE-/doc/")
@pytest.mark.parametrize("path", ["", "/", "/doc", "/doc/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_index_and_doc_allow_only_get(editor: Caller, path: str, method: str) -> None:
    response = editor.request(method, path, json={})
    assert_error(response, 405, "rest_method_not_allowed")
    assert response.headers["allow"] == "GET"


def test_method_is_checked_before_everything_else(anonymous: Caller, sample: Sample) -> None:
    headers = {"Content-Type": "application/json"}
    response = anonymous.request("PUT", f"/{sample.kind}", content=b"{nonsense", headers=headers)
    assert_error(response, 405, "rest_method_not_allowed")
    response = anonymous.request("TRACE", f"/{sample.kind}/1")
    assert_error(response, 405, "rest_method_not_allowed")
    assert response.headers["allow"] == RECORD_METHODS


UNKNOWN_PATHS = [
    "/unknown",
    "/docs",
    "/doc/1",
    "/events/abc",
    "/events/-1",
    "/events/1.0",
    "/events/1/2",
    "/events/by-slug",
    "/events/by-slug/",
    "/events/by-slug/a/b",
    "//events",
    "/events//",
    "/event",
    "/categories/by-slug/music",
    "/tags/by-slug/red",
    "/venues/+1",
]


@pytest.mark.quick("GET-/unknown", "DELETE-/venues/+1")
@pytest.mark.parametrize("path", UNKNOWN_PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_unknown_path_is_404(editor: Caller, path: str, method: str) -> None:
    response = editor.request(method, f"{editor.app.api_url}{path}")
    assert_error(response, 404, "rest_no_route")
    assert "allow" not in response.headers


@pytest.mark.parametrize("path", ["/api/calendar/events/v2/events", "/api/events"])
def test_paths_outside_namespace_are_404(anonymous: Caller, path: str) -> None:
    assert_error(anonymous.get(f"/{path}"), 404, "rest_no_route")


def test_namespace_prefix_ends_at_slash(anonymous: Caller) -> None:
    assert_error(anonymous.get(f"/{API_PATH}events"), 404, "rest_no_route")
    assert_error(anonymous.get(f"/{API_PATH}1/events"), 404, "rest_no_route")


def test_trailing_slash_and_case_are_ignored(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    for path in (f"/{sample.kind}", f"/{sample.kind}/{record['id']}"):
        plain = expect_json(anonymous.get(f"{path}?hide_empty=0"))
        assert expect_json(anonymous.get(f"{path}/?hide_empty=0")) == plain
        assert expect_json(anonymous.get(f"{path.upper()}?hide_empty=0")) == plain
        shouted = f"/{API_PATH}".replace("api/calendar", "API/Calendar")
        assert expect_json(anonymous.get(f"{shouted}{path}?hide_empty=0")) == plain


def test_trailing_slash_is_ignored_for_writes(editor: Caller, sample: Sample) -> None:
    record = expect_json(editor.post(f"/{sample.kind}/", sample.body()), 201)
    changed = expect_json(editor.patch(f"/{sample.kind.upper()}/{record['id']}/", {sample.text_param: "x"}))
    assert changed[sample.text_param] == format_text(sample, "x")


def test_leading_zeros_of_id_are_ignored(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    assert anonymous.read(sample.kind, f"000{record['id']}")["id"] == record["id"]  # type: ignore[arg-type]


# Method override ------------------------------------------------------------------------------


@pytest.mark.quick("events-PUT", "tags-patch")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "patch"])
def test_post_can_override_to_update(editor: Caller, sample: Sample, record: dict[str, Any], method: str) -> None:
    path = f"/{sample.kind}/{record['id']}"
    by_query = expect_json(editor.post(f"{path}?_method={method}", {sample.text_param: "by query"}))
    assert by_query[sample.text_param] == format_text(sample, "by query")
    headers = {"X-HTTP-Method-Override": method}
    by_header = expect_json(editor.post(path, {sample.text_param: "by header"}, headers=headers))
    assert by_header[sample.text_param] == format_text(sample, "by header")


def test_post_can_override_to_delete(editor: Caller, sample: Sample) -> None:
    first, second = (editor.create(sample.kind, **sample.body())["id"] for _ in range(2))
    expect_json(editor.post(f"/{sample.kind}/{first}?_method=DELETE"))
    expect_json(editor.post(f"/{sample.kind}/{second}", headers={"X-HTTP-Method-Override": "DELETE"}))
    for gone in (first, second):
        status = editor.delete(f"/{sample.kind}/{gone}").status_code
        assert status == (410 if sample.is_post else 404)


@pytest.mark.quick("events-GET", "tags-PATCH")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH"])
def test_only_post_can_be_overridden(editor: Caller, sample: Sample, record: dict[str, Any], method: str) -> None:
    path = f"/{sample.kind}/{record['id']}"
    response = editor.request(method, f"{path}?_method=DELETE", headers={"X-HTTP-Method-Override": "DELETE"})
    assert response.status_code == 200
    assert editor.read(sample.kind, record["id"])["id"] == record["id"]


@pytest.mark.quick("events-GET", "tags-DELETE\\x00")
@pytest.mark.parametrize("override", ["GET", "HEAD", "OPTIONS", "BOGUS", "DELETE\x00"])
def test_override_to_other_methods_is_rejected(
    editor: Caller, sample: Sample, record: dict[str, Any], override: str
) -> None:
    response = editor.request("POST", f"/{sample.kind}/{record['id']}", params={"_method": override})
    assert_error(response, 400, "rest_invalid_param", "_method")


def test_override_needs_route_with_that_method(editor: Caller, sample: Sample) -> None:
    response = editor.post(f"/{sample.kind}?_method=DELETE", sample.body())
    assert_error(response, 405, "rest_method_not_allowed")


def test_override_needs_permission_of_that_method(
    anonymous: Caller, subscriber: Caller, sample: Sample, record: dict[str, Any]
) -> None:
    path = f"/{sample.kind}/{record['id']}?_method=DELETE"
    assert_error(anonymous.post(path), 401, "rest_forbidden")
    assert_error(subscriber.post(path), 403, "rest_forbidden")


def test_all_routes_belong_to_known_kinds() -> None:
    kinds = {route.pattern.split("/")[1] for route in ROUTES}
    assert kinds == set(SAMPLES)
    by_slug = {route.pattern.split("/")[1] for route in ROUTES if "by-slug" in route.pattern}
    assert by_slug == {sample.kind for sample in POSTS}
