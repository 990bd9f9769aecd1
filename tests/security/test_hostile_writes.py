"""Whatever is written, the answer is no fault: every field × hostile values, bodies that are no JSON, odd batches."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kalends.kinds import BY_NAME
from tests.api.hostile_values import EXTREMES, TEXTS, WORST, deep
from tests.api.sample_records import SAMPLES, Sample
from tests.api.test_hostile_bodies import PARTS, READABLE, UNREADABLE
from tests.pages.payloads import BREAKS
from tests.security.instance import Place, Tell, first, some
from tests.security.wire_client import EX, NS, Ask, send

JSON = {"content-type": "application/json"}
# What has broken something before, and one of each sort besides.
VALUES: tuple[Any, ...] = (
    *WORST, 0, -1, False, 1.5, 2**64, "\ud800", "9" * 400, " ", "-", [None], [[1]], {"rendered": "x"}, deep(100),
)  # fmt: skip
UNICODE = ("\u0000", "\u202e", "\ufeff", "\u0130", "ß" * 300, "ﬁ", "\U0001f468\u200d\U0001f469", "a\u0301" * 150,
           "\ue000", "\uffff", "日本" * 100, "مرحبا", "-" * 300, "..", "/", "%00", "__trashed", "1", "null",
           "by-slug")  # fmt: skip
ZONES = ("UTC", "", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Apia", "UTC+14", "UTC-12", "UTC+5:45", "UTC+99",
         "Etc/GMT+12", "Factory", "posixrules", "../etc/passwd", "Europe/Berlin\x00", "europe/berlin",
         "EST5EDT")  # fmt: skip
TIMES = (*EXTREMES, "2031-03-30 02:30:00", "2031-10-26 02:30:00", "2016-12-31 23:59:60", "2011-12-30 12:00:00",
         "2031-02-29 00:00:00", "1582-10-10 00:00:00", "2031-03-30T02:30:00+02:00")  # fmt: skip
OPERATION = {"method": "POST", "path": "/tags", "body": {"name": "batch"}}
BATCHES: tuple[Any, ...] = (
    None, [], {}, "x", 5, [None], [[]], ["x"], [{}], [{"method": "GET", "path": "/tags"}], [OPERATION] * 501,
    [{**OPERATION, "method": "post"}], [{**OPERATION, "body": []}], [{**OPERATION, "body": None}],
    [{**OPERATION, "path": None}], [{**OPERATION, "path": "/batch"}], [{**OPERATION, "path": "tags"}],
    [{**OPERATION, "path": "/tags?name=x"}], [{**OPERATION, "path": "/../tags"}],
    [{**OPERATION, "path": "/tags/\x00"}],
    [{**OPERATION, "path": "/events/" + "9" * 400}], [{**OPERATION, "path": "x" * 70_000}], [deep(100)],
    [{"method": "PATCH", "path": "/events/1", "body": {"title": deep(100)}}],
    [{"method": "POST", "path": "/events", "body": {"title": "a\x00", "start_date": "x", "end_date": {}}}],
    [{"method": "DELETE", "path": "/tags/0"}], [{"method": "DELETE", "path": "/tags"}],
    [{"method": "POST", "path": "/media", "body": {}}],
    [OPERATION, OPERATION], [{**OPERATION, "body": {"name": "x" * 70_000}}],
)  # fmt: skip


def writes(place: Place) -> Iterator[Ask]:
    for sample in SAMPLES.values():
        kind = f"{NS}/{sample.kind}"
        one = f"{kind}/{place.create(sample.kind, **sample.body())['id']}"
        for field in BY_NAME[sample.kind].fields:
            yield from (_json("PATCH", one, {field.name: value}) for value in VALUES)
            # A new record each time, with a name that may be taken: a term is made once.
            yield from (_json("POST", kind, {**sample.body(), field.name: value}) for value in VALUES[:12])
            yield _form("PATCH", one, f"{field.name}[a][b]=%00&{field.name}=1")
        yield from (_json("POST", kind, {**sample.body(), sample.name: text}) for text in (*UNICODE, *BREAKS))
        yield from _bodies(sample)
    for text in (*UNICODE, *TEXTS):
        yield _json("POST", f"{NS}/events", {**SAMPLES["events"].body(), "slug": text})
    for number, zone in enumerate(ZONES):
        for time in TIMES:
            dates = {"start_date": time, "end_date": TIMES[number % len(TIMES)] if number % 2 else time}
            yield _json("POST", f"{NS}/events", {"title": "Far", "timezone": zone, **dates})
    for atomic in (True, False, "x"):
        yield from (_json("POST", f"{EX}/batch", {"operations": shape, "atomic": atomic}) for shape in BATCHES)


def _bodies(sample: Sample) -> Iterator[Ask]:
    path = f"{NS}/{sample.kind}"
    yield from (Ask("POST", path, JSON, body) for body in UNREADABLE.values())
    yield from (Ask("POST", path, JSON, body) for body, _ in READABLE.values())
    yield from (Ask("POST", path, {"content-type": kind}, body) for kind, body in PARTS.values())
    yield from (
        _form("POST", path, text) for text in ("", "&&=", "%", "a=%ff", "a[b", "[]=1", "=" * 500, "a;b", "\x00")
    )


def _json(method: str, path: str, body: object) -> Ask:
    return send(method, path, body)


def _form(method: str, path: str, text: str) -> Ask:
    return Ask(method, path, {"content-type": "application/x-www-form-urlencoded"}, text.encode())


@pytest.mark.slow
def test_hostile_writes_cause_no_server_error(place: Place, tell: Tell) -> None:
    asks = list(writes(place))
    tried = some(asks, 400)
    answers = place.ask_all(ask.by(place.logins["editor"]) for ask in tried)
    faults = [
        f"{got.status} {ask.method} {ask.target[:100]} {ask.body[:200]!r}"
        for ask, got in zip(tried, answers, strict=True)
        if got.status in (0, 429) or got.status >= 500
    ]
    assert faults == [], f"{len(faults)} of {len(tried)}\n" + "\n".join(first(faults, 40))
    statuses = Counter(got.status for got in answers)
    assert statuses[400] > len(tried) / 10
    assert statuses[200] + statuses[201] > len(tried) / 10
    # What was stored can be read.
    for kind in SAMPLES:
        got = place.ask(Ask("GET", f"{NS}/{kind}?per_page=50&start_date=0002-01-01&hide_empty=0"), "editor")
        assert (got.status, bool(json.loads(got.body)[kind])) == (200, True)
    assert '"event":"fault"' not in place.server.read_log()
    assert len(asks) >= 3060
    counts = dict(sorted(statuses.items()))
    tell(f"{len(tried):,} of {len(asks):,} malformed writes, {len(tried):,} without a fault: {counts}")
