"""Two sites with the same IDs and slugs: nothing of one is seen or changed through the other, on any route."""

from collections.abc import Callable

import httpx
import pytest

from kalends.routes import EXTENSION
from kalends.store.sites import add_host, add_site
from tests.robustness.site_fixtures import add_editor, run_application
from tests.robustness.two_sites import (
    API_PATH,
    SITE_A_SELECTORS,
    IsolationRequest,
    SitePair,
    all_requests,
    foreign_batch,
    foreign_bodies,
    foreign_queries,
    kind_path,
)

CHANGES = {"description": "written by betaword again"}


async def test_records_of_one_site_are_accessible_to_its_users(pair: SitePair) -> None:
    """The control of the tests below: these requests do show it, and do change it, where they may."""
    foreign = [request for request in all_requests(pair) if request.is_foreign]
    for request in (one for one in foreign if one.method == "GET"):
        response = await pair.a.request("GET", request.path, pair.a.users["ed"])
        # Dates of a series are times and IDs only.
        shows_text = pair.a.word in response.text or request.path.endswith("/occurrences")
        assert (response.status_code, shows_text) == (200, True), request
    for request in (one for one in foreign if one.method == "PATCH"):
        before = pair.digest_site_a()
        response = await pair.a.request("PATCH", request.path, pair.a.users["ed"], json=request.body)
        assert (response.status_code, pair.digest_site_a() != before) == (200, True), request


@pytest.mark.parametrize("login", [None, "ed"])
async def test_routes_do_not_reveal_or_change_other_site(
    pair: SitePair, login: str | None, report: Callable[[object], None]
) -> None:
    count = await assert_no_leaks(pair, login)
    report(f"{count} requests, 0 leaks")


async def test_routes_reject_users_of_other_site(pair: SitePair) -> None:
    accounts = list(pair.a.users.values())
    for number, request in enumerate(all_requests(pair)):
        # From ever new addresses and for several accounts, or guessing would be slowed down.
        pair.b.transport.client = (f"198.18.{number // 250}.{number % 250}", 1)
        account = accounts[number % len(accounts)]
        response = await pair.b.request(request.method, request.path, account, json=request.body)
        assert response.status_code == 401, request


async def test_etags_of_other_site_do_not_match(pair: SitePair) -> None:
    for kind, record_id in pair.a.ids.items():
        path = f"{kind_path(kind)}/{record_id}"
        known = {"If-None-Match": (await pair.a.request("GET", path)).headers["etag"]}
        assert (await pair.a.request("GET", path, headers=known)).status_code == 304, path
        response = await pair.b.request("GET", path, headers=known)
        assert (response.status_code, pair.b.word in response.text) == (200, True), path
        # Site `a` moves on, so that its revisions are none of site `b`'s.
        for number in range(2):
            body = {"description": f"{pair.a.word} {number}"}
            await pair.a.request("PATCH", path, pair.a.users["ed"], json=body)
        changed = await pair.a.request("GET", path)
        expected = {"If-Match": changed.headers["etag"]}
        rejection = await pair.b.request("PATCH", path, pair.b.users["ed"], json=CHANGES, headers=expected)
        assert rejection.status_code == 412, path


async def test_idempotency_keys_are_scoped_to_site(pair: SitePair) -> None:
    body, key = {"venue": "Keyed"}, {"Idempotency-Key": "the same"}
    first = await pair.a.request("POST", f"{API_PATH}/venues", pair.a.users["ed"], json=body, headers=key)
    second = [
        await pair.b.request("POST", f"{API_PATH}/venues", pair.b.users["ed"], json=fields, headers=key)
        for fields in (body, body, {"venue": "Another"})
    ]
    assert [response.status_code for response in (first, *second)] == [201, 201, 201, 422]
    assert ["idempotent-replay" in response.headers for response in second] == [False, True, False]
    assert "b.example" in second[1].json()["url"]
    assert second[1].text == second[0].text != first.text


async def test_records_users_and_images_of_other_site_cannot_be_linked(pair: SitePair) -> None:
    for kind, body in foreign_bodies(pair):
        own = await pair.a.request("POST", kind_path(kind), pair.a.users["ed"], json=body)
        assert own.status_code == 201, own.text
        response = await pair.b.request("POST", kind_path(kind), pair.b.users["ed"], json=body)
        assert (response.status_code, response.json()["code"]) == (400, "rest_invalid_param"), body


