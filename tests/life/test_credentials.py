"""Credentials under attack: guessing is slowed down everywhere at once, and the owner still gets in."""

import base64
import math
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from random import Random
from statistics import fmean, variance

import httpx
import pytest

from kalends.core.throttle import Limit
from kalends.http import auth
from kalends.operations import accounts
from kalends.store.database import Transaction
from tests.api.interface import HOST, NAMESPACE, Caller, Interface, assert_refused, done
from tests.api.samples import SAMPLES
from tests.life.conftest import Place
from tests.life.kit import EXTENSION, tell
from tests.life.processes import run_command, wait_until
from tests.servers import Server

HOME, ELSEWHERE = "203.0.113.5", "198.51.100.7"


def somebody(interface: Interface, login: str, password: str, address: str) -> Caller:
    return Caller(interface, 0, httpx.BasicAuth(login, password), {"X-Forwarded-For": address})


def attempt(interface: Interface, login: str, password: str, address: str) -> int:
    """The status of a read with these credentials."""
    return somebody(interface, login, password, address).get("/tags").status_code


def pass_time(interface: Interface, seconds: int) -> None:
    """What is forgiven depends on when it was counted, so that is moved."""
    interface.sql("UPDATE login_failures SET counted_at = counted_at - make_interval(secs => $1)", seconds)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with fewer tries, which are forgiven so slowly that a test may take its time."""
    monkeypatch.setattr(auth, "PER_ACCOUNT_AND_IP", Limit(burst=3, seconds=900))
    monkeypatch.setattr(auth, "PER_IP", Limit(burst=6, seconds=900))
    monkeypatch.setattr(auth, "PER_ACCOUNT", Limit(burst=12, seconds=900))


# Slower and slower ---------------------------------------------------------------------------


@pytest.mark.slow
def test_wrong_tries_add_up_over_two_servers(place: Place, start_server: Callable[..., Server]) -> None:
    forwarded = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}
    servers = [start_server(place.url, environment=forwarded) for _ in range(2)]
    tries = iter(range(10**6))

    def guess(login: str, password: str, address: str) -> httpx.Response:
        """One server after the other."""
        server = servers[next(tries) % 2]
        url = f"{server.address}{NAMESPACE}/tags"
        return httpx.get(url, auth=(login, password), headers={"X-Forwarded-For": address})

    def tries_until_refused(logins: Iterator[str]) -> int:
        for n, login in enumerate(logins):
            refused = guess(login, "wrong", ELSEWHERE)
            if refused.status_code != 401:
                assert_refused(refused, 429, "rest_too_many_attempts")
                assert 0 < int(refused.headers["retry-after"]) <= 60
                return n
        raise AssertionError("never refused")

    editor, author = place.people["editor"].password, place.people["author"].password
    # One more or two: some are forgiven while the others are counted.
    assert 10 <= tries_until_refused(repeat("editor", 20)) <= 12
    assert [guess("editor", editor, ELSEWHERE).status_code for _ in servers] == [429, 429]
    assert guess("editor", editor, HOME).status_code == 200
    assert guess("author", author, ELSEWHERE).status_code == 200
    assert 45 <= tries_until_refused(f"user{n}" for n in range(80)) <= 60
    assert [guess("author", author, ELSEWHERE).status_code for _ in servers] == [429, 429]
    assert guess("author", author, HOME).status_code == 200


@pytest.mark.usefixtures("small_limits")
def test_after_the_seconds_that_were_named_the_right_password_is_looked_at_again(
    fresh: Callable[..., Interface],
) -> None:
    interface = fresh()
    right = interface.people["editor"].password
    while (refused := somebody(interface, "editor", "wrong", HOME).get("/tags")).status_code == 401:
        pass
    assert_refused(refused, 429, "rest_too_many_attempts")
    assert attempt(interface, "editor", right, HOME) == 429
    pass_time(interface, int(refused.headers["retry-after"]))
    assert attempt(interface, "editor", right, HOME) == 200


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", ["editor", "EDITOR", "editor@example.org"])
def test_the_owner_is_not_locked_out_by_what_others_do_elsewhere(fresh: Callable[..., Interface], name: str) -> None:
    interface = fresh()
    password = interface.operate(lambda tx: accounts.add_application_password(tx, "editor", "phone"))
    assert attempt(interface, name, password, HOME) == 200
    wait_until(lambda: len(interface.sql("SELECT FROM application_password_uses")) == 1, 5)
    statuses = [attempt(interface, name, "wrong", f"198.51.100.{n}") for n in range(20)]
    assert statuses[:12] + statuses[-6:] == [401] * 12 + [429] * 6
    assert attempt(interface, name, password, "192.0.2.1") == 429
    assert attempt(interface, name, password, HOME) == 200


@pytest.mark.usefixtures("small_limits")
def test_nobody_is_locked_out_by_a_login_that_names_an_address(fresh: Callable[..., Interface]) -> None:
    """A login may hold any text; it must not be counted as somebody else's."""
    interface = fresh()
    for n in range(8):
        attempt(interface, f"editor from {HOME}", "wrong", f"198.51.100.{n}")
    assert attempt(interface, "editor", interface.people["editor"].password, HOME) == 200


