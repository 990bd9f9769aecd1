"""Attacks on sessions: forged requests, fixation, a stolen database, caches, redirects, enumeration, framing."""

import re
import time
from base64 import b64encode, urlsafe_b64decode
from typing import Any

import httpx
import pytest

from kalends.accounts.operations.sign_in_methods import Purpose, create_link_token, hash_token
from kalends.console.console_request import ConsoleRoute
from kalends.core import credentials
from kalends.http.auth import COOKIE
from kalends.routes import CONSOLE as ROUTES
from tests.api.conftest import StartApp
from tests.api.running_app import API_PATH, HOST, RunningApp
from tests.console.console_client import PASSWORD, ConsoleClient, set_passwords
from tests.soak import SOAK

OWN, OTHER = f"https://{HOST}", "https://evil.example"
JSON = {"accept": "application/json"}
# Sec-Fetch-Site, Origin, and whether a write is accepted. None: the header is absent.
HEADERS = [
    ("same-origin", OTHER, True),  # Pages cannot change the first header, so it decides.
    ("same-site", OWN, False),  # Sites of one operator may share a domain.
    ("cross-site", OWN, False),
    ("none", OWN, False),
    (None, OWN, True),
    (None, OTHER, False),
    (None, None, False),
]
# A form of the console, a write of the API, and one whose method is overridden: the method on the wire counts.
WRITES = [
    ("POST", "/console/account", {"data": {"display_name": "Forged", "language": ""}}, 303),
    ("POST", f"{API_PATH}/tags", {"json": {"name": "Forged"}}, 201),
    ("POST", f"{API_PATH}/tags/{{tag}}?_method=DELETE", {}, 200),
]
# Further methods and ways to override them.
MORE_WRITES = [
    ("PATCH", f"{API_PATH}/tags/{{tag}}", {"json": {"name": "Forged"}}, 200),
    ("DELETE", f"{API_PATH}/tags/{{tag}}", {}, 200),
    ("POST", f"{API_PATH}/tags/{{tag}}", {"headers": {"x-http-method-override": "DELETE"}}, 200),
    ("POST", f"{API_PATH}/tags/{{tag}}?_method=PATCH", {"data": {"name": "Forged"}}, 200),
]


