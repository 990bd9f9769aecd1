"""A server of images for the application to fetch from, in threads of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.media.image_fixtures import make_image


@dataclass
class ImageSource:
    """A server of images: its responses by path, and the requests that it received."""

    port: int = 0
    host: str = "127.0.0.9"
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    def url(self, path: str = "/picture.jpg") -> str:
        return f"http://{self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@contextmanager
def serve_images() -> Iterator[ImageSource]:
    source = ImageSource(files={"/picture.jpg": make_image()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            source.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            content = source.files.get(self.path, b"")
            etag = source.headers.get("ETag")
            status = source.statuses.get(self.path, 200 if content else 404)
            if etag and self.headers.get("If-None-Match") == etag:
                status, content = 304, b""
            self.send_response(status)
            for name, value in source.headers.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((source.host, 0), Handler) as server:
        source.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield source
        finally:
            server.shutdown()
            thread.join()
