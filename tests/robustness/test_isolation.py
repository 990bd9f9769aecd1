"""Two sites with the same IDs and slugs: nothing of one is seen or changed through the other, on any route."""

from collections.abc import Callable

import httpx
import pytest

from kalends.api.routes import EXTENSION
from kalends.store.sites import add_host, add_site
from tests.robustness.site_fixtures import add_editor, application
from tests.robustness.two_sites import (
    NAMES_OF_A,
    ROOT,
    Asked,
    Pair,
    all_requests,
    foreign_batch,
    foreign_bodies,
    foreign_queries,
)

CHANGES = {"description": "written by betaword again"}


async def test_records_of_one_site_are_accessible_to_its_users(pair: Pair) -> None:
    """The control of the tests below: these requests do show it, and do change it, where they may."""
    foreign = [asked for asked in all_requests(pair) if asked.foreign]
    for asked in (one for one in foreign if one.method == "GET"):
        answer = await pair.a.ask("GET", asked.path, pair.a.people["ed"])
        assert (answer.status_code, pair.a.word in answer.text) == (200, True), asked
    for asked in (one for one in foreign if one.method == "PATCH"):
        before = pair.digest_of_a()
        answer = await pair.a.ask("PATCH", asked.path, pair.a.people["ed"], json=asked.body)
        assert (answer.status_code, pair.digest_of_a() != before) == (200, True), asked


@pytest.mark.parametrize("login", [None, "ed"])
async def test_routes_do_not_reveal_or_change_other_site(
    pair: Pair, login: str | None, tell: Callable[[object], None]
) -> None:
    asked = await look_for_leaks(pair, login)
    tell(f"{asked} requests, 0 leaks")


async def test_routes_reject_users_of_other_site(pair: Pair) -> None:
    for number, asked in enumerate(all_requests(pair)):
        # From ever new addresses, or guessing would be slowed down.
        pair.b.transport.client = (f"192.0.2.{number}", 1)
        answer = await pair.b.ask(asked.method, asked.path, pair.a.people["ann"], json=asked.body)
        assert answer.status_code == 401, asked


async def test_etags_of_other_site_do_not_match(pair: Pair) -> None:
    for kind, record_id in pair.a.ids.items():
        path = f"{ROOT}/{kind}/{record_id}"
        known = {"If-None-Match": (await pair.a.ask("GET", path)).headers["etag"]}
        assert (await pair.a.ask("GET", path, headers=known)).status_code == 304, path
        answer = await pair.b.ask("GET", path, headers=known)
        assert (answer.status_code, pair.b.word in answer.text) == (200, True), path
        # Site `a` moves on, so that its revisions are none of site `b`'s.
        for number in range(2):
            body = {"description": f"{pair.a.word} {number}"}
            await pair.a.ask("PATCH", path, pair.a.people["ed"], json=body)
        changed = await pair.a.ask("GET", path)
        expected = {"If-Match": changed.headers["etag"]}
        refused = await pair.b.ask("PATCH", path, pair.b.people["ed"], json=CHANGES, headers=expected)
        assert refused.status_code == 412, path


async def test_idempotency_keys_are_scoped_to_site(pair: Pair) -> None:
    body, key = {"venue": "Keyed"}, {"Idempotency-Key": "the same"}
    of_a = await pair.a.ask("POST", f"{ROOT}/venues", pair.a.people["ed"], json=body, headers=key)
    of_b = [
        await pair.b.ask("POST", f"{ROOT}/venues", pair.b.people["ed"], json=sent, headers=key)
        for sent in (body, body, {"venue": "Another"})
    ]
    assert [answer.status_code for answer in (of_a, *of_b)] == [201, 201, 201, 422]
    assert ["idempotent-replay" in answer.headers for answer in of_b] == [False, True, False]
    assert "b.example" in of_b[1].json()["url"]
    assert of_b[1].text == of_b[0].text != of_a.text


async def test_records_users_and_images_of_other_site_cannot_be_linked(pair: Pair) -> None:
    for kind, body in foreign_bodies(pair):
        own = await pair.a.ask("POST", f"{ROOT}/{kind}", pair.a.people["ed"], json=body)
        assert own.status_code == 201, own.text
        answer = await pair.b.ask("POST", f"{ROOT}/{kind}", pair.b.people["ed"], json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "rest_invalid_param"), body


