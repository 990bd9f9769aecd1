"""Reading a WordPress site that runs as another process, with all its faults."""

import asyncio
import base64
import contextlib
import json
import random
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kalends.adapters.safe_fetch import Fetcher
from kalends.core.egress import read_allowed_network
from kalends.core.errors import InvalidValue
from kalends.move_in.adapters import Pace, SiteProblem, read_retry_after
from kalends.move_in.operations.crawl import Progress, crawl
from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.rules.exchanges import WP_LISTS, Exchange, wp_address
from kalends.move_in.rules.mapping import map_snapshot
from tests.move_in.conftest import OldSite, StartSite, read_small_truth, stop
from tests.move_in.site_server import PASSWORD
from tests.move_in.truth import compare

pytestmark = pytest.mark.process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "old.snapshot"


def find_differences(site: OldSite, path: Path) -> list[str]:
    return compare(site.map(path).records, read_small_truth(site), "127.0.0.1")


def read_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def expect_problem(site: OldSite, path: Path, **options: Any) -> str:
    with pytest.raises(SiteProblem) as problem:
        await site.crawl(path, **options)
    return str(problem.value)


async def test_all_records_are_found_and_equal_to_the_database(start_site: StartSite, path: Path) -> None:
    site = start_site()
    steps: list[Progress] = []
    result = await site.crawl(path, progress=steps.append)
    assert find_differences(site, path) == []
    assert (result.number, result.passes, result.warnings) == (1, 2, [])
    assert list(dict.fromkeys(step.step for step in steps)) == ["lists", "events", "addresses", "files"]
    assert steps[-1].done == steps[-1].total


async def test_differences_are_noticed(start_site: StartSite, path: Path) -> None:
    site = start_site()
    await site.crawl(path)
    truth = read_small_truth(site)
    event = next(post for post in truth["posts"] if post["type"] == "tribe_events")
    event["featured"], event["title"], event["guid"] = not event["featured"], "Another", "http://other.example/"
    assert len(compare(site.map(path).records, truth, "127.0.0.1")) == 3


async def test_snapshot_is_private_and_has_no_credentials(start_site: StartSite, path: Path) -> None:
    site = start_site()
    await site.crawl(path)
    assert read_mode(path) == 0o600
    with Snapshot.open(path) as snapshot:
        content = "".join(map(str, snapshot.list(""))) + json.dumps(snapshot.read_fact("url"))
    assert "@old.example" in content
    for secret in (PASSWORD, base64.b64encode(f"administrator:{PASSWORD}".encode()).decode()):
        assert secret not in content


async def test_credentials_are_sent_only_to_the_api(start_site: StartSite, path: Path) -> None:
    site = start_site("--log")
    await site.crawl(path)
    requests = [json.loads(line) for line in stop(site.process).splitlines()]
    signed = {address.split("?")[0].rsplit("/", 1)[0] for address, header in requests if header}
    assert signed
    assert all(address.startswith("/wp-json/") for address in signed)
    assert [address for address, header in requests if not header and address.startswith("/wp-json/")] == [
        "/wp-json/"
    ]


# Faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [("--fail-every", "7"), ("--fail-every", "5", "--fail-status", "429"), ("--drop-every", "11")]
)
async def test_failed_requests_are_repeated(start_site: StartSite, path: Path, options: tuple[str, ...]) -> None:
    site = start_site(*options)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    await site.crawl(path, sleep=sleep)
    assert find_differences(site, path) == []
    assert 1 in waits


async def test_changes_during_the_crawl_are_read(start_site: StartSite, path: Path) -> None:
    """The site changes while single events are read: the lists are read until two passes agree."""
    site = start_site("--change-after", "45")
    result = await site.crawl(path)
    assert result.passes == 3
    move_in = site.map(path)
    assert len(move_in.of_kind("events")) == 31
    assert sum(record.values["title"] == "Edited" for record in move_in.of_kind("events")) == 3
    assert "Renamed" in [record.values["venue"] for record in move_in.of_kind("venues")]


async def test_truncated_json_ends_in_a_sentence(start_site: StartSite, path: Path) -> None:
    site = start_site("--truncate", "wp/v2/tags")
    message = await expect_problem(site, path)
    assert message.startswith(f"{site.url}/wp-json/wp/v2/tags?")
    assert "no valid JSON (6 attempts)" in message
    with Snapshot.open(path) as snapshot:
        assert not snapshot.is_complete


