"""Endpoints that fail: the mark at once, notices after a day and at the end. Time passes in the database."""

import pytest

from tests.console.smtp_server import run_smtp_server
from tests.lifecycle.processes import wait_until
from tests.push.delivery_stand import DeliveryStand, Endpoint, OpenStand
from tests.push.webhook_receiver import OK, Answer

TASK = "send_webhook_notice"


@pytest.fixture
def endpoint(stand: DeliveryStand) -> Endpoint:
    """Return an endpoint that has just failed for the first time."""
    added = stand.add_endpoint(lambda _: Answer(503))
    stand.create(title="Failing")
    wait_until(lambda: stand.read(added)["failing_since_utc"] is not None, 10)
    return added


def _let_hours_pass(stand: DeliveryStand, endpoint: Endpoint, hours: float) -> None:
    stand.sql(
        "UPDATE webhooks SET failing_since = failing_since - make_interval(secs => 3600 * %s) WHERE id = %s",
        hours,
        endpoint.id,
    )
    stand.hasten(endpoint)


def _read_notices(stand: DeliveryStand, endpoint: Endpoint) -> list[str]:
    rows = stand.sql("SELECT args FROM notices WHERE args ->> 'webhook_id' = %s ORDER BY id", endpoint.id)
    return [row["args"]["notice"] for row in rows]


@pytest.fixture(autouse=True, scope="module")
def notices(stand: DeliveryStand) -> None:
    """Keep the jobs, which the worker deletes once the emails are sent."""
    stand.sql("CREATE TABLE notices (id bigserial, args jsonb)")
    stand.sql(
        "CREATE FUNCTION keep_notice() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
        "INSERT INTO public.notices (args) VALUES (NEW.args); RETURN NEW; END $$"
    )
    stand.sql(
        "CREATE TRIGGER keep_notice BEFORE INSERT ON procrastinate_jobs FOR EACH ROW "
        f"WHEN (NEW.task_name = '{TASK}') EXECUTE FUNCTION keep_notice()"
    )


def test_one_notice_after_a_day_and_one_when_it_is_disabled(stand: DeliveryStand, endpoint: Endpoint) -> None:
    _let_hours_pass(stand, endpoint, 23.9)
    wait_until(lambda: stand.read_consumer(endpoint)["waits"] >= 2, 10)
    assert _read_notices(stand, endpoint) == []
    _let_hours_pass(stand, endpoint, 0.2)
    wait_until(lambda: _read_notices(stand, endpoint) == ["failing"], 10)
    for _ in range(3):
        waits = stand.read_consumer(endpoint)["waits"]
        _let_hours_pass(stand, endpoint, 20)
        wait_until(lambda before=waits: stand.read_consumer(endpoint)["waits"] > before, 10)  # type: ignore[misc]
    assert _read_notices(stand, endpoint) == ["failing"]
    assert stand.read(endpoint)["state"] == "active"
    _let_hours_pass(stand, endpoint, 36)
    wait_until(lambda: stand.read(endpoint)["state"] == "disabled", 10)
    assert stand.read(endpoint)["disabled_reason"] == "failing"
    assert _read_notices(stand, endpoint) == ["failing", "disabled"]


def test_success_ends_the_failure(stand: DeliveryStand, endpoint: Endpoint) -> None:
    _let_hours_pass(stand, endpoint, 25)
    wait_until(lambda: _read_notices(stand, endpoint) == ["failing"], 10)
    endpoint.mailbox.respond = lambda _: OK
    stand.hasten(endpoint)
    stand.settle(endpoint)
    assert stand.read(endpoint)["failing_since_utc"] is None
    endpoint.mailbox.respond = lambda _: Answer(500)
    stand.create(title="Failing again")
    wait_until(lambda: stand.read(endpoint)["failing_since_utc"] is not None, 10)
    _let_hours_pass(stand, endpoint, 25)
    wait_until(lambda: _read_notices(stand, endpoint) == ["failing", "failing"], 10)


def test_notice_needs_no_further_change(stand: DeliveryStand, endpoint: Endpoint) -> None:
    """The record was given up, so nothing else is due."""
    stand.sql("UPDATE log_consumers SET cursor = (SELECT revision FROM sites), not_before = '-infinity', waits = 0")
    stand.sql("UPDATE webhooks SET failing_since = now() - interval '25 hours' WHERE id = %s", endpoint.id)
    stand.sql("UPDATE log_consumers SET due_at = now() WHERE consumer = %s", f"webhook:{endpoint.id}")
    wait_until(lambda: _read_notices(stand, endpoint) == ["failing"], 10)
    due_at = stand.read_consumer(endpoint)["due_at"]
    (row,) = stand.sql("SELECT failing_since + interval '5 days' AS end_at FROM webhooks WHERE id = %s", endpoint.id)
    assert due_at == row["end_at"]


def test_endpoint_that_is_gone_sends_one_notice(stand: DeliveryStand, endpoint: Endpoint) -> None:
    endpoint.mailbox.respond = lambda _: Answer(410)
    stand.hasten(endpoint)
    wait_until(lambda: stand.read(endpoint)["state"] == "disabled", 10)
    assert _read_notices(stand, endpoint) == ["gone"]


def test_notice_arrives_at_the_owner(open_new_stand: OpenStand) -> None:
    with (
        run_smtp_server() as smtp,
        open_new_stand({"KALENDS_SMTP_URL": smtp.url, "KALENDS_EMAIL_FROM": "calendar@example.org"}) as stand,
    ):
        stand.sql("UPDATE users SET email = login || '@example.org'")
        stand.start_worker()
        endpoint = stand.add_endpoint(lambda _: Answer(410))
        stand.create(title="Gone")
        wait_until(lambda: bool(smtp.messages), 30)
        assert smtp.recipients == [[f"{stand.users['administrator'].login}@example.org"]]
        assert f"{stand.server.base_url}/console/settings/webhooks/{endpoint.id}" in smtp.messages[0].get_content()
