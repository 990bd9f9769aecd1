"""Which status a wish becomes: on creation, from each status to each other; and who writes terms."""

from itertools import product

import pytest

from tests.api.running_app import RunningApp, expect_json
from tests.api.sample_records import SAMPLES
from tests.lifecycle import expected_permissions
from tests.lifecycle.expected_permissions import ROLES, STATUSES, Case, ExpectedResponse
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL, report
from tests.lifecycle.permission_matrix import STATUS_PAIRS, MatrixSite
from tests.soak import SOAK

POSTS = ("events", "venues", "organizers")


@pytest.mark.quick("events", "organizers")
@pytest.mark.parametrize("kind", POSTS)
def test_initial_status_depends_on_role(app: RunningApp, kind: str) -> None:
    wrong = []
    for role, status in product(ROLES, ("", *STATUSES)):
        body = SAMPLES[kind].body(**({"status": status} if status else {}))
        response = app.caller(role).post(f"/{kind}", body)
        actual = ExpectedResponse(response.status_code, response.json().get("code") or response.json()["status"])
        if actual != expected_permissions.expect_create(role, status):
            wrong.append(
                f"{role} requests {status or 'no status'}: {actual} instead of "
                f"{expected_permissions.expect_create(role, status)}"
            )
    assert wrong == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", POSTS if SOAK else POSTS[:1])
def test_status_transitions_match_rules(app: RunningApp, kind: str) -> None:
    table = MatrixSite(app, kind)
    count, wrong = 0, []
    for role, own, (status, was), to in product(ROLES, (False, True), STATUS_PAIRS, STATUSES):
        if role == "anonymous" and own:
            continue
        case = Case(kind, role, own, status, was)
        count += 1
        if (actual := table.change_status(case, to)) != expected_permissions.expect_status_change(case, to):
            wrong.append(f"{case} to {to}: {actual}, not {expected_permissions.expect_status_change(case, to)}")
    report(f"{kind}: {count:,} transitions checked")
    assert wrong == []


@pytest.mark.parametrize("kind", ["categories", "tags"])
def test_terms_are_publicly_readable_and_writable_by_role(app: RunningApp, kind: str) -> None:
    """Terms have no status: they are public, in lists, single, inside events and in the feed."""
    sample, administrator = SAMPLES[kind], app.caller("administrator")
    administrator.create(kind, **sample.body())  # The feed below starts after the first revision.
    used = administrator.create(kind, **sample.body())
    event = administrator.create("events", **SAMPLES["events"].body(**{kind: [used["id"]]}))
    for role in ROLES:
        caller = app.caller(role)
        rejection = expected_permissions.term_write_error(kind, role)
        term = administrator.create(kind, **sample.body())
        assert caller.read(kind, term["id"])["slug"] == term["slug"]
        assert term["id"] in caller.ids(kind, hide_empty="false", search=term["name"])
        assert [term_json["id"] for term_json in caller.read("events", event["id"])[kind]] == [used["id"]]
        path = f"/{kind}/{term['id']}"
        responses = [
            caller.post(f"/{kind}", sample.body()),
            caller.patch(path, {"description": "changed"}),
            caller.delete(path),
        ]
        actual = [ExpectedResponse(response.status_code, response.json().get("code", "")) for response in responses]
        assert actual == (
            [rejection] * 3 if rejection else [ExpectedResponse(201), ExpectedResponse(200), ExpectedResponse(200)]
        ), role
        page = expect_json(caller.get(f"{EXTENSION_URL}/changes", {"kind": kind, "per_page": 500, "since": 1}))
        deleted_by_id = {change["id"]: change["deleted"] for change in page["changes"]}
        assert (deleted_by_id[used["id"]], deleted_by_id[term["id"]]) == (False, not rejection), role