def send(client: ConsoleClient, method: str, path: str, fetch_site: str | None, origin: str | None, **options: Any
         ) -> httpx.Response:  # fmt: skip
    """Send a request with exactly these two headers."""
    headers = {**options.pop("headers", {}), "cookie": f"{COOKIE}={client.token}"}
    pairs = {"sec-fetch-site": fetch_site, "origin": origin}
    headers |= {name: value for name, value in pairs.items() if value is not None}

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app=client.app.asgi)
        async with httpx.AsyncClient(transport=transport, base_url=OWN) as sender:
            return await sender.request(method, path, headers=headers, **options)

    return client.app.run(request())


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, all of which the thief reads."""
    started = start_single_site_for_module()
    set_passwords(started)
    return started


@pytest.fixture(scope="module")
def victim(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "editor")


def remove_forged_tags(app: RunningApp) -> int:
    tag: int = app.caller("editor").create("tags", name=f"tag {time.monotonic_ns()}")["id"]
    app.sql("DELETE FROM tags WHERE name = 'Forged'")
    return tag


def describe_state(app: RunningApp) -> list[Any]:
    return [*app.sql("SELECT revision FROM sites"), *app.sql("SELECT display_name FROM users ORDER BY id")]


@pytest.mark.quick(
    "POST-/console/account-options0-303-same-origin-",
    "POST-/api/calendar/events/v1/tags/{tag}?_method=DELETE-options2-200-None-None-",
)
@pytest.mark.parametrize(("fetch_site", "origin", "is_accepted"), HEADERS)
@pytest.mark.parametrize(("method", "path", "options", "status"), WRITES)
def test_forged_write_is_rejected(
    app: RunningApp, victim: ConsoleClient, method: str, path: str, options: dict[str, Any], status: int,
    fetch_site: str | None, origin: str | None, is_accepted: bool,
) -> None:  # fmt: skip
    path = path.format(tag=remove_forged_tags(app))
    before = describe_state(app)
    response = send(victim, method, path, fetch_site, origin, **options)
    assert response.status_code == (status if is_accepted else 403), response.text[:300]
    assert (describe_state(app) == before) is not is_accepted
    app.sql("UPDATE users SET display_name = login")


@pytest.mark.quick("PATCH-/api/calendar/events/v1/", "POST-/api/calendar/events/v1/tags/{tag}?_method=PATCH-")
@pytest.mark.parametrize(("method", "path", "options", "status"), MORE_WRITES)
def test_method_override_does_not_avoid_the_check(
    app: RunningApp, victim: ConsoleClient, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    path = path.format(tag=remove_forged_tags(app))
    for fetch_site, origin, is_accepted in reversed(HEADERS):
        response = send(victim, method, path, fetch_site, origin, **options)
        assert (response.status_code == 403) is not is_accepted, response.text[:300]
        if is_accepted:
            assert response.status_code == status
            return


@pytest.mark.quick("/console/sign-in", "/console/link/x")
@pytest.mark.parametrize("path", ["/console/sign-in", "/console/sign-out", "/console/reset", "/console/link/x"])
def test_forms_without_session_are_protected_too(app: RunningApp, path: str) -> None:
    for fetch_site, origin, is_accepted in HEADERS:
        fields = {"login": "author", "password": PASSWORD}
        response = send(ConsoleClient(app), "POST", path, fetch_site, origin, data=fields)
        assert (response.status_code == 403) is not is_accepted
        assert is_accepted or "set-cookie" not in response.headers


def test_get_changes_nothing(app: RunningApp, victim: ConsoleClient) -> None:
    tag = remove_forged_tags(app)
    before = describe_state(app)
    for path in (
        f"{API_PATH}/tags/{tag}?_method=DELETE",
        "/console/account?display_name=Forged",
        "/console/sign-out",
    ):
        send(victim, "GET", path, "same-origin", OWN, headers={"x-http-method-override": "DELETE"})
    assert describe_state(app) == before
    assert victim.get("/console/account").status_code == 200


def test_session_cannot_be_fixed(app: RunningApp) -> None:
    chosen = ConsoleClient(app, "A" * 43)
    chosen.sign_in("author")
    assert chosen.token != "A" * 43
    assert ConsoleClient(app, "A" * 43).get("/console/account").status_code == 303
    # The attacker plants the cookie of a session of their own, and the victim signs in.
    attacker = ConsoleClient.signed_in(app, "subscriber")
    planted = ConsoleClient(app, attacker.token)
    planted.sign_in("author")
    assert planted.token != attacker.token
    assert attacker.get("/console/account").status_code == 303


def test_stolen_database_cannot_sign_in(app: RunningApp) -> None:
    client, user_id = ConsoleClient.signed_in(app, "administrator"), app.users["administrator"].id
    link = app.run_operation(lambda tx: create_link_token(tx, user_id, Purpose.RESET))
    application_password = app.users["administrator"].password
    stored = b"\n".join(dump_database(app))
    for secret in (client.token, link, PASSWORD, application_password, application_password.replace(" ", "")):
        assert secret.encode() not in stored
        assert b64encode(secret.encode()) not in stored
    for token in (client.token, link):
        assert urlsafe_b64decode(f"{token}=").hex().encode() not in stored
        assert hash_token(token).hex().encode() in stored
    # Neither a stored hash nor its text opens a session or a link.
    for row in app.sql("SELECT token_hash FROM sessions UNION SELECT token_hash FROM one_time_tokens"):
        for text in (row["token_hash"].hex(), b64encode(row["token_hash"]).decode()):
            assert ConsoleClient(app, text).get("/console/account").status_code == 303
            assert ConsoleClient(app).get(f"/console/link/{text[:60].replace('/', '_')}").status_code == 404
    hashes = app.sql("SELECT password_hash FROM users WHERE password_hash <> ''")
    assert ConsoleClient(app).sign_in("administrator", hashes[0]["password_hash"]).status_code == 401
    assert all(row["password_hash"].startswith("$argon2id$") for row in hashes)


def dump_database(app: RunningApp) -> list[bytes]:
    """Return all rows of all tables as text, bytes in hexadecimal digits."""
    tables = app.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    return [
        row["line"].encode()
        for table in tables
        for row in app.sql(f'SELECT t::text AS line FROM public."{table["table_name"]}" t')
    ]


@pytest.mark.quick("editor-seen_at-13 days 23 hours-True", "administrator-created_at-30 days 1 hour-False")
@pytest.mark.parametrize(
    ("login", "column", "age", "is_valid"),
    [
        ("editor", "seen_at", "13 days 23 hours", True),
        ("editor", "seen_at", "14 days 1 hour", False),
        ("editor", "created_at", "89 days 23 hours", True),
        ("editor", "created_at", "90 days 1 hour", False),
        ("administrator", "seen_at", "11 hours 50 minutes", True),
        ("administrator", "seen_at", "12 hours 10 minutes", False),
        ("administrator", "created_at", "29 days 23 hours", True),
        ("administrator", "created_at", "30 days 1 hour", False),
    ],
)
def test_session_expires(app: RunningApp, login: str, column: str, age: str, is_valid: bool) -> None:
    client = ConsoleClient.signed_in(app, login)
    change = f"UPDATE sessions SET {column} = now() - interval '{age}' WHERE token_hash = $1"
    app.sql(change, hash_token(client.token))
    assert (client.get("/console/account").status_code == 200) is is_valid
    assert (client.get(f"{API_PATH}/events?status=draft", headers=JSON).status_code == 200) is is_valid
    if not is_valid:  # It is removed when somebody signs in.
        ConsoleClient.signed_in(app, "author")
        assert not app.sql("SELECT FROM sessions WHERE token_hash = $1", hash_token(client.token))


DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 11:00:00"}


def test_cookie_is_not_honoured_with_cors(app: RunningApp, victim: ConsoleClient) -> None:
    draft = app.caller("editor").create("events", title="Draft", status="draft", **DATES)["id"]
    path = f"{API_PATH}/events/{draft}"
    assert send(victim, "GET", path, "same-origin", None).status_code == 200
    for fetch_site, origin in (("cross-site", OTHER), ("same-site", OTHER), (None, OTHER), (None, "null")):
        response = send(victim, "GET", path, fetch_site, origin)
        assert response.status_code == 403
        assert "access-control-allow-credentials" not in response.headers
        preflight = send(victim, "OPTIONS", path, fetch_site, origin)
        assert "access-control-allow-credentials" not in preflight.headers
    console = send(victim, "GET", "/console/account", "same-origin", OTHER)
    assert not [name for name in console.headers if name.startswith("access-control")]


def test_authorization_takes_precedence_over_cookie(app: RunningApp, victim: ConsoleClient) -> None:
    path, user = f"{API_PATH}/events?status=draft", app.users["subscriber"]
    wrong = b64encode(b"editor:wrong").decode()
    right = b64encode(f"{user.login}:{user.password}".encode()).decode()
    statuses = [
        send(victim, "GET", path, "same-origin", OWN, headers={"authorization": f"Basic {value}"}).status_code
        for value in (wrong, right)
    ]
    assert statuses == [401, 400]  # A subscriber may not filter by this status.
    assert send(victim, "GET", path, "same-origin", OWN).status_code == 200


def test_process_cache_never_mixes_sessions_and_the_public(app: RunningApp, victim: ConsoleClient) -> None:
    path = f"{API_PATH}/events?start_date=2031-05-01&end_date=2031-05-02"
    public, own = ConsoleClient(app), victim
    for _ in range(2):
        seen = [client.get(path, headers=JSON) for client in (public, public, own, own, public)]
        is_private = [row.headers["cache-control"] == "private, no-store" for row in seen]
        assert is_private == [False, False, True, True, False]
        assert all("set-cookie" not in row.headers for row in seen)
    # A cookie that is not valid is not public either.
    assert ConsoleClient(app, "x").get(path, headers=JSON).headers["cache-control"] == "private, no-store"


TARGETS = [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "/console", "/consolex/",
    "/console/\\evil.example", "/console/\t/evil.example", "javascript:alert(1)", "https:evil.example",
    " //evil.example", "/console@evil.example/", "",
]  # fmt: skip


@pytest.mark.quick("https://evil.example/", "")
@pytest.mark.parametrize("target", TARGETS)
def test_next_never_leads_to_another_host(app: RunningApp, victim: ConsoleClient, target: str) -> None:
    responses = [
        victim.get("/console/sign-in", params={"next": target}),
        victim.post("/console/confirm", {"password": PASSWORD, "next": target}),
    ]
    assert [row.headers["location"] for row in responses] == ["/console/"] * 2
    page = ConsoleClient(app).page(f"/console/sign-in?{httpx.QueryParams(next=target)}")
    assert page.fields["next"] == ["/console/"]


def test_next_keeps_pages_of_the_console(victim: ConsoleClient) -> None:
    target = "/console/events?search=a&status=draft"
    response = victim.get("/console/sign-in", params={"next": target})
    assert response.headers["location"] == target
    # The address of a form that needs a session is not one to return to.
    lost = ConsoleClient(victim.app).post("/console/account", {"display_name": "x"})
    assert lost.headers["location"] == "/console/sign-in"


def test_accounts_cannot_be_enumerated(app: RunningApp) -> None:
    app.sql("UPDATE users SET disabled_at = now() WHERE login = 'contributor'")
    logins = ("author", "nobody", "author@example.org", "contributor", "nobody@example.org")
    for path, fields in (("/console/sign-in", {"password": "wrong"}), ("/console/reset", {})):
        pages = set[tuple[int, str]]()
        for number, login in enumerate(logins):
            client = ConsoleClient(app, client_ip=f"198.51.100.{number}")
            response = client.post(path, {"login": login, **fields})
            pages.add((response.status_code, response.text.replace(f'value="{login}"', 'value=""')))
        assert len(pages) == 1
    app.sql("UPDATE users SET disabled_at = NULL WHERE login = 'contributor'")
    links = [ConsoleClient(app).get(f"/console/link/{token}") for token in ("x", "A" * 43)]
    used = app.run_operation(lambda tx: create_link_token(tx, app.users["author"].id, Purpose.SIGN_IN))
    ConsoleClient(app).post(f"/console/link/{used}")
    links.append(ConsoleClient(app).get(f"/console/link/{used}"))
    assert len({(row.status_code, row.text) for row in links}) == 1


def test_unknown_login_takes_as_long_as_a_known_one() -> None:
    stored = credentials.hash_account_password(PASSWORD)
    assert credentials.verify_account_password(stored, PASSWORD)
    assert not credentials.verify_account_password("", PASSWORD)

    def measure(hash_: str) -> float:
        # The time of the processor: other programs do not disturb it.
        started = time.process_time()
        credentials.verify_account_password(hash_, "wrong password")
        return time.process_time() - started

    pairs = [(measure(stored), measure("")) for _ in range(7)]
    known, unknown = (min(times) for times in zip(*pairs, strict=True))
    # Caches that other programs use as well make the time vary; a check without a hash would take no time.
    assert abs(known - unknown) < (0.005 if SOAK else known / 2)


def make_paths(route: ConsoleRoute) -> list[str]:
    """Return a path that matches a route."""
    path = re.sub(r"\(\?P<token>[^)]*\)", "A" * 43, route.pattern)
    path = re.sub(r"\(\?P<\w+>[^)]*\)", "1", path).removesuffix("?")
    return [f"/console{path}"] if re.fullmatch(route.pattern, path, re.ASCII) else []


def test_pages_cannot_be_framed_by_others(app: RunningApp, administrator: ConsoleClient) -> None:
    paths = [path for route in ROUTES if route.get for path in make_paths(route)]
    assert {"/console/sign-in", "/console/account", "/console/confirm", "/console/reset"} <= set(paths)
    for client in (administrator, ConsoleClient(app)):
        for path in [*paths, "/console/nothing"]:
            response = client.get(path)
            assert response.status_code < 500, path
            if response.status_code != 303:
                is_page = response.headers["content-type"].startswith("text/html")
                policy = response.headers.get("content-security-policy", "")
                assert not is_page or re.search(r"frame-ancestors '(none|self)'", policy), path
                assert response.headers["cache-control"] == "private, no-store", path
                assert response.headers["x-content-type-options"] == "nosniff", path
    for path in ("/console/sign-in", "/console/reset", f"/console/link/{'A' * 43}"):
        assert "frame-ancestors 'none'" in ConsoleClient(app).get(path).headers["content-security-policy"]
