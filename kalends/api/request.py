"""A request to the API, and the input that its operation receives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from kalends.api.catalog import Interface, Route
from kalends.core.errors import InvalidValue
from kalends.http.auth import authenticate, authenticate_session, has_credentials
from kalends.http.context import NO_HEADERS, RequestContext
from kalends.http.requests import RawParams
from kalends.operations.context import UploadedFile
from kalends.operations.media.library import FetchResult, StoredImage
from kalends.store.database import Transaction


@dataclass(slots=True, kw_only=True)
class ApiRequest(RequestContext[Route]):
    """A request to the API. `prefix` is the requested path prefix; links use `canonical_prefix`."""

    interface: Interface
    prefix: str
    namespace: str  # empty for a request to a REST root
    namespaces: Mapping[str, Interface] = field(default_factory=dict[str, Interface])  # those below a REST root

    @property
    def own_headers(self) -> Mapping[str, str]:
        if not self.ignored_params:
            return NO_HEADERS
        return {"X-Kalends-Ignored-Params": ", ".join(quote(name, safe="") for name in self.ignored_params)}

    @property
    def credentials(self) -> str:
        header = self.request.headers.get("authorization", "")
        return header if has_credentials(header) else ""

    @property
    def session_token(self) -> str:
        return self.read_session_token()


@dataclass(frozen=True, slots=True)
class OperationInput:
    """The parameters of a request as sent and as read, with the images that a write stores before its transaction."""

    raw: RawParams
    values: dict[str, Any]
    upload: StoredImage | None = None
    file: UploadedFile | None = None
    fetched_images: Mapping[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )


async def identify(api_request: ApiRequest, tx: Transaction) -> None:
    """Authenticate the caller, if the request has credentials."""
    if header := api_request.credentials:
        authentication = await authenticate(tx, header, api_request.client_ip)
        api_request.actor, api_request.password_id = authentication.actor, authentication.password_id
    else:
        await authenticate_session(api_request, tx)
