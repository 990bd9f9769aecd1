"""The requests of the API: who may what with which password, refused parameters, limits, lists and batches."""

import asyncio
from typing import Any

import httpx
import pytest

from kalends.accounts.operations import user_accounts
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.core.errors import ApiError
from kalends.proposals.rules import ALLOWED_LINK_PARAMS, ALLOWED_PARAMS, MAX_OPEN, ORIGINS, Origin
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.proposals.proposals_client import (
    EVENT,
    ROOT,
    ProposalsClient,
    find_row,
    if_match,
    send_draft,
    set_columns,
    take_picture_of,
)
from tests.soak import scaled

BATCH = "//api/kalends/v1/batch"
MISSING_ID = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def sender(contributor: Caller) -> ProposalsClient:
    return ProposalsClient(contributor)


@pytest.fixture(scope="module")
def desk(editor: Caller) -> ProposalsClient:
    return ProposalsClient(editor)


def with_password(app: RunningApp, role: str, name: str, **rights: bool) -> ProposalsClient:
    secret = app.run_operation(lambda tx: user_accounts.add_application_password(tx, role, name, **rights))
    return ProposalsClient(Caller(app, app.users[role].id, httpx.BasicAuth(role, secret)))


# Roles and passwords -------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"])
def test_roles(app: RunningApp, sender: ProposalsClient, desk: ProposalsClient, role: str) -> None:
    caller = ProposalsClient(app.caller(role))
    other, own = desk.propose(), None
    is_signed_in, may_decide = role != "anonymous", role in ("editor", "administrator")
    may_send = role not in ("anonymous", "subscriber")
    refused = 403 if is_signed_in else 401
    sent = caller.post("", {"values": EVENT})
    assert sent.status_code == (201 if may_send else refused)
    if may_send:
        own = sent.json()
        assert caller.ids(per_page=100).count(own["id"]) == 1
        expect_json(caller.edit(own, note="Now"))
    assert caller.caller.get(ROOT).status_code == (200 if is_signed_in else 401)
    is_hidden = 404 if role in ("subscriber", "contributor", "author") else 200 if is_signed_in else 401
    assert caller.caller.get(f"{ROOT}/{other['id']}").status_code == is_hidden
    edited = 200 if role == "editor" else 404 if role in ("contributor", "author") else refused
    assert caller.edit(other, note="Mine").status_code == edited
    for action, body in (("accept", {}), ("return", {"comment": "x"}), ("reject", {"reason": "other"}), ("undo", {})):
        response = caller.post(f"/{other['id']}/{action}", body, headers=if_match(99))
        assert response.status_code == ((409 if action == "undo" else 412) if may_decide else refused), action
    assert caller.post(f"/{other['id']}/withdraw").status_code == edited
    if own:
        expect_json(caller.withdraw(own))
        assert sender.caller.get(f"{ROOT}/{own['id']}").status_code == (200 if role == "contributor" else 404)


def test_password_for_proposals_only_proposes(app: RunningApp, desk: ProposalsClient) -> None:
    agent = with_password(app, "editor", "Posters", may_propose=True)
    proposal = agent.propose()
    assert desk.read(proposal)["sender"] == {"user": desk.caller.id, "name": "", "program": "Posters"}
    expect_json(agent.edit(proposal, note="Read from a poster"))
    assert_error(agent.act("accept", proposal), 403, "rest_read_only")
    assert_error(agent.caller.post("/events", EVENT), 403, "rest_read_only")
    operations = [{"method": "POST", "path": f"/proposals/{proposal['id']}/accept", "if_match": 2}]
    assert_error(agent.caller.post(BATCH, {"operations": operations}), 403, "rest_read_only")
    expect_json(agent.withdraw(proposal))
    reader = with_password(app, "editor", "Reader", read_only=True)
    assert reader.read(proposal)["state"] == "withdrawn"
    assert_error(reader.post("", {"values": EVENT}), 403, "rest_read_only")
    assert_error(reader.withdraw(proposal), 403, "rest_read_only")
    rights = app.sql(
        "SELECT name, read_only, may_propose FROM application_passwords WHERE name <> 'tests' ORDER BY 1"
    )
    assert [tuple(row) for row in rights] == [("Posters", True, True), ("Reader", True, False)]


def test_senders_only_propose_changes_of_what_they_may_read(
    sender: ProposalsClient, desk: ProposalsClient, app: RunningApp
) -> None:
    draft = desk.caller.create("events", **EVENT, status="draft")
    protected = desk.caller.create("events", **EVENT, new_password="secret!")
    trashed = desk.caller.create("events", **EVENT)
    desk.caller.trash("events", trashed["id"])
    seen = app.sql("SELECT revision FROM sites")[0][0]
    codes = {
        draft["id"]: "event-not-accessible",
        protected["id"]: "event-password-protected",
        trashed["id"]: "event-no-longer-available",
        99_999: "rest-event-not-found",
    }
    for event_id, code in codes.items():
        body = {"record": event_id, "base_revision": seen, "values": {"title": "Mine"}}
        assert_error(sender.post("", body), 404 if event_id == 99_999 else 403, code)


