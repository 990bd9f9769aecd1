"""The queue in the console: what it shows to whom, decisions, outdated ones, the selection, undo and senders."""

import re
from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient
from tests.proposals.proposals_client import (
    ProposalsClient,
    add_picture,
    add_submitter,
    count_queue,
    find_row,
    send_draft,
    set_columns,
)
from tests.proposals.queue_client import (
    DECIDE,
    QUEUE,
    decide,
    list_keys,
    list_titles,
    make_mixed_entries,
    make_values,
    read_entry,
    read_states,
)


@pytest.fixture
def site(start_app: Any) -> RunningApp:
    return start_app()  # type: ignore[no-any-return]


@pytest.fixture
def desk(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "editor")


@pytest.fixture
def sender(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "contributor")


def propose_change(site: RunningApp, role: str = "contributor", **changes: Any) -> tuple[dict[str, Any], str]:
    """Create an event and propose a change of it; return the event and the ID of the proposal."""
    event = site.caller("editor").create("events", **make_values("Concert", cost="5", description="<p>Old text</p>"))
    return event, ProposalsClient(site.caller(role)).propose_change(event, **changes)["id"]


def test_queue_lists_all_origins_by_start_with_their_number(site: RunningApp, desk: ConsoleClient) -> None:
    keys = make_mixed_entries(site, 10)
    page = desk.page(QUEUE)
    assert list_keys(page) == keys
    assert page.text.count("10 waiting") == 2  # the navigation, and the bar of phones
    for text in ("Public form", "Program “", "Assistant “Posters”", "Console"):
        assert text in page.text
    assert ">Change to event<" in page.html
    assert ">New<" in page.html
    today = desk.page("/console/")
    assert re.search(r'<a href="/console/queue"><strong>10</strong> Proposals to review', today.html)
    assert "status=pending" not in today.html


def test_statements_count_the_queue_once(site: RunningApp, desk: ConsoleClient, statements: list[str]) -> None:
    make_mixed_entries(site, 2)
    statements.clear()
    desk.page("/console/")
    assert sum("FROM proposals WHERE" in statement for statement in statements) == 1


def test_entry_shows_what_an_editor_needs(site: RunningApp, desk: ConsoleClient) -> None:
    editor = site.caller("editor")
    hall = editor.create("venues", venue="Town Hall")["id"]
    editor.create("events", **make_values("Spring concert", venue=[hall]))
    values = make_values("Spring concert", venue=hall, cost="12", description="<p>Come all</p>")
    key = send_draft(site, "agent", values=values, program="Posters", guessed=["cost", "end_date"],
                     source="https://choir.example/poster", note="Is the price right?")  # fmt: skip
    other = send_draft(site, "public", values=make_values("Spring concerts", 2), submitter_name="Rosa")
    page = desk.page(f"{QUEUE}/{key}")
    for text in (
        *("Spring concert", "Town Hall", "Assistant “Posters”", "https://choir.example/poster", "Come all"),
        *("Is the price right?", "Is this event already in the calendar?", "Similar proposals are waiting:"),
        "Another event is at this venue at the same time:",
    ):
        assert text in page.text, text
    assert f'href="{QUEUE}/{other}"' in page.html
    assert page.text.count("Guessed") == 2
    assert re.search(r"Date and time <span[^>]*>Guessed", page.html)
    assert "Rosa" in desk.page(f"{QUEUE}/{other}").text


def test_change_shows_the_words_that_differ(site: RunningApp, desk: ConsoleClient) -> None:
    _, key = propose_change(site, title="Great concert", cost="5", description="<p>New text</p>")
    page = desk.page(f"{QUEUE}/{key}")
    fields = page.html[page.html.index('<dl class="changes">') : page.html.index("</dl>")]
    assert "<ins>Great" in fields
    assert "<del>Old</del><ins>New</ins>" in fields
    assert 'id="cost"' not in fields  # It is the same already.


