"""Random reads without a free connection, between random writes: no answer shows a record withdrawn since."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from unittest.mock import patch

import pytest

from kalends.calendar.access import caching
from kalends.calendar.access.caching import MANY, record_tag
from kalends.core.times import utc_now
from tests.api.conftest import start_single_site as start_app
from tests.api.running_app import RunningApp
from tests.caching.random_site import BusyWriter, Clock, RandomSite
from tests.caching.starved_app import SETTINGS, read_all, starved
from tests.soak import scaled, some

__all__ = ["start_app"]

TOKEN: Final = re.compile(r"[0-9a-f]{8,10}")
# What each kind shows, and when anonymous readers see it.
TEXTS: Final = {
    "events": ("concat_ws(' ', title, excerpt, description, website)",
               "status = 'publish' AND password_hash IS NULL AND NOT hide_from_listings"),
    "series": ("title", "status = 'publish' AND NOT hide_from_listings"),
    "venues": ("concat_ws(' ', title, description)", "status = 'publish'"),
    "organizers": ("concat_ws(' ', title, description)", "status = 'publish'"),
    "categories": ("name", "true"),
    "tags": ("name", "true"),
}  # fmt: skip
PATHS_PER_ROUND, READS_PER_ROUND = 12, 4

type Record = tuple[str, int]


@dataclass
class StarvedReads:
    """A site that is changed at random, and what its readers have seen."""

    site: RandomSite
    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])
    tokens: dict[str, Record] = field(default_factory=dict[str, Record])
    visible: set[Record] = field(default_factory=set[Record])
    withdrawn_since: dict[str, set[Record]] = field(default_factory=dict[str, set[Record]])  # by path

    def find_withdrawn_record(self, cases: int) -> str | None:
        """Write and read until an answer shows a withdrawn record; return the path and the record, or None."""
        app = self.site.app
        while self.cases < cases:
            paths = list({path: None for _ in range(PATHS_PER_ROUND) for path in self.site.next_paths()})
            paths = paths[-PATHS_PER_ROUND:]
            self._write()
            read_all(app, paths)
            self.withdrawn_since = {path: set() for path in paths}
            with starved(app):
                for _ in range(READS_PER_ROUND):
                    self._write()
                    if (found := self._read(paths)) is not None:
                        return found
        return None

    def _write(self) -> None:
        for _ in range(self.site.rng.randint(1, 3)):
            self.site.writer.write_randomly()
            self.site.clock.now += timedelta(seconds=1)
        self._look()

    def _look(self) -> None:
        """Note the texts of all records, and which of them are no longer public."""
        visible: set[Record] = set()
        for kind, (texts, condition) in TEXTS.items():
            for row in self.site.app.sql(f"SELECT id, {texts} AS texts, {condition} AS visible FROM {kind}"):
                self.tokens.update(dict.fromkeys(TOKEN.findall(row["texts"]), (kind, row["id"])))
                visible |= {(kind, row["id"])} if row["visible"] else set()
        for withdrawn in self.withdrawn_since.values():
            withdrawn.update(self.visible - visible)
        self.visible = visible

    def _read(self, paths: list[str]) -> str | None:
        for path, reply in zip(paths, read_all(self.site.app, paths), strict=True):
            self.cases += 1
            self.statuses[reply.status] += 1
            if not reply.is_outdated:
                continue
            assert reply.headers["cache-control"] == "no-store"
            shown = {self.tokens[token] for token in TOKEN.findall(reply.text) if token in self.tokens}
            if leaked := shown & self.withdrawn_since[path]:
                return f"{path}: {leaked}"
        return None


@pytest.fixture
def make_reads(start_app: Callable[..., RunningApp]) -> Iterator[Callable[[int], StarvedReads]]:
    clock = Clock(utc_now())
    with patch("kalends.asgi.utc_now", clock), patch.object(BusyWriter, "pass_time", lambda _: None):

        def make(seed: int) -> StarvedReads:
            site = RandomSite(start_app(SETTINGS), clock, seed)
            site.fill()
            return StarvedReads(site)

        yield make


@pytest.mark.parametrize("seed", range(scaled(1, 4)))
def test_starved_reads_show_no_withdrawn_record(make_reads: Callable[[int], StarvedReads], seed: int) -> None:
    reads = make_reads(seed)
    assert reads.find_withdrawn_record(scaled(100, 1000)) is None
    assert reads.statuses[200] > 0.2 * reads.cases, reads.statuses
    assert reads.statuses[503] > 0.05 * reads.cases, reads.statuses


def _only(change: caching.Row, tags: set[str]) -> set[str]:
    return tags & {record_tag(change["kind"], change["record_id"]), MANY}


_withdraw = caching._withdraw
MUTANTS: dict[str, Callable[[caching.Row], set[str]]] = {
    "nothing is withdrawn": lambda _: set(),
    "records that responses do not name": lambda change: _only(change, _withdraw(change)),
    "events only": lambda change: _withdraw(change) if change["kind"] == "events" else set(),
    "deletions": lambda change: _withdraw(change) if change["action"] != "delete" else set(),
    "passwords": lambda change: _withdraw({**change, "protects": False}),
    "hidden events": lambda change: _withdraw({**change, "hides": False}),
}


@pytest.mark.parametrize("name", some(list(MUTANTS), 1))
def test_broken_rules_are_found(make_reads: Callable[[int], StarvedReads], name: str) -> None:
    reads = make_reads(100)
    with patch.object(caching, "_withdraw", MUTANTS[name]):
        assert reads.find_withdrawn_record(5000) is not None