# Parameters ------------------------------------------------------------------------------------------

SAMPLES: dict[str, Any] = {
    "title": "A", "start_date": "2031-05-06", "end_date": "2031-05-07", "all_day": True, "description": "B",
    "cost": "5", "website": "https://example.org", "ticket_url": "https://example.org/t", "categories": [],
    "venue": {"venue": "C"}, "organizer": {"organizer": "D"}, "event_status": "cancelled", "status_reason": "E",
    "timezone": "Europe/Berlin", "excerpt": "F", "tags": [], "online_url": "https://example.org/o",
    "show_map": True, "show_map_link": True, "currency_symbol": "€", "currency_code": "EUR",
    "currency_position": "postfix", "image": None,
}  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_each_parameter_that_is_not_listed_is_refused(app: RunningApp, origin: Origin) -> None:
    """The lists are literal, so a new parameter of a kind is refused, too."""
    before = take_picture_of(app)
    for field in EVENTS.fields:
        if field.name not in ALLOWED_PARAMS[origin]:
            assert refuse(app, origin, {**EVENT, field.name: SAMPLES.get(field.name, "publish")}) == [field.name]
    for link, kind in (("venue", VENUES), ("organizer", ORGANIZERS)):
        refused = [field.name for field in kind.fields if field.name not in ALLOWED_LINK_PARAMS[link]]
        for name in (*refused, "id", "unknown"):
            for linked in ({link: "X", name: "1"}, [{link: "X", name: "1"}]):
                assert refuse(app, origin, {**EVENT, link: linked}) == [f"{link}.{name}"]
    assert refuse(app, origin, {**EVENT, "unknown": 1}) == ["unknown"]
    proposal_id = send_draft(app, origin, values={name: SAMPLES[name] for name in ALLOWED_PARAMS[origin]})
    row = find_row(app, proposal_id)
    assert row is not None
    assert (row["origin"], row["state"]) == (origin, "waiting")
    assert take_picture_of(app) == before


def refuse(app: RunningApp, origin: Origin, values: dict[str, Any]) -> list[str]:
    with pytest.raises(ApiError) as caught:
        send_draft(app, origin, values=values)
    assert (caught.value.status, caught.value.code) == (400, "rest_invalid_param")
    return list(caught.value.data["params"])  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"title": ""}, "title"),
        ({"start_date": "tomorrow"}, "start_date"),
        ({"start_date": "2031-13-01"}, "start_date"),
        ({"end_date": "2031-05-01"}, "end_date"),
        ({"start_date": "2020-05-01", "end_date": "2020-05-02"}, "end_date"),
        ({"categories": ["No such category"]}, "categories"),
        ({"categories": [99_999]}, "categories"),
        ({"tags": "no-such-tag"}, "tags"),
        ({"venue": 99_999}, "venue"),
        ({"venue": {"city": "Ghent"}}, "venue"),
        ({"organizer": {"organizer": "X", "website": "no address"}}, "organizer"),
        ({"image": 99_999}, "image"),
        ({"image": "https://example.org/a.jpg"}, "image"),
        ({"event_status": "gone"}, "event_status"),
    ],
)
def test_invalid_values_are_refused_on_arrival(sender: ProposalsClient, values: dict[str, Any], name: str) -> None:
    assert_error(sender.post("", {"values": {**EVENT, **values}}), 400, "rest_invalid_param", name)


def test_malformed_requests(sender: ProposalsClient, desk: ProposalsClient) -> None:
    event = desk.caller.create("events", **EVENT)
    change = {"record": event["id"], "base_revision": desk.revision(event["id"]), "values": {"title": "New"}}
    assert_error(sender.post("", {}), 400, "rest_missing_callback_param", "values")
    assert_error(sender.post("", {"values": {"title": "X"}}), 400, "rest_missing_callback_param")
    assert_error(sender.post("", {"values": [1]}), 400, "rest_invalid_param", "values")
    assert_error(sender.post("", {**change, "values": {}}), 400, "rest_invalid_param", "values")
    assert_error(sender.post("", {**change, "base_revision": 10**9}), 400, "rest_invalid_param", "base_revision")
    assert_error(sender.post("", {**change, "base_revision": None}), 400, "rest_missing_callback_param")
    assert_error(sender.post("", {**change, "guessed": ["cost"]}), 400, "rest_invalid_param", "guessed")
    assert_error(sender.post("", {**change, "guessed": ["status"]}), 400, "rest_invalid_param", "guessed")
    assert_error(sender.post("", {**change, "note": "x" * 2001}), 400, "rest_invalid_param", "note")
    assert_error(sender.post("", {"values": {**EVENT, "description": "x" * 70_000}}), 413, "rest_body_too_large")
    for path in (f"/{MISSING_ID}", f"/{MISSING_ID.upper()}"):
        assert_error(sender.caller.get(ROOT + path), 404, "proposal_not_found")
        assert_error(desk.post(f"{path}/accept", {}, headers=if_match(1)), 404, "proposal_not_found")
    for path in ("/7", "/" + "-" * 36, f"/{MISSING_ID}/publish"):
        assert_error(sender.caller.get(ROOT + path), 404, "rest_no_route")
    proposal = sender.propose(values={**EVENT, "description": "a\0b", "venue": {"venue": "c\0d"}}, note="e\0f")
    assert sender.read(proposal)["values"]["description"] == "ab"