def test_entry_is_accepted_and_the_next_one_follows(site: RunningApp, desk: ConsoleClient) -> None:
    keys = make_mixed_entries(site, 5)
    for number, key in enumerate(keys):
        page = desk.page(f"{QUEUE}/{key}")
        sent = page.form()
        following = f"{QUEUE}/{keys[number + 1]}" if key != keys[-1] else QUEUE
        assert sent["next"][0] == following
        response = decide(desk, "accept", read_entry(desk, key), next=following)
        assert response.status_code == 303, response.text
        assert response.headers["location"].startswith(f"{following}?decided=")
    page = desk.page(response.headers["location"])
    assert "All done. Nothing is waiting for you." in page.text
    assert "Entry 04 eeeeee”: Accepted." in page.text
    assert read_states(site, keys) == ["publish", "accepted", "accepted", "accepted", "accepted"]
    assert count_queue(site) == 0


def test_return_needs_a_comment_and_reject_a_reason(site: RunningApp, desk: ConsoleClient) -> None:
    for key in make_mixed_entries(site, 2):
        entry = read_entry(desk, key)
        for action, fields in (("return", {}), ("reject", {"comment": "No"}), ("reject", {"reason": "7"})):
            response = decide(desk, action, entry, **fields)
            assert response.status_code == 400
            assert 'class="queue-entry' in response.text
            assert fields.get("comment", "") in response.text
        assert decide(desk, "return", entry, comment="Which hall?").status_code == 303
    assert count_queue(site) == 0


def test_reason_and_comment_are_stored(site: RunningApp, desk: ConsoleClient) -> None:
    keys = make_mixed_entries(site, 3)
    for key in keys:
        decide(desk, "reject", read_entry(desk, key), reason="duplicate", comment="See above")
    assert read_states(site, keys) == ["trash", "rejected", "rejected"]
    rows = site.sql("SELECT reason, comment FROM proposals")
    assert [tuple(row) for row in rows] == [(3, "See above")] * 3
    assert desk.page(f"{QUEUE}?state=decided").text.count("See above") >= 3


@pytest.mark.parametrize("action", ["accept", "return", "reject"])
def test_outdated_decision_gets_412_and_shows_the_entry(site: RunningApp, desk: ConsoleClient, action: str) -> None:
    pending, change = make_mixed_entries(site, 2)
    entries = {key: read_entry(desk, key) for key in (pending, change)}
    site.caller("contributor").change("events", int(pending), title="Other title")
    row = find_row(site, change)
    assert row is not None
    ProposalsClient(site.caller("contributor")).edit({"id": change}, values={"title": "Other title"})
    for key, entry in entries.items():
        response = decide(desk, action, entry, comment="Why?", reason="other")
        assert response.status_code == 412
        assert "The record has been modified" in response.text
        assert "Other title" in response.text
        assert "Why?" in response.text or action == "accept"
        assert read_states(site, [key]) == ["pending" if key == pending else "waiting"]
    response = decide(desk, "accept", *entries.values())
    assert response.status_code == 412
    assert "2 entries are unchanged:" in response.text
    assert read_states(site, [pending, change]) == ["pending", "waiting"]


def test_second_decision_gets_409(site: RunningApp, desk: ConsoleClient) -> None:
    (_, key) = propose_change(site, title="Great concert")
    entry = read_entry(desk, key)
    assert decide(desk, "accept", entry).status_code == 303
    response = decide(desk, "reject", entry, reason="other")
    assert response.status_code == 409
    assert "This is not possible in the state" in response.text
    page = desk.page(f"{QUEUE}/{key}")
    assert "Accepted" in page.text


def test_decision_on_an_event_that_no_longer_waits_says_so(site: RunningApp, desk: ConsoleClient) -> None:
    (key,) = make_mixed_entries(site, 1)
    entry = read_entry(desk, key)
    site.caller("editor").change("events", int(key), status="publish")
    response = decide(desk, "accept", entry)
    assert response.status_code == 409
    assert "This is not possible in the state “publish”" in response.text


def test_change_that_no_longer_fits_the_event_is_shown(site: RunningApp, desk: ConsoleClient) -> None:
    event, key = propose_change(site, start_date="2031-06-01 20:00:00")
    times = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 11:00:00"}
    site.caller("editor").change("events", event["id"], **times)
    for path in (QUEUE, f"{QUEUE}/{key}", f"{QUEUE}/{key}/edit"):
        assert desk.get(path).status_code == 200
    assert decide(desk, "accept", read_entry(desk, key)).status_code == 409
    assert decide(desk, "reject", read_entry(desk, key), reason="other").status_code == 303


