"""The event form with proposed values: editors accept what they save, contributors propose changes."""

from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.proposals.proposals_client import ProposalsClient, count_queue, find_row, send_draft, set_columns
from tests.proposals.queue_client import DECIDE, QUEUE, decide, make_values, read_entry, read_states


@pytest.fixture
def site(start_app: Any) -> RunningApp:
    app: RunningApp = start_app()
    app.set_site("timezone", "Europe/Berlin")
    return app


@pytest.fixture
def desk(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "editor")


@pytest.fixture
def sender(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "contributor")


@pytest.fixture
def event(site: RunningApp) -> dict[str, Any]:
    """Return a published event of the contributor."""
    values = make_values("Concert", cost="5", author=site.users["contributor"].id, description="<p>Text</p>")
    return site.caller("editor").create("events", **values)


def edit(client: ConsoleClient, path: str, **changes: Any) -> Any:
    """Open a form and send it with changes; the first button accepts or proposes."""
    return client.post(path, client.page(path).form(**{"action": "save", **changes}))


def test_form_has_the_proposed_values_without_repeats(site: RunningApp, desk: ConsoleClient) -> None:
    editor = site.caller("editor")
    category = editor.create("categories", name="Music")["id"]
    tag = editor.create("tags", name="Jazz, live")["id"]
    venue = editor.create("venues", venue="Town Hall")["id"]
    values = make_values(
        "Reading", venue=[venue], organizer={"organizer": "Library", "website": "https://lib.example"},
        categories=["music"], tags=[tag], cost="5", start_date="2031-06-01T19:00:00+00:00", all_day=False,
        end_date="2031-06-01 22:00:00", event_status="cancelled", description="<p>Long</p>", show_map=False,
    )  # fmt: skip
    key = send_draft(site, "agent", values=values, program="Posters")
    page = desk.page(f"{QUEUE}/{key}/edit")
    fields = page.form()
    expected = {
        "title": "Reading", "start_day": "2031-06-01", "start_time": "21:00", "end_time": "22:00",
        "venue_name": ["Town Hall", ""], "new_organizer[organizer]": "Library", "cost": "5",
        "new_organizer[website]": "https://lib.example", "event_status": "cancelled", "tags": "jazz-live",
        "description": "<p>Long</p>", "categories[]": ["", str(category)], "show_map": "false",
    }  # fmt: skip
    assert {name: fields.get(name) for name in expected} == expected
    for text in ('value="repeat"', "data-repeat", 'value="trash"', "Unsaved changes"):
        assert text not in page.html
    assert ">Accept</button>" in page.html


def test_saving_the_form_accepts_the_edited_values(site: RunningApp, desk: ConsoleClient) -> None:
    values = make_values("Reading", cost="5", venue={"venue": "Barn", "city": "Ghent"})
    key = send_draft(site, "public", values=values)
    response = edit(desk, f"{QUEUE}/{key}/edit", title="Poetry reading", featured="true", start_time="18:00")
    assert (response.status_code, response.headers["location"]) == (303, f"{QUEUE}?decided={key}")
    row = find_row(site, key)
    assert row is not None
    event = site.caller("editor").read("events", row["record_id"])
    assert (event["title"], event["cost"], event["featured"], event["status"], event["venue"]["city"]) == (
        *("Poetry reading", "$5", True, "publish", "Ghent"),
    )
    assert event["start_date"] == "2031-06-01 18:00:00"


def test_edited_change_is_merged_with_the_current_event(
    site: RunningApp, desk: ConsoleClient, event: dict[str, Any]
) -> None:
    key = ProposalsClient(site.caller("author")).propose_change(event, title="Great concert")["id"]
    path = f"{QUEUE}/{key}/edit"
    form = desk.page(path).form(action="save", title="Greatest concert")
    site.caller("editor").change("events", event["id"], cost="7", excerpt="Short")
    assert desk.post(path, form).status_code == 303
    changed = site.caller("editor").read("events", event["id"])
    assert (changed["title"], changed["cost"], changed["excerpt"]) == ("Greatest concert", "$7", "<p>Short</p>")


def test_edited_change_of_a_changed_field_asks(site: RunningApp, desk: ConsoleClient, event: dict[str, Any]) -> None:
    key = ProposalsClient(site.caller("author")).propose_change(event, title="Theirs", cost="9")["id"]
    site.caller("editor").change("events", event["id"], title="Ours")
    response = edit(desk, f"{QUEUE}/{key}/edit", title="Theirs, edited")
    assert response.status_code == 409
    page = Page.parse(response.text)
    assert "Theirs, edited" in page.text
    assert desk.post(DECIDE, page.form(**{"choice[title]": "theirs"})).status_code == 303
    changed = site.caller("editor").read("events", event["id"])
    assert (changed["title"], changed["cost"]) == ("Ours", "$9")
    assert read_states(site, [key]) == ["accepted"]


