"""Reading a WordPress site that runs as another process, with all its faults."""

import asyncio
import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from kalends.adapters.safe_fetch import Fetcher
from kalends.adapters.tec_site import SiteProblem, read_retry_after
from kalends.core.egress import read_allowed_network
from kalends.core.errors import InvalidValue
from kalends.core.tec.exchanges import Exchange, wp_address
from kalends.operations.move_in.crawl import Progress, crawl
from kalends.operations.move_in.snapshot import Snapshot
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
    assert (second.number, second.requests < first.requests / 1.5) == (2, True)
    before = site.map(path)
    third = await site.crawl(path, full=True)
    assert third.requests == second.requests + 2 * 32
    assert site.map(path) == before


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
