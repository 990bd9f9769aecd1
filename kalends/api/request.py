"""A request to the API."""

from dataclasses import dataclass, field

from kalends.api.catalog import Interface, Route
from kalends.core.errors import InvalidValue
from kalends.http.auth import authenticate, has_credentials
from kalends.http.context import RequestContext
from kalends.operations.media.library import FetchResult, StoredImage
from kalends.store.database import Transaction


@dataclass(slots=True, kw_only=True)
class ApiRequest(RequestContext[Route]):
    """A request to the API. `prefix` is the requested path prefix, `home` the canonical one that links use."""

    interface: Interface
    prefix: str
    namespace: str
    # The uploaded file, and the results of fetching the image URLs of the body.
    upload: StoredImage | None = None
    fetched_images: dict[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )

    @property
    def credentials(self) -> str:
        header = self.request.headers.get("authorization", "")
        return header if has_credentials(header) else ""


async def identify(api_request: ApiRequest, tx: Transaction) -> None:
    if header := api_request.credentials:
        authentication = await authenticate(tx, header, api_request.client_ip)
        api_request.actor, api_request.password_id = authentication.actor, authentication.password_id
