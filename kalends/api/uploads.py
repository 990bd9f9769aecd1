"""Reads a file that is sent: as a part of a form, or as the body itself. It goes to disk as it comes, bounded."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from kalends.core import errors
from kalends.core.messages import Message
from kalends.http.requests import RawParams, body_deadline, parse_nested, read_chunks, read_values
from kalends.operations.media.library import translate_storage_errors

FIELD: Final = "file"
FORM: Final = "multipart/form-data"
# How long a file may take to arrive: 20 MB at the speed of a slow telephone.
MAX_UPLOAD_SECONDS: Final = 300
# What a form may weigh besides its file.
MAX_FIELDS_BYTES: Final = 256 * 1024
BLOCK_BYTES: Final = 1024 * 1024
TAIL_BYTES: Final = 100  # bytes of a form in which its last boundary, and some space, must end


@dataclass(frozen=True, slots=True)
class Upload:
    path: Path
    name: str


async def read_upload(request: Request, directory: Path, limit: int) -> tuple[RawParams, Upload | None]:
    """The parameters beside the file, and the file; None: there is none."""
    raw = await read_values(request, b"")
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    disposition = request.headers.get("content-disposition", "")
    async with body_deadline(MAX_UPLOAD_SECONDS):
        with translate_storage_errors():
            if content_type == FORM:
                return raw, await _read_form(request, raw, directory / "sent", limit)
            if disposition or content_type.startswith("image/") or content_type == "application/octet-stream":
                return raw, await _read_body(request, directory / "sent", limit, read_file_name(disposition))
    return raw, None


async def _read_body(request: Request, path: Path, limit: int, name: str) -> Upload:
    with path.open("wb") as file:
        async for chunk in read_chunks(request, limit):
            await asyncio.to_thread(file.write, chunk)
    return Upload(path, name)


async def _read_form(request: Request, raw: RawParams, path: Path, limit: int) -> Upload | None:
    tail = b""

    async def read_form_chunks() -> AsyncGenerator[bytes]:
        nonlocal tail
        async for chunk in read_chunks(request, limit + MAX_FIELDS_BYTES):
            tail = (tail + chunk)[-TAIL_BYTES:]
            yield chunk

    parser = MultiPartParser(request.headers, read_form_chunks(), max_files=1, max_fields=50, max_part_size=64 * 1024)
    upload: Upload | None = None
    fields: list[tuple[str, str]] = []
    try:
        form = await parser.parse()
        if not tail.rstrip().endswith(b"--"):
            raise errors.invalid_form(Message("its end is missing."))
        for name, value in form.multi_items():
            if not isinstance(value, UploadFile):
                fields.append((name, value))
            elif name == FIELD:
                await _copy(value, path, limit)
                upload = Upload(path, value.filename or "")
    except (MultiPartException, ValueError, LookupError) as error:
        raise errors.invalid_form(str(getattr(error, "message", error))[:200]) from error
    finally:
        # The parser leaves parts open that have no end, and all of them when whoever sends goes away.
        for spooled in parser._files_to_close_on_error:
            spooled.close()
    raw.values.update(parse_nested(fields))
    return upload


async def _copy(part: UploadFile, path: Path, limit: int) -> None:
    if (part.size or 0) > limit:
        raise errors.too_large(limit)
    with path.open("wb") as file:
        while block := await part.read(BLOCK_BYTES):
            await asyncio.to_thread(file.write, block)


def read_file_name(disposition: str) -> str:
    """Of `attachment; filename="a.jpg"; filename*=UTF-8''a%20b.jpg` the second one. Only a title is made of it."""
    extended = re.search(r"filename\*\s*=\s*utf-8'[a-z0-9-]*'([^;\s]+)", disposition, re.IGNORECASE)
    if extended:
        return unquote(extended[1], errors="replace")
    plain = re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', disposition, re.IGNORECASE)
    if plain is None:
        return ""
    return plain[2] if plain[1] is None else re.sub(r"\\(.)", r"\1", plain[1])


def fingerprint_upload(upload_hash: bytes, values: Mapping[str, Any]) -> bytes:
    """What makes two uploads the same request; the boundary of a form is another one each time."""
    pairs = sorted((name, str(value)) for name, value in values.items())
    return upload_hash + repr(pairs).encode(errors="surrogatepass")
