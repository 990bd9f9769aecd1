"""Idempotency-Key: at most once, the same answer again, per user (docs/decisions/0002-one-writer-per-site.md)."""

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, Sample, format_text, unique


def new_key_header() -> dict[str, str]:
    return {"Idempotency-Key": unique("key")}


def count_rows(app: RunningApp, kind: str) -> int:
    (row,) = app.sql(f"SELECT count(*) AS n FROM {kind}")
    number: int = row["n"]
    return number


def comparable_parts(response: httpx.Response) -> tuple[int, bytes, Any, Any, Any]:
    names = ("location", "etag", "content-type")
    return response.status_code, response.content, *(response.headers.get(name) for name in names)  # type: ignore[return-value]


def test_repeated_create_replays_response_without_second_record(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body()
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    before = count_rows(editor.app, sample.kind)
    second = editor.post(f"/{sample.kind}", body, headers=headers)
    assert comparable_parts(second) == comparable_parts(first)
    assert (first.headers.get("idempotent-replay"), second.headers["idempotent-replay"]) == (None, "true")
    assert count_rows(editor.app, sample.kind) == before
    third = editor.post(f"/{sample.kind}", {**body, sample.name_param: unique("other")}, headers=new_key_header())
    assert expect_json(third, 201)["id"] != expect_json(first, 201)["id"]


def test_replayed_response_is_original_one(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body(**{sample.text_param: "first"})
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    editor.change(sample.kind, first.json()["id"], **{sample.text_param: "changed since"})
    again = editor.post(f"/{sample.kind}", body, headers=headers)
    assert expect_json(again, 201)[sample.text_param] == format_text(sample, "first")
    assert editor.read(sample.kind, first.json()["id"])[sample.text_param] == format_text(sample, "changed since")


def test_update_and_delete_by_post_are_idempotent(editor: Caller, sample: Sample) -> None:
    record = editor.create(sample.kind, **sample.body())
    path, headers = f"/{sample.kind}/{record['id']}", new_key_header()
    first = editor.post(path, {sample.text_param: "one"}, headers=headers)
    editor.change(sample.kind, record["id"], **{sample.text_param: "two"})
    assert comparable_parts(editor.post(path, {sample.text_param: "one"}, headers=headers)) == comparable_parts(first)
    assert editor.read(sample.kind, record["id"])[sample.text_param] == format_text(sample, "two")
    headers = new_key_header()
    deleted = editor.post(f"{path}?_method=DELETE", headers=headers)
    assert comparable_parts(editor.post(f"{path}?_method=DELETE", headers=headers)) == comparable_parts(deleted)
    assert deleted.status_code == 200


def test_key_reused_for_different_request_is_422(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body()
    expect_json(editor.post(f"/{sample.kind}", body, headers=headers), 201)
    before = count_rows(editor.app, sample.kind)
    others = [
        editor.post(f"/{sample.kind}", {**body, sample.text_param: "more"}, headers=headers),
        editor.post(f"/{sample.kind}?_fields=id", body, headers=headers),
        editor.request("POST", f"/{sample.kind}", data=sample.form(), headers=headers),
        editor.post("/tags" if sample.kind != "tags" else "/categories", {"name": unique("x")}, headers=headers),
    ]
    for response in others:
        assert_error(response, 422, "rest_idempotency_mismatch")
    assert count_rows(editor.app, sample.kind) == before


def test_key_is_scoped_to_user(author: Caller, editor: Caller, post: Sample) -> None:
    headers, body = new_key_header(), post.body(date="2026-01-01")
    one, other = (
        editor.post(f"/{post.kind}", body, headers=headers),
        author.post(f"/{post.kind}", body, headers=headers),
    )
    assert (expect_json(one, 201)["author"], expect_json(other, 201)["author"]) == (str(editor.id), str(author.id))
    assert one.json()["id"] != other.json()["id"]


def test_key_of_anonymous_request_is_ignored(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body()
    assert_error(anonymous.post(f"/{sample.kind}", body, headers=headers), 401, "rest_forbidden")
    expect_json(editor.post(f"/{sample.kind}", body, headers=headers), 201)
    assert_error(anonymous.post(f"/{sample.kind}", body, headers=headers), 401, "rest_forbidden")


def test_failed_requests_are_not_stored(contributor: Caller, editor: Caller) -> None:
    headers = new_key_header()
    parent = {"title": unique("x"), **DATES, "venue": 999999}
    assert_error(editor.post("/events", parent, headers=headers), 400, "rest_invalid_param", "venue")
    assert_error(editor.post("/venues/999999", {}, headers=headers), 404, "rest-venue-not-found")
    assert_error(editor.post("/venues", {}, headers=headers), 400, "rest_missing_callback_param")
    (stored,) = editor.app.sql("SELECT count(*) AS n FROM idempotency WHERE key = $1", headers["Idempotency-Key"])
    assert stored["n"] == 0
    response = editor.post("/venues", {"venue": unique("v")}, headers=headers)
    assert "idempotent-replay" not in response.headers
    assert expect_json(response, 201)["venue"]
    second_headers = new_key_header()
    assert_error(contributor.post("/tags", {"name": unique("t")}, headers=second_headers), 403, "rest_forbidden")


def test_key_length_is_limited_and_empty_key_is_ignored(editor: Caller, sample: Sample) -> None:
    too_long = editor.post(f"/{sample.kind}", sample.body(), headers={"Idempotency-Key": "k" * 256})
    assert_error(too_long, 400, "rest_invalid_param", "Idempotency-Key")
    longest = {"Idempotency-Key": f"{sample.kind:k<255}"}
    body = sample.body()
    ids = [expect_json(editor.post(f"/{sample.kind}", body, headers=longest), 201)["id"] for _ in range(2)]
    assert ids[0] == ids[1]
    for _ in range(2):
        expect_json(editor.post(f"/{sample.kind}", sample.body(), headers={"Idempotency-Key": ""}), 201)


@pytest.mark.quick("events-PUT", "tags-GET")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "GET"])
def test_idempotent_methods_ignore_key(editor: Caller, sample: Sample, method: str) -> None:
    record = editor.create(sample.kind, **sample.body())
    headers = new_key_header()
    response = editor.request(
        method, f"/{sample.kind}/{record['id']}", json={sample.text_param: "x"}, headers=headers
    )
    assert response.status_code == 200
    assert editor.app.sql("SELECT key FROM idempotency WHERE key = $1", headers["Idempotency-Key"]) == []


def test_key_expires_after_one_day(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body(slug=unique("s"), date="2026-01-01")
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    age = "UPDATE idempotency SET created_at = created_at - $2::interval WHERE key = $1"
    editor.app.sql(age, headers["Idempotency-Key"], timedelta(hours=23, minutes=59))
    assert comparable_parts(editor.post(f"/{sample.kind}", body, headers=headers)) == comparable_parts(first)
    editor.app.sql(age, headers["Idempotency-Key"], timedelta(minutes=2))
    again = editor.post(f"/{sample.kind}", body, headers=headers)
    assert expect_json(again, 201)["id"] != expect_json(first, 201)["id"]


def test_expired_keys_are_deleted_on_next_write(editor: Caller) -> None:
    old = new_key_header()
    expect_json(editor.post("/venues", {"venue": unique("v")}, headers=old), 201)
    editor.app.sql("UPDATE idempotency SET created_at = created_at - interval '2 days'")
    expect_json(editor.post("/venues", {"venue": unique("v")}, headers=new_key_header()), 201)
    assert editor.app.sql("SELECT key FROM idempotency WHERE key = $1", old["Idempotency-Key"]) == []


def advisory_lock_id(site_id: int, user_id: int, name: str) -> int:
    """The advisory lock that a running request holds for its key (kalends/calendar/storage/history_tables.py)."""
    digest = hashlib.blake2b(f"{site_id}\0{user_id}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def test_concurrent_request_with_same_key_is_409(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body()
    number = advisory_lock_id(editor.app.site_id, editor.id, headers["Idempotency-Key"])

    async def run_concurrently() -> tuple[httpx.Response, httpx.Response]:
        running = await asyncpg.connect(editor.app.database_url)
        try:
            async with running.transaction():
                await running.execute("SELECT pg_advisory_xact_lock($1)", number)
                meanwhile = await editor.request_async("POST", f"/{sample.kind}", json=body, headers=headers)
            return meanwhile, await editor.request_async("POST", f"/{sample.kind}", json=body, headers=headers)
        finally:
            await running.close()

    meanwhile, afterwards = editor.app.run(run_concurrently())
    assert_error(meanwhile, 409, "rest_request_in_progress")
    assert meanwhile.headers["retry-after"] == "1"
    expect_json(afterwards, 201)


def test_concurrent_requests_with_same_key_write_once(editor: Caller, sample: Sample) -> None:
    headers, body = new_key_header(), sample.body()
    before = count_rows(editor.app, sample.kind)

    async def run_concurrently() -> list[httpx.Response]:
        return await asyncio.gather(
            *(editor.request_async("POST", f"/{sample.kind}", json=body, headers=headers) for _ in range(8))
        )

    responses = editor.app.run(run_concurrently())
    assert {response.status_code for response in responses} <= {201, 409}
    assert len({response.json()["id"] for response in responses if response.status_code == 201}) == 1
    assert count_rows(editor.app, sample.kind) == before + 1


def test_replay_needs_write_permission(editor: Caller, start_app: Any) -> None:
    app = start_app()
    caller = app.caller("contributor")
    headers, body = new_key_header(), {"venue": "x"}
    expect_json(caller.post("/venues", body, headers=headers), 201)
    app.sql("UPDATE users SET role = 'subscriber' WHERE login = 'contributor'")
    assert_error(caller.post("/venues", body, headers=headers), 403, "rest_forbidden")
