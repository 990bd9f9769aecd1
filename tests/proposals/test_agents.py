"""Assistants: the official client against a running server. Nothing that it reads makes the server write."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import httpx
import pytest

from bench.cpu_time import cpu_seconds, list_process_tree, list_session_pids
from bench.seeded_sites import fill_site
from kalends.accounts.operations import user_accounts
from kalends.core.limits import Limit
from kalends.http import auth
from kalends.http.router import UPDATES
from kalends.proposals.api.proposal_routes import UUID
from kalends.routes import EXTENSION, INTERFACE
from kalends.store.database import Database, Options
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error
from tests.lifecycle.processes import run_command
from tests.proposals.agents_client import INJECTION, MODES, Assistant, add_password, connect, generate
from tests.servers import Server
from tests.soak import scaled

READ_TOOLS = ["find_events", "get_event", "find_places", "find_duplicates", "explain_absence"]
ALL_TOOLS = [*READ_TOOLS, "propose_event", "propose_change", "proposal_status", "withdraw_proposal"]
DATES = {"start_date": "2031-05-05 19:00:00", "end_date": "2031-05-05 21:00:00"}
# Dates of lists that contain these events.
PERIOD = {"start_date": "2031-05-01", "end_date": "2031-05-31"}
CHOIR = {"values": {"title": "Choir", **DATES}, "source": "A poster at the town hall", "guessed": ["end_date"]}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
# Every table with records, their changes, and the settings and counters of the site.
WATCHED = ("events", "venues", "organizers", "categories", "tags", "event_venues", "changes", "sites")


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return the site that the server of this module serves."""
    return start_single_site_for_module()


@pytest.fixture(scope="module")
def url(app: RunningApp, start_server: Callable[..., Server]) -> Iterator[str]:
    with start_server(app.database_url) as server:
        yield server.base_url


@pytest.fixture(scope="module")
def proposing(app: RunningApp) -> str:
    return add_password(app, "contributor", "Posters", may_propose=True)


@pytest.fixture(scope="module")
def reading(app: RunningApp) -> str:
    return add_password(app, "contributor", "Reader")


@pytest.fixture(scope="module")
def injected(app: RunningApp) -> dict[str, list[Any]]:
    """Add 100 events whose texts contain instructions; return values that exist, by parameter."""
    editor = app.caller("editor")
    venue = editor.create("venues", venue=INJECTION, address=INJECTION, city=INJECTION)["id"]
    organizer = editor.create("organizers", organizer=INJECTION, description=f"<p>{INJECTION}</p>")["id"]
    category = editor.create("categories", name=INJECTION)["id"]
    texts = {"title": INJECTION, "description": f"<p>{INJECTION}</p>" * 50, "excerpt": INJECTION, "cost": INJECTION}
    links = {"venue": venue, "organizer": organizer, "categories": [category], "tags": [INJECTION]}
    events = [
        editor.create(
            "events", **texts, **links, start_date=f"2031-05-{day:02} {hour}:00", end_date=f"2031-05-{day:02} 23:00"
        )
        for day in range(1, 26)
        for hour in range(18, 22)
    ]
    ids = [event["id"] for event in events]
    known = {"id": ids, "record": ids, "base_revision": [1, *range(90, 110)], "venue": [[venue]], "timezone": ["UTC"]}
    times = {name: [value] for name, value in DATES.items()}
    urls = {name: ["https://example.org/choir"] for name in ("website", "ticket_url", "online_url")}
    return {**known, **times, **urls, "organizer": [[organizer]], "categories": [[category]], "tags": [[]]}


def hash_tables(app: RunningApp) -> dict[str, str]:
    queries = [
        f"SELECT md5(string_agg(to_jsonb(t)::text, '|' ORDER BY to_jsonb(t)::text)) FROM {t} t" for t in WATCHED
    ]
    return {table: app.sql(query)[0][0] for table, query in zip(WATCHED, queries, strict=True)}


def find_texts(body: Any, *, is_inside: bool = False) -> Iterator[str]:
    """Yield the strings of a result, except those in `text_by_third_parties`."""
    if isinstance(body, dict):
        for name, value in body.items():
            yield from find_texts(value, is_inside=is_inside or name == "text_by_third_parties")
    elif isinstance(body, list):
        for value in body:
            yield from find_texts(value, is_inside=is_inside)
    elif isinstance(body, str) and not is_inside:
        yield body


