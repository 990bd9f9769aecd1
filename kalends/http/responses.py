"""Responses of the API: JSON, headers, ETags, `_fields`, `_envelope`."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from starlette.responses import Response

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.http.json_texts import json_default
from kalends.http.language import DEFAULT
from kalends.operations.context import Outcome

JSON = "application/json; charset=UTF-8"


def respond(
    outcome: Outcome,
    fields: list[str],
    envelope: bool,
    known_etags: Iterable[str],
    *,
    language: str = DEFAULT,
) -> Response:
    """Return the response to an outcome, or 304 if the client knows its ETag."""
    headers = _page_headers(outcome)
    body: Any = outcome.body if outcome.items is None else outcome.items
    if fields:
        body = select_fields(body, fields) if outcome.items is None else [select_fields(r, fields) for r in body]
    if envelope:
        body = {"body": body, "status": outcome.status, "headers": headers}
    encoded = orjson.dumps(body, default=json_default(language))
    if outcome.location:
        headers["Location"] = outcome.location
    if outcome.revision is not None or outcome.page is not None:
        headers["ETag"] = body_etag(encoded) if outcome.revision is None else etag(outcome.revision, encoded)
        if is_known_etag(headers["ETag"], known_etags):
            return Response(status_code=304, headers=headers)
    return Response(encoded, 200 if envelope else outcome.status, headers, media_type=JSON)


def error_body(error: ApiError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "data": {"status": error.status, **error.data},
    }


def error_response(error: ApiError, language: str = DEFAULT, *, envelope: bool = False) -> Response:
    """Return the response to an error, with its messages in a language; in an envelope its own status is 200."""
    body = error_body(error)
    if envelope:
        body = {"body": body, "status": error.status, "headers": error.headers}
    headers = {**error.headers, "Content-Language": language}
    status = 200 if envelope else error.status
    return Response(orjson.dumps(body, default=json_default(language)), status, headers, media_type=JSON)


def description_response(encoded: bytes, language: str, known_etags: str = "") -> Response:
    """Return an already encoded description of the API, or 304 if the client knows its ETag."""
    tag = f'"{hashlib.blake2b(encoded, digest_size=8).hexdigest()}"'
    headers = {"Content-Language": language, "ETag": tag}
    if tag in split_etags(known_etags):
        return Response(status_code=304, headers=headers)
    return Response(encoded, 200, headers, media_type=JSON)


def etag(revision: int, encoded: bytes) -> str:
    """Return the ETag of a record: its revision, for If-Match, and a hash of the response.

    The hash is needed because embedded data (venues, counts of terms, URLs) can change without the record.
    """
    return f'"{revision}-{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def body_etag(encoded: bytes) -> str:
    """Return the ETag of a list or page: a hash of the body only, so that unrelated changes do not invalidate it."""
    return f'W/"{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def is_known_etag(tag: str, known_etags: Iterable[str]) -> bool:
    """Return whether If-None-Match contains an ETag, by weak comparison; * matches every ETag."""
    known = {known.removeprefix("W/") for known in known_etags}
    return "*" in known or tag.removeprefix("W/") in known


def read_if_match(header: str | None, name: str = "If-Match") -> frozenset[int] | None:
    """Return the revisions that If-Match accepts; None if it is absent or accepts any. Raise 400 if it is empty."""
    if header is None:
        return None
    tags = split_etags(header)
    if not tags:
        raise errors.empty_if_match(name)
    if "*" in tags:
        return None
    return frozenset(revision for tag in tags if (revision := read_revision(tag)) is not None)


def read_revision(tag: str) -> int | None:
    """Return the revision in a strong or weak ETag of a record, or None for any other ETag."""
    number, dash, _ = tag.removeprefix("W/").strip('"').partition("-")
    return int(number) if dash and number.isdecimal() and len(number) < 19 else None


def split_etags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def select_fields(record: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """Return a copy with these keys only; dots select keys of objects and of the entries of lists."""
    selected: dict[str, Any] = {}
    subfields: dict[str, list[str]] = {}
    for name in fields:
        head, _, rest = name.partition(".")
        subfields.setdefault(head, []).append(rest)
    for name, names in subfields.items():
        if name not in record:
            continue
        value = record[name]
        if "" in names:
            selected[name] = value
        elif isinstance(value, dict):
            selected[name] = select_fields(value, names)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            selected[name] = [select_fields(entry, names) for entry in value if isinstance(entry, dict)]  # pyright: ignore
    return selected


def _page_headers(outcome: Outcome) -> dict[str, str]:
    page = outcome.page
    if page is None:
        return {}
    headers = {
        "X-TEC-Total": str(page.total),
        "X-TEC-TotalPages": str(page.total_pages),
        "X-WP-Total": str(page.total),
        "X-WP-TotalPages": str(page.total_pages),
    }
    links = [(page.previous_url, "prev"), (page.next_url, "next")]
    link_values = [f'<{url}>; rel="{rel}"' for url, rel in links if url]
    if link_values:
        headers["Link"] = ", ".join(link_values)
    return headers
