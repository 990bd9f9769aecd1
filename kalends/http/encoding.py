"""Negotiation of the encoding of a response."""

import re

ZERO_QUALITY = re.compile(r"q\s*=\s*0?\.?0*")


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header accepts gzip; `gzip;q=0` and `*;q=0` do not."""
    accepted: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, *parameters = [piece.strip() for piece in part.split(";")]
        accepted[name] = not any(ZERO_QUALITY.fullmatch(parameter) for parameter in parameters)
    return accepted.get("gzip", accepted.get("*", False))