def test_entry_that_cannot_be_read_does_not_hide_the_others(site: RunningApp, desk: ConsoleClient) -> None:
    broken, other = (send_draft(site, "api", values=make_values(title, n)) for n, title in ((1, "A"), (2, "Reading")))
    set_columns(site, broken, values='{"title": "A", "start_date": "never", "end_date": "never"}')
    page = desk.page(QUEUE)
    assert list_keys(page) == [broken, other]
    assert desk.get(f"{QUEUE}/{broken}").status_code == 400
    assert decide(desk, "reject", f"{broken}:1", reason="other").status_code == 303


def test_selected_entries_are_accepted_in_one_batch_and_undone_together(
    site: RunningApp, desk: ConsoleClient
) -> None:
    keys = make_mixed_entries(site, 10)
    boxes = desk.page(QUEUE).html
    entries = re.findall(r'type="checkbox" name="entry" value="([^"]*)"', boxes)
    before = site.sql("SELECT revision FROM sites WHERE id = $1", site.site_id)[0][0]
    response = decide(desk, "accept", *entries)
    assert response.status_code == 303
    page = desk.page(response.headers["location"])
    assert "10 entries decided." in page.text
    assert site.sql("SELECT revision FROM sites WHERE id = $1", site.site_id)[0][0] == before + 10
    undo = re.findall(r'name="entry" value="([^"]*)"', page.html)
    assert len(undo) == 10
    response = decide(desk, "undo", *undo)
    assert response.status_code == 303
    assert set(read_states(site, keys)) == {"waiting", "pending"}
    assert list_keys(desk.page(QUEUE)) == keys


def test_error_of_one_selected_entry_leaves_the_others(site: RunningApp, desk: ConsoleClient) -> None:
    first, second, third = make_mixed_entries(site, 3)
    entries = [read_entry(desk, key) for key in (first, second, third)]
    decide(desk, "reject", entries[1], reason="other")
    response = decide(desk, "accept", *entries)
    assert response.status_code == 409
    assert read_states(site, [first, second, third]) == ["publish", "rejected", "accepted"]


def test_decision_is_undone_from_the_notice_and_from_the_decided_ones(site: RunningApp, desk: ConsoleClient) -> None:
    pending, change = make_mixed_entries(site, 2)
    for key in (pending, change):
        response = decide(desk, "accept", read_entry(desk, key))
        (undo,) = re.findall(
            r'name="entry" value="([^"]*)"', desk.get(response.headers["location"]).text.partition('"queue"')[0]
        )
        response = decide(desk, "undo", undo)
        assert response.status_code == 303
        assert read_states(site, [key]) == ["pending" if key == pending else "waiting"]
        assert f'value="{key}:' in desk.page(response.headers["location"].partition("?")[0]).html
        decide(desk, "reject", read_entry(desk, key), reason="other")
    (_, decided) = list_keys(desk.page(f"{QUEUE}?state=decided"))
    assert decide(desk, "undo", read_entry(desk, decided)).status_code == 303


def test_conflict_asks_for_each_field(site: RunningApp, desk: ConsoleClient) -> None:
    event, key = propose_change(site, title="Theirs", cost="9")
    site.caller("editor").change("events", event["id"], title="Ours")
    for choice, title in (("theirs", "Ours"), ("mine", "Theirs")):
        response = decide(desk, "accept", read_entry(desk, key))
        assert response.status_code == 409
        page = type(desk.page(QUEUE)).parse(response.text)
        assert "Proposed version" in page.text
        fields = page.form(**{"choice[title]": choice})
        response = desk.post(DECIDE, fields)
        assert response.status_code == 303, response.text
        changed = site.caller("editor").read("events", event["id"])
        assert (changed["title"], changed["cost"]) == (title, "$9")
        row = find_row(site, key)
        assert row is not None
        decide(desk, "undo", f"{key}:{row['version']}")


def test_choice_for_an_older_version_asks_again(site: RunningApp, desk: ConsoleClient) -> None:
    event, key = propose_change(site, title="Theirs")
    site.caller("editor").change("events", event["id"], title="Ours")
    page = type(desk.page(QUEUE)).parse(decide(desk, "accept", read_entry(desk, key)).text)
    site.caller("editor").change("events", event["id"], title="Ours again")
    response = desk.post(DECIDE, page.form(**{"choice[title]": "mine"}))
    assert response.status_code == 409
    assert "Ours again" in type(page).parse(response.text).text
    assert site.caller("editor").read("events", event["id"])["title"] == "Ours again"


