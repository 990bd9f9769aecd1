"""A receiver that keeps a copy of a site from webhooks alone."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.lifecycle.sync_client import SyncedCopy
from tests.push.webhook_receiver import OK, Answer, Received

FAILING_SHARE = 0.05
CANARY = "Canary of an unpublished record"
PLURALS = {"event": "events", "venue": "venues", "organizer": "organizers", "category": "categories", "tag": "tags"}


@dataclass
class Mirror:
    """Keeps a copy as docs/webhooks.md describes it. Five percent of its responses are failures."""

    secret: str = ""
    copy: SyncedCopy = field(default_factory=dict[str, dict[str, Any]])
    revisions: dict[str, int] = field(default_factory=dict[str, int])
    regressions: list[str] = field(default_factory=list[str])
    received: int = 0
    failed: int = 0
    canaries: int = 0
    unsigned: int = 0
    is_failing: bool = True
    rng: Random = field(default_factory=lambda: Random(5))

    def respond(self, message: Received) -> Answer:
        self.received += 1
        self.canaries += CANARY.encode() in message.body
        self.unsigned += not message.is_signed_with(self.secret)
        is_failure = self.is_failing and self.rng.random() < FAILING_SHARE
        # Some receivers store a message although they fail.
        if not is_failure or self.rng.random() < 0.5:
            self._store(message)
        self.failed += is_failure
        return self.rng.choice([Answer(500), Answer(503), Answer(is_cut=True)]) if is_failure else OK

    def _store(self, message: Received) -> None:
        singular, _, change = message.json["type"].partition(".")
        data = message.json["data"]
        key, revision = f"{PLURALS[singular]}/{data['record']['id']}", data["revision"]
        if revision < self.revisions.get(key, 0):
            self.regressions.append(key)
            return
        self.revisions[key] = revision
        if change == "deleted":
            self.copy.pop(key, None)
        else:
            self.copy[key] = data["record"]
