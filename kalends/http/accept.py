"""The `Accept` header of requests that may follow a list as a stream of events."""

from typing import Any, Final

from kalends.core import errors
from kalends.core.messages import Message
from kalends.http.request import ApiRequest, RequestContext

STREAM_TYPE: Final = "text/event-stream"


def prefers_stream(header: str) -> bool:
    """Return whether a client prefers a stream to every other type; a tie means JSON."""
    stream, others = _read_qualities(header)
    return stream > others


def accepts_only_stream(header: str) -> bool:
    stream, others = _read_qualities(header)
    return stream > 0 and others == 0


def refuse_stream(context: RequestContext[Any] | None) -> None:
    """Raise 406 if a client of the API accepts nothing but a stream, which this process does not serve."""
    if not isinstance(context, ApiRequest) or context.request.method not in ("GET", "HEAD"):
        return
    if accepts_only_stream(context.request.headers.get("accept", "")):
        raise errors.not_acceptable(Message("This address does not stream; send `Accept: application/json`."))


def _read_qualities(header: str) -> tuple[float, float]:
    """Return the quality of streams, and the highest quality of all other types."""
    stream = others = 0.0
    if STREAM_TYPE not in header.lower():
        return stream, 1.0
    for part in header.lower().split(","):
        name, *parameters = [piece.strip() for piece in part.split(";")]
        quality = next((_read_number(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
        if name == STREAM_TYPE:
            stream = max(stream, quality)
        elif name:
            others = max(others, quality)
    return stream, others


def _read_number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