# Nothing is told -----------------------------------------------------------------------------


def test_an_unknown_user_costs_the_same_statements_as_a_wrong_password(
    fresh: Callable[..., Interface], monkeypatch: pytest.MonkeyPatch
) -> None:
    interface = fresh()
    begun: list[Transaction] = []
    make = Transaction.__init__

    def noting(self: Transaction, *values: object, **named: object) -> None:
        begun.append(self)
        make(self, *values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "__init__", noting)
    counts, answers = [], []
    for login in ("editor", "nobody"):
        begun.clear()
        answer = somebody(interface, login, "wrong", ELSEWHERE).get("/tags")
        counts.append([tx.statements for tx in begun])
        answers.append((answer.status_code, answer.json()))
    assert counts[0] == counts[1]
    assert sum(counts[0]) > 0
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_time_does_not_tell_an_unknown_user_from_a_wrong_password(fresh: Callable[..., Interface]) -> None:
    """Two times three hundred tries in mixed order; a difference would have to be one in ten thousand by chance."""
    interface = fresh()
    # Few per account, and none from an address twice: nobody is slowed down.
    known, unknown = list(interface.people), [f"nobody{n}" for n in range(5)]
    tries = [(group, logins[n % 5], n) for group, logins in enumerate((known, unknown)) for n in range(300)]
    Random(1).shuffle(tries)
    times: list[list[float]] = [[], []]
    for group, login, n in tries:
        caller = somebody(interface, login, "wrong", f"2001:db8:{group}:{n:x}::1")
        began = time.perf_counter()
        assert caller.get("/tags").status_code == 401
        times[group].append(math.log(time.perf_counter() - began))
    error = math.sqrt(sum(variance(group) / len(group) for group in times))
    t = (fmean(times[0]) - fmean(times[1])) / error
    chance = math.erfc(abs(t) / math.sqrt(2))
    medians = [f"{math.exp(sorted(group)[150]) * 1000:.2f} ms" for group in times]
    tell(f"wrong password {medians[0]}, unknown user {medians[1]} (medians); t = {t:.2f}, p = {chance:.3f}")
    assert chance > 0.0001


