"""The file of an import, as a part of a form. It is read before the transaction."""

import asyncio
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.requests import Request

from kalends.api import uploads
from kalends.api.catalog import Endpoint
from kalends.api.ignored_params import check_write
from kalends.api.request import ApiRequest, OperationInput
from kalends.core.params import read_params
from kalends.http.requests import RawParams
from kalends.operations.context import UploadedFile
from kalends.operations.import_requests.fields import MAX_FILE_BYTES


def is_form(request: Request) -> bool:
    """Return whether the body is a form that may have a file."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == uploads.FORM


async def read_input_file(api_request: ApiRequest, endpoint: Endpoint) -> OperationInput:
    """Read a form with the parameters of an operation and perhaps a file."""
    raw, file = await read_form(api_request.request)
    check_write(api_request, endpoint, raw, [uploads.FIELD])
    raw.body = uploads.fingerprint_upload(hashlib.sha256(file.content if file else b"").digest(), raw.values)
    return OperationInput(raw, read_params(endpoint.params, raw.values), file=file)


async def read_form(request: Request) -> tuple[RawParams, UploadedFile | None]:
    """Return the fields of a form and its file; None if no file was chosen."""
    with TemporaryDirectory() as directory:
        raw, sent = await uploads.read_upload(request, Path(directory), MAX_FILE_BYTES)
        content = await asyncio.to_thread(sent.path.read_bytes) if sent is not None else b""
    # Browsers send a part without a name if no file was chosen.
    if sent is None or not (sent.name or content):
        return raw, None
    return raw, UploadedFile(sent.name.replace("\0", ""), content)
