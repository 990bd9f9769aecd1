"""Messages of a real worker to a real receiver: their types, bodies and order, and what each response leads to."""

import time
from collections.abc import Iterator

import pytest

from kalends.push.rules import PAGE_RECORDS
from tests.api.running_app import API_PATH
from tests.api.sample_records import DATES
from tests.lifecycle.processes import wait_until
from tests.push.delivery_stand import DeliveryStand, Endpoint
from tests.push.webhook_receiver import OK, Answer, Received

UTC_FIELDS = {"modified", "modified_utc"}


@pytest.fixture
def endpoint(stand: DeliveryStand) -> Iterator[Endpoint]:
    added = stand.add_endpoint()
    yield added
    stand.remove_endpoint(added)


def test_event_is_created_updated_and_deleted(stand: DeliveryStand, endpoint: Endpoint) -> None:
    before = stand.read_revision()
    event = stand.create(title="Choir")
    stand.settle(endpoint)
    (created,) = endpoint.mailbox.received
    data = created.json["data"]
    revision = stand.read_revision()
    assert created.json["type"] == "event.created"
    assert (data["revision"], data["since"], data["changed"], created.json["cursor"]) == (
        revision,
        before,
        [],
        before,
    )
    (change,) = stand.client.get("/api/kalends/v1/changes", params={"since": before}).json()["changes"]
    assert data["record"] == change["record"]
    assert created.id == f"msg_{endpoint.id}_{revision}"
    assert abs(int(created.headers["webhook-timestamp"]) - time.time()) < 30
    assert created.headers["content-type"] == "application/json"
    assert created.is_signed_with(endpoint.secret)

    stand.change(event, title="Great choir", event_status="cancelled", status_reason="Cold")
    stand.settle(endpoint)
    updated = endpoint.mailbox.received[1].json
    assert (updated["type"], updated["data"]["since"]) == ("event.updated", revision)
    assert updated["data"]["changed"] == ["event_status", "status_reason", "title"]
    assert updated["data"]["record"]["title"] == "Great choir"
    stand.delete(event)
    stand.settle(endpoint)
    deleted = endpoint.mailbox.received[2].json
    assert deleted["type"] == "event.deleted"
    assert deleted["data"] == {
        "revision": stand.read_revision(),
        "since": updated["data"]["revision"],
        "record": {"id": event["id"]},
    }
    (entry, *_) = stand.list_deliveries(endpoint)
    assert (entry["status"], entry["type"], entry["attempt"], entry["error"]) == (200, "event.created", 1, "")


def test_all_kinds_are_sent_in_the_order_of_their_revisions(stand: DeliveryStand, endpoint: Endpoint) -> None:
    category = stand.create("categories", name="Music")
    stand.create("tags", name="Free")
    stand.create("organizers", organizer="Rosa")
    stand.create("venues", venue="Town hall")
    stand.create(title="Choir", categories=[category["id"]])
    stand.settle(endpoint)
    stand.change(category, "categories", name="Song")
    stand.delete(category, "categories")
    stand.settle(endpoint)
    types = endpoint.mailbox.types
    first = {"category.created", "tag.created", "organizer.created", "venue.created", "event.created"}
    assert set(types[:5]) == first
    assert {"category.deleted", "event.updated"} >= set(types[5:]) >= {"category.deleted"}
    assert "count" not in endpoint.mailbox.received[0].json["data"]["record"]


def test_unpublished_records_send_nothing_until_they_are_public(stand: DeliveryStand, endpoint: Endpoint) -> None:
    draft = stand.create(title="Draft", status="draft")
    private = stand.create(title="Private", status="private")
    hidden = stand.create(title="Hidden", hide_from_listings=True)
    stand.change(draft, title="Still a draft")
    stand.delete(private, force=True)
    stand.settle(endpoint)
    assert endpoint.mailbox.types == []
    stand.change(draft, status="publish")
    stand.change(hidden, hide_from_listings=False)
    stand.settle(endpoint)
    assert endpoint.mailbox.types == ["event.created"] * 2
    stand.change(draft, status="private")
    stand.change(hidden, hide_from_listings=True)
    stand.settle(endpoint)
    assert endpoint.mailbox.types[2:] == ["event.deleted"] * 2


