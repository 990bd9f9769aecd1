"""Passkeys with the virtual authenticator of Chromium: adding one, signing in, confirming; and hostile responses."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from playwright.sync_api import Browser, CDPSession, Page, Response

from kalends.accounts.operations.sign_in_methods import is_valid_challenge, make_challenge
from kalends.core.times import utc_now
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import PASSWORD, set_passwords
from tests.servers import Server

SECRET = b"s" * 32
ACCOUNT = re.compile(r"^[^?]*/console/account$")
AUTHENTICATOR = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, which the server also shows at localhost."""
    started = start_single_site_for_module()
    set_passwords(started)
    return started


@pytest.fixture(scope="module")
def server(app: RunningApp, start_server: Callable[..., Server]) -> Server:
    return start_server(app.database_url)


@pytest.fixture(scope="module")
def address(server: Server) -> str:
    """Return the address of the server by name: an IP address has no passkeys."""
    return server.base_url.replace("127.0.0.1", "localhost")


class Visitor:
    """A browser with an authenticator. Every error and every report of the security policies is kept."""

    def __init__(self, chromium: Browser, address: str) -> None:
        self.context = chromium.new_context(base_url=address)
        self.page: Page = self.context.new_page()
        # The virtual authenticator selects a passkey at once where the browser would offer a list.
        self.context.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false")
        self.errors: list[str] = []
        self.responses: list[Response] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda entry: self.errors.append(entry.text) if entry.type == "error" else None)
        self.page.on("response", self._keep)
        self.devtools: CDPSession = self.context.new_cdp_session(self.page)
        self.devtools.send("WebAuthn.enable", {"enableUI": False})
        self.id: str = self.devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})[
            "authenticatorId"
        ]

    def _keep(self, response: Response) -> None:
        self.responses.append(response)

    def verify_user(self, *, succeeds: bool) -> None:
        self.devtools.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": succeeds})

    def sign_in(self, login: str) -> None:
        self.page.goto("/console/sign-in?next=/console/account")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.wait_for_url(ACCOUNT)

    def add_passkey(self, name: str) -> None:
        self.page.get_by_label("Passkey name").fill(name)
        self.page.get_by_role("button", name="Add a passkey").click()
        self.page.wait_for_url("**/console/account?notice=passkey-added#passkeys")


@pytest.fixture
def visitor_with_key(address: str, chromium: Browser) -> Iterator[Visitor]:  # in this order, see `chromium`
    visitor = Visitor(chromium, address)
    yield visitor
    visitor.context.close()
    assert visitor.errors == []


def test_sign_in_with_passkey(app: RunningApp, visitor_with_key: Visitor) -> None:
    visitor, page = visitor_with_key, visitor_with_key.page
    visitor.sign_in("editor")
    assert page.get_by_label("Passkey name").input_value() == "Chrome, Linux"
    visitor.add_passkey("Laptop")
    assert page.get_by_text("not used yet").count() >= 1
    page.click(".console-account summary")
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.wait_for_url("**/console/sign-in?notice=signed-out")
    page.goto("/console/sign-in?next=/console/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(ACCOUNT)
    assert page.locator("#passkeys").get_by_text("last used").count() == 1
    # A used challenge does not work again: the same request is rejected.
    used = next(row for row in reversed(visitor.responses) if row.url.endswith("/sign-in/passkey"))
    body = used.request.post_data_json
    replayed = visitor.context.request.post(
        "/console/sign-in/passkey", data=body, headers={"accept": "application/json", "sec-fetch-site": "same-origin"}
    )
    assert replayed.status == 401
    page.get_by_role("button", name="Remove Laptop").click()
    page.wait_for_url("**/console/account?notice=passkey-removed#passkeys")
    assert page.get_by_role("button", name="Remove Laptop").count() == 0


def test_browser_offers_passkey_in_the_list_of_logins(visitor_with_key: Visitor) -> None:
    visitor, page = visitor_with_key, visitor_with_key.page
    visitor.sign_in("subscriber")
    visitor.add_passkey("Phone")
    page.click(".console-account summary")
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.wait_for_url("**/console/sign-in?notice=signed-out")
    page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => true")
    page.goto("/console/sign-in?next=/console/account")
    page.wait_for_url(ACCOUNT)


def test_confirm_with_passkey(database: Callable[[str], None], visitor_with_key: Visitor) -> None:
    visitor, page = visitor_with_key, visitor_with_key.page
    visitor.sign_in("author")
    visitor.add_passkey("Phone")
    database("UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '1 hour'")
    page.goto("/console/account")
    assert page.get_by_role("button", name="Add a passkey").count() == 0
    page.locator("#password").get_by_role("link", name="Confirm").click()
    page.get_by_role("button", name="Confirm with a passkey").click()
    page.wait_for_url(ACCOUNT)
    assert page.get_by_role("button", name="Change password").is_visible()


def test_user_verification_is_required(visitor_with_key: Visitor) -> None:
    visitor, page = visitor_with_key, visitor_with_key.page
    visitor.sign_in("contributor")
    visitor.add_passkey("Key")
    page.click(".console-account summary")
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.wait_for_url("**/console/sign-in?notice=signed-out")
    visitor.verify_user(succeeds=False)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_text("The passkey couldn’t be used.").wait_for()
    assert page.url.endswith("/console/sign-in?notice=signed-out")


def test_ip_address_offers_no_passkeys(server: Server, chromium: Browser) -> None:
    visitor = Visitor(chromium, server.base_url)
    visitor.page.goto("/console/sign-in")
    assert visitor.page.get_by_role("button").count() == 1
    visitor.sign_in("editor")
    assert visitor.page.get_by_text("Passkeys need an https:// address").count() == 1
    assert visitor.page.get_by_role("button", name="Add a passkey").count() == 0
    visitor.context.close()
    assert visitor.errors == []


@pytest.fixture
def database(app: RunningApp) -> Callable[[str], None]:
    """Return a function that runs a statement. While Playwright runs, no event loop can."""

    def run(statement: str) -> None:
        with psycopg.connect(app.database_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    return run


def test_challenge_is_valid_for_one_action_and_five_minutes() -> None:
    now = utc_now()
    challenge = make_challenge(SECRET, "sign-in", now)
    assert is_valid_challenge(SECRET, "sign-in", challenge, now + timedelta(minutes=4, seconds=59))
    assert not is_valid_challenge(SECRET, "sign-in", challenge, now + timedelta(minutes=5, seconds=1))
    assert not is_valid_challenge(SECRET, "confirm 1", challenge, now)
    assert not is_valid_challenge(b"t" * 32, "sign-in", challenge, now)
    for changed in (b"", challenge[:-1], challenge[1:], bytes([challenge[0] ^ 1]) + challenge[1:], b"\0" * 64):
        assert not is_valid_challenge(SECRET, "sign-in", changed, now)
    assert make_challenge(SECRET, "sign-in", now) != challenge