def test_outdated_form_gets_412_and_keeps_the_input(
    site: RunningApp, desk: ConsoleClient, event: dict[str, Any]
) -> None:
    author = ProposalsClient(site.caller("author"))
    proposal = author.propose_change(event, title="Great concert")
    path = f"{QUEUE}/{proposal['id']}/edit"
    form = desk.page(path).form(action="save", title="Greatest concert")
    author.edit(proposal, values={"title": "Small concert"})
    for _ in range(2):
        response = desk.post(path, form)
        assert response.status_code == 412
        page = Page.parse(response.text)
        assert "The record has been modified" in page.text
        form = page.form(action="save")
        assert form["title"] == "Greatest concert"
    assert site.caller("editor").read("events", event["id"])["title"] == "Concert"


def test_invalid_form_is_shown_again(site: RunningApp, desk: ConsoleClient) -> None:
    key = send_draft(site, "public", values=make_values("Reading"))
    response = edit(desk, f"{QUEUE}/{key}/edit", website="not a url", end_day="2031-05-01")
    assert response.status_code == 400
    assert "Please correct these fields" in response.text
    assert f'action="{QUEUE}/{key}/edit"' in response.text
    response = edit(desk, f"{QUEUE}/{key}/edit", action="find-image", title="Other")
    assert (response.status_code, 'value="Other"' in response.text) == (200, True)
    assert read_states(site, [key]) == ["waiting"]


def test_preview_changes_nothing(site: RunningApp, desk: ConsoleClient, event: dict[str, Any]) -> None:
    new = send_draft(site, "public", values=make_values("Reading", venue={"venue": "Barn"}))
    change = ProposalsClient(site.caller("author")).propose_change(event, title="Great concert")["id"]
    before = site.sql("SELECT revision, last_post_id FROM sites WHERE id = $1", site.site_id)
    for key, texts in ((new, ("Reading", "Barn")), (change, ("Great concert", "Text"))):
        response = desk.post(f"{QUEUE}/{key}/edit", {"action": "preview"})
        assert response.status_code == 200
        for text in texts:
            assert text in response.text
    assert site.sql("SELECT revision, last_post_id FROM sites WHERE id = $1", site.site_id) == before


def test_decided_proposal_has_no_form(site: RunningApp, desk: ConsoleClient, sender: ConsoleClient) -> None:
    key = send_draft(site, "public", values=make_values("Reading"))
    form = desk.page(f"{QUEUE}/{key}/edit").form(action="save")
    decide(desk, "reject", read_entry(desk, key), reason="other")
    assert desk.get(f"{QUEUE}/{key}/edit").status_code == 409
    assert desk.post(f"{QUEUE}/{key}/edit", form).status_code == 409
    assert sender.get(f"{QUEUE}/{key}/edit").status_code == 404


# Contributors ---------------------------------------------------------------------------------------


def test_contributor_proposes_changes_of_a_published_event(
    site: RunningApp, desk: ConsoleClient, sender: ConsoleClient, event: dict[str, Any]
) -> None:
    path = f"/console/events/{event['id']}"
    response = sender.get(path)
    assert (response.status_code, response.headers["location"]) == (303, f"{path}/propose")
    assert f'href="{path}/propose"' in sender.page("/console/events?period=all").html
    page = sender.page(f"{path}/propose")
    assert ">Propose changes</button>" in page.html
    for name in ("slug", "featured", "new_password", "publish_day", "new_venue[website]", "new_organizer[phone]"):
        assert f'name="{name}"' not in page.html
    form = page.form(title="Great concert", note="Typo", action="propose", **{"new_venue[venue]": "Barn"})
    response = sender.post(f"{path}/propose", form)
    assert response.status_code == 303, response.text
    key = response.headers["location"].removeprefix(f"{QUEUE}/").partition("?")[0]
    row = find_row(site, key)
    assert row is not None
    assert (row["origin"], row["note"], row["state"], row["record_id"]) == (
        *("contributor", "Typo", "waiting", event["id"]),
    )
    assert row["values"] == '{"title": "Great concert", "venue": [{"venue": "Barn"}]}'
    assert site.caller("editor").read("events", event["id"])["title"] == "Concert"
    assert "Typo" in desk.page(f"{QUEUE}/{key}").text
    assert decide(desk, "accept", read_entry(desk, key)).status_code == 303
    changed = site.caller("editor").read("events", event["id"])
    assert (changed["title"], changed["venue"]["venue"]) == ("Great concert", "Barn")