def test_protected_event_is_locked(stand: DeliveryStand, endpoint: Endpoint) -> None:
    stand.create(title="Members", description="Behind the curtain", new_password="opensesame")
    (message,) = endpoint.mailbox.wait_for(1)
    assert b"curtain" not in message.body
    assert message.json["data"]["record"]["title"] == "Members"


def test_filter_sends_only_linked_events(stand: DeliveryStand) -> None:
    venue, other = (stand.create("venues", venue=name) for name in ("Castle", "Library"))
    endpoint = stand.add_endpoint(venue=[venue["id"]])
    here, elsewhere = (stand.create(title=place["venue"], venue=[place["id"]]) for place in (venue, other))
    stand.change(elsewhere, title="Readings")
    stand.delete(elsewhere)
    stand.settle(endpoint)
    assert [(message.json["type"], message.key) for message in endpoint.mailbox.received] == [
        ("event.created", f"event/{here['id']}")
    ]
    stand.change(here, venue=[other["id"]])
    stand.settle(endpoint)
    assert endpoint.mailbox.types[1:] == ["event.deleted"]
    moved = stand.create(title="Moves", venue=[other["id"]])
    stand.change(moved, venue=[venue["id"]])
    stand.settle(endpoint)
    assert endpoint.mailbox.types[2:] == ["event.created"]
    stand.remove_endpoint(endpoint)


def test_thin_and_large_records_are_sent_as_addresses(stand: DeliveryStand, endpoint: Endpoint) -> None:
    thin = stand.add_endpoint(thin=True)
    small, large = stand.create(title="Small"), stand.create(title="Large", description="x" * 25_000)
    for each in (endpoint, thin):
        stand.settle(each)
    records = [
        {message.json["data"]["record"]["id"]: message.json["data"]["record"] for message in each.mailbox.received}
        for each in (endpoint, thin)
    ]
    base_url = stand.settings["KALENDS_BASE_URL"]
    for record in (records[0][large["id"]], records[1][small["id"]], records[1][large["id"]]):
        assert set(record) == {"id", "rest_url"}
        assert record["rest_url"].startswith(f"{base_url}/api/")
        assert stand.client.get(record["rest_url"]).json()["id"] == record["id"]
    assert records[0][small["id"]]["title"] == "Small"
    stand.remove_endpoint(thin)


def test_test_message_has_no_record(stand: DeliveryStand, endpoint: Endpoint) -> None:
    stand.act(endpoint, "test")
    stand.act(endpoint, "test")
    endpoint.mailbox.wait_for(1)
    stand.settle(endpoint)
    assert set(endpoint.mailbox.types) == {"webhook.test"}
    assert endpoint.mailbox.received[0].is_signed_with(endpoint.secret)


def test_rotation_signs_with_both_secrets_for_a_day(stand: DeliveryStand, endpoint: Endpoint) -> None:
    rotated = stand.client.post(f"/api/kalends/v1/webhooks/{endpoint.id}/rotate").json()["secret"]
    stand.create(title="Signed")
    (message,) = endpoint.mailbox.wait_for(1)
    assert message.is_signed_with(rotated)
    assert message.is_signed_with(endpoint.secret)
    stand.sql("UPDATE webhooks SET rotated_at = rotated_at - interval '24 hours' WHERE id = %s", endpoint.id)
    stand.create(title="Signed later")
    message = endpoint.mailbox.wait_for(2)[1]
    assert message.is_signed_with(rotated)
    assert not message.is_signed_with(endpoint.secret)