def test_stored_terms_are_ids(sender: ProposalsClient, desk: ProposalsClient) -> None:
    category = desk.caller.create("categories", name="Concerts")
    proposal = sender.propose(values={**EVENT, "categories": ["concerts", category["id"]]})
    assert sender.read(proposal)["values"]["categories"] == [category["id"]]
    desk.caller.delete(f"/categories/{category['id']}")
    assert_error(desk.act("accept", proposal), 400, "rest_invalid_param", "categories")


# Sending again, limits -------------------------------------------------------------------------------


def test_second_change_of_an_event_replaces_the_first(sender: ProposalsClient, desk: ProposalsClient) -> None:
    event = desk.caller.create("events", **EVENT)
    first = sender.propose_change(event, title="First")
    second = sender.propose_change(event, cost="5")
    assert (second["id"], second["version"]) == (first["id"], 2)
    assert sender.read(first)["values"] == {"cost": "5"}
    assert desk.propose_change(event, title="Editor's")["id"] != first["id"]
    assert len(desk.ids(record=event["id"])) == 2


def test_open_proposals_are_limited(start_app: Any) -> None:
    app = start_app()
    sender = ProposalsClient(app.caller("contributor"))
    proposal = sender.propose()
    app.sql(
        "INSERT INTO proposals (site_id, id, origin, user_id, state, starts_at, created_at, expires_at, values) "
        "SELECT site_id, gen_random_uuid(), origin, user_id, state, starts_at, created_at, expires_at, values "
        "FROM proposals, generate_series(2, $1)",
        MAX_OPEN,
    )
    assert_error(sender.post("", {"values": EVENT}), 429, "rest_too_many_proposals")
    sender.withdraw(proposal)
    sender.propose()


# Lists -----------------------------------------------------------------------------------------------


def test_lists_have_pages_and_filters(start_app: Any) -> None:
    app = start_app()
    sender, desk = (ProposalsClient(app.caller(role)) for role in ("contributor", "editor"))
    days = (3, 1, 2, 1)
    sent = [
        sender.propose(values={**EVENT, "start_date": f"2031-05-0{day}", "end_date": "2031-05-09"}) for day in days
    ]
    by_start = [
        row["id"] for _, row in sorted(zip(days, sent, strict=True), key=lambda pair: (pair[0], pair[1]["id"]))
    ]
    own = desk.propose()
    hidden = send_draft(app, "public", state="unconfirmed")
    assert sender.ids() == by_start
    assert desk.ids() == [*by_start, own["id"]]
    found: list[str] = []
    query: dict[str, Any] = {"per_page": 2}
    while query.get("cursor", "") is not None:
        page = expect_json(sender.caller.get(ROOT, query))
        found += [row["id"] for row in page["proposals"]]
        query["cursor"] = page["next_cursor"]
    assert found == by_start
    desk.reject(sent[0])
    assert desk.ids(state="rejected") == [sent[0]["id"]]
    assert len(desk.ids(state="waiting,rejected", origin="api")) == 5
    assert desk.ids(origin="public") == []
    assert_error(desk.caller.get(f"{ROOT}/{hidden}"), 404, "proposal_not_found")
    assert_error(desk.post(f"/{hidden}/accept", {}, headers=if_match(1)), 404, "proposal_not_found")
    assert_error(desk.caller.get(ROOT, {"state": "unconfirmed"}), 400, "rest_invalid_param", "state")
    for cursor in ("x", f"2031-05-01~{MISSING_ID[:-1]}", "~", f"2031-05-01T00:00:00+00:00~{MISSING_ID}"):
        assert_error(desk.caller.get(ROOT, {"cursor": cursor}), 400, "rest_invalid_param", "cursor")


