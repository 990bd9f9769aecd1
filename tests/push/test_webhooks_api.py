"""Endpoints of webhooks in the API: settings, states, secrets shown once, replays, roles and wrong requests."""

from typing import Any

import psycopg
import pytest
from standardwebhooks import Webhook

from kalends.push import rules
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.push.webhooks_client import NEW, ROOT, WebhooksClient, add_delivery, list_pending, read_consumer

SOON = {"start_date": "2031-05-05 19:00:00", "end_date": "2031-05-05 21:00:00"}
SETTINGS = {**NEW, "kinds": [], "thin": False, "categories": [], "tags": [], "venue": [], "organizer": []}
BODIES: dict[str, Any] = {"": NEW, "/replay": {"since": 0}}


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    started = start_app_for_module()
    started.set_site("base_url", "https://calendar.example")
    return started


@pytest.fixture
def webhooks(app: RunningApp) -> WebhooksClient:
    client = WebhooksClient(app.caller("administrator"))
    client.delete_all()
    return client


def read_revision(app: RunningApp) -> int:
    revision: int = app.sql("SELECT revision FROM sites WHERE id = $1", app.site_id)[0]["revision"]
    return revision


def test_endpoint_is_created_read_changed_and_deleted(app: RunningApp, webhooks: WebhooksClient) -> None:
    response = webhooks.request("POST", "", NEW)
    created = expect_json(response, 201)
    path = f"{ROOT}/{created['id']}"
    assert response.headers["location"] == f"https://calendar.example{path[1:]}"
    assert response.headers["cache-control"].startswith("no-store") or "private" in response.headers["cache-control"]
    secret = created.pop("secret")
    assert {name: created[name] for name in SETTINGS} == SETTINGS
    assert (created["state"], created["owner"], created["cursor"]) == (
        "active",
        webhooks.caller.id,
        read_revision(app),
    )
    assert secret.startswith("whsec_")
    assert webhooks.read(created) == created
    assert webhooks.request("GET").json() == {"webhooks": [created]}
    venue = webhooks.caller.create("venues", venue="Town hall")
    changed = webhooks.change(created, name="App", kinds=["events"], venue=[venue["id"]], thin=True)
    assert changed == {**created, "name": "App", "kinds": ["events"], "venue": [venue["id"]], "thin": True}
    assert webhooks.change(created, url="https://other.example/")["venue"] == [venue["id"]]
    assert webhooks.change(created, venue=[])["venue"] == []
    deleted = expect_json(webhooks.request("DELETE", f"/{created['id']}"))
    assert deleted["id"] == created["id"]
    assert_error(webhooks.request("GET", f"/{created['id']}"), 404, "webhook_not_found")
    assert app.sql("SELECT FROM log_consumers WHERE consumer LIKE 'webhook:%'") == []


def test_endpoint_starts_with_the_next_change(app: RunningApp, webhooks: WebhooksClient) -> None:
    before = read_revision(app)
    created = webhooks.create()
    assert (created["cursor"], read_consumer(app, created)["cursor"]) == (before, before)
    webhooks.caller.create("tags", name="Open air")
    assert webhooks.read(created)["cursor"] == before


