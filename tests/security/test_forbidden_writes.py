"""Nobody writes what they may not, by any method, override, batch, restore or trick of keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import psycopg
import pytest

from tests.api.sample_records import SAMPLES
from tests.robustness.site_fixtures import add_users
from tests.security.instance import Instance, Report, take_first
from tests.security.wire_client import API_PATH, EXTENSION_PATH, WireRequest, WireResponse, get_request, json_request

STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
FAR_FUTURE = "2098-01-01 10:00:00"
PUBLISHED_STATUSES = ("publish", "future", "private")


@dataclass(frozen=True)
class WriteAttempt:
    login: str
    request: WireRequest

    def __str__(self) -> str:
        return f"{self.login}: {self.request.method} {self.request.target} {self.request.body[:100]!r}"


def digest_records(place: Instance) -> list[tuple[str, str]]:
    """All records, whoever wrote them."""
    tables = (
        "events",
        "venues",
        "organizers",
        "categories",
        "tags",
        "event_venues",
        "event_categories",
        "event_tags",
    )
    with psycopg.connect(place.database_url) as connection:
        return [
            (
                table,
                str(
                    connection.execute(
                        f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"
                    ).fetchone()
                ),
            )
            for table in tables
        ]


def is_rejected(reply: WireResponse) -> bool:
    """Count statuses. A batch that continues after an error has those of its operations."""
    if reply.status == 200 and b'"results"' in reply.body:
        return all(row["status"] in (401, 403) for row in reply.json()["results"])
    return reply.status in (401, 403)


def batch_request(*operations: tuple[str, str, object], atomic: bool = True) -> WireRequest:
    rows = [{"method": method, "path": path, "body": body} for method, path, body in operations]
    return json_request("POST", f"{EXTENSION_PATH}/batch", {"operations": rows, "atomic": atomic})


def write_requests(kind: str, record_id: int, text: str) -> Iterator[WireRequest]:
    """All ways to change or remove a record."""
    path, body = f"{API_PATH}/{kind}/{record_id}", {text: "taken over", "status": "publish"}
    for method in ("PUT", "PATCH", "POST"):
        yield json_request(method, path, body)
    yield WireRequest("DELETE", path)
    yield json_request("POST", f"{path}?_method=PATCH", body)
    yield WireRequest("POST", f"{path}?_method=DELETE")
    yield json_request("POST", path, body, **{"x-http-method-override": "PUT"})
    yield WireRequest("POST", path, {"x-http-method-override": "DELETE"})
    yield json_request("POST", path, {**body, "author": 1, "_method": "DELETE"})
    yield json_request("POST", f"{EXTENSION_PATH}/{kind}/{record_id}/restore", {})
    for method in ("PATCH", "DELETE"):
        yield batch_request(
            (method, f"/{kind}/{record_id}", body if method == "PATCH" else {}), atomic=method == "PATCH"
        )


def test_users_cannot_change_records_of_others(instance: Instance, report: Report) -> None:
    attempts: list[WriteAttempt] = []
    for kind, status in product(("events", "venues", "organizers"), STATUSES):
        sample = SAMPLES[kind]
        more = {"date_utc": FAR_FUTURE} if status == "future" else {}
        initial = "draft" if status == "trash" else status
        record = instance.create(kind, "stranger", **sample.body(status=initial, **more))
        if status == "trash":
            instance.write("DELETE", f"/{kind}/{record['id']}", "stranger")
        callers = ("anonymous", "subscriber", "contributor", "author")
        attempts += [
            WriteAttempt(who, request)
            for who in callers
            for request in write_requests(kind, record["id"], sample.text_param)
        ]
    before = digest_records(instance)
    responses = instance.request_all(
        attempt.request.with_login(instance.logins.get(attempt.login)) for attempt in attempts
    )
    wrong = [
        f"{response.status} {attempt}"
        for attempt, response in zip(attempts, responses, strict=True)
        if not is_rejected(response)
    ]
    assert wrong == [], f"{len(wrong)} of {len(attempts)}\n" + "\n".join(take_first(wrong, 30))
    assert digest_records(instance) == before
    assert len(attempts) >= 131
    report(f"{len(attempts)} writes to records of other users, {len(attempts)} rejected, no row changed")


def test_terms_need_write_permission(instance: Instance, report: Report) -> None:
    attempts: list[WriteAttempt] = []
    for kind, callers in (
        ("categories", ("anonymous", "subscriber", "contributor")),
        ("tags", ("anonymous", "subscriber", "contributor", "author")),
    ):
        record = instance.create(kind, **SAMPLES[kind].body())
        for who in callers:
            attempts.append(WriteAttempt(who, json_request("POST", f"{API_PATH}/{kind}", SAMPLES[kind].body())))
            attempts += [
                WriteAttempt(who, request)
                for request in write_requests(kind, record["id"], "description")
                if "restore" not in request.target
            ]
    before = digest_records(instance)
    responses = instance.request_all(
        attempt.request.with_login(instance.logins.get(attempt.login)) for attempt in attempts
    )
    wrong = [
        f"{response.status} {attempt}"
        for attempt, response in zip(attempts, responses, strict=True)
        if not is_rejected(response)
    ]
    assert wrong == []
    assert digest_records(instance) == before
    report(f"{len(attempts)} writes of terms, {len(attempts)} rejected")


def test_contributor_cannot_publish(instance: Instance, report: Report) -> None:
    """Whatever is wished for, it waits for somebody who may publish it."""
    attempts: list[WireRequest] = []
    for kind in ("events", "venues", "organizers"):
        sample = SAMPLES[kind]
        for status in PUBLISHED_STATUSES:
            more = {"date_utc": FAR_FUTURE} if status == "future" else {}
            attempts.append(json_request("POST", f"{API_PATH}/{kind}", sample.body(status=status, **more)))
            attempts.append(batch_request(("POST", f"/{kind}", sample.body(status=status, **more))))
            own = instance.create(kind, "contributor", **sample.body(status="draft"))
            path = f"{API_PATH}/{kind}/{own['id']}"
            attempts += [
                json_request(method, path, {"status": status, **more}) for method in ("PUT", "PATCH", "POST")
            ]
            attempts.append(json_request("POST", f"{path}?_method=PUT", {"status": status}))
            attempts.append(batch_request(("PATCH", f"/{kind}/{own['id']}", {"status": status})))
            attempts.append(
                json_request("PATCH", f"{API_PATH}/{kind}/by-slug/{own['slug'] or own['id']}", {"status": status})
            )
        attempts += _restore_requests(instance, kind)
    responses = instance.request_all(request.with_login(instance.logins["contributor"]) for request in attempts)
    assert {response.status for response in responses} <= {200, 201, 400, 403, 404}
    published = [
        f"{request.method} {request.target} {request.body[:80]!r}: {response.body[:100]!r}"
        for request, response in zip(attempts, responses, strict=True)
        if response.status in (200, 201)
        and any(f'"status":"{status}"'.encode() in response.body for status in PUBLISHED_STATUSES)
    ]
    assert published == [], take_first(published)
    user = instance.user_id("contributor")
    with psycopg.connect(instance.database_url) as connection:
        for kind in ("events", "venues", "organizers"):
            row = connection.execute(
                f"SELECT count(*) FROM {kind} WHERE author_id = %s AND status = ANY(%s)",
                [user, list(PUBLISHED_STATUSES)],
            ).fetchone()
            assert row == (0,), kind
    report(f"{len(attempts)} attempts of a contributor to publish, none successful")


def _restore_requests(place: Instance, kind: str) -> Iterator[WireRequest]:
    """Try to restore a record of the contributor to the state that an editor had published."""
    own = place.create(kind, "contributor", **SAMPLES[kind].body(status="draft"))
    for status in ("publish", "draft"):
        place.write("PATCH", f"/{kind}/{own['id']}", status=status)
    history = place.request(get_request(f"{EXTENSION_PATH}/{kind}/{own['id']}/history"), "editor").json()["history"]
    for entry in history:
        yield json_request("POST", f"{EXTENSION_PATH}/{kind}/{own['id']}/restore", {"revision": entry["revision"]})
    trashed = place.create(kind, "contributor", **SAMPLES[kind].body(status="draft"))
    place.write("DELETE", f"/{kind}/{trashed['id']}", "contributor")
    yield json_request("PATCH", f"{API_PATH}/{kind}/{trashed['id']}", {"status": "publish"})
    yield json_request("POST", f"{EXTENSION_PATH}/{kind}/{trashed['id']}/restore", {})


def test_contributor_cannot_create_terms_by_name(instance: Instance) -> None:
    with psycopg.connect(instance.database_url) as connection:
        names = "SELECT count(*) FROM (SELECT name FROM tags UNION ALL SELECT name FROM categories) t"
        before = connection.execute(names).fetchone()
        for param in ("tags", "categories"):
            for value in (["Quendor"], "Quendor", "Quendor,Borphee", [{"name": "Quendor"}]):
                body = SAMPLES["events"].body(**{param: value})
                assert instance.request(json_request("POST", f"{API_PATH}/events", body), "contributor").status in (
                    201,
                    400,
                    403,
                )
        assert connection.execute(names).fetchone() == before


def test_read_only_password_cannot_write(instance: Instance, report: Report) -> None:
    login = add_users(instance.database_url, {"reader": "administrator"})["reader"]
    with psycopg.connect(instance.database_url) as connection:
        connection.execute(
            "UPDATE application_passwords SET read_only = true "
            "WHERE user_id = (SELECT id FROM users WHERE login = 'reader')"
        )
    requests: list[WireRequest] = [json_request("POST", f"{EXTENSION_PATH}/media", {})]
    for kind, sample in SAMPLES.items():
        record = instance.create(kind, **sample.body())
        requests.append(json_request("POST", f"{API_PATH}/{kind}", sample.body()))
        requests += [
            request
            for request in write_requests(kind, record["id"], "description")
            if sample.is_post or "restore" not in request.target
        ]
    before = digest_records(instance)
    responses = instance.request_all(request.with_login(login) for request in requests)
    assert {(response.status, response.json()["code"]) for response in responses} == {(403, "rest_read_only")}
    assert digest_records(instance) == before
    report(f"{len(requests)} writes with a read-only password, {len(requests)} rejected")


@pytest.mark.parametrize("who", ["contributor", "author"])
def test_private_venue_of_another_user_cannot_be_linked(instance: Instance, who: str) -> None:
    venue = instance.create("venues", "stranger", venue="Flathead", status="private")
    shapes: tuple[Any, ...] = (
        venue["id"],
        [venue["id"]],
        {"id": venue["id"]},
        [{"id": venue["id"], "venue": "mine"}],
    )
    for shape in shapes:
        response = instance.request(
            json_request("POST", f"{API_PATH}/events", SAMPLES["events"].body(venue=shape)), who
        )
        assert "Flathead" not in response.text
        assert response.status in (201, 400, 403)
    assert instance.request(get_request(f"{API_PATH}/venues/{venue['id']}"), "stranger").json()["venue"] == "Flathead"


def test_idempotency_key_of_another_user_is_not_replayed(instance: Instance) -> None:
    body, key = {"venue": "Keyed", "status": "draft"}, {"idempotency-key": "the same for all"}
    responses = [
        instance.request(json_request("POST", f"{API_PATH}/venues", body, **key), who)
        for who in ("author", "author2", "contributor")
    ]
    assert [response.status for response in responses] == [201] * 3
    assert [response.header("idempotent-replay") for response in responses] == [""] * 3
    assert len({response.json()["id"] for response in responses}) == 3
    again = instance.request(json_request("POST", f"{API_PATH}/venues", body, **key), "author")
    assert (again.header("idempotent-replay"), again.json()["id"]) == ("true", responses[0].json()["id"])
