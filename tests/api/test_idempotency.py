"""Idempotency-Key: at most once, the same answer again, per user (docs/decisions/0002-one-writer-per-site.md)."""

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.running_app import Caller, Interface, assert_refused, done
from tests.api.sample_records import DATES, Sample, shown_text, unique


def key() -> dict[str, str]:
    return {"Idempotency-Key": unique("key")}


def total(interface: Interface, kind: str) -> int:
    (row,) = interface.sql(f"SELECT count(*) AS n FROM {kind}")
    number: int = row["n"]
    return number


def essence(answer: httpx.Response) -> tuple[int, bytes, Any, Any, Any]:
    names = ("location", "etag", "content-type")
    return answer.status_code, answer.content, *(answer.headers.get(name) for name in names)  # type: ignore[return-value]


def test_repeated_create_replays_response_without_second_record(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body()
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    before = total(editor.interface, sample.kind)
    second = editor.post(f"/{sample.kind}", body, headers=headers)
    assert essence(second) == essence(first)
    assert (first.headers.get("idempotent-replay"), second.headers["idempotent-replay"]) == (None, "true")
    assert total(editor.interface, sample.kind) == before
    third = editor.post(f"/{sample.kind}", {**body, sample.name: unique("other")}, headers=key())
    assert done(third, 201)["id"] != done(first, 201)["id"]


def test_replayed_response_is_original_one(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body(**{sample.text: "first"})
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    editor.change(sample.kind, first.json()["id"], **{sample.text: "changed since"})
    again = editor.post(f"/{sample.kind}", body, headers=headers)
    assert done(again, 201)[sample.text] == shown_text(sample, "first")
    assert editor.read(sample.kind, first.json()["id"])[sample.text] == shown_text(sample, "changed since")


def test_update_and_delete_by_post_are_idempotent(editor: Caller, sample: Sample) -> None:
    record = editor.create(sample.kind, **sample.body())
    path, headers = f"/{sample.kind}/{record['id']}", key()
    first = editor.post(path, {sample.text: "one"}, headers=headers)
    editor.change(sample.kind, record["id"], **{sample.text: "two"})
    assert essence(editor.post(path, {sample.text: "one"}, headers=headers)) == essence(first)
    assert editor.read(sample.kind, record["id"])[sample.text] == shown_text(sample, "two")
    headers = key()
    deleted = editor.post(f"{path}?_method=DELETE", headers=headers)
    assert essence(editor.post(f"{path}?_method=DELETE", headers=headers)) == essence(deleted)
    assert deleted.status_code == 200


def test_key_reused_for_different_request_is_422(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body()
    done(editor.post(f"/{sample.kind}", body, headers=headers), 201)
    before = total(editor.interface, sample.kind)
    others = [
        editor.post(f"/{sample.kind}", {**body, sample.text: "more"}, headers=headers),
        editor.post(f"/{sample.kind}?_fields=id", body, headers=headers),
        editor.request("POST", f"/{sample.kind}", data=sample.texts(), headers=headers),
        editor.post("/tags" if sample.kind != "tags" else "/categories", {"name": unique("x")}, headers=headers),
    ]
    for answer in others:
        assert_refused(answer, 422, "rest_idempotency_mismatch")
    assert total(editor.interface, sample.kind) == before


def test_key_is_scoped_to_user(author: Caller, editor: Caller, post: Sample) -> None:
    headers, body = key(), post.body()
    one, other = (
        editor.post(f"/{post.kind}", body, headers=headers),
        author.post(f"/{post.kind}", body, headers=headers),
    )
    assert (done(one, 201)["author"], done(other, 201)["author"]) == (str(editor.id), str(author.id))
    assert one.json()["id"] != other.json()["id"]


def test_key_of_anonymous_request_is_ignored(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body()
    assert_refused(anonymous.post(f"/{sample.kind}", body, headers=headers), 401, "rest_forbidden")
    done(editor.post(f"/{sample.kind}", body, headers=headers), 201)
    assert_refused(anonymous.post(f"/{sample.kind}", body, headers=headers), 401, "rest_forbidden")


def test_failed_requests_are_not_stored(contributor: Caller, editor: Caller) -> None:
    headers = key()
    parent = {"title": unique("x"), **DATES, "venue": 999999}
    assert_refused(editor.post("/events", parent, headers=headers), 400, "rest_invalid_param", "venue")
    assert_refused(editor.post("/venues/999999", {}, headers=headers), 404, "rest-venue-not-found")
    assert_refused(editor.post("/venues", {}, headers=headers), 400, "rest_missing_callback_param")
    (kept,) = editor.interface.sql("SELECT count(*) AS n FROM idempotency WHERE key = $1", headers["Idempotency-Key"])
    assert kept["n"] == 0
    made = editor.post("/venues", {"venue": unique("v")}, headers=headers)
    assert "idempotent-replay" not in made.headers
    assert done(made, 201)["venue"]
    refused = key()
    assert_refused(contributor.post("/tags", {"name": unique("t")}, headers=refused), 403, "rest_forbidden")


def test_key_length_is_limited_and_empty_key_is_ignored(editor: Caller, sample: Sample) -> None:
    too_long = editor.post(f"/{sample.kind}", sample.body(), headers={"Idempotency-Key": "k" * 256})
    assert_refused(too_long, 400, "rest_invalid_param", "Idempotency-Key")
    longest = {"Idempotency-Key": f"{sample.kind:k<255}"}
    body = sample.body()
    ids = [done(editor.post(f"/{sample.kind}", body, headers=longest), 201)["id"] for _ in range(2)]
    assert ids[0] == ids[1]
    for _ in range(2):
        done(editor.post(f"/{sample.kind}", sample.body(), headers={"Idempotency-Key": ""}), 201)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "GET"])
def test_idempotent_methods_ignore_key(editor: Caller, sample: Sample, method: str) -> None:
    record = editor.create(sample.kind, **sample.body())
    headers = key()
    answer = editor.request(method, f"/{sample.kind}/{record['id']}", json={sample.text: "x"}, headers=headers)
    assert answer.status_code == 200
    assert editor.interface.sql("SELECT key FROM idempotency WHERE key = $1", headers["Idempotency-Key"]) == []


def test_key_expires_after_one_day(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body(slug=unique("s"))
    first = editor.post(f"/{sample.kind}", body, headers=headers)
    age = "UPDATE idempotency SET created_at = created_at - $2::interval WHERE key = $1"
    editor.interface.sql(age, headers["Idempotency-Key"], timedelta(hours=23, minutes=59))
    assert essence(editor.post(f"/{sample.kind}", body, headers=headers)) == essence(first)
    editor.interface.sql(age, headers["Idempotency-Key"], timedelta(minutes=2))
    again = editor.post(f"/{sample.kind}", body, headers=headers)
    assert done(again, 201)["id"] != done(first, 201)["id"]


def test_expired_keys_are_deleted_on_next_write(editor: Caller) -> None:
    old = key()
    done(editor.post("/venues", {"venue": unique("v")}, headers=old), 201)
    editor.interface.sql("UPDATE idempotency SET created_at = created_at - interval '2 days'")
    done(editor.post("/venues", {"venue": unique("v")}, headers=key()), 201)
    assert editor.interface.sql("SELECT key FROM idempotency WHERE key = $1", old["Idempotency-Key"]) == []


def lock_number(site_id: int, user_id: int, name: str) -> int:
    """The advisory lock that a running request holds for its key (kalends/store/idempotency.py)."""
    digest = hashlib.blake2b(f"{site_id}\0{user_id}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def test_concurrent_request_with_same_key_is_409(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body()
    number = lock_number(1, editor.id, headers["Idempotency-Key"])

    async def meet() -> tuple[httpx.Response, httpx.Response]:
        running = await asyncpg.connect(editor.interface.database_url)
        try:
            async with running.transaction():
                await running.execute("SELECT pg_advisory_xact_lock($1)", number)
                meanwhile = await editor.ask("POST", f"/{sample.kind}", json=body, headers=headers)
            return meanwhile, await editor.ask("POST", f"/{sample.kind}", json=body, headers=headers)
        finally:
            await running.close()

    meanwhile, afterwards = editor.interface.run(meet())
    assert_refused(meanwhile, 409, "rest_request_in_progress")
    assert meanwhile.headers["retry-after"] == "1"
    done(afterwards, 201)


def test_concurrent_requests_with_same_key_write_once(editor: Caller, sample: Sample) -> None:
    headers, body = key(), sample.body()
    before = total(editor.interface, sample.kind)

    async def storm() -> list[httpx.Response]:
        return await asyncio.gather(
            *(editor.ask("POST", f"/{sample.kind}", json=body, headers=headers) for _ in range(8))
        )

    answers = editor.interface.run(storm())
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert total(editor.interface, sample.kind) == before + 1


def test_replay_needs_write_permission(editor: Caller, fresh: Any) -> None:
    interface = fresh()
    caller = interface.caller("contributor")
    headers, body = key(), {"venue": "x"}
    done(caller.post("/venues", body, headers=headers), 201)
    interface.sql("UPDATE users SET role = 'subscriber' WHERE login = 'contributor'")
    assert_refused(caller.post("/venues", body, headers=headers), 403, "rest_forbidden")