def test_malformed_decisions_are_client_errors(site: RunningApp, desk: ConsoleClient) -> None:
    (key,) = make_mixed_entries(site, 1)
    unknown = "00000000-0000-4000-8000-000000000000"
    for fields, status in (
        ({"action": "delete", "entry": f"{key}:1"}, 400),
        ({"action": "accept", "entry": "x:1"}, 400),
        ({"action": "accept", "entry": f"{key}"}, 400),
        ({"action": "accept", "entry": "999999999999999:1"}, 404),
        ({"action": "accept", "entry": f"{unknown}:1"}, 404),
        ({"action": "undo", "entry": f"{key}:1"}, 400),
        ({"action": "withdraw", "entry": f"{key}:1"}, 400),
        ({"action": "accept", "entry": [f"{unknown}:{n}" for n in range(51)]}, 400),
        ({"action": "accept", "entry": f"{key}:1", "conflict_values": "[]"}, 400),
        ({"action": "accept", "entry": f"{key}:1", "conflict_values": "{}", "conflict_own": "{}"}, 400),
        ({"action": "accept"}, 303),
        ({}, 400),
    ):
        assert desk.post(DECIDE, fields).status_code == status, fields
    for path, status in (
        (f"{QUEUE}/{unknown}", 404),
        (f"{QUEUE}/999999999999999", 404),
        (f"{QUEUE}/{unknown}/picture", 404),
        (f"{QUEUE}/{unknown}/edit", 404),
        (f"{QUEUE}/x", 404),
        (f"{QUEUE}?page=99999999999&decided=x&state=x", 200),
    ):
        assert desk.get(path).status_code == status, path
    assert desk.post(f"{QUEUE}/{unknown}/block").status_code == 404


def test_senders_see_only_their_own_entries(site: RunningApp, desk: ConsoleClient, sender: ConsoleClient) -> None:
    keys = make_mixed_entries(site, 5)
    mine = keys[:2]  # the pending event, and the change
    foreign = send_draft(site, "api", role="author", values=make_values("From the author", 9))
    assert list_keys(sender.page(QUEUE)) == [keys[0], keys[1], keys[3], keys[4]]
    assert "waiting" not in sender.page(QUEUE).html.partition('<main id="main"')[0]
    for key in (foreign, keys[2]):
        assert sender.get(f"{QUEUE}/{key}").status_code == 404
        assert desk.get(f"{QUEUE}/{key}").status_code == 200
    page = sender.page(f"{QUEUE}/{mine[1]}")
    assert "data-accept" not in page.html
    for action in ("accept", "return", "reject", "undo"):
        response = decide(sender, action, *[f"{key}:1" for key in mine], comment="x", reason="other")
        assert response.status_code in (403, 404), action
    assert sender.post(f"{QUEUE}/{keys[2]}/block").status_code == 403
    decide(desk, "return", read_entry(desk, mine[1]), comment="Which hall?")
    page = sender.page(QUEUE)
    assert "Sent back" in page.text
    assert "Which hall?" in page.text
    assert "Which hall?" in sender.page(f"{QUEUE}/{mine[1]}").text


@pytest.mark.parametrize("role", ["subscriber", "contributor", "author", "editor", "administrator", "nobody"])
def test_roles(site: RunningApp, role: str) -> None:
    keys = make_mixed_entries(site, 3)
    client = ConsoleClient(site) if role == "nobody" else ConsoleClient.signed_in(site, role)
    is_editor = role in ("editor", "administrator")
    statuses = [client.get(path).status_code for path in (QUEUE, f"{QUEUE}/{keys[1]}", f"{QUEUE}/{keys[2]}")]
    expected = {"nobody": [303, 303, 303], "subscriber": [403, 403, 403], "contributor": [200, 200, 404]}
    assert statuses == expected.get(role, [200, 200, 200] if is_editor else [200, 404, 404])
    row = find_row(site, keys[1])
    assert row is not None
    response = decide(client, "accept", f"{keys[1]}:{row['version']}")
    assert response.status_code == (303 if is_editor or role == "nobody" else 403)
    assert read_states(site, [keys[1]]) == ["accepted" if is_editor else "waiting"]