async def test_an_overloaded_site_ends_in_a_sentence(start_site: StartSite, path: Path) -> None:
    site = start_site("--fail-every", "1")
    assert await expect_problem(site, path) == (
        f"{site.url}/wp-json/ answered 503 6 times. The site is overloaded or being updated; run the command again "
        "later, it continues where it stopped."
    )


async def test_a_site_that_is_gone_ends_in_a_sentence(start_site: StartSite, path: Path) -> None:
    site = start_site()
    stop(site.process)
    assert "did not answer (6 attempts)" in await expect_problem(site, path)


async def test_a_broken_record_does_not_end_the_crawl(start_site: StartSite, path: Path) -> None:
    site = start_site("--status-of", "wp/v2/tribe_events/108", "500")
    await site.crawl(path)
    move_in = site.map(path)
    assert "108" not in [record.identity for record in move_in.of_kind("events")]
    assert [(entry.identity, str(entry.reason)) for entry in move_in.rejections] == [
        ("108", "The site answered 500 instead of the event.")
    ]


# Slow and hostile sites -------------------------------------------------------------------------


async def test_pages_become_smaller_after_a_timeout(start_site: StartSite, path: Path) -> None:
    """A page with all events takes longer than a request may; pages of half the size do not."""
    site = start_site("--page-size", "100", "--delay-per-record", "0.04", "--log")
    result = await site.crawl(path, seconds=1.0)
    assert find_differences(site, path) == []
    assert result.warnings == []
    sizes = [int(size) for size in re.findall(r"per_page=(\d+)", stop(site.process))]
    assert min(sizes) < 32
    assert max(sizes[sizes.index(min(sizes)) :]) > min(sizes)  # They grow again.


async def test_up_to_four_requests_run_while_the_site_is_fast(start_site: StartSite, path: Path) -> None:
    site = start_site("--delay", "0.05", "--log-parallel")
    await site.crawl(path)
    parallel = [int(line) for line in stop(site.process).splitlines()]
    assert (parallel[0], max(parallel)) == (1, 4)


async def test_a_slow_site_gets_one_request_at_a_time(start_site: StartSite, path: Path) -> None:
    pace = Pace()
    for seconds, limit in ((0.1, 1.5), (0.1, 2), (0.9, 2.5), (1.1, 1.25), (1.1, 1), (0.1, 1.5)):
        pace.note("events", seconds, failed=False)
        assert pace.limit == limit
    for seconds, limit in ((3, 2), (5, 2.5), (7, 1.25)):  # A list always takes its time.
        pace.note("lists", seconds, failed=False)
        assert pace.limit == limit
    pace.note("events", 0.1, failed=True)
    assert pace.limit == 1


@pytest.mark.parametrize("options", [(), ("--new-ids",)])
@pytest.mark.parametrize("login", ["", "administrator"])
async def test_endless_lists_end(start_site: StartSite, path: Path, login: str, options: tuple[str, ...]) -> None:
    """Every list says that it has many pages: they repeat the same records, or have more than the list says."""
    site = start_site("--pages", "100000", "--log", *options)
    async with asyncio.timeout(60):
        with contextlib.nullcontext() if login else pytest.raises(SiteProblem, match="Without the login"):
            await site.crawl(path, login=login)
    addresses = [json.loads(line)[0] for line in stop(site.process).splitlines()]
    assert len([address for address in addresses if "page=" in address]) < 300


async def test_lists_of_absurd_lengths_end_in_a_sentence(start_site: StartSite, path: Path) -> None:
    site = start_site("--pages", "100000", "--total", "10000000")
    assert "records; at most 1000000 can be read." in await expect_problem(site, path)


VALID_SHAPES = {"wp/v2/settings": '{"events": 5}', "wp/v2/tags": '[{"id": true}]'}


@pytest.mark.parametrize("route", ["", "wp/v2/users/me", *VALID_SHAPES])
async def test_other_json_ends_in_a_sentence(start_site: StartSite, path: Path, route: str) -> None:
    for number, body in enumerate(("null", "7", *VALID_SHAPES.values())):
        is_valid = body == VALID_SHAPES.get(route)
        with contextlib.nullcontext() if is_valid else pytest.raises(InvalidValue, match=r"\."):
            await start_site("--body-of", route, body).crawl(path.with_name(str(number)))


