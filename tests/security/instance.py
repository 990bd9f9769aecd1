"""A separate server with users, and the requests to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.robustness.site_fixtures import add_users
from tests.security.wire_client import (
    API_PATH,
    TRUST_LOCAL_PROXY,
    WireRequest,
    WireResponse,
    json_request,
    send_all,
    send_one,
)
from tests.servers import Server
from tests.soak import SOAK

# Beside the user of each role.
ADDITIONAL_USERS = {"contributor2": "contributor", "author2": "author", "stranger": "author"}
Report = Callable[[object], None]


@dataclass
class Instance:
    server: Server
    database_url: str  # of the database
    logins: dict[str, tuple[str, str]]  # by name; a role is the name of its first user

    def request(self, request_data: WireRequest, login: str = "anonymous") -> WireResponse:
        return send_one(self.server.base_url, request_data.with_login(self.logins.get(login)))

    def request_all(self, requests: Iterable[WireRequest]) -> list[WireResponse]:
        return send_all(self.server.base_url, requests)

    def write(self, method: str, path: str, login: str = "editor", **fields: Any) -> dict[str, Any]:
        """A write below the namespace that succeeds."""
        response = self.request(json_request(method, API_PATH + path, fields), login)
        assert response.status in (200, 201), response.text[:2000]
        record: dict[str, Any] = response.json()
        return record

    def create(self, kind: str, login: str = "editor", **fields: Any) -> dict[str, Any]:
        return self.write("POST", f"/{kind}", login, **fields)

    def user_id(self, login: str) -> int:
        reply = self.request(
            json_request("POST", f"{API_PATH}/venues", {"venue": f"of {login}", "status": "draft"}), login
        )
        return int(reply.json()["author"])


@contextmanager
def start_instance(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    **settings: str,
) -> Iterator[Instance]:
    """Start a server on a separate database."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        logins = {role: (user.login, user.password) for role, user in users.items()}
        logins |= add_users(url, ADDITIONAL_USERS)
        server = start_server(url, environment={**TRUST_LOCAL_PROXY, **settings})
        try:
            yield Instance(server, url, logins)
        finally:
            server.stop()


def sample_evenly[T](items: Sequence[T], maximum: int) -> list[T]:
    """Return all values in a soak, otherwise an evenly spaced sample of limited size."""
    if SOAK or len(items) <= maximum:
        return list(items)
    step = len(items) / maximum
    return [items[int(number * step)] for number in range(maximum)]


def take_first[T](items: Iterable[T], maximum: int = 10) -> list[T]:
    """What to show of a long list of failures."""
    return list(islice(items, maximum))
