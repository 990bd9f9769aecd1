"""Webhook rules: secrets, signatures, what a response means, delays before retries, and limits."""

import base64
import hashlib
import hmac
import secrets as random_source
import string
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from kalends.core import credentials, egress
from kalends.core.egress import AllowedNetwork
from kalends.core.errors import InvalidValue

Effect = Literal["delivered", "gone", "waits", "failed"]
Reason = Literal["", "paused", "gone", "failing"]  # why an endpoint is disabled; empty: it is not

MAX_WEBHOOKS: Final = 20  # per site
MAX_NAME: Final = 100
MAX_PENDING: Final = 1000  # pending records of an endpoint, after which it waits
MAX_DELIVERIES: Final = 1000  # logged deliveries of an endpoint
PAGE_RECORDS: Final = 100
MAX_IN_FLIGHT: Final = 16  # requests to one endpoint
MAX_RECORD_BYTES: Final = 20_000  # of a record in a message; a longer one is sent as its ID and address
ID_LENGTH: Final = 12
# Messages without a record: a test, and the request to synchronize from the beginning. The kinds of their pending
# rows are the first parts of these types.
TEST_TYPE: Final = "webhook.test"
RESET_TYPE: Final = "site.reset"
TEST_KIND: Final = "webhook"
RESET_KIND: Final = "site"

TOTAL_SECONDS: Final = 15
ROTATION_PERIOD: Final = timedelta(hours=24)  # in which the previous secret still signs
NOTICE_AFTER: Final = timedelta(hours=24)  # of failures
DISABLED_AFTER: Final = timedelta(days=5)
JITTER: Final = 0.2
MAX_RETRY_AFTER: Final = 24 * 3600

# Seconds before each retry of a pending record. After the last one, it is given up until its next change.
RECORD_DELAYS: Final = (*(5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600),)
# Seconds that an endpoint waits as a whole; later ones as the last.
ENDPOINT_DELAYS: Final = (5, 30, 120, 600, 1800, 3600)
# A server that answers so, or not at all, is down or overloaded: nothing is wrong with the record.
OVERLOADED: Final = frozenset({0, 429, 502, 503, 504})


def classify(status: int) -> Effect:
    """Return the effect of a response; the status is 0 if none arrived. An endpoint waits only if nothing arrived."""
    if 200 <= status < 300:
        return "delivered"
    if status == 410:
        return "gone"
    return "waits" if status in OVERLOADED else "failed"


def plan_retry(attempts: int, now: datetime, spread: float = 0.0) -> datetime | None:
    """Return when a record is tried again after this many attempts; None: given up. `spread` is from -1 to 1."""
    if attempts > len(RECORD_DELAYS):
        return None
    return now + timedelta(seconds=RECORD_DELAYS[attempts - 1] * (1 + JITTER * spread))


def plan_wait(failures: int, now: datetime, retry_after: int | None = None) -> datetime:
    """Return until when an endpoint waits after this many failures in a row, or as long as its response demands."""
    seconds = ENDPOINT_DELAYS[min(failures, len(ENDPOINT_DELAYS)) - 1]
    if retry_after is not None:
        seconds = min(max(retry_after, ENDPOINT_DELAYS[0]), MAX_RETRY_AFTER)
    return now + timedelta(seconds=seconds)


def new_webhook_id() -> str:
    """Generate an ID of lowercase letters and digits. It begins with a letter, because numbers are IDs of records."""
    others = (random_source.choice(string.ascii_lowercase + string.digits) for _ in range(ID_LENGTH - 1))
    return random_source.choice(string.ascii_lowercase) + "".join(others)


def derive_secret(site_secret: bytes, site_id: int, webhook_id: str, generation: int) -> str:
    """Return an endpoint's secret as Standard Webhooks writes it. It is stored nowhere."""
    key = credentials.keyed_hash(site_secret, "webhook", f"{site_id} {webhook_id} {generation}")
    return f"whsec_{base64.b64encode(key).decode()}"


def derive_valid_secrets(
    site_secret: bytes, site_id: int, webhook_id: str, generation: int, *, rotated_at: datetime | None, now: datetime
) -> list[str]:
    """Return the secrets that sign now: after a rotation also the previous one, for a day."""
    is_rotating = rotated_at is not None and now < rotated_at + ROTATION_PERIOD
    generations = [generation, generation - 1] if is_rotating else [generation]
    return [derive_secret(site_secret, site_id, webhook_id, each) for each in generations]


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`, with one signature per secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    return " ".join(f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}" for key in keys)


def name_message(webhook_id: str, revision: int, replays: int) -> str:
    """Return `webhook-id`, which all attempts share. After a replay it differs, or receivers would drop it."""
    return f"msg_{webhook_id}_{revision}_{replays}" if replays else f"msg_{webhook_id}_{revision}"


def check_url(url: str, allowed_networks: Sequence[AllowedNetwork]) -> None:
    """Raise InvalidValue unless the URL may receive messages. Deliveries check the addresses of its host.

    If the operator allows networks, a name may resolve to one of them, on any port.
    """
    target = egress.read_target(url)
    is_default = target.scheme == "https" and target.port == egress.PORT_BY_SCHEME["https"]
    literal = target.ip_literal
    if literal is not None:
        is_allowed = egress.may_connect(literal, target.port, allowed_networks, {target.port} if is_default else ())
    else:
        is_allowed = is_default or bool(allowed_networks)
    if not is_allowed:
        raise InvalidValue("must be an https URL on port 443 of a public server.")
