"""Limits of HTTP requests that both the server process and the application enforce."""

from typing import Final

# Bytes of the request line and all headers.
MAX_HEAD_BYTES: Final = 32 * 1024