def test_responses_are_private_and_have_etags(sender: ProposalsClient) -> None:
    proposal = sender.propose()
    response = sender.caller.get(f"{ROOT}/{proposal['id']}")
    assert response.headers["cache-control"] == "no-store" or "private" in response.headers["cache-control"]
    tag = response.headers["etag"]
    assert tag.startswith('"1-')
    again = sender.caller.get(f"{ROOT}/{proposal['id']}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    assert sender.edit(proposal, 1, note="x").headers["etag"].startswith('"2-')


def test_stored_responses_have_nothing_that_people_entered(app: RunningApp, sender: ProposalsClient) -> None:
    """Responses to requests with an Idempotency-Key are stored for a day."""
    key = {"Idempotency-Key": "canary"}
    body = {"values": {**EVENT, "title": "Canary-title"}, "note": "Canary-note", "source": "Canary-source"}
    first, second = (sender.post("", body, headers=key) for _ in range(2))
    assert (first.json(), second.headers["idempotent-replay"]) == (second.json(), "true")
    ((stored,),) = app.sql("SELECT convert_from(body, 'UTF8') FROM idempotency WHERE key = 'canary'")
    assert "Canary" not in stored


# Batches and races -----------------------------------------------------------------------------------


def test_batch_decides_and_names_versions(sender: ProposalsClient, desk: ProposalsClient) -> None:
    first, second, third = (sender.propose() for _ in range(3))
    sender.edit(third, note="Changed")

    def operation(proposal: Any, action: str, version: int | None, **body: Any) -> dict[str, Any]:
        path = f"/proposals/{proposal['id']}/{action}"
        return {"method": "POST", "path": path, "body": body, **({"if_match": version} if version else {})}

    accept, reject = operation(first, "accept", 1), operation(second, "reject", 1, reason="other")
    failed = desk.caller.post(BATCH, {"operations": [accept, reject, operation(third, "accept", 1)]})
    assert assert_error(failed, 412, "rest_batch_failed")["operation"] == 2
    assert desk.read(first)["state"] == "waiting"
    missing = desk.caller.post(BATCH, {"operations": [operation(first, "accept", None)]})
    assert_error(missing, 428, "rest_batch_failed")
    operations = [
        accept,
        reject,
        operation(third, "return", 1, comment="x"),
        operation(third, "return", 2, comment="x"),
    ]
    results = expect_json(desk.caller.post(BATCH, {"operations": operations, "atomic": False}))["results"]
    assert [row["status"] for row in results] == [200, 200, 412, 200]
    assert [row["body"].get("state") for row in results] == ["accepted", "rejected", None, "returned"]
    undo = [operation(first, "undo", 2), operation(second, "undo", 2)]
    expect_json(desk.caller.post(BATCH, {"operations": undo}))
    for path in ("/proposals", f"/proposals/{first['id']}", f"/proposals/{first['id']}/withdraw"):
        response = desk.caller.post(BATCH, {"operations": [{"method": "POST", "path": path}]})
        assert response.json()["data"]["error"]["code"] == "rest_no_route"
    assert_error(sender.caller.post(BATCH, {"operations": [accept]}), 403, "rest_batch_failed")


def test_changes_of_one_event_in_a_batch_conflict(sender: ProposalsClient, desk: ProposalsClient) -> None:
    """The change log has the first change only when the batch ends."""
    event = desk.caller.create("events", **EVENT)
    first, second = sender.propose_change(event, title="First"), desk.propose_change(event, title="Second")
    operations = [
        {"method": "POST", "path": f"/proposals/{row['id']}/accept", "if_match": 1} for row in (first, second)
    ]
    response = desk.caller.post(BATCH, {"operations": operations})
    data = assert_error(response, 409, "rest_batch_failed")
    assert data["error"]["data"]["conflicts"]["title"]["record"] == "First"
    undo = {"method": "POST", "path": f"/proposals/{first['id']}/undo", "if_match": 2}
    expect_json(desk.caller.post(BATCH, {"operations": [operations[0], undo]}))
    assert desk.caller.read("events", event["id"])["title"] == "Choir"
    assert desk.read(first)["state"] == "waiting"


def test_one_of_two_concurrent_decisions_wins(
    app: RunningApp, sender: ProposalsClient, desk: ProposalsClient
) -> None:
    events = app.sql("SELECT count(*) FROM events")[0][0]
    runs = scaled(10, 200)
    admin = app.caller("administrator")

    async def race(proposal_id: str) -> list[int]:
        path, headers = f"{ROOT}/{proposal_id}/accept", if_match(1)
        work = [caller.request_async("POST", path, json={}, headers=headers) for caller in (desk.caller, admin)]
        return sorted(response.status_code for response in await asyncio.gather(*work))

    for _ in range(runs):
        proposal = sender.propose()
        assert app.run(race(proposal["id"])) == [200, 409]
        set_columns(app, proposal["id"], user_id=None)
    assert app.sql("SELECT count(*) FROM events")[0][0] == events + runs