def test_pause_stops_the_consumer_and_resuming_wakes_it(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    app.sql(
        "UPDATE log_consumers SET lease = gen_random_uuid(), waits = 3 WHERE consumer = $1",
        f"webhook:{created['id']}",
    )
    paused = webhooks.change(created, state="paused")
    assert (paused["state"], paused["disabled_reason"]) == ("paused", "paused")
    assert paused["disabled_utc"] is not None
    assert [read_consumer(app, created)[name] for name in ("not_before", "lease")] == ["infinity", None]
    assert webhooks.change(created, state="paused") == paused
    webhooks.act("test", created)
    assert read_consumer(app, created)["not_before"] == "infinity"
    active = webhooks.change(created, state="active")
    assert (active["state"], active["disabled_utc"], active["disabled_reason"]) == ("active", None, "")
    consumer = read_consumer(app, created)
    assert (consumer["not_before"], consumer["waits"]) == ("-infinity", 0)
    assert consumer["due_at"] is not None


def test_disabled_endpoint_is_resumed_with_a_clean_slate(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    app.sql(
        "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing', failing_since = now(),"
        " notified_at = now() WHERE id = $1",
        created["id"],
    )
    disabled = webhooks.read(created)
    assert (disabled["state"], disabled["disabled_reason"]) == ("disabled", "failing")
    assert webhooks.change(created, state="paused")["state"] == "disabled"
    active = webhooks.change(created, state="active")
    assert (active["state"], active["failing_since_utc"]) == ("active", None)
    assert app.sql("SELECT notified_at FROM webhooks WHERE id = $1", created["id"])[0]["notified_at"] is None


def test_rotation_makes_a_new_secret(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    rotated = webhooks.act("rotate", created)
    assert rotated["secret"] != created["secret"]
    assert (created["rotated_utc"], rotated["rotated_utc"] is not None) == (None, True)
    (site,) = app.sql("SELECT secret FROM sites WHERE id = $1", app.site_id)
    (row,) = app.sql("SELECT generation, rotated_at FROM webhooks WHERE id = $1", created["id"])
    valid = rules.derive_valid_secrets(
        site["secret"],
        app.site_id,
        created["id"],
        row["generation"],
        rotated_at=row["rotated_at"],
        now=row["rotated_at"],
    )
    assert valid == [rotated["secret"], created["secret"]]
    assert Webhook(valid[0])
    third = webhooks.act("rotate", created)
    assert third["secret"] not in valid


def test_secret_is_in_no_other_response_and_in_no_table(app: RunningApp, webhooks: WebhooksClient) -> None:
    """Also a write that is repeated with its key does not show it again."""
    shown: list[str] = []
    created: Any = None
    for path in ("", "/{id}/rotate"):
        where = path.format(id=created["id"] if created else "")
        options: dict[str, Any] = {"headers": {"Idempotency-Key": f"secrets{path}"}}
        first = webhooks.request("POST", where, NEW if not path else None, **options)
        again = webhooks.request("POST", where, NEW if not path else None, **options)
        created = first.json()
        shown.append(created["secret"])
        assert (again.status_code, again.headers["idempotent-replay"]) == (first.status_code, "true")
        assert again.json() == {name: value for name, value in created.items() if name != "secret"}
        assert again.headers.get("location") == first.headers.get("location")
    keys = [secret.removeprefix("whsec_").rstrip("=") for secret in shown]
    paths = ["", f"/{created['id']}", f"/{created['id']}/deliveries"]
    for path in paths:
        assert not any(key in webhooks.request("GET", path).text for key in keys)
    assert "secret" not in webhooks.change(created, name="Other")
    tables = [
        row["name"]
        for row in app.sql(
            "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'public' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')"
        )
    ]
    assert {"webhooks", "idempotency", "log_consumers"} <= set(tables)
    for table in tables:
        text = "\n".join(row["text"] for row in app.sql(f"SELECT t::text AS text FROM {table} t"))
        assert not any(key in text for key in keys), table


def test_test_message_is_due_now(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    app.sql("UPDATE log_consumers SET not_before = now() + interval '1 hour' WHERE consumer = $1", name_of(created))
    assert webhooks.act("test", created)["waiting"] == 1
    assert list_pending(app, created) == [("webhook", 0, read_revision(app), 0)]
    assert read_consumer(app, created)["not_before"] == "-infinity"
    assert app.sql("SELECT replays FROM webhooks WHERE id = $1", created["id"])[0]["replays"] == 1


def name_of(webhook: Any) -> str:
    return f"webhook:{webhook['id']}"


def test_delivery_is_sent_again(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    event = webhooks.caller.create("events", title="Choir", **SOON)
    add_delivery(app, created, 1, record_id=event["id"], revision=read_revision(app), status=500, error="")
    webhooks.act("replay", created, delivery=1)
    assert list_pending(app, created) == [("events", event["id"], read_revision(app) - 1, 0)]
    app.sql("UPDATE webhook_pending SET attempts = 9, next_attempt_at = NULL, since = 1")
    row = webhooks.read(created)
    assert (row["given_up"], row["waiting"], row["cursor"]) == (1, 0, read_consumer(app, created)["cursor"])
    row = webhooks.act("replay", created, delivery=1)
    assert (row["given_up"], row["waiting"], row["cursor"]) == (0, 1, 1)
    assert list_pending(app, created) == [("events", event["id"], 1, 0)]
    assert_error(webhooks.request("POST", f"/{created['id']}/replay", {"delivery": 2}), 404, "webhook_not_found")


def test_replay_moves_the_cursor_back(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    start = created["cursor"]
    for number in range(3):
        webhooks.caller.create("tags", name=f"Replayed {number}")
    app.sql(
        "UPDATE log_consumers SET cursor = $2, lease = gen_random_uuid() WHERE consumer = $1",
        name_of(created),
        read_revision(app),
    )
    assert webhooks.act("replay", created, since=start + 1)["cursor"] == start + 1
    assert read_consumer(app, created)["lease"] is None
    assert webhooks.act("replay", created, since=start + 3)["cursor"] == start + 1  # Nothing is skipped.
    app.sql("UPDATE changes SET changed_at = now() - interval '2 days' WHERE revision <= $1", start + 1)
    app.sql("UPDATE log_consumers SET cursor = $2 WHERE consumer = $1", name_of(created), read_revision(app))
    assert webhooks.act("replay", created, date="-1 day")["cursor"] == start + 1
    assert app.sql("SELECT replays FROM webhooks WHERE id = $1", created["id"])[0]["replays"] == 3


def test_replay_from_before_the_log_is_refused(start_app: StartApp) -> None:
    app = start_app()
    app.set_site("base_url", "https://calendar.example")
    webhooks = WebhooksClient(app.caller("administrator"))
    created = webhooks.create()
    for number in range(4):
        webhooks.caller.create("tags", name=f"Trimmed {number}")
    trimmed = created["cursor"] + 2
    path = f"/{created['id']}/replay"
    assert webhooks.act("replay", created, since=trimmed)
    app.sql("DELETE FROM changes WHERE revision <= $1", trimmed)
    app.sql("UPDATE sites SET trimmed_revision = $1 WHERE id = $2", trimmed, app.site_id)
    for body in ({"since": trimmed - 1}, {"date": "2020-01-01"}):
        assert assert_error(webhooks.request("POST", path, body), 410, "rest_history_expired")["oldest"] == trimmed
    assert webhooks.act("replay", created, since=trimmed)
    assert webhooks.act("replay", created, date="now")


def test_deliveries_are_listed_in_pages(app: RunningApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    for number in range(1, 6):
        add_delivery(
            app, created, number, status=None if number == 3 else 200, error="timeout" if number == 3 else ""
        )
    path = f"/{created['id']}/deliveries"
    page = webhooks.request("GET", path, params={"per_page": 3}).json()
    assert ([row["number"] for row in page["deliveries"]], page["next_before"]) == ([5, 4, 3], 3)
    failed = page["deliveries"][2]
    assert (failed["status"], failed["error"], failed["record"], failed["milliseconds"]) == (None, "timeout", 7, 12)
    page = webhooks.request("GET", path, params={"before": page["next_before"]}).json()
    assert ([row["number"] for row in page["deliveries"]], page["next_before"]) == ([2, 1], None)


def test_site_has_at_most_20_endpoints(webhooks: WebhooksClient) -> None:
    created = [webhooks.create(name=f"Endpoint {number}") for number in range(rules.MAX_WEBHOOKS)]
    assert len({each["id"] for each in created}) == len({each["secret"] for each in created}) == 20
    assert_error(webhooks.request("POST", "", NEW), 409, "rest_too_many_webhooks")
    expect_json(webhooks.request("DELETE", f"/{created[0]['id']}"))
    webhooks.create()


def test_endpoint_needs_a_base_url(start_app: StartApp) -> None:
    app = start_app()
    client = WebhooksClient(app.caller("administrator"))
    assert_error(client.request("POST", "", NEW), 409, "rest_base_url_required")
    app.set_site("base_url", "https://calendar.example")
    client.create()


@pytest.mark.parametrize(
    ("fields", "name", "reason"),
    [
        ({"url": "http://hooks.example/"}, "url", "https URL on port 443"),
        ({"url": "https://hooks.example:8443/"}, "url", "https URL on port 443"),
        ({"url": "https://127.0.0.1/"}, "url", "https URL on port 443"),
        ({"url": "https://[::ffff:169.254.169.254]/"}, "url", "https URL on port 443"),
        ({"url": "https://anna:word@hooks.example/"}, "url", "http or https URL"),
        ({"url": "file:///etc/passwd"}, "url", "http or https URL"),
        ({"url": "https://hooks.example/\x00"}, "url", "http"),
        ({"url": f"https://hooks.example/{'x' * 2000}"}, "url", "2000"),
        ({"url": 7}, "url", "string"),
        ({"name": " "}, "name", "non-empty"),
        ({"name": "x" * 101}, "name", "100"),
        ({"kinds": ["event"]}, "kinds", "one or more of"),
        ({"kinds": ["venues"], "tags": ["jazz"]}, "kinds", "filters events"),
        ({"tags": ["no such tag"]}, "tags", "no such tag"),
        ({"categories": [99999]}, "categories", "99999"),
        ({"venue": ["x"]}, "venue", "integer"),
        ({"thin": "perhaps"}, "thin", "boolean"),
    ],
)
def test_invalid_endpoint_is_rejected(
    webhooks: WebhooksClient, fields: dict[str, Any], name: str, reason: str
) -> None:
    webhooks.caller.post("/tags", {"name": "Jazz"})
    for method, path in (("POST", ""), ("PATCH", f"/{webhooks.create()['id']}")):
        response = webhooks.request(method, path, {**NEW, **fields} if method == "POST" else fields)
        data = assert_error(response, 400, "rest_invalid_param", name)
        assert reason in data["params"][name]
    assert len(webhooks.request("GET").json()["webhooks"]) == 1


def test_url_with_a_lone_surrogate_is_rejected(webhooks: WebhooksClient) -> None:
    content = b'{"name": "Website", "url": "https://hooks.example/\\ud800"}'
    response = webhooks.caller.request("POST", ROOT, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["code"] in ("rest_invalid_json", "rest_invalid_param")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("", {}, 400, "rest_missing_callback_param"),
        ("", "name", 400, "rest_missing_callback_param"),
        ("/{id}", {"state": "disabled"}, 400, "rest_invalid_param"),
        ("/{id}", {"state": None}, 400, "rest_invalid_param"),
        ("/{id}/replay", {}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"since": 0, "date": "yesterday"}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"since": 2**53 - 1}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"since": -1}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"date": "+1 day"}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"date": "not a day"}, 400, "rest_invalid_param"),
        ("/{id}/replay", {"delivery": 999}, 404, "webhook_not_found"),
        ("/{id}/explode", {}, 404, "rest_no_route"),
        ("/abcdefghijkl", {"name": "x"}, 404, "webhook_not_found"),
        ("/123456789012", {"name": "x"}, 404, "rest_no_route"),
        ("/short", {"name": "x"}, 404, "rest_no_route"),
    ],
)
def test_malformed_request_is_rejected(
    webhooks: WebhooksClient, path: str, body: Any, status: int, code: str
) -> None:
    created = webhooks.create()
    assert_error(webhooks.request("POST", path.format(id=created["id"]), body), status, code)
    assert webhooks.read(created) == {name: value for name, value in created.items() if name != "secret"}


@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor"])
def test_webhooks_require_an_administrator(app: RunningApp, webhooks: WebhooksClient, role: str) -> None:
    created = webhooks.create()
    caller = WebhooksClient(app.caller(role))
    actions = [("POST", f"/{action}") for action in ("test", "rotate", "replay")]
    routes = [("GET", ""), ("POST", "")]
    routes += [
        (method, f"/{created['id']}{path}")
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/deliveries"), *actions)
    ]
    for method, path in routes:
        body = None if method in ("GET", "DELETE") else BODIES.get(path[13:] if len(path) > 1 else "", {})
        response = caller.request(method, path, body)
        assert_error(response, 401 if role == "anonymous" else 403, "rest_forbidden")
        assert created["url"] not in response.text
    assert webhooks.read(created) == {name: value for name, value in created.items() if name != "secret"}
    assert list_pending(app, created) == []


def test_endpoint_of_another_site_is_unknown(start_app: StartApp, webhooks: WebhooksClient) -> None:
    created = webhooks.create()
    other = start_app()
    foreign = WebhooksClient(other.caller("administrator"))
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate"), ("POST", "/test"), ("GET", "/deliveries")):
        assert_error(foreign.request(method, f"/{created['id']}{path}"), 404, "webhook_not_found")
    assert foreign.request("GET").json() == {"webhooks": []}
    assert webhooks.read(created)["rotated_utc"] is None


def test_owner_becomes_empty_when_the_account_is_deleted(start_app: StartApp) -> None:
    app = start_app()
    app.set_site("base_url", "https://calendar.example")
    webhooks = WebhooksClient(app.caller("administrator"))
    created = webhooks.create()
    app.sql("UPDATE users SET role = 'administrator' WHERE login = 'editor'")
    app.sql("DELETE FROM users WHERE id = $1", webhooks.caller.id)
    assert WebhooksClient(app.caller("editor")).read(created)["owner"] is None


def test_repeated_request_creates_one_endpoint(webhooks: WebhooksClient) -> None:
    headers = {"Idempotency-Key": "one endpoint"}
    first, second = (webhooks.request("POST", "", NEW, headers=headers).json() for _ in range(2))
    assert first["id"] == second["id"]
    assert len(webhooks.request("GET").json()["webhooks"]) == 1
    changed = webhooks.request("POST", "", {**NEW, "name": "Other"}, headers=headers)
    assert_error(changed, 422, "rest_idempotency_mismatch")


def test_allowed_networks_permit_other_urls(start_app: StartApp) -> None:
    app = start_app(
        {"KALENDS_FETCH_ALLOWED_NETWORKS": "10.1.2.3:8080", "KALENDS_BASE_URL": "https://calendar.example"}
    )
    client = WebhooksClient(app.caller("administrator"))
    assert client.create(url="http://10.1.2.3:8080/hook")["url"] == "http://10.1.2.3:8080/hook"
    assert_error(
        client.request("POST", "", {**NEW, "url": "http://10.1.2.4:8080/"}), 400, "rest_invalid_param", "url"
    )


def test_read_only_password_changes_nothing(app: RunningApp, webhooks: WebhooksClient, administrator: Caller) -> None:
    created = webhooks.create()
    (before,) = app.sql("SELECT count(*) AS rows FROM application_passwords WHERE read_only")
    app.sql("UPDATE application_passwords SET read_only = true WHERE user_id = $1", administrator.id)
    try:
        for path in ("", f"/{created['id']}/rotate", f"/{created['id']}/test"):
            assert_error(webhooks.request("POST", path, NEW), 403, "rest_read_only")
        assert webhooks.read(created)["rotated_utc"] is None
    finally:
        app.sql("UPDATE application_passwords SET read_only = false WHERE user_id = $1", administrator.id)
    assert before["rows"] == 0


def test_endpoint_whose_filter_is_gone_can_be_paused(webhooks: WebhooksClient) -> None:
    tag = webhooks.caller.create("tags", name="Short-lived")
    created = webhooks.create(tags=["short-lived"])
    webhooks.caller.trash("tags", tag["id"])
    assert webhooks.change(created, state="paused")["tags"] == ["short-lived"]
    assert_error(webhooks.request("PATCH", f"/{created['id']}", {"kinds": []}), 400, "rest_invalid_param", "tags")
    assert webhooks.change(created, tags=[], state="active")["tags"] == []


def test_writes_know_nothing_of_endpoints(app: RunningApp, webhooks: WebhooksClient, statements: list[str]) -> None:
    editor = app.caller("editor")

    def write() -> list[str]:
        event = editor.create("events", title="Concert", venue={"venue": "Town hall"}, **SOON)
        statements.clear()
        editor.create("events", title="Reading", **SOON)
        editor.change("events", event["id"], title="Matinee")
        editor.trash("events", event["id"])
        return list(statements)

    alone = write()
    for _ in range(3):
        webhooks.create()
    assert write() == alone
    with psycopg.connect(app.database_url) as follower:
        for table in ("log_consumers", "webhooks", "webhook_pending", "webhook_deliveries"):
            follower.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        assert write() == alone