def test_failed_record_is_tried_again_while_others_go_on(stand: DeliveryStand, endpoint: Endpoint) -> None:
    def fail_poison(message: Received) -> Answer:
        return Answer(500) if b"Poison" in message.body else OK

    endpoint.mailbox.respond = fail_poison
    poison, fine = stand.create(title="Poison"), stand.create(title="Fine")
    endpoint.mailbox.wait_for(2)
    wait_until(lambda: stand.read(endpoint)["waiting"] == 1, 10)
    stand.change(fine, title="Finer")
    stand.change(poison, title="Cured")
    wait_until(lambda: stand.read_consumer(endpoint)["cursor"] == stand.read_revision(), 10)
    state = stand.read(endpoint)
    (pending,) = stand.sql("SELECT * FROM webhook_pending WHERE webhook_id = %s", endpoint.id)
    assert (pending["record_id"], pending["attempts"], pending["last_status"]) == (poison["id"], 1, 500)
    assert state["cursor"] == pending["since"] < stand.read_consumer(endpoint)["cursor"]
    stand.settle(endpoint)  # after five seconds
    entries = [entry for entry in stand.list_deliveries(endpoint) if entry["record"] == poison["id"]]
    assert [(entry["status"], entry["attempt"]) for entry in entries] == [(500, 1), (200, 2)]
    last = endpoint.mailbox.received[-1].json["data"]
    assert (last["record"]["title"], last["since"]) == ("Cured", pending["since"])
    assert stand.read(endpoint)["failing_since_utc"] is None


