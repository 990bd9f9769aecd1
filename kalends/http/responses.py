"""From an outcome to a response: JSON, headers, validators, `_fields`, `_envelope`."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from starlette.responses import Response

from kalends.core.errors import ApiError
from kalends.http.language import DEFAULT, speaker
from kalends.operations.context import Outcome

JSON = "application/json; charset=UTF-8"


def respond(
    outcome: Outcome,
    fields: list[str],
    envelope: bool,
    known_tags: Iterable[str],
    *,
    language: str = DEFAULT,
) -> Response:
    """`known_tags` are those that the client holds."""
    headers = _page_headers(outcome)
    body: Any = pick(outcome.body, fields) if fields else outcome.body
    if envelope:
        body = {"body": body, "status": outcome.status, "headers": headers}
    encoded = orjson.dumps(body, default=speaker(language))
    if outcome.location:
        headers["Location"] = outcome.location
    if outcome.revision is not None or outcome.page is not None:
        headers["ETag"] = body_tag(encoded) if outcome.revision is None else etag(outcome.revision, encoded)
        if is_known(headers["ETag"], known_tags):
            return Response(status_code=304, headers=headers)
    return Response(encoded, 200 if envelope else outcome.status, headers, media_type=JSON)


def shape(refusal: ApiError) -> dict[str, Any]:
    return {
        "code": refusal.code,
        "message": refusal.message,
        "data": {"status": refusal.status, **refusal.data},
    }


def refuse(refusal: ApiError, language: str = DEFAULT) -> Response:
    """The one error shape: code, message, data with the status. Sentences are said in the language."""
    body = shape(refusal)
    headers = {**refusal.headers, "Content-Language": language}
    return Response(orjson.dumps(body, default=speaker(language)), refusal.status, headers, media_type=JSON)


def describe(encoded: bytes, language: str, known_tags: str = "") -> Response:
    """What the interface says of itself."""
    tag = f'"{hashlib.blake2b(encoded, digest_size=8).hexdigest()}"'
    headers = {"Content-Language": language, "ETag": tag}
    if tag in split_tags(known_tags):
        return Response(status_code=304, headers=headers)
    return Response(encoded, 200, headers, media_type=JSON)


def etag(revision: int, encoded: bytes) -> str:
    """The revision of the row, for If-Match, and a hash of the answer, because what is embedded in a
    record (venues, counts of terms, addresses) can change while its row does not."""
    return f'"{revision}-{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def body_tag(encoded: bytes) -> str:
    """The tag of a list or page: a hash of its bytes alone, which says nothing of changes that they do not show."""
    return f'W/"{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def is_known(tag: str, known_tags: Iterable[str]) -> bool:
    """If-None-Match compares weakly, and * is any state."""
    known = {known.removeprefix("W/") for known in known_tags}
    return "*" in known or tag.removeprefix("W/") in known


def revision_of(tag: str) -> int | None:
    """The revision that an ETag of ours names, in the strong or the weakened spelling."""
    number, dash, _ = tag.removeprefix("W/").strip('"').partition("-")
    return int(number) if dash and number.isdecimal() and len(number) < 19 else None


def split_tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def pick(record: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """Only these keys; dots reach into objects and into the records of a list."""
    kept: dict[str, Any] = {}
    wanted: dict[str, list[str]] = {}
    for name in fields:
        head, _, rest = name.partition(".")
        wanted.setdefault(head, []).append(rest)
    for name, below in wanted.items():
        if name not in record:
            continue
        value = record[name]
        if "" in below:
            kept[name] = value
        elif isinstance(value, dict):
            kept[name] = pick(value, below)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            kept[name] = [pick(entry, below) for entry in value if isinstance(entry, dict)]  # pyright: ignore
    return kept


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
    shown = [f'<{url}>; rel="{rel}"' for url, rel in links if url]
    if shown:
        headers["Link"] = ", ".join(shown)
    return headers
