"""A browser without script: it keeps the session cookie, sends forms, and reads the fields of a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Any, Self

import httpx

from kalends.accounts.operations import sign_in_methods, user_accounts
from kalends.core import credentials
from kalends.http.auth import COOKIE
from kalends.store.database import Transaction
from tests.api.running_app import ROLES, RunningApp

PASSWORD = "correct horse battery"


def set_passwords(app: RunningApp) -> None:
    """Give every account the same password."""
    app.run_operation(set_all_passwords)


async def set_all_passwords(tx: Transaction, logins: Sequence[str] = ROLES) -> None:
    for login in logins:
        await user_accounts.set_password_hash(tx, await user_accounts.require_user(tx, login), hash_password())


@cache
def hash_password() -> str:
    """Return the hash of the password, which is slow to compute."""
    return credentials.hash_account_password(PASSWORD)


@dataclass
class ConsoleClient:
    app: RunningApp
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    client_ip: str = "127.0.0.1"

    @classmethod
    def signed_in(cls, app: RunningApp, login: str) -> Self:
        """Return a client with a session of its own, without the slow check of the password."""
        agent = f"python-httpx/{httpx.__version__}"

        async def start(tx: Transaction) -> str:
            return await sign_in_methods.start_session(
                tx, await user_accounts.require_user(tx, login), cls.client_ip, agent
            )

        return cls(app, app.run_operation(start))

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as a page of the console would, and keep the cookie of the response."""
        return self.app.run(self.request_async(method, path, **options))

    async def request_async(self, method: str, path: str, **options: Any) -> httpx.Response:
        sent = {"accept": "text/html", "sec-fetch-site": "same-origin", **self.headers, **options.pop("headers", {})}
        if self.token:
            sent["cookie"] = f"{COOKIE}={self.token}"
        transport = httpx.ASGITransport(app=self.app.asgi, client=(self.client_ip, 1))
        async with httpx.AsyncClient(transport=transport, base_url=f"https://{self.app.host}") as client:
            response = await client.request(method, path, headers=sent, **options)
        if COOKIE in response.cookies:
            self.token = response.cookies[COOKIE]
        elif f"{COOKIE}=" in response.headers.get("set-cookie", ""):
            self.token = ""
        return response

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, fields: dict[str, Any] | None = None, **options: Any) -> httpx.Response:
        return self.request("POST", path, data=fields or {}, **options)

    def page(self, path: str, status: int = 200) -> "Page":
        response = self.get(path)
        assert response.status_code == status, f"{response.status_code}: {response.text[:1500]}"
        return Page.parse(response.text)

    def sign_in(self, login: str, password: str = PASSWORD, **fields: str) -> httpx.Response:
        return self.post("/console/sign-in", {"login": login, "password": password, **fields})


@dataclass
class Page:
    """A page: its text, and the values of its form fields by name."""

    html: str
    text: str
    fields: dict[str, list[str]]

    @classmethod
    def parse(cls, html: str) -> Self:
        reader = _FormReader()
        reader.feed(html)
        return cls(html, " ".join(" ".join(reader.texts).split()), reader.fields)

    def form(self, **changes: Any) -> dict[str, Any]:
        """Return the values that the browser would send, with changes; None removes a field."""
        values: dict[str, Any] = {name: value if len(value) > 1 else value[0] for name, value in self.fields.items()}
        return {name: value for name, value in {**values, **changes}.items() if value is not None}


class _FormReader(HTMLParser):
    """Collects the successful controls of all forms of a page, and its visible text."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self._textarea: str | None = None
        self._select: str | None = None

    def _add(self, name: str, value: str) -> None:
        self.fields.setdefault(name, []).append(value)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name")
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio"):
                if "checked" in given:
                    self._add(name, given.get("value") or "on")
            elif kind not in ("submit", "button", "file"):
                self._add(name, given.get("value") or "")
        elif tag == "textarea" and name:
            self._textarea = name
            self._add(name, "")
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in given:
            self._add(self._select, given.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._textarea = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self.fields[self._textarea][-1] += (
                data.removeprefix("\n") if not self.fields[self._textarea][-1] else data
            )
        else:
            self.texts.append(data)
