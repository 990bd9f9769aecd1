"""A request to the API."""

from dataclasses import dataclass, field

from kalends.api.catalog import Interface, Route
from kalends.core.errors import InvalidValue
from kalends.http.auth import has_credentials, sign_in
from kalends.http.context import RequestContext
from kalends.operations.media.library import Fetched, Taken
from kalends.store.database import Transaction


@dataclass(slots=True, kw_only=True)
class Exchange(RequestContext[Route]):
    """A request to the API. `prefix` is the requested path prefix, `home` the canonical one that links use."""

    interface: Interface
    prefix: str
    namespace: str
    # The uploaded file, and the results of fetching the image URLs of the body.
    upload: Taken | None = None
    fetched: dict[str, Fetched | InvalidValue] = field(default_factory=dict[str, Fetched | InvalidValue])

    @property
    def credentials(self) -> str:
        header = self.request.headers.get("authorization", "")
        return header if has_credentials(header) else ""


async def identify(exchange: Exchange, tx: Transaction) -> None:
    if header := exchange.credentials:
        signed_in = await sign_in(tx, header, exchange.client)
        exchange.actor, exchange.password_id = signed_in.actor, signed_in.password_id
