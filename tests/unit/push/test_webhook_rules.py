"""Secrets and signatures as Standard Webhooks wants them, retries, and the URLs that endpoints may have."""

import base64
import json
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from kalends.core.egress import read_allowed_network
from kalends.core.errors import InvalidValue
from kalends.push import rules

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
KEY = b"k" * 32
BODY = '{"type": "event.updated", "data": {"title": "Frühstück “im Freien” 🥐"}}'.encode()
# Verifies with node:crypto alone, as the specification describes it, and prints the number of matching signatures.
NODE_VERIFIER = """
const crypto = require("node:crypto");
const { secret, headers, body } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
const content = Buffer.from(body, "base64");
const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), content]);
const wanted = crypto.createHmac("sha256", key).update(signed).digest();
const given = headers["webhook-signature"].split(" ").map((entry) => Buffer.from(entry.split(",")[1], "base64"));
console.log(given.filter((each) => each.length === wanted.length && crypto.timingSafeEqual(each, wanted)).length);
"""


def make_secret(generation: int = 1, webhook_id: str = "abcdefghijkl", site_id: int = 1, key: bytes = KEY) -> str:
    return rules.derive_secret(key, site_id, webhook_id, generation)


def sign(*secrets: str, timestamp: datetime | None = None) -> dict[str, str]:
    seconds = int((timestamp or datetime.now(UTC)).timestamp())
    return {
        "webhook-id": "msg_abcdefghijkl_7",
        "webhook-timestamp": str(seconds),
        "webhook-signature": rules.sign(secrets, "msg_abcdefghijkl_7", seconds, BODY),
    }


def verify_with_node(secret: str, headers: dict[str, str]) -> int:
    given = json.dumps({"secret": secret, "headers": headers, "body": base64.b64encode(BODY).decode()})
    process = subprocess.run(["node", "-e", NODE_VERIFIER], input=given, capture_output=True, text=True, check=True)
    return int(process.stdout)


def test_signature_passes_the_reference_verifier() -> None:
    assert Webhook(make_secret()).verify(BODY, sign(make_secret())) == json.loads(BODY)


@pytest.mark.npm
def test_signature_passes_a_verifier_in_node() -> None:
    headers = sign(make_secret(2), make_secret(1))
    assert [verify_with_node(make_secret(number), headers) for number in (1, 2, 3)] == [1, 1, 0]


def test_changed_message_fails_the_reference_verifier() -> None:
    verifier, headers = Webhook(make_secret()), sign(make_secret())
    assert verifier.verify(BODY, headers)
    for changed in ({"webhook-id": "msg_other_7"}, {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}):
        with pytest.raises(WebhookVerificationError):
            verifier.verify(BODY, headers | changed)
    with pytest.raises(WebhookVerificationError):
        verifier.verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):  # A recording, played an hour later.
        verifier.verify(BODY, sign(make_secret(), timestamp=datetime.now(UTC) - timedelta(hours=1)))


def test_secrets_differ_by_site_endpoint_and_generation() -> None:
    secrets = [
        make_secret(),
        make_secret(2),
        make_secret(webhook_id="bcdefghijklm"),
        make_secret(site_id=2),
        make_secret(key=b"l" * 32),
    ]
    assert len(set(secrets)) == len(secrets)
    assert make_secret() == secrets[0]
    assert all(len(base64.b64decode(secret.removeprefix("whsec_"))) == 32 for secret in secrets)


def test_previous_secret_is_valid_for_a_day_after_rotation() -> None:
    def find(hours: float | None, generation: int = 3) -> list[str]:
        rotated_at = None if hours is None else NOW - timedelta(hours=hours)
        return rules.derive_valid_secrets(KEY, 1, "abcdefghijkl", generation, rotated_at=rotated_at, now=NOW)

    assert find(None, 1) == [make_secret(1)]
    assert find(0) == find(23.99) == [make_secret(3), make_secret(2)]
    assert find(24) == [make_secret(3)]
    headers = sign(*find(1))
    assert Webhook(make_secret(3)).verify(BODY, headers) == Webhook(make_secret(2)).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret(2)).verify(BODY, sign(*find(24)))


def test_pending_record_is_tried_nine_times_in_four_days() -> None:
    planned = [rules.plan_retry(attempts, NOW) for attempts in range(1, 11)]
    delays = [(at - NOW).total_seconds() for at in planned if at is not None]
    assert delays == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert planned[9] is None
    assert rules.plan_retry(2, NOW, 1) == NOW + timedelta(seconds=360)
    assert rules.plan_retry(2, NOW, -1) == NOW + timedelta(seconds=240)


def test_endpoint_waits_longer_after_each_failure() -> None:
    waits = [(rules.plan_wait(failures, NOW) - NOW).total_seconds() for failures in range(1, 9)]
    assert waits == [5, 30, 120, 600, 1800, 3600, 3600, 3600]
    assert rules.plan_wait(5, NOW, 7) == NOW + timedelta(seconds=7)
    assert rules.plan_wait(5, NOW, 0) == NOW + timedelta(seconds=5)
    assert rules.plan_wait(1, NOW, 10**9) == NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("statuses", "effect"),
    [
        ((200, 201, 202, 204, 299), "delivered"),
        ((410,), "gone"),
        ((0, 429, 502, 503, 504), "waits"),
        ((199, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 422, 500, 501, 505, 599), "failed"),
    ],
)
def test_response_has_effect(statuses: tuple[int, ...], effect: str) -> None:
    assert {rules.classify(status) for status in statuses} == {effect}


def test_message_id_changes_only_with_replays() -> None:
    assert rules.name_message("abcdefghijkl", 4711, 0) == "msg_abcdefghijkl_4711"
    assert rules.name_message("abcdefghijkl", 4711, 2) == "msg_abcdefghijkl_4711_2"


def test_endpoint_id_is_random_and_never_a_number() -> None:
    ids = {rules.new_webhook_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(each) == 12 and each[0].isalpha() and each == each.lower() and each.isalnum() for each in ids)


@pytest.mark.parametrize(
    "url",
    ["https://hooks.example/a?b=c", "https://hooks.example:443/", "https://1.1.1.1/", "https://münchen.example/"],
)
def test_public_https_url_is_accepted(url: str) -> None:
    rules.check_url(url, [])


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example/", "https://hooks.example:8443/", "http://hooks.example:443/", "https://127.0.0.1/"),
        *("https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/", "https://[::ffff:127.0.0.1]/"),
        *("https://anna:word@hooks.example/", "https://2130706433/", "ftp://hooks.example/", "hooks.example", ""),
    ],
)
def test_other_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidValue):
        rules.check_url(url, [])


def test_allowed_network_permits_plain_http_and_other_ports() -> None:
    allowed = [read_allowed_network("10.1.0.0/16:8080"), read_allowed_network("10.2.0.0/16")]
    for url in (
        "http://10.1.2.3:8080/",
        "https://10.1.2.3:8080/",
        "http://10.2.0.1/",
        "http://intranet.example:8080/",
    ):
        rules.check_url(url, allowed)
    for url in ("http://10.1.2.3:8081/", "http://10.3.0.1/", "http://1.1.1.1/"):
        with pytest.raises(InvalidValue):
            rules.check_url(url, allowed)