def test_the_password_of_an_account_is_none_for_clients(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    interface.operate(lambda tx: accounts.set_account_password(tx, "editor", "correct horse battery"))
    answer = somebody(interface, "editor", "correct horse battery", HOME).get("/tags")
    assert_refused(answer, 401, "incorrect_password")


# Application passwords -----------------------------------------------------------------------


def test_a_password_that_only_reads_reads_everything_and_writes_nothing(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    secret = interface.operate(lambda tx: accounts.add_application_password(tx, "editor", "display", read_only=True))
    editor, reader = interface.caller("editor"), somebody(interface, "editor", secret, HOME)
    draft = editor.create("events", **SAMPLES["events"].body(status="draft"))["id"]
    path = f"/events/{draft}"
    assert reader.read("events", draft)["status"] == "draft"
    assert done(reader.get(f"{EXTENSION}{path}/history"))["history"]
    assert draft in {change["id"] for change in done(reader.get(f"{EXTENSION}/changes"))["changes"]}
    before = interface.sql("SELECT revision FROM sites")
    writes = [
        *[reader.post(f"/{kind}", sample.body()) for kind, sample in SAMPLES.items()],
        *[reader.request(method, path, json={"title": "No"}) for method in ("POST", "PUT", "PATCH")],
        reader.delete(path),
        reader.post(path, headers={"X-HTTP-Method-Override": "DELETE"}),
        reader.post(f"{EXTENSION}{path}/restore", {"revision": 1}),
    ]
    for answer in writes:
        assert_refused(answer, 403, "rest_read_only")
    assert interface.sql("SELECT revision FROM sites") == before


def test_the_use_of_passwords_is_logged_by_hour_and_address(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    secret = interface.operate(lambda tx: accounts.add_application_password(tx, "author", "laptop"))

    def use(address: str) -> None:
        caller = somebody(interface, "author", secret, address)
        assert caller.get("/tags", headers={"User-Agent": "Test/1"}).status_code == 200

    def noted() -> list[tuple[str, ...]]:
        rows = interface.sql("SELECT client_ip, user_agent FROM application_password_uses ORDER BY client_ip")
        return [tuple(row) for row in rows]

    for address in (HOME, HOME, ELSEWHERE):
        use(address)
    wait_until(lambda: len(noted()) >= 2, 5)
    assert noted() == [(ELSEWHERE, "Test/1"), (HOME, "Test/1")]
    lines = run_command(interface.database_url, "password", "log", "author").stdout.splitlines()
    hour = time.strftime("%Y-%m-%d %Hh", time.gmtime())
    words = [" ".join(line.split()) for line in lines]
    assert sorted(words) == [f"{hour} laptop {address} Test/1" for address in (ELSEWHERE, HOME)]


# Passwords of events -------------------------------------------------------------------------


def test_guessing_the_password_of_an_event_is_slowed_down(interface: Interface) -> None:
    event = interface.caller("editor").create("events", **SAMPLES["events"].body(new_password="right one"))
    paths = (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}")

    def guess(password: str, address: str, path: str = paths[0]) -> httpx.Response:
        caller = Caller(interface, 0, None, {"X-Forwarded-For": address})
        return caller.get(path, {"password": password})

    statuses = [guess("wrong", ELSEWHERE, paths[n % 2]).status_code for n in range(30)]
    assert statuses[:20] == [403] * 20
    assert 429 in statuses
    while guess("wrong", ELSEWHERE).status_code != 429:
        pass  # One was forgiven meanwhile.
    for path in paths:
        refused = guess("right one", ELSEWHERE, path)
        assert_refused(refused, 429, "rest_too_many_attempts")
        assert int(refused.headers["retry-after"]) > 0
    assert guess("right one", HOME).status_code == 200


def test_one_password_for_a_list_is_one_try_however_many_events_are_protected(interface: Interface) -> None:
    editor = interface.caller("editor")
    mine = editor.create("events", **SAMPLES["events"].body(new_password="mine only", description="Told."))["id"]
    for n in range(25):
        editor.create("events", **SAMPLES["events"].body(new_password=f"other {n}"))
    reader = Caller(interface, 0, None, {"X-Forwarded-For": "192.0.2.77"})
    page = done(reader.get("/events", {"password": "mine only", "per_page": 50}))
    assert {event["id"]: event["description"] for event in page["events"]}[mine] == "<p>Told.</p>"


def test_credentials_that_are_not_basic_are_nobodys(interface: Interface) -> None:
    garbage = base64.b64encode(b"no colon").decode()
    for header in ("Bearer abc", f"Basic {garbage}", "Basic ???"):
        answer = interface.caller().get(f"http://{HOST}{NAMESPACE}/tags", headers={"Authorization": header})
        assert answer.status_code == 200, header