def post(app: RunningApp, password: str, body: object, **headers: str) -> httpx.Response:
    """Post to the application in this process."""
    sent = {**HEADERS, "Authorization": f"Bearer {password}", **headers}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return app.caller().request(
        "POST", "//mcp", content=content, headers={"Content-Type": "application/json", **sent}
    )


def call(app: RunningApp, password: str, name: str, **arguments: Any) -> httpx.Response:
    return post(app, password, {**CALL, "params": {"name": name, "arguments": arguments}})


def assert_refusal(response: httpx.Response, status: int, code: str) -> None:
    """Check an error that is one of the API and of JSON-RPC."""
    body = response.json()
    assert (response.status_code, body["code"], body["data"]["status"]) == (status, code, status), response.text
    assert (body["jsonrpc"], body["id"], body["error"]["message"]) == ("2.0", None, body["message"])


# With the official client ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_password_decides_which_tools_there_are(url: str, reading: str, proposing: str, mode: str) -> None:
    async def look(assistant: Assistant) -> tuple[list[str], tuple[int, str] | None]:
        tools = [*await assistant.list_tools()]
        return tools, None if tools == ALL_TOOLS else await assistant.fail("propose_event", **CHOIR)

    assert connect(url, proposing, mode, look) == (ALL_TOOLS, None)
    assert connect(url, reading, mode, look) == (READ_TOOLS, (403, "rest_read_only"))


@pytest.mark.parametrize("mode", MODES)
def test_injected_instructions_write_nothing(
    app: RunningApp, url: str, injected: dict[str, list[Any]], mode: str, report: Callable[[object], None]
) -> None:
    """Call all tools with generated arguments on events that contain instructions, as an editor and a contributor."""
    random = Random(mode)
    app.sql("DELETE FROM proposals")
    before = hash_tables(app)

    async def try_all(assistant: Assistant) -> tuple[int, int]:
        known, refused, answered = dict(injected), 0, 0
        for name, schema in (await assistant.list_tools()).items():
            for _ in range(scaled(15, 300)):
                arguments = generate(schema, random, known)
                if isinstance(values := arguments.get("values"), dict) and random.random() < 0.7:
                    arguments |= {**CHOIR, "values": {**CHOIR["values"], **values}, "guessed": []}
                answer = await assistant.ask(name, **arguments)
                answered += not answer.is_error
                refused += answer.is_error
                if answer.is_error:
                    assert 400 <= answer.body["data"]["status"] < 500, answer.text
                    continue
                assert [text for text in find_texts(answer.body) if INJECTION[:20] in text] == []
                found = answer.body.get("proposals", [answer.body])
                known["proposal"] = [row["id"] for row in found if "status" in row] or known.get("proposal", ["x"])
        return answered, refused

    for role in ("editor", "contributor"):
        password = add_password(app, role, f"Generated {mode}", may_propose=True)
        report(f"{mode}, {role}: {connect(url, password, mode, try_all)} calls answered and refused")
    assert hash_tables(app) == before
    assert {row["origin"] for row in app.sql("SELECT origin FROM proposals")} == {"agent"}
    assert app.sql("SELECT FROM proposals WHERE state NOT IN ('waiting', 'withdrawn')") == []


@pytest.mark.parametrize("mode", MODES)
def test_revoked_password_fails_in_the_next_call(app: RunningApp, url: str, mode: str) -> None:
    password = add_password(app, "contributor", f"Revoked {mode}", may_propose=True)

    async def revoke(assistant: Assistant) -> None:
        await assistant.read("find_events")
        await asyncio.to_thread(run_revoke)
        with pytest.raises(Exception, match="password is wrong"):
            await assistant.read("find_events")

    def run_revoke() -> None:
        done = run_command(app.database_url, "app-password", "revoke", "contributor", f"Revoked {mode}")
        assert done.exit_code == 0, done.output

    connect(url, password, mode, revoke)


