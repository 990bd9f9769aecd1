"""Whatever is written, the answer is no fault: every field × hostile values, bodies that are no JSON, odd batches."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kalends.calendar.kinds import BY_NAME
from tests.api.hostile_values import EXTREME_DATES, HOSTILE_TEXTS, WORST_VALUES, nest_lists
from tests.api.sample_records import SAMPLES, Sample
from tests.api.test_hostile_bodies import INVALID_JSON, MALFORMED_MULTIPART, UNUSUAL_JSON
from tests.pages.payloads import BREAKOUT_PAYLOADS
from tests.security.instance import Instance, Report, sample_evenly, take_first
from tests.security.wire_client import API_PATH, EXTENSION_PATH, WireRequest, json_request

JSON = {"content-type": "application/json"}
# Values that have caused defects before, and one of each other kind.
HOSTILE_VALUES: tuple[Any, ...] = (
    *WORST_VALUES, 0, -1, False, 1.5, 2**64, "\ud800", "9" * 400, " ", "-", [None], [[1]], {"rendered": "x"},
    nest_lists(100),
)  # fmt: skip
HOSTILE_UNICODE = ("\u0000", "\u202e", "\ufeff", "\u0130", "ß" * 300, "ﬁ", "\U0001f468\u200d\U0001f469",
                   "a\u0301" * 150,
           "\ue000", "\uffff", "日本" * 100, "مرحبا", "-" * 300, "..", "/", "%00", "__trashed", "1", "null",
           "by-slug")  # fmt: skip
HOSTILE_ZONES = ("UTC", "", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Apia", "UTC+14", "UTC-12", "UTC+5:45",
                 "UTC+99",
         "Etc/GMT+12", "Factory", "posixrules", "../etc/passwd", "Europe/Berlin\x00", "europe/berlin",
         "EST5EDT")  # fmt: skip
HOSTILE_TIMES = (*EXTREME_DATES, "2031-03-30 02:30:00", "2031-10-26 02:30:00", "2016-12-31 23:59:60",
                 "2011-12-30 12:00:00",
         "2031-02-29 00:00:00", "1582-10-10 00:00:00", "2031-03-30T02:30:00+02:00")  # fmt: skip
OPERATION = {"method": "POST", "path": "/tags", "body": {"name": "batch"}}
HOSTILE_BATCHES: tuple[Any, ...] = (
    None, [], {}, "x", 5, [None], [[]], ["x"], [{}], [{"method": "GET", "path": "/tags"}], [OPERATION] * 501,
    [{**OPERATION, "method": "post"}], [{**OPERATION, "body": []}], [{**OPERATION, "body": None}],
    [{**OPERATION, "path": None}], [{**OPERATION, "path": "/batch"}], [{**OPERATION, "path": "tags"}],
    [{**OPERATION, "path": "/tags?name=x"}], [{**OPERATION, "path": "/../tags"}],
    [{**OPERATION, "path": "/tags/\x00"}],
    [{**OPERATION, "path": "/events/" + "9" * 400}], [{**OPERATION, "path": "x" * 70_000}], [nest_lists(100)],
    [{"method": "PATCH", "path": "/events/1", "body": {"title": nest_lists(100)}}],
    [{"method": "POST", "path": "/events", "body": {"title": "a\x00", "start_date": "x", "end_date": {}}}],
    [{"method": "DELETE", "path": "/tags/0"}], [{"method": "DELETE", "path": "/tags"}],
    [{"method": "POST", "path": "/media", "body": {}}],
    [OPERATION, OPERATION], [{**OPERATION, "body": {"name": "x" * 70_000}}],
)  # fmt: skip


def iter_writes(place: Instance) -> Iterator[WireRequest]:
    for sample in SAMPLES.values():
        kind = f"{API_PATH}/{sample.kind}"
        one = f"{kind}/{place.create(sample.kind, **sample.body())['id']}"
        for field in BY_NAME[sample.kind].fields:
            yield from (_json_request("PATCH", one, {field.name: value}) for value in HOSTILE_VALUES)
            # A new record each time, with a name that may be taken: a term is made once.
            yield from (
                _json_request("POST", kind, {**sample.body(), field.name: value}) for value in HOSTILE_VALUES[:12]
            )
            yield _form_request("PATCH", one, f"{field.name}[a][b]=%00&{field.name}=1")
        yield from (
            _json_request("POST", kind, {**sample.body(), sample.name_param: text})
            for text in (*HOSTILE_UNICODE, *BREAKOUT_PAYLOADS)
        )
        yield from _body_requests(sample)
    for text in (*HOSTILE_UNICODE, *HOSTILE_TEXTS):
        yield _json_request("POST", f"{API_PATH}/events", {**SAMPLES["events"].body(), "slug": text})
    for number, zone in enumerate(HOSTILE_ZONES):
        for time in HOSTILE_TIMES:
            dates = {
                "start_date": time,
                "end_date": HOSTILE_TIMES[number % len(HOSTILE_TIMES)] if number % 2 else time,
            }
            yield _json_request("POST", f"{API_PATH}/events", {"title": "Far", "timezone": zone, **dates})
    for atomic in (True, False, "x"):
        yield from (
            _json_request("POST", f"{EXTENSION_PATH}/batch", {"operations": shape, "atomic": atomic})
            for shape in HOSTILE_BATCHES
        )


def _body_requests(sample: Sample) -> Iterator[WireRequest]:
    path = f"{API_PATH}/{sample.kind}"
    yield from (WireRequest("POST", path, JSON, body) for body in INVALID_JSON.values())
    yield from (WireRequest("POST", path, JSON, body) for body, _ in UNUSUAL_JSON.values())
    yield from (
        WireRequest("POST", path, {"content-type": kind}, body) for kind, body in MALFORMED_MULTIPART.values()
    )
    yield from (
        _form_request("POST", path, text)
        for text in ("", "&&=", "%", "a=%ff", "a[b", "[]=1", "=" * 500, "a;b", "\x00")
    )


def _json_request(method: str, path: str, body: object) -> WireRequest:
    return json_request(method, path, body)


def _form_request(method: str, path: str, text: str) -> WireRequest:
    return WireRequest(method, path, {"content-type": "application/x-www-form-urlencoded"}, text.encode())


def test_hostile_writes_cause_no_server_error(instance: Instance, report: Report) -> None:
    requests = list(iter_writes(instance))
    tried = sample_evenly(requests, 400)
    responses = instance.request_all(request.with_login(instance.logins["editor"]) for request in tried)
    errors = [
        f"{response.status} {request.method} {request.target[:100]} {request.body[:200]!r}"
        for request, response in zip(tried, responses, strict=True)
        if response.status in (0, 429) or response.status >= 500
    ]
    assert errors == [], f"{len(errors)} of {len(tried)}\n" + "\n".join(take_first(errors, 40))
    statuses = Counter(got.status for got in responses)
    assert statuses[400] > len(tried) / 10
    assert statuses[200] + statuses[201] > len(tried) / 10
    # Stored values can be read.
    for kind in SAMPLES:
        got = instance.request(
            WireRequest("GET", f"{API_PATH}/{kind}?per_page=50&start_date=0002-01-01&hide_empty=0"), "editor"
        )
        assert (got.status, bool(json.loads(got.body)[kind])) == (200, True)
    assert '"event":"fault"' not in instance.server.read_log()
    assert len(requests) >= 3060
    counts = dict(sorted(statuses.items()))
    report(f"{len(tried):,} of {len(requests):,} malformed writes, {len(tried):,} without a server error: {counts}")