async def test_any_json_can_be_mapped(start_site: StartSite, path: Path) -> None:
    """Values of records get other types: the record is mapped without them, and the plan names the field."""
    site, numbers = start_site("--page-size", "100"), random.Random(7)
    await site.crawl(path)
    with Snapshot.open(path) as snapshot:
        exchanges = [entry for entry in snapshot.list("") if entry.body[:1] in (b"{", b"[")]
        for _ in range(200):
            exchange = numbers.choice(exchanges)
            snapshot.add(replace(exchange, body=orjson.dumps(corrupt(exchange.json, numbers))))
            with contextlib.suppress(InvalidValue):
                map_snapshot(snapshot)
            snapshot.add(exchange)
        venue = snapshot.find(WP_LISTS["venues"])
        assert venue is not None
        snapshot.add(replace(venue, body=orjson.dumps([{**venue.json[0], "slug": ["a"]}, *venue.json[1:]])))
        warnings = [(str(entry.cause), list(entry.records)) for entry in map_snapshot(snapshot).warnings]
    cause = "The field slug has an unexpected type; it is left out."
    assert (cause, [("venues", str(venue.json[0]["id"]))]) in warnings


VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0.5, 10**15, "", "text", "9" * 5000, "http://[", [], [[]], [{}], {}, {"id": {}}),
)


def corrupt(value: Any, numbers: random.Random) -> Any:
    """Return a JSON value in which one value inside is another one."""
    if isinstance(value, dict | list) and value and numbers.random() < 0.9:
        key = numbers.choice(list(value) if isinstance(value, dict) else range(len(value)))
        changed = value.copy()
        changed[key] = corrupt(value[key], numbers)
        return changed
    return numbers.choice(VALUES)


# Accounts ---------------------------------------------------------------------------------------


async def test_wrong_password(start_site: StartSite, path: Path) -> None:
    message = await expect_problem(start_site(), path, password="wrong")
    assert "refused the login or the application password (401 incorrect_password)." in message
    assert "Drafts, pending, private" in message


async def test_editors_cannot_read_everything(start_site: StartSite, path: Path) -> None:
    message = await expect_problem(start_site(), path, login="editor")
    assert message.startswith("The account has the role editor on http://127.0.0.1")
    assert "the accounts of users would be missing." in message


async def test_a_server_that_removes_the_credentials(start_site: StartSite, path: Path) -> None:
    message = await expect_problem(start_site("--without-authorization"), path)
    assert "its web server removes the header Authorization" in message


async def test_anonymous_readers_are_told_what_is_missing(start_site: StartSite, path: Path) -> None:
    site = start_site()
    message = await expect_problem(site, path, login="")
    count = sum(
        post["type"] == "tribe_events" and post["status"] == "publish" for post in read_small_truth(site)["posts"]
    )
    assert message.startswith(f"Without the login of an administrator only {count} published events of {site.url}")


async def test_redirects_are_not_followed_with_credentials(start_site: StartSite, path: Path) -> None:
    other = start_site("--log")
    site = start_site("--redirect", other.url, "--log")
    assert await expect_problem(site, path) == f"{site.url} redirects to {other.url}; use that address."
    assert stop(other.process) == ""
    assert [json.loads(line) for line in stop(site.process).splitlines()] == [["/wp-json/", None]]


async def test_a_site_whose_api_is_closed_to_visitors(start_site: StartSite, path: Path) -> None:
    site = start_site("--closed")
    await site.crawl(path)
    assert find_differences(site, path) == []


async def test_sites_without_the_events_calendar(start_site: StartSite, path: Path) -> None:
    site = start_site("--namespaces", "wp/v2")
    assert "has no tribe/events/v1: The Events Calendar is not active" in await expect_problem(site, path)
    other = start_site("--status-of", "", "404")
    assert "has no REST API of WordPress" in await expect_problem(other, path)


async def test_addresses_that_must_not_be_reached(path: Path) -> None:
    with Snapshot.open(path) as snapshot, pytest.raises(InvalidValue, match="only public servers"):
        await crawl(Fetcher([]), "http://127.0.0.1", "administrator", "x", snapshot)


# Forms of sites ---------------------------------------------------------------------------------


async def test_site_without_permalinks(start_site: StartSite, path: Path) -> None:
    site = start_site("--plain")
    await site.crawl(path)
    assert find_differences(site, path) == []