def test_sender_withdraws(site: RunningApp, sender: ConsoleClient) -> None:
    _, key = propose_change(site, title="Great concert")
    assert decide(sender, "withdraw", f"{key}:9").status_code == 412
    response = decide(sender, "withdraw", read_entry(sender, key))
    assert (response.status_code, response.headers["location"]) == (303, f"{QUEUE}?notice=withdrawn")
    assert read_states(site, [key]) == ["withdrawn"]
    assert "Withdrawn" in sender.page(QUEUE).text


def test_sender_of_the_public_form_is_blocked(site: RunningApp, desk: ConsoleClient) -> None:
    key = send_draft(site, "public", values=make_values("Sale"))
    other = send_draft(site, "api", values=make_values("Reading"))
    assert "Block this sender" not in desk.page(f"{QUEUE}/{other}").text
    assert "Block this sender" in desk.page(f"{QUEUE}/{key}").text
    assert desk.post(f"{QUEUE}/{key}/block", {"block": "true"}).status_code == 303
    (row,) = site.sql("SELECT blocked_at, blocked_by FROM submitters")
    assert (row["blocked_at"] is not None, row["blocked_by"]) == (True, site.users["editor"].id)
    assert "Unblock this sender" in desk.page(f"{QUEUE}/{key}").text
    desk.post(f"{QUEUE}/{key}/block", {"block": "false"})
    assert site.sql("SELECT blocked_at FROM submitters")[0]["blocked_at"] is None
    assert read_states(site, [key]) == ["waiting"]
    assert site.run_operation(add_submitter)


def test_picture_of_a_proposal_is_shown_to_editors_only(
    site: RunningApp, desk: ConsoleClient, sender: ConsoleClient
) -> None:
    key = send_draft(site, "public", values=make_values("Sale"))
    add_picture(site, key, b"RIFF0000WEBP", "A poster")
    assert f"{QUEUE}/{key}/picture" in desk.page(f"{QUEUE}/{key}").html
    response = desk.get(f"{QUEUE}/{key}/picture")
    assert (response.status_code, response.content) == (200, b"RIFF0000WEBP")
    assert (response.headers["content-type"], response.headers["cache-control"]) == (
        "image/webp",
        "private, no-store",
    )
    assert sender.get(f"{QUEUE}/{key}/picture").status_code == 404


def test_pending_dates_of_a_series_are_one_entry(site: RunningApp, desk: ConsoleClient) -> None:
    values = make_values("Dancing", rule="FREQ=WEEKLY;COUNT=4", status="pending")
    site.caller("contributor").post("//api/kalends/v1/series", values)
    page = desk.page(QUEUE)
    assert list_titles(page) == ["Dancing"]
    assert "4 dates" in page.text
    (key,) = list_keys(page)
    assert decide(desk, "accept", read_entry(desk, key)).status_code == 303
    assert [row["status"] for row in site.sql("SELECT status FROM events")] == ["publish"] * 4


def test_history_shows_the_origin(site: RunningApp, desk: ConsoleClient) -> None:
    event, key = propose_change(site, title="Great concert")
    new = send_draft(site, "agent", values=make_values("Reading"), program="Posters")
    decide(desk, "accept", *[read_entry(desk, entry) for entry in (key, new)])
    assert "Proposed: Program “" in desk.page(f"/console/events/{event['id']}/history").text
    row = find_row(site, new)
    assert row is not None
    assert "Proposed: Assistant “Posters”" in desk.page(f"/console/events/{row['record_id']}/history").text


def test_further_entries_are_on_further_pages(
    site: RunningApp, desk: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kalends.proposals.console.queue_pages.PER_PAGE", 4)
    keys = make_mixed_entries(site, 10)
    assert [list_keys(desk.page(f"{QUEUE}?page={n}")) for n in (1, 2, 3, 4)] == [keys[:4], keys[4:8], keys[8:], []]
    page = desk.page(f"{QUEUE}/{keys[5]}?page=2")
    assert page.form()["next"][0] == f"{QUEUE}/{keys[6]}?page=2"