@pytest.mark.parametrize("mode", MODES)
def test_editors_decide_on_proposals(app: RunningApp, url: str, proposing: str, mode: str) -> None:
    """An assistant proposes, reads the decision, corrects, and withdraws."""
    editor, root = app.caller("editor"), "//api/kalends/v1/proposals"

    def decide(proposal: Any, action: str, **fields: Any) -> Any:
        headers = {"If-Match": editor.get(f"{root}/{proposal['id']}").headers["etag"]}
        response = editor.post(f"{root}/{proposal['id']}/{action}", fields, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()

    async def work(assistant: Assistant) -> None:
        sent = await assistant.read("propose_event", **CHOIR)
        assert (sent["status"], sent["record"], sent["text_by_third_parties"]) == (
            "waiting",
            None,
            {"title": "Choir"},
        )
        stored = (await asyncio.to_thread(editor.get, f"{root}/{sent['id']}")).json()
        assert (stored["origin"], stored["source"], stored["guessed"]) == ("agent", CHOIR["source"], ["end_date"])
        assert stored["sender"]["program"] == "Posters"
        await asyncio.to_thread(decide, sent, "return", comment="Which <b>hall</b>?")
        seen = await assistant.read("proposal_status", proposal=sent["id"])
        assert (seen["status"], seen["text_by_third_parties"]["comment"]) == ("returned", "Which hall?")
        again = await assistant.read("propose_event", **CHOIR, proposal=sent["id"])
        assert (again["id"], again["status"]) == (sent["id"], "waiting")
        event = (await asyncio.to_thread(decide, again, "accept"))["record"]
        assert (await assistant.fail("withdraw_proposal", proposal=sent["id"])) == (409, "rest_proposal_decided")
        revision = (await assistant.read("get_event", id=event))["revision"]
        change = {"record": event, "base_revision": revision, "values": {"cost": "5"}, "source": "web", "guessed": []}
        changed = await assistant.read("propose_change", **change)
        assert changed["record"] == event
        assert (await assistant.fail("propose_event", **CHOIR, proposal=changed["id"])) == (400, "rest_invalid_param")
        assert [row["id"] for row in (await assistant.read("proposal_status"))["proposals"]] == [changed["id"]]
        assert (await assistant.read("withdraw_proposal", proposal=changed["id"]))["status"] == "withdrawn"

    app.sql("DELETE FROM proposals")
    connect(url, proposing, mode, work)


# In this process ------------------------------------------------------------------------------------


def read(app: RunningApp, password: str, name: str, **arguments: Any) -> Any:
    response = call(app, password, name, **arguments)
    assert response.status_code == 200, response.text
    result = response.json()["result"]
    assert not result["isError"], result
    return json.loads(result["content"][0]["text"])


def fail(app: RunningApp, password: str, name: str, **arguments: Any) -> dict[str, Any]:
    result = call(app, password, name, **arguments).json()["result"]
    assert result["isError"], result
    error: dict[str, Any] = json.loads(result["content"][0]["text"])
    return error


@pytest.fixture
def site(start_app: StartApp) -> RunningApp:
    return start_app()


def test_only_read_only_application_passwords_are_accepted(site: RunningApp) -> None:
    reading = add_password(site, "editor", "Reader")
    assert read(site, reading, "find_events")["total"] == 0
    for header in ("", "Bearer", "Basic YTpi", "Bearer wrong"):
        refused = site.caller().request("POST", "//mcp", headers={**HEADERS, "Authorization": header}, json=CALL)
        assert_refusal(refused, 401, "incorrect_password" if header == "Bearer wrong" else "rest_forbidden")
        assert refused.headers["www-authenticate"].startswith('Bearer realm="')
    assert_refusal(post(site, site.users["editor"].password, CALL), 403, "rest_forbidden")
    # Neither a session nor another method is of use.
    assert_refusal(site.caller("editor").post("//mcp", CALL), 401, "rest_forbidden")
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        refused = site.caller().request(method, "//mcp", headers={"Authorization": f"Bearer {reading}"})
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_disabled_account_cannot_use_its_passwords(site: RunningApp) -> None:
    reading = add_password(site, "author", "Reader")
    site.run_operation(lambda tx: user_accounts.disable_user(tx, "author"))
    assert_refusal(call(site, reading, "find_events"), 401, "incorrect_password")


def test_wrong_passwords_are_counted_by_network(site: RunningApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "PER_ACCOUNT_AND_IP", Limit(burst=3, seconds=900))
    reading = add_password(site, "editor", "Reader")
    for number in range(3):
        assert call(site, f"wrong {number}", "find_events").status_code == 401
    for password in (reading, "wrong"):
        refused = call(site, password, "find_events")
        assert_refusal(refused, 429, "rest_too_many_attempts")
        assert int(refused.headers["retry-after"]) > 0
    elsewhere = Caller(site, 0, client_ip="198.51.100.7", headers={**HEADERS, "Authorization": f"Bearer {reading}"})
    body = {**CALL, "params": {"name": "find_events", "arguments": {}}}
    assert elsewhere.post("//mcp", body).status_code == 200


def test_uses_are_logged(site: RunningApp) -> None:
    read(site, add_password(site, "editor", "Reader"), "find_events")
    site.run(asyncio.sleep(0.2))
    assert [row["name"] for row in site.run_operation(lambda tx: user_accounts.list_uses(tx, "editor"))] == ["Reader"]


def test_without_the_package_there_is_no_such_path(start_app: StartApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    site = start_app({"KALENDS_BASE_URL": "http://calendar.test"})
    for method in ("GET", "POST"):
        assert site.caller().request(method, "//mcp").status_code == 404


def test_server_starts_without_loading_the_package() -> None:
    code = "import sys, kalends.asgi; print('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


@pytest.mark.parametrize("path", ["//embed/mcp", "//mcp/", "//mcp/x", "//MCP"])
def test_nothing_is_beside_the_path(site: RunningApp, path: str) -> None:
    assert site.caller().request("POST", path, json=CALL).status_code in (404, 405)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"\\ud800"', b'{"a":"\\ud800"}', b'{"a":NaN}', b"[" * 9000, b"\xff", b'{"jsonrpc":"2.0"}'],
)
def test_malformed_calls_are_client_errors(site: RunningApp, body: bytes) -> None:
    password = add_password(site, "editor", "Reader")
    for version in ("2025-11-25", "2026-07-28", "1999-01-01"):
        assert 400 <= post(site, password, body, **{"MCP-Protocol-Version": version}).status_code < 500
    assert_refusal(post(site, password, b'"' + b"x" * 600_000 + b'"'), 413, "rest_body_too_large")


def test_errors_name_parameters(site: RunningApp) -> None:
    password = add_password(site, "contributor", "Posters", may_propose=True)
    assert set(fail(site, password, "find_events", serach="x")["data"]["params"]) == {"serach"}
    assert fail(site, password, "propose_event")["data"]["params"] == ["values", "guessed", "source"]
    empty = {**CHOIR, "source": ""}
    assert set(fail(site, password, "propose_event", **empty)["data"]["params"]) == {"source"}
    hidden = {**CHOIR, "values": {**CHOIR["values"], "status": "publish"}}
    assert set(fail(site, password, "propose_event", **hidden)["data"]["params"]) == {"status"}
    unknown = call(site, password, "publish_event").json()
    assert unknown["error"]["code"] == -32602
    subscriber = add_password(site, "subscriber", "Posters", may_propose=True)
    assert fail(site, subscriber, "propose_event", **CHOIR)["code"] == "rest_forbidden"


@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31 23:59:59", "now"])
def test_extreme_dates_are_no_failures(site: RunningApp, date: str) -> None:
    password = add_password(site, "editor", "Reader")
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        call_result = call(site, password, "find_duplicates", title="Choir", start_date=date, timezone=zone)
        assert call_result.status_code == 200, call_result.text
    for name in ("start_date", "end_date"):
        assert call(site, password, "explain_absence", id=1, **{name: date}).status_code == 200


def test_texts_are_plain_and_limited(site: RunningApp) -> None:
    editor, password = site.caller("editor"), add_password(site, "editor", "Reader")
    venue = editor.create("venues", venue="Town <b>hall</b>", city="Bern")["id"]
    event = editor.create(
        "events", title="Choir &amp; band", description=f"<p>{'<em>long</em> ' * 2000}</p>", venue=venue, **DATES
    )
    found = read(site, password, "get_event", id=event["id"])
    texts = found.pop("text_by_third_parties")
    assert (texts["title"], len(texts["description"]), "<" in texts["description"]) == ("Choir & band", 2000, False)
    assert found["venue"][0]["text_by_third_parties"].items() >= {"venue": "Town hall", "city": "Bern"}.items()
    listed = read(site, password, "find_events", **PERIOD)["events"]
    assert [row["id"] for row in listed] == [event["id"]]
    assert "description" not in listed[0]["text_by_third_parties"]
    places = read(site, password, "find_places", kind="venues", search="hall")["venues"]
    assert [(row["id"], row["text_by_third_parties"]["venue"]) for row in places] == [(venue, "Town hall")]


def test_assistants_read_what_is_public(site: RunningApp) -> None:
    """Reading tools show an editor's assistant no drafts, and duplicates show no protected titles."""
    editor, password = site.caller("editor"), add_password(site, "editor", "Reader")
    for fields in ({"status": "draft"}, {"new_password": "secret password"}, {"hide_from_listings": True}):
        editor.create("events", title="Choir concert", **fields, **DATES)
    public = editor.create("events", title="Choir concert", **DATES)["id"]
    draft = editor.ids("events", status="draft", **PERIOD)[0]
    duplicates = read(site, password, "find_duplicates", title="Choir concert", start_date=DATES["start_date"])
    assert [row["id"] for row in duplicates["events"]] == [public]
    assert draft not in [row["id"] for row in read(site, password, "find_events", **PERIOD)["events"]]
    assert fail(site, password, "get_event", id=draft)["data"]["status"] == 403


def test_a_proposal_belongs_to_its_account(site: RunningApp) -> None:
    posters = add_password(site, "contributor", "Posters", may_propose=True)
    editors = add_password(site, "editor", "Posters", may_propose=True)
    sent = read(site, posters, "propose_event", **CHOIR)
    for tool in ("proposal_status", "withdraw_proposal"):
        assert fail(site, editors, tool, proposal=sent["id"])["code"] == "proposal_not_found"
    assert read(site, editors, "proposal_status") == {"proposals": []}
    # Proposals of editors wait, too.
    assert read(site, editors, "propose_event", **CHOIR)["status"] == "waiting"


# Why a list lacks an event --------------------------------------------------------------------------


def test_absence_has_codes(site: RunningApp) -> None:
    editor, password = site.caller("editor"), add_password(site, "editor", "Reader")
    category = editor.create("categories", name="Music")["id"]
    venue = editor.create("venues", venue="Town hall")["id"]

    def explain(event: dict[str, Any], **filters: Any) -> list[str]:
        reasons: list[str] = read(site, password, "explain_absence", id=event["id"], **{**PERIOD, **filters})[
            "reasons"
        ]
        ids = [row["id"] for row in read(site, password, "find_events", **{**PERIOD, **filters})["events"]]
        assert (event["id"] in ids) == (reasons == [])
        return reasons

    shown = editor.create("events", title="Choir", categories=[category], **DATES)
    assert explain(shown, search="choir", categories=[category], free=False) == []
    assert explain(shown, start_date="2031-06-01", end_date="2031-07-01") == ["dates"]
    assert explain(shown, end_date="2031-05-05 20:00", strict_dates=True) == ["dates"]
    filters = {"search": "band", "venue": [venue], "categories": [category], "featured": True}
    assert explain(shown, **filters) == ["filter:search", "filter:venue", "filter:featured"]
    hidden = editor.create("events", title="Choir", status="draft", hide_from_listings=True, **DATES)
    assert explain(hidden, search="band") == ["status:draft", "hidden", "filter:search"]
    protected = editor.create("events", title="Choir", new_password="secret password", **DATES)
    assert explain(protected) == []
    assert explain(protected, search="choir") == ["password"]
    editor.trash("events", shown["id"])
    assert explain(shown) == ["status:trash"]


def test_absence_says_the_same_of_unreadable_and_missing_events(site: RunningApp) -> None:
    """Neither bytes nor errors tell a contributor which of an editor's drafts exist, or what they contain."""
    editor, password = site.caller("editor"), add_password(site, "contributor", "Reader")
    category = editor.create("categories", name="Music")["id"]
    ids = [editor.create("events", title=f"Secret {n}", status="draft", **DATES)["id"] for n in range(3)]
    editor.trash("events", ids[1])
    own = site.caller("contributor").create("events", title="Secret", **DATES)["id"]
    cases: list[dict[str, Any]] = [{}, {"search": "secret"}, {"categories": [category]}, {"venue": [999_999]}]
    for filters in cases:
        answers = {call(site, password, "explain_absence", id=n, **filters).content for n in (*ids, 999_998)}
        assert len(answers) == 1, filters
        assert call(site, password, "explain_absence", id=own, **filters).content not in answers or "venue" in filters


def test_absence_tells_nothing_about_protected_texts(site: RunningApp) -> None:
    editor, password = site.caller("editor"), add_password(site, "contributor", "Reader")
    event = editor.create("events", title="Choir", description="Requiem", new_password="secret password", **DATES)[
        "id"
    ]
    answers = {
        call(site, password, "explain_absence", id=event, search=word, **PERIOD).content
        for word in ("requiem", "waltz")
    }
    assert len(answers) == 1
    assert read(site, password, "explain_absence", id=event, search="waltz", **PERIOD) == {"reasons": ["password"]}


# Passwords that may propose, in the API and the commands --------------------------------------------


def test_password_for_proposals_writes_nothing_else(site: RunningApp) -> None:
    """With an administrator's password for proposals, the API refuses every other write, also in a batch."""
    password = add_password(site, "administrator", "Posters", may_propose=True)
    caller = Caller(site, 0, httpx.BasicAuth("administrator", password))
    event = site.caller("editor").create("events", title="Choir", **DATES)["id"]
    proposal = caller.post("//api/kalends/v1/proposals", {"values": CHOIR["values"]}).json()["id"]
    before, allowed = hash_tables(site), []
    for prefix, interface in (("/api/calendar/events/v1", INTERFACE), ("/api/kalends/v1", EXTENSION)):
        for route in interface.routes:
            path = route.pattern.replace(f"(?P<id>{UUID})", proposal)
            path = re.sub(r"\(\?P<\w+>[^)]*\)", str(event), path)
            for method in [name for row in route.endpoints if row.is_write for name in row.methods]:
                response = caller.request(method, f"/{prefix}{path}", json={"values": CHOIR["values"]})
                if response.status_code < 400:
                    allowed.append(f"{method} {path.replace(proposal, 'ID')}")
                else:
                    assert response.status_code < 500, (method, path, response.text)
    assert allowed == [
        "POST /proposals",
        *[f"{method} /proposals/ID" for method in UPDATES],
        "POST /proposals/ID/withdraw",
    ]
    for operation in (
        {"method": "POST", "path": "/events", "body": {"title": "Choir", **DATES}},
        {"method": "POST", "path": f"/proposals/{proposal}/reject", "body": {"reason": "other"}},
    ):
        assert_error(caller.post("//api/kalends/v1/batch", {"operations": [operation]}), 403, "rest_read_only")
    assert_error(caller.patch(f"/events/{event}", {"title": "Choir 2"}), 403, "rest_read_only")
    assert hash_tables(site) == before


def test_command_makes_passwords_for_proposals(app: RunningApp) -> None:
    made = run_command(app.database_url, "app-password", "create", "contributor", "Made", "--proposals")
    assert made.exit_code == 0, made.output
    rows = app.sql("SELECT read_only, may_propose FROM application_passwords WHERE name = 'Made'")
    assert [tuple(row) for row in rows] == [(True, True)]
    assert read(app, made.stdout.strip(), "proposal_status")["proposals"] is not None


# CPU time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_list_takes_at_most_three_times_the_cpu_of_the_api(
    database_url: str, start_server: Callable[..., Server], mode: str, report: Callable[[object], None]
) -> None:
    """Compare the server and the database in one run: the same ten events, with the same password."""
    site, number = fill_site(database_url, 1_000), scaled(150, 1_000)
    password = asyncio.run(add_reader(database_url, site.login))
    with start_server(database_url) as server:

        def read_cpu() -> float:
            pids = [*list_process_tree(server.process.pid), *list_session_pids(site.url)]
            return sum(map(cpu_seconds, pids))

        async def find(assistant: Assistant) -> float:
            await assistant.read("find_events", per_page=10)
            before = read_cpu()
            for _ in range(number):
                assert len((await assistant.read("find_events", per_page=10))["events"]) == 10
            return read_cpu() - before

        with server.client(login=site.login, password=password) as client:
            client.get("/api/calendar/events/v1/events?per_page=10")
            before = read_cpu()
            for _ in range(number):
                assert len(client.get("/api/calendar/events/v1/events?per_page=10").json()["events"]) == 10
            by_rest = read_cpu() - before
        by_tool = connect(server.base_url, password, mode, find)
    report(f"{mode}: {1000 * by_tool / number:.1f} ms of CPU, by REST {1000 * by_rest / number:.1f} ms")
    assert by_tool <= 3 * by_rest


async def add_reader(database_url: str, login: str) -> str:
    from kalends.core.times import utc_now

    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(1, utc_now(), writing=True) as tx:
            return await user_accounts.add_application_password(tx, login, "Reader", read_only=True)
    finally:
        await database.close()
