"""Nobody writes what they may not, by any method, override, batch, restore or trick of keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import psycopg
import pytest

from tests.api.samples import SAMPLES
from tests.robustness.kit import add_people
from tests.security.place import Place, Tell, first
from tests.security.wire import EX, NS, Ask, Got, get, send

STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
FAR = "2098-01-01 10:00:00"
PUBLIC = ("publish", "future", "private")


@dataclass(frozen=True)
class Attempt:
    who: str
    ask: Ask

    def __str__(self) -> str:
        return f"{self.who}: {self.ask.method} {self.ask.target} {self.ask.body[:100]!r}"


def digest(place: Place) -> list[tuple[str, str]]:
    """All records, whoever wrote them."""
    tables = (
        "events",
        "venues",
        "organizers",
        "categories",
        "tags",
        "event_venues",
        "event_categories",
        "event_tags",
    )
    with psycopg.connect(place.url) as connection:
        return [
            (
                table,
                str(
                    connection.execute(
                        f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"
                    ).fetchone()
                ),
            )
            for table in tables
        ]


def is_refused(got: Got) -> bool:
    """By status; a batch that goes on after a refusal has the statuses of its operations."""
    if got.status == 200 and b'"results"' in got.body:
        return all(row["status"] in (401, 403) for row in got.json()["results"])
    return got.status in (401, 403)


def batch(*operations: tuple[str, str, object], atomic: bool = True) -> Ask:
    rows = [{"method": method, "path": path, "body": body} for method, path, body in operations]
    return send("POST", f"{EX}/batch", {"operations": rows, "atomic": atomic})


def changes(kind: str, record_id: int, text: str) -> Iterator[Ask]:
    """All ways to change or remove a record."""
    path, body = f"{NS}/{kind}/{record_id}", {text: "taken over", "status": "publish"}
    for method in ("PUT", "PATCH", "POST"):
        yield send(method, path, body)
    yield Ask("DELETE", path)
    yield send("POST", f"{path}?_method=PATCH", body)
    yield Ask("POST", f"{path}?_method=DELETE")
    yield send("POST", path, body, **{"x-http-method-override": "PUT"})
    yield Ask("POST", path, {"x-http-method-override": "DELETE"})
    yield send("POST", path, {**body, "author": 1, "_method": "DELETE"})
    yield send("POST", f"{EX}/{kind}/{record_id}/restore", {})
    for method in ("PATCH", "DELETE"):
        yield batch((method, f"/{kind}/{record_id}", body if method == "PATCH" else {}), atomic=method == "PATCH")


def test_nobody_changes_what_is_not_theirs(place: Place, tell: Tell) -> None:
    attempts: list[Attempt] = []
    for kind, status in product(("events", "venues", "organizers"), STATUSES):
        sample = SAMPLES[kind]
        more = {"date_utc": FAR} if status == "future" else {}
        asked = "draft" if status == "trash" else status
        made = place.create(kind, "stranger", **sample.body(status=asked, **more))
        if status == "trash":
            place.write("DELETE", f"/{kind}/{made['id']}", "stranger")
        callers = ("anonymous", "subscriber", "contributor", "author")
        attempts += [Attempt(who, ask) for who in callers for ask in changes(kind, made["id"], sample.text)]
    before = digest(place)
    answers = place.ask_all(attempt.ask.by(place.logins.get(attempt.who)) for attempt in attempts)
    wrong = [f"{got.status} {attempt}" for attempt, got in zip(attempts, answers, strict=True) if not is_refused(got)]
    assert wrong == [], f"{len(wrong)} of {len(attempts)}\n" + "\n".join(first(wrong, 30))
    assert digest(place) == before
    assert len(attempts) >= 131
    tell(f"{len(attempts)} writes to records of others, {len(attempts)} refused, no row changed")


def test_terms_are_written_by_those_who_may(place: Place, tell: Tell) -> None:
    attempts: list[Attempt] = []
    for kind, callers in (
        ("categories", ("anonymous", "subscriber", "contributor")),
        ("tags", ("anonymous", "subscriber", "contributor", "author")),
    ):
        made = place.create(kind, **SAMPLES[kind].body())
        for who in callers:
            attempts.append(Attempt(who, send("POST", f"{NS}/{kind}", SAMPLES[kind].body())))
            attempts += [
                Attempt(who, ask) for ask in changes(kind, made["id"], "description") if "restore" not in ask.target
            ]
    before = digest(place)
    answers = place.ask_all(attempt.ask.by(place.logins.get(attempt.who)) for attempt in attempts)
    wrong = [f"{got.status} {attempt}" for attempt, got in zip(attempts, answers, strict=True) if not is_refused(got)]
    assert wrong == []
    assert digest(place) == before
    tell(f"{len(attempts)} writes of terms, {len(attempts)} refused")


def test_a_contributor_publishes_nothing(place: Place, tell: Tell) -> None:
    """Whatever is wished for, it waits for somebody who may publish it."""
    attempts: list[Ask] = []
    for kind in ("events", "venues", "organizers"):
        sample = SAMPLES[kind]
        for status in PUBLIC:
            more = {"date_utc": FAR} if status == "future" else {}
            attempts.append(send("POST", f"{NS}/{kind}", sample.body(status=status, **more)))
            attempts.append(batch(("POST", f"/{kind}", sample.body(status=status, **more))))
            own = place.create(kind, "contributor", **sample.body(status="draft"))
            path = f"{NS}/{kind}/{own['id']}"
            attempts += [send(method, path, {"status": status, **more}) for method in ("PUT", "PATCH", "POST")]
            attempts.append(send("POST", f"{path}?_method=PUT", {"status": status}))
            attempts.append(batch(("PATCH", f"/{kind}/{own['id']}", {"status": status})))
            attempts.append(send("PATCH", f"{NS}/{kind}/by-slug/{own['slug'] or own['id']}", {"status": status}))
        attempts += _back_to_published(place, kind)
    answers = place.ask_all(ask.by(place.logins["contributor"]) for ask in attempts)
    assert {got.status for got in answers} <= {200, 201, 400, 403, 404}
    shown = [
        f"{ask.method} {ask.target} {ask.body[:80]!r}: {got.body[:100]!r}"
        for ask, got in zip(attempts, answers, strict=True)
        if got.status in (200, 201) and any(f'"status":"{status}"'.encode() in got.body for status in PUBLIC)
    ]
    assert shown == [], first(shown)
    user = place.user_id("contributor")
    with psycopg.connect(place.url) as connection:
        for kind in ("events", "venues", "organizers"):
            row = connection.execute(
                f"SELECT count(*) FROM {kind} WHERE author_id = %s AND status = ANY(%s)", [user, list(PUBLIC)]
            ).fetchone()
            assert row == (0,), kind
    tell(f"{len(attempts)} wishes of a contributor to publish, none came true")


def _back_to_published(place: Place, kind: str) -> Iterator[Ask]:
    """Restores of a record of the contributor to the state in which an editor had published it."""
    own = place.create(kind, "contributor", **SAMPLES[kind].body(status="draft"))
    for status in ("publish", "draft"):
        place.write("PATCH", f"/{kind}/{own['id']}", status=status)
    history = place.ask(get(f"{EX}/{kind}/{own['id']}/history"), "editor").json()["history"]
    for entry in history:
        yield send("POST", f"{EX}/{kind}/{own['id']}/restore", {"revision": entry["revision"]})
    trashed = place.create(kind, "contributor", **SAMPLES[kind].body(status="draft"))
    place.write("DELETE", f"/{kind}/{trashed['id']}", "contributor")
    yield send("PATCH", f"{NS}/{kind}/{trashed['id']}", {"status": "publish"})
    yield send("POST", f"{EX}/{kind}/{trashed['id']}/restore", {})


def test_a_contributor_makes_no_terms_by_naming_them(place: Place) -> None:
    with psycopg.connect(place.url) as connection:
        names = "SELECT count(*) FROM (SELECT name FROM tags UNION ALL SELECT name FROM categories) t"
        before = connection.execute(names).fetchone()
        for param in ("tags", "categories"):
            for value in (["Quendor"], "Quendor", "Quendor,Borphee", [{"name": "Quendor"}]):
                body = SAMPLES["events"].body(**{param: value})
                assert place.ask(send("POST", f"{NS}/events", body), "contributor").status in (201, 400, 403)
        assert connection.execute(names).fetchone() == before


def test_a_password_that_only_reads_writes_nothing(place: Place, tell: Tell) -> None:
    login = add_people(place.url, {"reader": "administrator"})["reader"]
    with psycopg.connect(place.url) as connection:
        connection.execute(
            "UPDATE application_passwords SET read_only = true "
            "WHERE user_id = (SELECT id FROM users WHERE login = 'reader')"
        )
    asks: list[Ask] = [send("POST", f"{EX}/media", {})]
    for kind, sample in SAMPLES.items():
        made = place.create(kind, **sample.body())
        asks.append(send("POST", f"{NS}/{kind}", sample.body()))
        asks += [
            ask for ask in changes(kind, made["id"], "description") if sample.is_post or "restore" not in ask.target
        ]
    before = digest(place)
    answers = place.ask_all(ask.by(login) for ask in asks)
    assert {(got.status, got.json()["code"]) for got in answers} == {(403, "rest_read_only")}
    assert digest(place) == before
    tell(f"{len(asks)} writes with a password that only reads, {len(asks)} refused")


@pytest.mark.parametrize("who", ["contributor", "author"])
def test_the_private_venue_of_somebody_else_cannot_be_linked(place: Place, who: str) -> None:
    venue = place.create("venues", "stranger", venue="Flathead", status="private")
    shapes: tuple[Any, ...] = (
        venue["id"],
        [venue["id"]],
        {"id": venue["id"]},
        [{"id": venue["id"], "venue": "mine"}],
    )
    for shape in shapes:
        got = place.ask(send("POST", f"{NS}/events", SAMPLES["events"].body(venue=shape)), who)
        assert "Flathead" not in got.text
        assert got.status in (201, 400, 403)
    assert place.ask(get(f"{NS}/venues/{venue['id']}"), "stranger").json()["venue"] == "Flathead"


def test_the_key_of_somebody_else_repeats_nothing(place: Place) -> None:
    body, key = {"venue": "Keyed", "status": "draft"}, {"idempotency-key": "the same for all"}
    answers = [
        place.ask(send("POST", f"{NS}/venues", body, **key), who) for who in ("author", "author2", "contributor")
    ]
    assert [got.status for got in answers] == [201] * 3
    assert [got.header("idempotent-replay") for got in answers] == [""] * 3
    assert len({got.json()["id"] for got in answers}) == 3
    again = place.ask(send("POST", f"{NS}/venues", body, **key), "author")
    assert (again.header("idempotent-replay"), again.json()["id"]) == ("true", answers[0].json()["id"])
