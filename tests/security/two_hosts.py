"""A real server with the two sites of tests/robustness/two_sites.py."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.conftest import address, temporary_database
from tests.robustness.two_sites import Pair, fill_two_sites
from tests.security.wire_client import FROM_ANYWHERE, send_bytes
from tests.servers import Server


@dataclass(frozen=True)
class TwoHosts:
    server: Server
    pair: Pair

    def raw(self, data: bytes) -> bytes:
        return send_bytes(self.server.address, data)


@contextmanager
def two_hosts_opened(
    postgres_url: str, template_database: str, start_server: Callable[..., Server]
) -> Iterator[TwoHosts]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = address(postgres_url, name)
        pair = asyncio.run(fill_two_sites(url))
        server = start_server(url, environment=FROM_ANYWHERE)
        try:
            yield TwoHosts(server, pair)
        finally:
            server.stop()
