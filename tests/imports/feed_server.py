"""A server of one calendar, in a thread, and the calendars that it serves."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def make_calendar(titles: Sequence[str]) -> bytes:
    """Return a calendar with one event per title."""
    events = [
        f"BEGIN:VEVENT\r\nUID:{number}@feed\r\nDTSTAMP:20270101T000000Z\r\n"
        f"DTSTART:20270501T{10 + number % 10}0000Z\r\n"
        f"DTEND:20270501T{11 + number % 10}0000Z\r\nSUMMARY:{title}\r\nEND:VEVENT\r\n"
        for number, title in enumerate(titles)
    ]
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y\r\n{''.join(events)}END:VCALENDAR\r\n".encode()


@dataclass
class Feed:
    """What the server sends, and what it was asked for."""

    content: bytes = b""
    status: int = 200
    has_etag: bool = True
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    url: str = ""
    network: str = ""

    @property
    def etag(self) -> str:
        return f'"{sha256(self.content).hexdigest()[:16]}"'


@contextmanager
def serve_feed(content: bytes) -> Iterator[Feed]:
    """Serve a calendar on this machine."""
    feed = Feed(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            feed.requests.append(dict(self.headers.items()))
            is_known = feed.has_etag and self.headers.get("If-None-Match") == feed.etag
            body = b"" if is_known else feed.content
            self.send_response(304 if is_known else feed.status)
            if feed.has_etag:
                self.send_header("ETag", feed.etag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    feed.network = f"127.0.0.1:{server.server_port}"
    feed.url = f"http://{feed.network}/feed.ics"
    try:
        yield feed
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
