"""A program for `test_rebinding`: a name server on the wire that answers otherwise each time, and who falls for it.

It runs with a separate /etc/resolv.conf and prints one line of JSON: the names resolved and the servers contacted.
"""

import asyncio
import io
import json
import socket
import socketserver
import struct
import threading
from collections import Counter

from kalends.adapters.safe_fetch import Fetcher
from kalends.core.egress import read_allowed_network
from kalends.core.errors import InvalidValue
from tests.media.image_fixtures import start_listener

NAME_SERVER = "127.0.0.53"
PERMITTED, FORBIDDEN = "127.0.0.2", "127.0.0.1"
ADDRESS, ADDRESS_6 = 1, 28  # types of records
queries_by_name: Counter[str] = Counter()


class NameServer(socketserver.BaseRequestHandler):
    """Of every name the first address is the permitted one, each later one the forbidden."""

    def handle(self) -> None:
        query, response_socket = self.request
        end = query.index(b"\0", 12) + 5
        kind = struct.unpack(">H", query[end - 4 : end - 2])[0]
        record = b""
        if kind == ADDRESS:
            name = query[13 : query.index(b"\0", 12)].decode(errors="replace")
            queries_by_name[name] += 1
            address = PERMITTED if queries_by_name[name] == 1 else FORBIDDEN
            record = b"\xc0\x0c" + struct.pack(">HHIH", ADDRESS, 1, 0, 4) + socket.inet_aton(address)
        head = query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, 1 if record else 0, 0, 0)
        response_socket.sendto(head + query[12:end] + record, self.client_address)


async def main() -> None:
    reached: Counter[str] = Counter()

    def respond(name: str, status: str):
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            reached[name] += 1
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok".encode())
            await writer.drain()

        return serve

    with socketserver.UDPServer((NAME_SERVER, 53), NameServer) as name_server:
        threading.Thread(target=name_server.serve_forever, daemon=True).start()
        async with start_listener(respond("permitted", "200 OK"), PERMITTED) as port:
            fetcher = Fetcher([read_allowed_network(f"{PERMITTED}:{port}")])
            redirect = respond("redirecting", f"302 Found\r\nLocation: http://twice.rebinds.test:{port}/")
            async with start_listener(respond("forbidden", "200 OK"), FORBIDDEN, port):
                first = await fetcher.get(f"http://rebinds.test:{port}/", io.BytesIO(), limit=1000)
                rejected = await is_rejected(fetcher, f"http://rebinds.test:{port}/")
                async with start_listener(redirect, PERMITTED) as other:
                    redirect_fetcher = Fetcher(
                        [read_allowed_network(f"{PERMITTED}:{port}"), read_allowed_network(f"{PERMITTED}:{other}")]
                    )
                    socket.getaddrinfo("twice.rebinds.test", port)  # The next answer is the forbidden one.
                    redirected = await is_rejected(redirect_fetcher, f"http://leads.rebinds.test:{other}/")
        name_server.shutdown()
    result = {"status": first.status, "refused": rejected, "redirected": redirected}
    print(json.dumps({**result, "reached": reached, "names": sum(queries_by_name.values())}))  # noqa: T201


async def is_rejected(fetcher: Fetcher, url: str) -> bool:
    try:
        await fetcher.get(url, io.BytesIO(), limit=1000)
    except InvalidValue:
        return True
    return False


if __name__ == "__main__":
    asyncio.run(main())