async def test_only_host_header_selects_site(pair: Pair) -> None:
    for options in NAMES_OF_A:
        answer = await pair.b.ask("GET", f"{ROOT}/venues", **options)
        assert (pair.b.word in answer.text, pair.a.word in answer.text) == (True, False), options


@pytest.mark.parametrize("host", ["a.example", "A.EXAMPLE", "a.example:8080"])
async def test_host_matching_ignores_case_and_port(pair: Pair, host: str) -> None:
    answer = await pair.b.ask("GET", f"{ROOT}/venues", headers={"Host": host})
    assert pair.a.word in answer.text


async def test_unknown_host_is_404_on_all_routes(pair: Pair) -> None:
    for host in ("c.example", "", "127.0.0.1", "a.example.evil.example", "1"):
        for asked in all_requests(pair) if host == "c.example" else [Asked("GET", f"{ROOT}/events", False)]:
            answer = await pair.a.ask(asked.method, asked.path, json=CHANGES, headers={"Host": host})
            assert answer.status_code == 404, (host, asked)
            if asked.method != "HEAD":
                assert answer.json()["code"] == "rest_unknown_site", (host, asked)


async def test_single_site_serves_all_hosts(database_url: str) -> None:
    login = add_editor(database_url)
    async with application(database_url) as transport:
        client = httpx.AsyncClient(transport=transport, base_url="http://server", auth=login, trust_env=False)
        for host in ("a.example", "b.example:8000", "127.0.0.1", "[::1]:80", ""):
            answer = await client.get(f"{ROOT}/events", headers={"Host": host})
            assert answer.status_code == 200, host
        await client.aclose()


async def test_moved_host_serves_no_cached_responses_of_old_site(pair: Pair) -> None:
    """Answers to the public are kept in memory; they must not stay with the host."""
    paths = [f"{ROOT}/{kind}" for kind in pair.a.ids] + [f"{ROOT}/{kind}/{n}" for kind, n in pair.a.ids.items()]
    for path in paths:
        assert pair.a.word in (await pair.a.ask("GET", path)).text, path
    await add_host(pair.database_url, pair.a.host, pair.b.id)
    for path in paths:
        answer = await pair.a.ask("GET", path)
        assert (pair.b.word in answer.text, pair.a.word in answer.text) == (True, False), path


async def test_new_site_serves_no_cached_responses_of_first_site(database_url: str) -> None:
    login = add_editor(database_url)
    async with application(database_url) as transport:
        client = httpx.AsyncClient(transport=transport, base_url="http://new.example", trust_env=False)
        assert (await client.post(f"{ROOT}/venues", json={"venue": "First"}, auth=login)).status_code == 201
        assert (await client.get(f"{ROOT}/venues")).json()["total"] == 1
        await add_site(database_url, "new.example", "Second")
        assert (await client.get(f"{ROOT}/venues")).json()["total"] == 0
        await client.aclose()


async def look_for_leaks(pair: Pair, login: str | None) -> int:
    """Puts every request to site `b`; nothing of `a` is said, and it stays as it is. The number of requests."""
    before = pair.digest_of_a()
    by = pair.b.people[login] if login else None
    requests, queries = all_requests(pair), list(foreign_queries(pair))
    for asked in requests:
        answer = await pair.b.ask(asked.method, asked.path, by, json=asked.body)
        assert_nothing_of_a(pair, answer, str(asked))
        if asked.foreign and asked.method != "OPTIONS":
            refused = {404} if login else {404, 401}
            assert answer.status_code in refused, f"{asked}: {answer.text}"
        if asked.writes and answer.is_success:
            assert pair.digest_of_a() == before, f"{asked} changes the other site"
    for kind, query in queries:
        answer = await pair.b.ask("GET", f"{ROOT}/{kind}", by, params=query)
        assert_nothing_of_a(pair, answer, f"{kind} {query}")
        assert answer.status_code == 400 or answer.json()["total"] == 0, f"{kind} {query}"
    batch = foreign_batch(pair)
    answer = await pair.b.ask("POST", f"/api/{EXTENSION.namespace}/batch", by, json=batch)
    assert_nothing_of_a(pair, answer, "batch")
    if login:
        assert {result["status"] for result in answer.json()["results"]} == {404}
    assert pair.digest_of_a() == before
    return len(requests) + len(queries) + len(batch["operations"])


def assert_nothing_of_a(pair: Pair, answer: httpx.Response, asked: str) -> None:
    assert answer.status_code < 500, f"{asked}: {answer.text}"
    assert pair.a.word not in answer.text + str(answer.headers), f"{asked} shows the other site"