def test_given_up_record_starts_again_with_its_next_change(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(422)
    event = stand.create(title="Rejected")
    for attempt in range(1, 11):
        wait_until(lambda number=attempt: _read_attempts(stand, endpoint) == number, 20)  # type: ignore[misc]
        stand.hasten(endpoint)
    assert stand.read(endpoint)["given_up"] == 1
    assert stand.read(endpoint)["cursor"] == stand.read_revision()
    assert len({message.id for message in endpoint.mailbox.received}) == 1
    endpoint.mailbox.respond = lambda message: OK
    stand.change(event, title="Welcome")
    stand.settle(endpoint)
    assert endpoint.mailbox.received[-1].json["type"] == "event.created"
    assert stand.list_deliveries(endpoint)[-1]["attempt"] == 1
    assert stand.read(endpoint)["given_up"] == 0


def _read_attempts(stand: DeliveryStand, endpoint: Endpoint) -> int:
    rows = stand.sql("SELECT attempts FROM webhook_pending WHERE webhook_id = %s", endpoint.id)
    return rows[0]["attempts"] if rows else 0


@pytest.mark.parametrize("answer", [Answer(503), Answer(429), Answer(502), Answer(is_cut=True)])
def test_endpoint_that_is_down_waits_and_misses_nothing(
    stand: DeliveryStand, endpoint: Endpoint, answer: Answer
) -> None:
    endpoint.mailbox.respond = lambda message: answer
    before = stand.read_revision()
    events = [stand.create(title=f"Event {number}") for number in range(3)]
    wait_until(lambda: stand.read_consumer(endpoint)["waits"] == 1, 10)
    consumer = stand.read_consumer(endpoint)
    assert consumer["cursor"] == before
    assert consumer["not_before"] is not None
    assert stand.read(endpoint)["waiting"] == 0
    assert stand.read(endpoint)["failing_since_utc"] is not None
    endpoint.mailbox.respond = lambda message: OK
    endpoint.mailbox.received.clear()
    stand.settle(endpoint)  # after five seconds
    assert {message.key for message in endpoint.mailbox.received} == {f"event/{event['id']}" for event in events}
    assert (stand.read_consumer(endpoint)["waits"], stand.read(endpoint)["failing_since_utc"]) == (0, None)


def test_retry_after_is_respected(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(429, {"Retry-After": "3600"})
    stand.create(title="Later")
    wait_until(lambda: stand.read_consumer(endpoint)["waits"] == 1, 10)
    (row,) = stand.sql(
        "SELECT extract(epoch FROM not_before - now())::float8 AS seconds FROM log_consumers WHERE consumer = %s",
        f"webhook:{endpoint.id}",
    )
    assert 3500 < row["seconds"] < 3601


def test_slow_record_does_not_stop_the_others(stand: DeliveryStand, endpoint: Endpoint) -> None:
    """A record that times out looks like a server that is down, unless others are delivered."""
    endpoint.mailbox.respond = lambda message: Answer(504) if b"Slow" in message.body else OK
    slow = stand.create(title="Slow")
    for number in range(5):
        stand.create(title=f"Quick {number}")
    wait_until(lambda: stand.read(endpoint)["waiting"] == 1, 20)
    assert stand.read_consumer(endpoint)["cursor"] == stand.read_revision()
    (pending,) = stand.sql("SELECT record_id FROM webhook_pending WHERE webhook_id = %s", endpoint.id)
    assert pending["record_id"] == slow["id"]


def test_redirect_is_a_failure(stand: DeliveryStand, endpoint: Endpoint) -> None:
    target = stand.receiver.add_mailbox()
    endpoint.mailbox.respond = lambda message: Answer(308, {"Location": target.url})
    stand.create(title="Elsewhere")
    wait_until(lambda: stand.read(endpoint)["waiting"] == 1, 10)
    assert target.received == []
    assert stand.list_deliveries(endpoint)[0]["status"] == 308


def test_endpoint_that_is_gone_is_disabled_at_once(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(410)
    stand.create(title="Last")
    wait_until(lambda: stand.read(endpoint)["state"] == "disabled", 10)
    assert stand.read(endpoint)["disabled_reason"] == "gone"
    stand.create(title="Unheard")
    time.sleep(2)
    assert len(endpoint.mailbox.received) == 1
    endpoint.mailbox.respond = lambda message: OK
    stand.client.patch(f"/api/kalends/v1/webhooks/{endpoint.id}", json={"state": "active"})
    stand.settle(endpoint)
    titles = {message.json["data"]["record"]["title"] for message in endpoint.mailbox.received[1:]}
    assert titles == {"Last", "Unheard"}


def test_only_changes_after_a_pause_wait_for_its_end(stand: DeliveryStand, endpoint: Endpoint) -> None:
    path = f"/api/kalends/v1/webhooks/{endpoint.id}"
    stand.client.patch(path, json={"state": "paused"})
    stand.create(title="In the meantime")
    time.sleep(2)
    assert endpoint.mailbox.received == []
    stand.client.patch(path, json={"state": "active"})
    endpoint.mailbox.wait_for(1)


def test_a_withdrawal_is_told_even_if_later_changes_move_the_record(stand: DeliveryStand, endpoint: Endpoint) -> None:
    """While an endpoint catches up, a record comes with its latest change, long after that of the withdrawal."""
    event = stand.create(title="Withdrawn")
    stand.settle(endpoint)
    path = f"/api/kalends/v1/webhooks/{endpoint.id}"
    stand.client.patch(path, json={"state": "paused"})
    stand.change(event, status="draft")
    for number in range(2 * PAGE_RECORDS + 1):
        stand.create("tags", name=f"Tag {number}")
    stand.change(event, title="Still withdrawn")
    stand.client.patch(path, json={"state": "active"})
    stand.settle(endpoint)
    assert [m.json["type"] for m in endpoint.mailbox.received if m.json["type"].startswith("event")] == [
        "event.created", "event.deleted"
    ]  # fmt: skip
    assert stand.read_consumer(endpoint)["position"] is None


def test_several_changes_are_one_net_change(stand: DeliveryStand, endpoint: Endpoint) -> None:
    event = stand.create(title="Choir", description="Long")
    stand.settle(endpoint)
    path = f"/api/kalends/v1/webhooks/{endpoint.id}"
    stand.client.patch(path, json={"state": "paused"})
    brief = stand.create(title="Brief")
    stand.delete(brief, force=True)
    for title in ("Band", "Choir"):
        stand.change(event, title=title)
    stand.change(event, description="Short")
    stand.change(event, status="draft")
    stand.change(event, status="publish")
    stand.client.patch(path, json={"state": "active"})
    stand.settle(endpoint)
    messages = {message.key: message.json for message in endpoint.mailbox.received[1:]}
    assert messages.keys() == {f"event/{event['id']}", f"event/{brief['id']}"}
    update = messages[f"event/{event['id']}"]
    assert (update["type"], update["data"]["changed"]) == ("event.updated", ["description"])
    # The receiver may have it: a message whose delivery seemed to fail can have arrived.
    assert messages[f"event/{brief['id']}"]["type"] == "event.deleted"


def test_replay_has_new_ids(stand: DeliveryStand, endpoint: Endpoint) -> None:
    before = stand.read_revision()
    stand.create(title="Again")
    stand.settle(endpoint)
    stand.act(endpoint, "replay", since=before)
    first, second = endpoint.mailbox.wait_for(2)
    assert second.id == f"{first.id}_1"
    assert first.json["data"]["record"] == second.json["data"]["record"]
    delivery = stand.list_deliveries(endpoint)[0]
    stand.act(endpoint, "replay", delivery=delivery["number"])
    third = endpoint.mailbox.wait_for(3)[2]
    assert third.id == f"{first.id}_2"
    stand.settle(endpoint)


def test_trimmed_log_tells_the_receiver_to_start_again(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(503)
    stand.create(title="Forgotten")
    wait_until(lambda: stand.read_consumer(endpoint)["waits"] == 1, 10)
    revision = stand.read_revision()
    stand.sql("DELETE FROM changes WHERE revision <= %s", revision)
    stand.sql("UPDATE sites SET trimmed_revision = %s", revision)
    endpoint.mailbox.respond = lambda message: OK
    endpoint.mailbox.received.clear()
    stand.hasten(endpoint)
    stand.settle(endpoint)
    (reset,) = endpoint.mailbox.received
    assert (reset.json["type"], reset.json["data"]) == ("site.reset", {"revision": revision})
    stand.create(title="Remembered")
    assert endpoint.mailbox.wait_for(2)[1].json["type"] == "event.created"


def test_at_most_16_requests_at_a_time(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(delay=0.2)
    stand.receiver.most_concurrent = 0
    stand.client.patch(f"/api/kalends/v1/webhooks/{endpoint.id}", json={"state": "paused"})
    for number in range(40):
        stand.create("tags", name=f"Concurrent {number}")
    stand.client.patch(f"/api/kalends/v1/webhooks/{endpoint.id}", json={"state": "active"})
    stand.settle(endpoint)
    assert len(endpoint.mailbox.received) == 40
    assert 8 <= stand.receiver.most_concurrent <= 16


def test_log_keeps_the_newest_deliveries(stand: DeliveryStand, endpoint: Endpoint) -> None:
    stand.sql("UPDATE webhooks SET sent = 5000 WHERE id = %s", endpoint.id)
    stand.sql(
        "INSERT INTO webhook_deliveries (site_id, webhook_id, number, sent_at, message_id, type, kind, record_id, "
        "revision, attempt, status, milliseconds) SELECT 1, %s, n, now(), 'x', 'event.updated', 'events', 1, 1, 1, "
        "200, 1 FROM generate_series(3990, 5000) n",
        endpoint.id,
    )
    stand.create(title="One more")
    stand.settle(endpoint)
    (row,) = stand.sql(
        "SELECT count(*), min(number), max(number) FROM webhook_deliveries WHERE webhook_id = %s", endpoint.id
    )
    assert (row["count"], row["min"], row["max"]) == (1000, 4002, 5001)


def test_worker_logs_no_body_and_no_error(stand: DeliveryStand) -> None:
    log = stand.log.read_text()
    assert "Traceback" not in log, log[-3000:]
    assert "Poison" not in log


def test_delivery_survives_lost_connections(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda message: Answer(delay=1)
    stand.create(title="Before")
    wait_until(lambda: stand.receiver.concurrent == 1, 10)
    stand.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    endpoint.mailbox.respond = lambda message: OK
    body = {"title": "After", **DATES}
    # The server's connections are lost, too.
    wait_until(lambda: stand.client.post(f"{API_PATH}/events", json=body).status_code == 201, 20)
    stand.settle(endpoint, 45)
    assert "After" in {message.json["data"]["record"]["title"] for message in endpoint.mailbox.received}
    assert stand.workers[-1].is_running()
