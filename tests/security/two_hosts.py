"""A real server with the two sites of tests/robustness/two_sites.py."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.conftest import replace_database, temporary_database
from tests.robustness.two_sites import SitePair, fill_two_sites
from tests.security.wire_client import TRUST_LOCAL_PROXY, send_raw
from tests.servers import Server


@dataclass(frozen=True)
class TwoHosts:
    server: Server
    pair: SitePair

    def raw(self, data: bytes) -> bytes:
        return send_raw(self.server.base_url, data)


@contextmanager
def open_two_hosts(
    postgres_url: str, template_database: str, start_server: Callable[..., Server]
) -> Iterator[TwoHosts]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        pair = asyncio.run(fill_two_sites(url))
        server = start_server(url, environment=TRUST_LOCAL_PROXY)
        try:
            yield TwoHosts(server, pair)
        finally:
            server.stop()
