"""Uploaded files, as a part of a form or as the request body. A file is streamed to disk, with a size limit."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request

from kalends.api.forms import UPLOAD_LIMITS, FormLimits, FormParser
from kalends.core import errors
from kalends.http.requests import RawParams, body_deadline, parse_nested, read_chunks, read_values
from kalends.operations.media.library import translate_storage_errors

FIELD: Final = "file"
FORM: Final = "multipart/form-data"
# Enough for 20 MB over a slow mobile connection.
MAX_UPLOAD_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Upload:
    path: Path
    name: str


async def read_upload(
    request: Request, directory: Path, limit: int, form_limits: FormLimits = UPLOAD_LIMITS
) -> tuple[RawParams, Upload | None]:
    """Return the parameters of the request and its file, or None if it has no file."""
    raw = await read_values(request, b"")
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    disposition = request.headers.get("content-disposition", "")
    async with body_deadline(MAX_UPLOAD_SECONDS):
        with translate_storage_errors():
            if content_type == FORM:
                return raw, await _read_form(request, raw, directory / "sent", limit, form_limits)
            if disposition or content_type.startswith("image/") or content_type == "application/octet-stream":
                return raw, await _read_body(request, directory / "sent", limit, read_file_name(disposition))
    return raw, None


async def _read_body(request: Request, path: Path, limit: int, name: str) -> Upload:
    with path.open("wb") as file:
        async for chunk in read_chunks(request, limit):
            await asyncio.to_thread(file.write, chunk)
    return Upload(path, name)


async def _read_form(
    request: Request, raw: RawParams, path: Path, limit: int, form_limits: FormLimits
) -> Upload | None:
    parser = FormParser(request.headers.get("content-type", ""), FIELD, form_limits)
    size = 0
    with path.open("wb") as file:
        async for chunk in read_chunks(request, limit + form_limits.total_bytes):
            data = parser.feed(chunk)
            size += len(data)
            if size > limit:
                raise errors.too_large(limit)
            if data:
                await asyncio.to_thread(file.write, data)
    parser.finish()
    raw.values.update(parse_nested(parser.fields))
    return None if parser.file_name is None else Upload(path, parser.file_name)


def read_file_name(disposition: str) -> str:
    """Return the file name of a header such as `attachment; filename="a.jpg"; filename*=UTF-8''a%20b.jpg`.

    The extended form takes precedence. The name only serves as the title of the image.
    """
    extended = re.search(r"filename\*\s*=\s*utf-8'[a-z0-9-]*'([^;\s]+)", disposition, re.IGNORECASE)
    if extended:
        return unquote(extended[1], errors="replace")
    plain = re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', disposition, re.IGNORECASE)
    if plain is None:
        return ""
    return plain[2] if plain[1] is None else re.sub(r"\\(.)", r"\1", plain[1])


def fingerprint_upload(upload_hash: bytes, values: Mapping[str, Any]) -> bytes:
    """Return the bytes that identify an upload for its Idempotency-Key, because form boundaries are random."""
    pairs = sorted((name, str(value)) for name, value in values.items())
    return upload_hash + repr(pairs).encode(errors="surrogatepass")
