"""Headers that every response has: request ID, caching, content negotiation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.http.context import RequestContext
from kalends.operations.cache_tags import format_surrogate_key

# Seconds for which a shared cache may serve an outdated response while it fetches the new one.
REVALIDATION_SECONDS: Final = 60
NOT_STORED: Final = "private, no-store"


@dataclass(frozen=True, slots=True)
class HeaderPolicy:
    """The settings that headers depend on."""

    origins: Sequence[str]  # whose scripts may read responses
    shared_cache_seconds: int = 10
    stale_seconds: int = 60  # for which a cached response is used while the database is unavailable
    sends_tags: bool = False  # whether shared caches are purged by cache tags

    def cache_control(self, expires_at: datetime | None, now: datetime) -> str:
        """Let browsers revalidate each time, and shared caches store a public response until it expires."""
        seconds, revalidation = self.shared_cache_seconds, REVALIDATION_SECONDS
        if expires_at is not None:
            if expires_at <= now:
                return NOT_STORED
            remaining = int((expires_at - now).total_seconds())
            seconds = min(seconds, remaining)
            revalidation = min(revalidation, remaining - seconds)
        stale = f", stale-if-error={self.stale_seconds}" if self.stale_seconds else ""
        return f"public, max-age=0, s-maxage={seconds}, stale-while-revalidate={revalidation}{stale}"

    @property
    def vary(self) -> str:
        return "Accept-Encoding" if "*" in self.origins else "Accept-Encoding, Origin"

    def make_common(self, response: Response, context: RequestContext[Any] | None, request_id: str) -> dict[str, str]:
        """Return the headers that do not depend on the kind of the request."""
        headers = {"X-Request-ID": request_id, "X-Content-Type-Options": "nosniff"}
        if context is None:
            return headers
        if context.site_revision is not None and response.status_code in (200, 304):
            headers["Cache-Control"] = (
                "no-store" if context.outage_age else self.cache_control(context.expires_at, context.now)
            )
            if context.outage_age:
                headers["Age"] = str(int(max(context.outage_age, 1.0)))
            if context.cache_tags and self.sends_tags:
                headers["Surrogate-Key"] = format_surrogate_key(
                    context.site_revision.site_id, context.site_secret, context.cache_tags
                )
        elif "Cache-Control" not in response.headers:
            headers["Cache-Control"] = NOT_STORED
        return headers


def set_headers(response: Response, headers: Mapping[str, str]) -> None:
    """Set several headers of a response, whose own ones keep their places.

    `response.headers` would search all headers for each of them.
    """
    fields = response.raw_headers
    places = {name: place for place, (name, _) in enumerate(fields)}
    for name, value in headers.items():
        field = (name.lower().encode("latin-1"), value.encode("latin-1"))
        if (place := places.get(field[0])) is None:
            fields.append(field)
        else:
            fields[place] = field
