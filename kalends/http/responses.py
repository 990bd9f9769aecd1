"""From an outcome to a response: JSON, headers, validators, `_fields`, `_envelope`."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from starlette.responses import Response

from kalends.core.errors import ApiError
from kalends.http.language import DEFAULT, json_default
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
    """`known_tags` are those that the client holds."""
    headers = _page_headers(outcome)
    body: Any = select_fields(outcome.body, fields) if fields else outcome.body
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


def error_response(error: ApiError, language: str = DEFAULT) -> Response:
    """The one error shape: code, message, data with the status. Sentences are said in the language."""
    body = error_body(error)
    headers = {**error.headers, "Content-Language": language}
    return Response(orjson.dumps(body, default=json_default(language)), error.status, headers, media_type=JSON)


def description_response(encoded: bytes, language: str, known_etags: str = "") -> Response:
    """What the interface says of itself."""
    tag = f'"{hashlib.blake2b(encoded, digest_size=8).hexdigest()}"'
    headers = {"Content-Language": language, "ETag": tag}
    if tag in split_etags(known_etags):
        return Response(status_code=304, headers=headers)
    return Response(encoded, 200, headers, media_type=JSON)


def etag(revision: int, encoded: bytes) -> str:
    """The revision of the row, for If-Match, and a hash of the answer, because what is embedded in a
    record (venues, counts of terms, addresses) can change while its row does not."""
    return f'"{revision}-{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def body_etag(encoded: bytes) -> str:
    """The tag of a list or page: a hash of its bytes alone, which says nothing of changes that they do not show."""
    return f'W/"{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def is_known_etag(tag: str, known_etags: Iterable[str]) -> bool:
    """If-None-Match compares weakly, and * is any state."""
    known = {known.removeprefix("W/") for known in known_etags}
    return "*" in known or tag.removeprefix("W/") in known


def read_revision(tag: str) -> int | None:
    """The revision that an ETag of ours names, in the strong or the weakened spelling."""
    number, dash, _ = tag.removeprefix("W/").strip('"').partition("-")
    return int(number) if dash and number.isdecimal() and len(number) < 19 else None


def split_etags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def select_fields(record: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """Only these keys; dots reach into objects and into the records of a list."""
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
