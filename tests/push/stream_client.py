"""A client that follows a list, and keeps the copy that the messages describe."""

import http.client
import json
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Message:
    event: str
    id: str
    data: dict[str, Any]


@dataclass
class Copy:
    """A list as a client has it, made of nothing but messages."""

    kind: str = "events"
    records: list[dict[str, Any]] = field(default_factory=list)
    total: int = -1
    total_pages: int = -1
    revision: int = -1
    last_id: str = ""

    def reconnect(self) -> None:
        """Forget the revision: a list that has not changed may have another one on the next connection."""
        self.revision = -1

    def apply(self, message: Message) -> None:
        data = message.data
        if message.event == "snapshot":
            self.records = data[self.kind]
        else:
            assert data["since"] == self.revision or self.revision < 0, "a message is missing"
            known = {record["id"]: record for record in self.records}
            known.update({record["id"]: record for record in data[self.kind]})
            self.records = [known[record_id] for record_id in data["order"]]
        self.total, self.total_pages = data["total"], data["total_pages"]
        self.revision, self.last_id = data["revision"], message.id


class StreamParser:
    """Turns the bytes of a stream into messages."""

    def __init__(self) -> None:
        self._rest = b""
        self.retry = 0
        self.comments = 0

    def feed(self, chunk: bytes) -> list[Message]:
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        return [message for block in blocks if (message := self._read(block.decode())) is not None]

    def _read(self, block: str) -> Message | None:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "retry" in fields:
            self.retry = int(fields["retry"])
        elif block.startswith(":"):
            self.comments += 1
        return (
            Message(fields["event"], fields.get("id", ""), json.loads(fields["data"])) if "data" in fields else None
        )


class StreamClient:
    """One connection. A thread reads it, so that messages can be awaited with a timeout."""

    def __init__(
        self,
        base_url: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
        if context is None:
            self._connection = http.client.HTTPConnection(host, port, timeout=60)
        else:
            self._connection = http.client.HTTPSConnection(host, port, timeout=60, context=context)
            # The proxy is on this machine, whatever its public name is.
            self._connection._create_connection = lambda address, *_: socket.create_connection(  # type: ignore[attr-defined]
                ("127.0.0.1", address[1])
            )
        self._connection.request("GET", path, headers={**STREAM, **(headers or {})})
        self._socket = self._connection.sock
        self._response = response = self._connection.getresponse()
        self.status, self.headers = response.status, {k.lower(): v for k, v in response.getheaders()}
        self.parser = StreamParser()
        self._messages: queue.Queue[Message | None] = queue.Queue()
        if self.status == 200:
            self.body = b""
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        else:
            self._thread = None
            self.body = response.read()

    def next(self, timeout: float = 10) -> Message | None:
        """Return the next message; None if the stream has ended. Raise queue.Empty if there is none in time."""
        return self._messages.get(timeout=timeout)

    def is_silent(self, seconds: float) -> bool:
        try:
            self.next(seconds)
        except queue.Empty:
            return True
        return False

    def cut(self) -> None:
        """Close the connection without a word."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
        self._response.close()
        self._connection.close()
        if self._socket is not None:
            self._socket.close()

    def _read(self) -> None:
        with suppress(OSError, ValueError, http.client.HTTPException, AttributeError):  # The connection was cut.
            while chunk := self._response.read1(65536):
                for message in self.parser.feed(chunk):
                    self._messages.put(message)
        self._messages.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
