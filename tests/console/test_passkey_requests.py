"""Responses of authenticators that are forged or malformed."""

from base64 import urlsafe_b64encode
from typing import Any

import orjson
import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient

JSON = {"accept": "application/json"}


def encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def make_credential(host: str, challenge: str, **changes: Any) -> dict[str, Any]:
    client_data = {"type": "webauthn.get", "challenge": challenge, "origin": f"https://{host}", "crossOrigin": False}
    response = {
        "clientDataJSON": encode(orjson.dumps(client_data)),
        "authenticatorData": encode(b"\0" * 37),
        "signature": encode(b"\0" * 70),
        "userHandle": encode(b"\0" * 32),
    }
    return {
        "id": encode(b"x" * 16),
        "rawId": encode(b"x" * 16),
        "type": "public-key",
        "response": response,
        **changes,
    }


def get_challenge(client: ConsoleClient) -> str:
    response = client.request("POST", "/console/sign-in/passkey/options", json={}, headers=JSON)
    assert response.headers["cache-control"] == "private, no-store"
    options = response.json()
    assert (options["rpId"], options["userVerification"], options.get("allowCredentials", [])) == (
        client.app.host,
        "required",
        [],
    )
    challenge: str = options["challenge"]
    return challenge


def test_registration_requires_resident_key_and_verification(editor: ConsoleClient) -> None:
    options = editor.request("POST", "/console/account/passkeys/options", json={}, headers=JSON).json()
    assert options["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    assert options["rp"] == {"id": editor.app.host, "name": "Kalends"}
    assert options["user"]["name"] == "editor"


def test_forged_and_malformed_responses_are_rejected(app: RunningApp) -> None:
    client = ConsoleClient(app, client_ip="203.0.113.9")
    challenge = get_challenge(client)
    credentials: list[Any] = [
        make_credential(app.host, challenge),  # an unknown passkey
        make_credential(app.host, encode(b"\0" * 64)),
        make_credential(app.host, challenge, response={}),
        make_credential(app.host, challenge, response={"clientDataJSON": "%%%"}),
        make_credential(app.host, challenge, rawId=5),
        {},
        [],
        "text",
        None,
    ]
    for credential in credentials:
        response = client.request("POST", "/console/sign-in/passkey", json={"credential": credential}, headers=JSON)
        assert (response.status_code, response.json()["code"]) == (401, "rest_forbidden"), credential
        assert client.token == ""


def test_failures_are_throttled_by_client_only(app: RunningApp) -> None:
    client, other = ConsoleClient(app, client_ip="203.0.113.10"), ConsoleClient(app, client_ip="203.0.113.11")
    body = {"credential": make_credential(app.host, get_challenge(client))}
    statuses = [
        client.request("POST", "/console/sign-in/passkey", json=body, headers=JSON).status_code for _ in range(11)
    ]
    assert statuses == [401] * 10 + [429]
    assert other.request("POST", "/console/sign-in/passkey", json=body, headers=JSON).status_code == 401


@pytest.mark.parametrize("path", ["/console/account/passkeys", "/console/account/passkeys/options"])
def test_registration_requires_proof(app: RunningApp, author: ConsoleClient, path: str) -> None:
    app.sql("UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '1 hour'")
    response = author.request("POST", path, json={"credential": {}}, headers=JSON)
    assert (response.status_code, response.json()["code"]) == (403, "rest_forbidden")
