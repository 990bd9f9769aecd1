"""A server with TLS that hangs, streams or has an expired certificate, which Kalends itself cannot do in a test."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

EVENT = b"data: 1\n\n"


class FragileServer(ThreadingHTTPServer):
    """Serve `/` as usual, `/hang` never, and `/stream` with a first part and, after `proceed`, a second one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.context: ssl.SSLContext | None = None
        self.proceed = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket, Any]:
        connection, address = super().get_request()
        connection.settimeout(60)
        # The handshake happens in the thread of the connection, at its first read.
        assert self.context
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore refused handshakes and closed connections; the proxy reports them."""


class _Handler(BaseHTTPRequestHandler):
    server: FragileServer

    def do_GET(self) -> None:
        if self.path == "/hang":
            self.server.proceed.wait(60)
            return
        self.send_response(200)
        if self.path == "/stream":
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("X-Accel-Buffering", "no")
            self.end_headers()
            self.wfile.write(EVENT)
            self.wfile.flush()
            self.server.proceed.wait(60)
        else:
            self.end_headers()
        self.wfile.write(EVENT)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""
