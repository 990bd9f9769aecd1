"""What every answer looks like: headers, `_fields`, `_envelope`, Location, the one error shape, order of checks."""

import re
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.api.running_app import HOST, NS, Caller, Interface, assert_refused, done
from tests.api.sample_records import Sample, unique

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def record(editor: Caller, sample: Sample) -> dict[str, Any]:
    return editor.create(sample.kind, **sample.body())


def test_response_headers(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    answer = anonymous.get(f"/{sample.kind}/{record['id']}", headers={"Accept": "application/xml"})
    shown = answer.headers
    assert re.fullmatch(r'"\d+-[0-9a-f]{16}"', shown["etag"])
    assert re.fullmatch(r"[0-9a-f]{32}", shown["x-request-id"])
    expected = {
        "content-type": "application/json; charset=UTF-8",
        "content-length": str(len(answer.content)),
        "allow": "GET",
        "link": f'<http://{HOST}/api/>; rel="https://api.w.org/"',
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex",
    }
    assert {name: shown[name] for name in expected} == expected
    assert "authorization" in shown["vary"].lower()
    # Whoever keeps it asks again before using it, or keeps it for seconds only.
    assert shown["cache-control"].startswith("public, ")
    assert "max-age=0" in shown["cache-control"] or "no-cache" in shown["cache-control"]


def test_authenticated_and_error_responses_are_not_shared_cacheable(
    anonymous: Caller, editor: Caller, sample: Sample, record: dict[str, Any]
) -> None:
    own = editor.get(f"/{sample.kind}/{record['id']}")
    refused = anonymous.get(f"/{sample.kind}/999999")
    assert (own.status_code, refused.status_code) == (200, 404)
    assert own.headers["cache-control"] == refused.headers["cache-control"] == "private, no-store"


def test_request_id_is_echoed_or_generated(anonymous: Caller) -> None:
    def answered(offered: str) -> str:
        return anonymous.get("/events", headers={"X-Request-ID": offered}).headers["x-request-id"]

    assert answered("trace:1.a_B-9") == "trace:1.a_B-9"
    for unusable in ("", "with space", "a" * 101, "semi;colon", "<b>"):
        assert re.fullmatch(r"[0-9a-f]{32}", answered(unusable))
    assert answered("") != answered("")


def test_fields_parameter_selects_keys(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    wanted = {"id": record["id"], "slug": record["slug"]}
    for query in (
        "_fields=id,slug",
        "_fields[]=id&_fields[]=slug",
        "_fields=id&_fields=slug",
        "_fields=slug, id,none",
    ):
        assert done(anonymous.get(f"{path}?{query}")) == wanted
    assert done(anonymous.get(f"{path}?_fields=none")) == {}
    assert done(anonymous.get(f"{path}?_fields=")) == done(anonymous.get(path))


def test_fields_parameter_selects_keys_of_listed_records(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    word = unique("fielded").replace(" ", "")
    ids = [editor.create(sample.kind, **sample.body(**{sample.name: f"{word} {n}"}))["id"] for n in range(2)]
    query = {"search": word, "hide_empty": 0, "_fields": f"{sample.kind}.id,total"}
    page = done(anonymous.get(f"/{sample.kind}", query))
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
    made = editor.post(f"/{sample.kind}?_fields=id", sample.body())
    assert done(made, 201).keys() == {"id"}
    assert editor.read(sample.kind, done(made, 201)["id"])[sample.name]


def test_envelope_contains_body_status_and_headers(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    assert done(anonymous.get(f"{path}?_envelope=1")) == {
        "body": done(anonymous.get(path)),
        "status": 200,
        "headers": {},
    }
    page = anonymous.get(f"/{sample.kind}?hide_empty=0&_envelope=true")
    assert done(page)["body"] == done(anonymous.get(f"/{sample.kind}?hide_empty=0"))
    assert done(page)["headers"]["X-WP-Total"] == page.headers["x-wp-total"]
    assert done(anonymous.get(f"{path}?_envelope=0")) == done(anonymous.get(f"{path}?_envelope=nonsense"))


def test_envelope_of_created_record_has_status_201(editor: Caller, sample: Sample) -> None:
    made = editor.post(f"/{sample.kind}?_envelope=1", sample.body())
    assert done(made)["status"] == 201
    assert made.headers["location"] == f"{NS}/{sample.kind}/{done(made)['body']['id']}"


def test_unsupported_output_parameters_are_ignored(anonymous: Caller, sample: Sample, record: dict[str, Any]) -> None:
    path = f"/{sample.kind}/{record['id']}"
    for query in ("_jsonp=alert", "_embed=1", "_pretty=1", "context=embed", "_jsonp=<b>"):
        answer = anonymous.get(f"{path}?{query}")
        assert done(answer) == done(anonymous.get(path))
        assert answer.headers["content-type"] == "application/json; charset=UTF-8"


def test_location_header_is_url_of_created_record(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    made = editor.post(f"/{sample.kind}", sample.body())
    record = done(made, 201)
    assert made.headers["location"] == f"{NS}/{sample.kind}/{record['id']}"
    assert done(anonymous.get(made.headers["location"]))["id"] == record["id"]
    changed = editor.patch(f"/{sample.kind}/{record['id']}", {sample.text: "x"})
    assert (changed.status_code, changed.headers.get("location")) == (200, None)


def test_links_use_request_url_or_configured_base_url(fresh: Any) -> None:
    plain = fresh()
    event = plain.caller("editor").create("events", **EVENT)
    asked = plain.caller().get(f"https://other.test:8443/api/calendar/events/v1/events/{event['id']}")
    assert done(asked)["rest_url"] == f"https://other.test:8443/api/calendar/events/v1/events/{event['id']}"
    assert done(asked)["global_id"] == f"other.test?id={event['id']}"
    configured = fresh({"KALENDS_BASE_URL": "https://events.example.org/"})
    made = configured.caller("editor").post("/events", EVENT)
    assert made.headers["location"].startswith("https://events.example.org/api/calendar/events/v1/events/")
    configured.set_site("base_url", "https://site.example.org/")
    page = configured.caller().page("events")
    assert page["rest_url"] == "https://site.example.org/api/calendar/events/v1/events/"
    assert page["events"][0]["url"].startswith("https://site.example.org/event/")


EVENT = {"title": "Here", "start_date": "2027-01-01 10:00", "end_date": "2027-01-01 11:00"}


# Order of checks (behaviour 1.5) ---------------------------------------------------------------


def wrong(interface: Interface) -> Caller:
    """Somebody who guesses at the editor's password, each time from another address: wrong tries are counted."""
    credentials = {"Authorization": "Basic " + "ZWRpdG9yOndyb25n"}  # editor:wrong
    return replace(interface.caller(), headers=credentials, address=f"10.2.0.{next(_addresses)}")


_addresses = count(1)


def test_path_is_checked_before_credentials(interface: Interface) -> None:
    assert_refused(wrong(interface).get("/nothing"), 404, "rest_no_route")


def test_credentials_are_checked_before_body(interface: Interface, sample: Sample) -> None:
    for body in (b"{", b"{}", b'{"author": "x"}'):
        answer = wrong(interface).request("POST", f"/{sample.kind}", content=body, headers=JSON)
        assert_refused(answer, 401, "incorrect_password")


def test_wrong_credentials_fail_reads(interface: Interface, sample: Sample) -> None:
    assert_refused(wrong(interface).get(f"/{sample.kind}"), 401, "incorrect_password")
    assert_refused(wrong(interface).get("/"), 401, "incorrect_password")


def test_password_guessing_is_throttled(interface: Interface) -> None:
    guesser = wrong(interface)
    statuses = [guesser.get("/tags").status_code for _ in range(14)]
    assert set(statuses) == {401, 429}
    slowed = guesser.get("/tags")
    assert_refused(slowed, 429, "rest_too_many_attempts")
    assert int(slowed.headers["retry-after"]) > 0
    right = replace(interface.caller("editor"), address=guesser.address)
    assert right.get("/tags").status_code == 429
    assert interface.caller("editor").get("/tags").status_code == 200
    assert replace(interface.caller(), address=guesser.address).get("/tags").status_code == 200


def test_json_syntax_is_checked_before_parameters(subscriber: Caller, sample: Sample) -> None:
    answer = subscriber.request("POST", f"/{sample.kind}", content=b'{"a": }', headers=JSON)
    data = assert_refused(answer, 400, "rest_invalid_json")
    assert data["json_error_code"] == 4
    assert data["json_error_message"]


def test_all_missing_parameters_are_reported_before_invalid_ones(subscriber: Caller, sample: Sample) -> None:
    answer = subscriber.post(f"/{sample.kind}", {"author": "x", "slug": 5, "parent": "x", sample.text: 7})
    data = assert_refused(answer, 400, "rest_missing_callback_param")
    assert data == {"status": 400, "params": [sample.name, *sample.required]}
    assert_refused(subscriber.post(f"/{sample.kind}", {sample.name: None}), 400, "rest_missing_callback_param")


def test_all_invalid_parameters_are_reported_before_permission_check(subscriber: Caller, sample: Sample) -> None:
    data = assert_refused(
        subscriber.post(f"/{sample.kind}", sample.body(**{sample.text: 7, "description": [], sample.name: {}})),
        400,
        "rest_invalid_param",
        *{sample.text, "description", sample.name},
    )
    for name, problem in data["params"].items():
        assert data["details"][name] == {"code": "rest_invalid_param", "message": problem, "data": {"param": name}}
        assert name in problem


def test_permission_is_checked_before_record_lookup(anonymous: Caller, subscriber: Caller, sample: Sample) -> None:
    for path in (f"/{sample.kind}/999999", *([f"/{sample.kind}/by-slug/none"] if sample.is_post else [])):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_refused(anonymous.request(method, path, json={}), 401, "rest_forbidden")
            assert_refused(subscriber.request(method, path, json={}), 403, "rest_forbidden")
    assert_refused(anonymous.post(f"/{sample.kind}", sample.body()), 401, "rest_forbidden")
    assert_refused(subscriber.post(f"/{sample.kind}", sample.body()), 403, "rest_forbidden")


def test_missing_record_is_404_with_code_of_its_kind(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    code = f"rest-{sample.singular}-not-found"
    for path in ("999999", "0", *(["by-slug/none"] if sample.is_post else [])):
        assert_refused(anonymous.get(f"/{sample.kind}/{path}"), 404, code)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_refused(editor.request(method, f"/{sample.kind}/{path}", json={}), 404, code)


def test_record_of_another_kind_is_not_found(editor: Caller) -> None:
    venue = editor.create("venues", venue=unique("venue"))
    tag = editor.create("tags", name=unique("tag"))
    assert_refused(editor.get(f"/events/{venue['id']}"), 404, "rest-event-not-found")
    assert_refused(editor.get(f"/organizers/{venue['id']}"), 404, "rest-organizer-not-found")
    assert_refused(editor.delete(f"/categories/{tag['id']}"), 404, "rest-category-not-found")


# Credentials ----------------------------------------------------------------------------------


def test_login_accepts_email_and_password_without_spaces(interface: Interface) -> None:
    person = interface.people["editor"]
    body = {"name": unique("tag")}
    for login in ("editor@example.org", "EDITOR"):
        for password in (person.password, person.password.replace(" ", "")):
            caller = interface.caller()
            answer = caller.post("/tags", {**body, "slug": "x"}, auth=(login, password))
            assert done(answer, 201)["name"] == body["name"]


@pytest.mark.parametrize("header", ["Bearer abc", "Basic !!!", "Basic", "Basic Zm9v", "Digest x", "\xff"])
def test_malformed_credentials_are_treated_as_anonymous(interface: Interface, header: str) -> None:
    headers = [("Authorization", header), ("Content-Type", "application/json")]
    path = "/api/calendar/events/v1/tags"
    assert interface.raw("GET", path, headers=headers)[0] == 200
    assert interface.raw("POST", path, headers=headers, body=[b'{"name": "Nobody"}'])[0] == 401