def test_second_proposal_continues_the_first(
    site: RunningApp, desk: ConsoleClient, sender: ConsoleClient, event: dict[str, Any]
) -> None:
    path = f"/console/events/{event['id']}/propose"
    edit(sender, path, title="Great concert")
    page = sender.page(path)
    assert page.form()["title"] == "Great concert"
    response = edit(sender, path, cost="8")
    key = response.headers["location"].removeprefix(f"{QUEUE}/").partition("?")[0]
    assert count_queue(site) == 1
    decide(desk, "return", read_entry(desk, key), comment="Which hall?")
    page = sender.page(f"{QUEUE}/{key}")
    assert "Which hall?" in page.text
    assert "Change the proposal" in page.text
    assert edit(sender, f"{QUEUE}/{key}/edit", **{"new_venue[venue]": "Barn"}).status_code == 303
    row = find_row(site, key)
    assert row is not None
    assert (row["state"], row["version"]) == ("waiting", 4)
    assert row["values"] == '{"cost": "8", "title": "Great concert", "venue": [{"venue": "Barn"}]}'


def test_later_change_of_an_editor_is_not_overwritten(
    site: RunningApp, desk: ConsoleClient, sender: ConsoleClient, event: dict[str, Any]
) -> None:
    path = f"/console/events/{event['id']}/propose"
    edit(sender, path, title="Great concert")
    site.caller("editor").change("events", event["id"], title="Ours")
    response = edit(sender, path, cost="8")
    key = response.headers["location"].removeprefix(f"{QUEUE}/").partition("?")[0]
    assert decide(desk, "accept", read_entry(desk, key)).status_code == 409


def test_contributors_form_refuses(site: RunningApp, sender: ConsoleClient, event: dict[str, Any]) -> None:
    path = f"/console/events/{event['id']}/propose"
    response = edit(sender, path)
    assert response.status_code == 400
    assert "You haven’t changed anything." in response.text
    form = sender.page(path).form(title="Great concert", action="propose")
    assert edit(sender, path, slug="other").status_code == 400
    assert sender.post(path, form).status_code == 303
    assert sender.post(path, form).status_code == 412  # It was sent from a form without the proposal.
    foreign = site.caller("author").create("events", **make_values("From the author"))
    for other, status in ((foreign["id"], 403), (999999, 404)):
        assert sender.get(f"/console/events/{other}").status_code == status
        assert sender.get(f"/console/events/{other}/propose").status_code == status
        assert sender.post(f"/console/events/{other}/propose", form).status_code == status


def test_private_event_is_not_disclosed_by_a_proposal(
    site: RunningApp, desk: ConsoleClient, event: dict[str, Any]
) -> None:
    author = ConsoleClient.signed_in(site, "author")
    key = ProposalsClient(site.caller("author")).propose_change(event, description="Great concert")["id"]
    site.caller("editor").change("events", event["id"], status="private", title="Secret", cost="99")
    assert "Secret" in desk.page(f"{QUEUE}/{key}").text

    def check() -> None:
        for path in (QUEUE, f"{QUEUE}/{key}", f"{QUEUE}/{key}/edit"):
            page = author.page(path)
            assert key in page.html
            assert "Secret" not in page.html
            assert "99" not in page.form().get("cost", "")

    check()
    decide(desk, "return", read_entry(desk, key), comment="Which hall?")
    check()


def test_proposal_for_a_deleted_event_is_shown(site: RunningApp, desk: ConsoleClient, event: dict[str, Any]) -> None:
    author = ConsoleClient.signed_in(site, "author")
    proposal = ProposalsClient(site.caller("author")).propose_change(event, start_date="2031-06-01 18:00:00")
    key = proposal["id"]
    entry = read_entry(desk, key)
    site.caller("editor").delete(f"/events/{event['id']}")
    for is_gone in (False, True):
        if is_gone:
            set_columns(site, key, record_id=999999)
        for client in (desk, author):
            for path in (QUEUE, f"{QUEUE}/{key}", f"{QUEUE}/{key}/edit"):
                assert client.get(path).status_code == 200, (is_gone, path)
        assert decide(desk, "accept", entry).status_code == (404 if is_gone else 410)
        assert edit(desk, f"{QUEUE}/{key}/edit", title="Other").status_code in (400, 404, 410)
    assert decide(desk, "reject", entry, reason="other").status_code == 303
    assert desk.get(f"{QUEUE}?state=decided").status_code == 200