async def test_only_host_header_selects_site(pair: SitePair) -> None:
    for options in SITE_A_SELECTORS:
        response = await pair.b.request("GET", f"{API_PATH}/venues", **options)
        assert (pair.b.word in response.text, pair.a.word in response.text) == (True, False), options


@pytest.mark.parametrize("host", ["a.example", "A.EXAMPLE", "a.example:8080"])
async def test_host_matching_ignores_case_and_port(pair: SitePair, host: str) -> None:
    response = await pair.b.request("GET", f"{API_PATH}/venues", headers={"Host": host})
    assert pair.a.word in response.text


async def test_unknown_host_is_404_on_all_routes(pair: SitePair) -> None:
    for host in ("c.example", "", "127.0.0.1", "a.example.evil.example", "1"):
        for request in (
            all_requests(pair) if host == "c.example" else [IsolationRequest("GET", f"{API_PATH}/events", False)]
        ):
            response = await pair.a.request(request.method, request.path, json=CHANGES, headers={"Host": host})
            assert response.status_code == 404, (host, request)
            if request.method != "HEAD":
                assert response.json()["code"] == "rest_unknown_site", (host, request)


async def test_single_site_serves_all_hosts(database_url: str) -> None:
    login = add_editor(database_url)
    async with run_application(database_url) as transport:
        client = httpx.AsyncClient(transport=transport, base_url="http://server", auth=login, trust_env=False)
        for host in ("a.example", "b.example:8000", "127.0.0.1", "[::1]:80", ""):
            response = await client.get(f"{API_PATH}/events", headers={"Host": host})
            assert response.status_code == 200, host
        await client.aclose()


async def test_moved_host_serves_no_cached_responses_of_old_site(pair: SitePair) -> None:
    """Answers to the public are kept in memory; they must not stay with the host."""
    paths = [kind_path(kind) for kind in pair.a.ids] + [f"{kind_path(kind)}/{n}" for kind, n in pair.a.ids.items()]
    for path in paths:
        assert pair.a.word in (await pair.a.request("GET", path)).text, path
    await add_host(pair.database_url, pair.a.host, pair.b.id, move=True)
    for path in paths:
        response = await pair.a.request("GET", path)
        assert (pair.b.word in response.text, pair.a.word in response.text) == (True, False), path


async def test_new_site_serves_no_cached_responses_of_first_site(database_url: str) -> None:
    login = add_editor(database_url)
    async with run_application(database_url) as transport:
        client = httpx.AsyncClient(transport=transport, base_url="http://new.example", trust_env=False)
        assert (await client.post(f"{API_PATH}/venues", json={"venue": "First"}, auth=login)).status_code == 201
        assert (await client.get(f"{API_PATH}/venues")).json()["total"] == 1
        await add_site(database_url, "new.example", "Second", first_host="first.example")
        assert (await client.get(f"{API_PATH}/venues")).json()["total"] == 0
        await client.aclose()


async def assert_no_leaks(pair: SitePair, login: str | None) -> int:
    """Send all requests to site `b`, check that they neither disclose nor change `a`, and return their number."""
    before = pair.digest_site_a()
    login_data = pair.b.users[login] if login else None
    requests, queries = all_requests(pair), list(foreign_queries(pair))
    for request in requests:
        response = await pair.b.request(request.method, request.path, login_data, json=request.body)
        assert_nothing_leaked(pair, response, str(request))
        if request.is_foreign and request.method != "OPTIONS":
            expected_statuses = {404} if login else {404, 401}
            assert response.status_code in expected_statuses, f"{request}: {response.text}"
        if request.is_write and response.is_success:
            assert pair.digest_site_a() == before, f"{request} changes the other site"
    for kind, query in queries:
        response = await pair.b.request("GET", f"{API_PATH}/{kind}", login_data, params=query)
        assert_nothing_leaked(pair, response, f"{kind} {query}")
        assert response.status_code == 400 or response.json()["total"] == 0, f"{kind} {query}"
    batch = foreign_batch(pair)
    response = await pair.b.request("POST", f"/api/{EXTENSION.namespace}/batch", login_data, json=batch)
    assert_nothing_leaked(pair, response, "batch")
    if login:
        assert {result["status"] for result in response.json()["results"]} == {404}
    assert pair.digest_site_a() == before
    return len(requests) + len(queries) + len(batch["operations"])


def assert_nothing_leaked(pair: SitePair, response: httpx.Response, request: str) -> None:
    assert response.status_code < 500, f"{request}: {response.text}"
    assert pair.a.word not in response.text + str(response.headers), f"{request} shows the other site"