async def test_hidden_past_events_are_found_without_tec_v1(start_site: StartSite, path: Path) -> None:
    """Older versions have no list of all events: the IDs between the known ones are tried."""
    site = start_site("--without-tec")
    steps: list[Progress] = []
    await site.crawl(path, progress=steps.append)
    assert find_differences(site, path) == []
    assert "gaps" in [step.step for step in steps]


# Repeated crawls --------------------------------------------------------------------------------


async def test_an_interrupted_crawl_continues(start_site: StartSite, path: Path) -> None:
    site = start_site("--log")

    def interrupt(progress: Progress) -> None:
        if progress == Progress("events", 10, 32):
            raise KeyError("interrupted")

    with pytest.raises(KeyError):
        await site.crawl(path, progress=interrupt)
    result = await site.crawl(path)
    assert result.number == 1
    assert find_differences(site, path) == []
    addresses = [json.loads(line)[0] for line in stop(site.process).splitlines()]
    singles = [address for address in addresses if "/wp/v2/tribe_events/" in address]
    assert 32 <= len(singles) <= 32 + 3  # those that were being read


async def test_a_second_crawl_reads_only_what_has_changed(start_site: StartSite, path: Path) -> None:
    site = start_site()
    first = await site.crawl(path)
    second = await site.crawl(path)
    before = site.map(path)
    # Each list once, and nothing else: they are as at the end of the first crawl.
    assert (second.number, second.passes, second.requests < first.requests / 3) == (2, 1, True)
    third = await site.crawl(path, full=True)
    assert (third.passes, third.requests > second.requests + 2 * 32) == (2, True)
    assert site.map(path) == before


async def test_a_second_crawl_finds_changes_without_a_new_time(start_site: StartSite, path: Path) -> None:
    """A plugin or a search in the database replaces a title: the list shows it, the time of change does not."""
    site = start_site()
    await site.crawl(path)
    stop(site.process)
    changed = start_site("--port", str(site.port), "--change-after", "0", "--silently", "--log")
    await changed.crawl(path)
    titles = [record.values["title"] for record in changed.map(path).of_kind("events")]
    assert titles.count("Edited silently") == 1
    addresses = [json.loads(line)[0] for line in stop(changed.process).splitlines()]
    assert len([address for address in addresses if "/wp/v2/tribe_events/" in address]) == 1


async def test_a_second_crawl_finds_changes(start_site: StartSite, path: Path) -> None:
    site = start_site()
    first = await site.crawl(path)
    site.process.terminate()
    changed = start_site("--change-after", "0")
    with Snapshot.open(path) as snapshot:
        snapshot.write_fact("url", changed.url)
    await changed.crawl(path)
    titles = [record.values["title"] for record in changed.map(path).of_kind("events")]
    assert (len(titles), titles.count("Edited")) == (first.events - 1, 3)


async def test_a_snapshot_belongs_to_one_site(start_site: StartSite, path: Path) -> None:
    site = start_site()
    with Snapshot.open(path) as snapshot:
        snapshot.begin_crawl("https://other.example")
    with pytest.raises(InvalidValue, match=r"the snapshot is one of https://other\.example"):
        await site.crawl(path)


# Parts ------------------------------------------------------------------------------------------


def test_other_files_are_no_snapshots(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be one" * 100)
    with pytest.raises(InvalidValue, match="is no snapshot of a site"):
        Snapshot.open(tmp_path / "text")


def test_snapshot_keeps_the_latest_exchange(path: Path) -> None:
    with Snapshot.open(path) as snapshot:
        for status in (200, 404):
            snapshot.add(Exchange(wp_address("events", 7), status, {"etag": "x"}, b"{}", 3))
        assert list(snapshot.list("wp/v2/tribe_events/")) == [
            Exchange("wp/v2/tribe_events/7?context=edit", 404, {"etag": "x"}, b"{}", 3)
        ]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "Mon, 16 Nov 2026 10:00:30 GMT", "date": "Mon, 16 Nov 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Mon, 16 Nov 2026 09:00:00 GMT", "date": "Mon, 16 Nov 2026 10:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


async def test_rate_is_kept(start_site: StartSite, path: Path) -> None:
    site = start_site()
    fetcher = Fetcher([read_allowed_network(f"127.0.0.1:{site.port}")])
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    with Snapshot.open(path) as snapshot:
        result = await crawl(fetcher, site.url, "administrator", PASSWORD, snapshot, rate=2, sleep=sleep)
    # The waits are not waited for, so each one is longer than the one before.
    assert max(waits) > result.requests / 2 * 0.8
