"""Responses stored for a repeated Idempotency-Key, in the transaction of the write."""

import hashlib
from dataclasses import dataclass

import orjson

from kalends.core import errors
from kalends.store.database import Transaction
from kalends.store.sql import Sql


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    headers: dict[str, str]
    body: bytes


async def lock_key(tx: Transaction, user_id: int, key: str) -> None:
    """Lock a key before the site is locked; raise if another transaction holds it."""
    digest = hashlib.blake2b(f"{tx.site.id}\0{user_id}\0{key}".encode(), digest_size=8).digest()
    lock_id = int.from_bytes(digest, "big", signed=True)
    if not await tx.fetch_value(Sql("SELECT pg_try_advisory_xact_lock(?::bigint)", lock_id)):
        raise errors.in_progress()


async def find_response(tx: Transaction, user_id: int, key: str, fingerprint: bytes) -> StoredResponse | None:
    """Return the stored response, if any; raise if the key was used for another request.

    The row is locked, which writes WAL: a replayed response must wait for a synchronous standby as the write did.
    """
    row = await tx.fetch_one(
        Sql(
            """
            SELECT fingerprint, status, headers, body FROM idempotency
            WHERE site_id = ? AND user_id = ? AND key = ? AND created_at > ?::timestamptz - interval '1 day'
            FOR UPDATE
            """,
            tx.site.id,
            user_id,
            key,
            tx.now,
        )
    )
    if row is None:
        return None
    if row["fingerprint"] != fingerprint:
        raise errors.key_reused()
    return StoredResponse(row["status"], orjson.loads(row["headers"]), row["body"])


async def store_response(
    tx: Transaction, user_id: int, key: str, fingerprint: bytes, response: StoredResponse
) -> None:
    """Store a response for a day, and delete older ones."""
    await tx.execute(
        Sql(
            """
            WITH old AS (
                DELETE FROM idempotency WHERE site_id = ? AND created_at <= ?::timestamptz - interval '1 day'
            )
            INSERT INTO idempotency (site_id, user_id, key, fingerprint, status, headers, body, created_at)
            VALUES (?, ?, ?, ?, ?, ?::jsonb, ?, ?)
            ON CONFLICT (site_id, user_id, key) DO UPDATE SET
                fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers,
                body = excluded.body, created_at = excluded.created_at
            """,
            tx.site.id,
            tx.now,
            tx.site.id,
            user_id,
            key,
            fingerprint,
            response.status,
            orjson.dumps(response.headers).decode(),
            response.body,
            tx.now,
        )
    )
