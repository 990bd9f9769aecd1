"""Which status a wish becomes: on creation, from each status to each other; and who writes terms."""

from itertools import product

import pytest

from tests.api.running_app import Interface, done
from tests.api.sample_records import SAMPLES
from tests.lifecycle import expected_permissions
from tests.lifecycle.expected_permissions import ROLES, STATUSES, Answer, Case
from tests.lifecycle.lifecycle_fixtures import EXTENSION, tell
from tests.lifecycle.permission_matrix import STATES, Table
from tests.soak import SOAK

POSTS = ("events", "venues", "organizers")


@pytest.mark.parametrize("kind", POSTS)
def test_initial_status_depends_on_role(interface: Interface, kind: str) -> None:
    wrong = []
    for role, asked in product(ROLES, ("", *STATUSES)):
        body = SAMPLES[kind].body(**({"status": asked} if asked else {}))
        answer = interface.caller(role).post(f"/{kind}", body)
        got = Answer(answer.status_code, answer.json().get("code") or answer.json()["status"])
        if got != expected_permissions.creating(role, asked):
            wrong.append(
                f"{role} asks for {asked or 'nothing'}: {got}, not {expected_permissions.creating(role, asked)}"
            )
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", POSTS if SOAK else POSTS[:1])
def test_status_transitions_match_rules(interface: Interface, kind: str) -> None:
    table = Table(interface, kind)
    asked, wrong = 0, []
    for role, own, (status, was), to in product(ROLES, (False, True), STATES, STATUSES):
        if role == "anonymous" and own:
            continue
        case = Case(kind, role, own, status, was)
        asked += 1
        if (got := table.move(case, to)) != expected_permissions.moving(case, to):
            wrong.append(f"{case} to {to}: {got}, not {expected_permissions.moving(case, to)}")
    tell(f"{kind}: {asked:,} moves checked")
    assert wrong == []


@pytest.mark.parametrize("kind", ["categories", "tags"])
def test_terms_are_publicly_readable_and_writable_by_role(interface: Interface, kind: str) -> None:
    """Terms have no status: they are public, in lists, single, inside events and in the feed."""
    sample, administrator = SAMPLES[kind], interface.caller("administrator")
    used = administrator.create(kind, **sample.body())
    event = administrator.create("events", **SAMPLES["events"].body(**{kind: [used["id"]]}))
    for role in ROLES:
        caller = interface.caller(role)
        refused = expected_permissions.writing_terms(kind, role)
        term = administrator.create(kind, **sample.body())
        assert caller.read(kind, term["id"])["slug"] == term["slug"]
        assert term["id"] in caller.ids(kind, hide_empty="false", search=term["name"])
        assert [shown["id"] for shown in caller.read("events", event["id"])[kind]] == [used["id"]]
        path = f"/{kind}/{term['id']}"
        answers = [
            caller.post(f"/{kind}", sample.body()),
            caller.patch(path, {"description": "changed"}),
            caller.delete(path),
        ]
        got = [Answer(answer.status_code, answer.json().get("code", "")) for answer in answers]
        assert got == ([refused] * 3 if refused else [Answer(201), Answer(200), Answer(200)]), role
        page = done(caller.get(f"{EXTENSION}/changes", {"kind": kind, "per_page": 500, "since": 1}))
        told = {change["id"]: change["deleted"] for change in page["changes"]}
        assert (told[used["id"]], told[term["id"]]) == (False, not refused), role
