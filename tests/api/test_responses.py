"""What every answer looks like: headers, `_fields`, `_envelope`, Location, the one error shape, order of checks."""

import re
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import Sample, unique

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def record(editor: Caller, sample: Sample) -> dict[str, Any]:
    return editor.create(sample.kind, **sample.body())


def test_response_headers(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    response = anonymous.get(f"/{sample.kind}/{record['id']}", headers={"Accept": "application/xml"})
    headers = response.headers
    assert re.fullmatch(r'"\d+-[0-9a-f]{16}"', headers["etag"])
    assert re.fullmatch(r"[0-9a-f]{32}", headers["x-request-id"])
    expected = {
        "content-type": "application/json; charset=UTF-8",
        "content-length": str(len(response.content)),
        "allow": "GET",
        "link": f'<{anonymous.app.base_url}/api/>; rel="https://api.w.org/"',
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex",
    }
    assert {name: headers[name] for name in expected} == expected
    assert "authorization" in headers["vary"].lower()
    # A cache validates it before each use, or keeps it for a few seconds.
    assert headers["cache-control"].startswith("public, ")
    assert "max-age=0" in headers["cache-control"] or "no-cache" in headers["cache-control"]


def test_authenticated_and_error_responses_are_not_shared_cacheable(
    anonymous: Caller, editor: Caller, sample: Sample, record: dict[str, Any]
) -> None:
    own = editor.get(f"/{sample.kind}/{record['id']}")
    missing = anonymous.get(f"/{sample.kind}/999999")
    assert (own.status_code, missing.status_code) == (200, 404)
    assert own.headers["cache-control"] == missing.headers["cache-control"] == "private, no-store"


def test_request_id_is_echoed_or_generated(anonymous: Caller) -> None:
    def echoed_id(request_id: str) -> str:
        return anonymous.get("/events", headers={"X-Request-ID": request_id}).headers["x-request-id"]

    assert echoed_id("trace:1.a_B-9") == "trace:1.a_B-9"
    for unusable in ("", "with space", "a" * 101, "semi;colon", "<b>"):
        assert re.fullmatch(r"[0-9a-f]{32}", echoed_id(unusable))
    assert echoed_id("") != echoed_id("")


def test_fields_parameter_selects_keys(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    expected = {"id": record["id"], "slug": record["slug"]}
    for query in (
        "_fields=id,slug",
        "_fields[]=id&_fields[]=slug",
        "_fields=id&_fields=slug",
        "_fields=slug, id,none",
    ):
        assert expect_json(anonymous.get(f"{path}?{query}")) == expected
    assert expect_json(anonymous.get(f"{path}?_fields=none")) == {}
    assert expect_json(anonymous.get(f"{path}?_fields=")) == expect_json(anonymous.get(path))


def test_fields_parameter_selects_keys_of_listed_records(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    word = unique("fielded").replace(" ", "")
    ids = [editor.create(sample.kind, **sample.body(**{sample.name_param: f"{word} {n}"}))["id"] for n in range(2)]
    query = {"search": word, "hide_empty": 0, "_fields": f"{sample.kind}.id,total"}
    page = expect_json(anonymous.get(f"/{sample.kind}", query))
    assert {"total": page["total"], "ids": sorted(entry["id"] for entry in page[sample.kind])} == {
        "total": 2,
        "ids": sorted(ids),
    }
    assert page.keys() == {"total", sample.kind}
    assert all(entry.keys() == {"id"} for entry in page[sample.kind])


def test_fields_parameter_selects_nested_keys(anonymous: Caller, editor: Caller) -> None:
    event = editor.create("events", title="Dotted", start_date="2027-03-04 05:06:07", end_date="2027-03-05")
    picked = anonymous.read(
        "events", event["id"], _fields="start_date_details.year,start_date_details.hour,cost_details"
    )
    assert picked == {
        "start_date_details": {"year": "2027", "hour": "05"},
        "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
    }
    assert anonymous.read("events", event["id"], _fields="title.x.y,start_date_details.none") == {
        "start_date_details": {}
    }


def test_fields_parameter_applies_to_write_responses(editor: Caller, sample: Sample) -> None:
    response = editor.post(f"/{sample.kind}?_fields=id", sample.body())
    assert expect_json(response, 201).keys() == {"id"}
    assert editor.read(sample.kind, expect_json(response, 201)["id"])[sample.name_param]


def test_envelope_contains_body_status_and_headers(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    assert expect_json(anonymous.get(f"{path}?_envelope=1")) == {
        "body": expect_json(anonymous.get(path)),
        "status": 200,
        "headers": {},
    }
    page = anonymous.get(f"/{sample.kind}?hide_empty=0&_envelope=true")
    assert expect_json(page)["body"] == expect_json(anonymous.get(f"/{sample.kind}?hide_empty=0"))
    assert expect_json(page)["headers"]["X-WP-Total"] == page.headers["x-wp-total"]
    assert expect_json(anonymous.get(f"{path}?_envelope=0")) == expect_json(
        anonymous.get(f"{path}?_envelope=nonsense")
    )


def test_envelope_of_created_record_has_status_201(editor: Caller, sample: Sample) -> None:
    response = editor.post(f"/{sample.kind}?_envelope=1", sample.body())
    assert expect_json(response)["status"] == 201
    assert response.headers["location"] == f"{editor.app.api_url}/{sample.kind}/{expect_json(response)['body']['id']}"


@pytest.mark.quick("/events?per_page=many-400", "/events?page=99-404")
@pytest.mark.parametrize(
    ("path", "status"),
    [("/events?per_page=many", 400), ("/events/999999", 404), ("/nowhere", 404), ("/events?page=99", 404)],
)
def test_envelope_contains_errors(anonymous: Caller, path: str, status: int) -> None:
    error = anonymous.get(path)
    assert error.status_code == status
    enveloped = anonymous.get(f"{path}{'&' if '?' in path else '?'}_envelope=1")
    assert expect_json(enveloped) == {"body": error.json(), "status": status, "headers": {}}
    assert enveloped.headers["cache-control"] == "private, no-store"
    assert anonymous.get(f"{path}{'&' if '?' in path else '?'}_envelope=0").status_code == status


def test_envelope_of_rejected_write_contains_error(anonymous: Caller, editor: Caller) -> None:
    assert expect_json(anonymous.post("/events?_envelope=1", {}))["status"] == 401
    assert expect_json(editor.post("/events?_envelope=1", {}))["status"] == 400
    rejected = expect_json(editor.request("PUT", "/events?_envelope=1"))
    assert (rejected["status"], "GET" in rejected["headers"]["Allow"]) == (405, True)


def test_unsupported_output_parameters_are_ignored(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    for query in ("_jsonp=alert", "_embed=1", "_pretty=1", "context=embed", "_jsonp=<b>"):
        response = anonymous.get(f"{path}?{query}")
        assert expect_json(response) == expect_json(anonymous.get(path))
        assert response.headers["content-type"] == "application/json; charset=UTF-8"


def test_location_header_is_url_of_created_record(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    response = editor.post(f"/{sample.kind}", sample.body())
    record = expect_json(response, 201)
    assert response.headers["location"] == f"{editor.app.api_url}/{sample.kind}/{record['id']}"
    assert expect_json(anonymous.get(response.headers["location"]))["id"] == record["id"]
    changed = editor.patch(f"/{sample.kind}/{record['id']}", {sample.text_param: "x"})
    assert (changed.status_code, changed.headers.get("location")) == (200, None)


def test_links_use_request_url_or_configured_base_url(start_app: Any, start_single_site: Any) -> None:
    plain = start_single_site()
    event = plain.caller("editor").create("events", **EVENT)
    response = plain.caller().get(f"https://other.test:8443/api/calendar/events/v1/events/{event['id']}")
    assert expect_json(response)["rest_url"] == f"https://other.test:8443/api/calendar/events/v1/events/{event['id']}"
    assert expect_json(response)["global_id"] == f"other.test?id={event['id']}"
    configured = start_app({"KALENDS_BASE_URL": "https://events.example.org/"})
    created = configured.caller("editor").post("/events", EVENT)
    assert created.headers["location"].startswith("https://events.example.org/api/calendar/events/v1/events/")
    configured.set_site("base_url", "https://site.example.org/")
    page = configured.caller().page("events")
    assert page["rest_url"] == "https://site.example.org/api/calendar/events/v1/events/"
    assert page["events"][0]["url"].startswith("https://site.example.org/event/")


EVENT = {"title": "Here", "start_date": "2027-01-01 10:00", "end_date": "2027-01-01 11:00"}


# Order of checks (behaviour 1.5) ---------------------------------------------------------------


def with_wrong_password(app: RunningApp) -> Caller:
    """Somebody who guesses at the editor's password, each time from another address: wrong tries are counted."""
    credentials = {"Authorization": "Basic " + "ZWRpdG9yOndyb25n"}  # editor:wrong
    return replace(app.caller(), headers=credentials, client_ip=f"10.2.0.{next(_client_numbers)}")


_client_numbers = count(1)


def test_path_is_checked_before_credentials(app: RunningApp) -> None:
    assert_error(with_wrong_password(app).get("/nothing"), 404, "rest_no_route")


def test_credentials_are_checked_before_body(app: RunningApp, sample: Sample) -> None:
    for body in (b"{", b"{}", b'{"author": "x"}'):
        response = with_wrong_password(app).request("POST", f"/{sample.kind}", content=body, headers=JSON)
        assert_error(response, 401, "incorrect_password")


def test_wrong_credentials_fail_reads(app: RunningApp, sample: Sample) -> None:
    assert_error(with_wrong_password(app).get(f"/{sample.kind}"), 401, "incorrect_password")
    assert_error(with_wrong_password(app).get("/"), 401, "incorrect_password")


def test_password_guessing_is_throttled(app: RunningApp) -> None:
    guesser = with_wrong_password(app)
    statuses = [guesser.get("/tags").status_code for _ in range(14)]
    assert set(statuses) == {401, 429}
    slowed = guesser.get("/tags")
    assert_error(slowed, 429, "rest_too_many_attempts")
    assert int(slowed.headers["retry-after"]) > 0
    right = replace(app.caller("editor"), client_ip=guesser.client_ip)
    assert right.get("/tags").status_code == 429
    assert app.caller("editor").get("/tags").status_code == 200
    assert replace(app.caller(), client_ip=guesser.client_ip).get("/tags").status_code == 200


def test_json_syntax_is_checked_before_parameters(subscriber: Caller, sample: Sample) -> None:
    response = subscriber.request("POST", f"/{sample.kind}", content=b'{"a": }', headers=JSON)
    data = assert_error(response, 400, "rest_invalid_json")
    assert data["json_error_code"] == 4
    assert data["json_error_message"]


def test_all_missing_parameters_are_reported_before_invalid_ones(subscriber: Caller, sample: Sample) -> None:
    response = subscriber.post(f"/{sample.kind}", {"author": "x", "slug": 5, "parent": "x", sample.text_param: 7})
    data = assert_error(response, 400, "rest_missing_callback_param")
    assert data == {"status": 400, "params": [sample.name_param, *sample.required]}
    assert_error(subscriber.post(f"/{sample.kind}", {sample.name_param: None}), 400, "rest_missing_callback_param")


def test_all_invalid_parameters_are_reported_before_permission_check(subscriber: Caller, sample: Sample) -> None:
    data = assert_error(
        subscriber.post(
            f"/{sample.kind}", sample.body(**{sample.text_param: 7, "description": [], sample.name_param: {}})
        ),
        400,
        "rest_invalid_param",
        *{sample.text_param, "description", sample.name_param},
    )
    for name, problem in data["params"].items():
        assert data["details"][name] == {"code": "rest_invalid_param", "message": problem, "data": {"param": name}}
        assert name in problem


def test_permission_is_checked_before_record_lookup(anonymous: Caller, subscriber: Caller, sample: Sample) -> None:
    for path in (f"/{sample.kind}/999999", *([f"/{sample.kind}/by-slug/none"] if sample.is_post else [])):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_error(anonymous.request(method, path, json={}), 401, "rest_forbidden")
            assert_error(subscriber.request(method, path, json={}), 403, "rest_forbidden")
    assert_error(anonymous.post(f"/{sample.kind}", sample.body()), 401, "rest_forbidden")
    assert_error(subscriber.post(f"/{sample.kind}", sample.body()), 403, "rest_forbidden")


def test_missing_record_is_404_with_code_of_its_kind(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    code = f"rest-{sample.singular}-not-found"
    for path in ("999999", "0", *(["by-slug/none"] if sample.is_post else [])):
        assert_error(anonymous.get(f"/{sample.kind}/{path}"), 404, code)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_error(editor.request(method, f"/{sample.kind}/{path}", json={}), 404, code)


def test_record_of_another_kind_is_not_found(editor: Caller) -> None:
    venue = editor.create("venues", venue=unique("venue"))
    tag = editor.create("tags", name=unique("tag"))
    assert_error(editor.get(f"/events/{venue['id']}"), 404, "rest-event-not-found")
    assert_error(editor.get(f"/organizers/{venue['id']}"), 404, "rest-organizer-not-found")
    assert_error(editor.delete(f"/categories/{tag['id']}"), 404, "rest-category-not-found")


# Credentials ----------------------------------------------------------------------------------


def test_login_accepts_email_and_password_without_spaces(app: RunningApp) -> None:
    user = app.users["editor"]
    body = {"name": unique("tag")}
    for login in ("editor@example.org", "EDITOR"):
        for password in (user.password, user.password.replace(" ", "")):
            caller = app.caller()
            response = caller.post("/tags", {**body, "slug": "x"}, auth=(login, password))
            assert expect_json(response, 201)["name"] == body["name"]


@pytest.mark.quick("Bearer abc", "\\xff")
@pytest.mark.parametrize("header", ["Bearer abc", "Basic !!!", "Basic", "Basic Zm9v", "Digest x", "\xff"])
def test_malformed_credentials_are_treated_as_anonymous(app: RunningApp, header: str) -> None:
    headers = [("Authorization", header), ("Content-Type", "application/json")]
    path = "/api/calendar/events/v1/tags"
    assert app.raw("GET", path, headers=headers)[0] == 200
    assert app.raw("POST", path, headers=headers, body=[b'{"name": "Nobody"}'])[0] == 401
