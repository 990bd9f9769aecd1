"""A server of its own with people in it, and what is asked of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tests.api.running_app import Person
from tests.conftest import address, temporary_database
from tests.robustness.site_fixtures import add_people
from tests.security.wire_client import FROM_ANYWHERE, NS, Ask, Got, ask, ask_all, send
from tests.servers import Server
from tests.soak import SOAK

# Beside the user of each role.
SECOND = {"contributor2": "contributor", "author2": "author", "stranger": "author"}
Tell = Callable[[object], None]


@dataclass
class Place:
    server: Server
    url: str  # of the database
    logins: dict[str, tuple[str, str]]  # by name; a role is the name of its first user

    def ask(self, one: Ask, who: str = "anonymous") -> Got:
        return ask(self.server.address, one.by(self.logins.get(who)))

    def ask_all(self, asks: Iterable[Ask]) -> list[Got]:
        return ask_all(self.server.address, asks)

    def write(self, method: str, path: str, who: str = "editor", **fields: Any) -> dict[str, Any]:
        """A write below the namespace that succeeds."""
        got = self.ask(send(method, NS + path, fields), who)
        assert got.status in (200, 201), got.text[:2000]
        record: dict[str, Any] = got.json()
        return record

    def create(self, kind: str, who: str = "editor", **fields: Any) -> dict[str, Any]:
        return self.write("POST", f"/{kind}", who, **fields)

    def user_id(self, who: str) -> int:
        got = self.ask(send("POST", f"{NS}/venues", {"venue": f"of {who}", "status": "draft"}), who)
        return int(got.json()["author"])


@contextmanager
def opened(
    postgres_url: str,
    peopled: tuple[str, dict[str, Person]],
    start_server: Callable[..., Server],
    **settings: str,
) -> Iterator[Place]:
    """A server on a database of its own."""
    template, people = peopled
    with temporary_database(postgres_url, template=template) as name:
        url = address(postgres_url, name)
        logins = {role: (person.login, person.password) for role, person in people.items()}
        logins |= add_people(url, SECOND)
        server = start_server(url, environment={**FROM_ANYWHERE, **settings})
        try:
            yield Place(server, url, logins)
        finally:
            server.stop()


def some[T](things: Sequence[T], most: int) -> list[T]:
    """All of them in a soak; else so many at the most, spread over the whole."""
    if SOAK or len(things) <= most:
        return list(things)
    step = len(things) / most
    return [things[int(number * step)] for number in range(most)]


def first[T](things: Iterable[T], most: int = 10) -> list[T]:
    """What to show of a long list of failures."""
    return list(islice(things, most))
