"""One line becomes an event: what is stored, what is refused, and what the page shows before saving."""

from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.console.event_table_pages import days_from_now, make_event

QUICK = "/console/events/quick"
QUIZ = "Pub quiz 24 Nov 2031 8pm Bell Inn £2 #quiz"


@pytest.fixture(scope="module")
def filled(app: RunningApp) -> RunningApp:
    editor = app.caller("editor")
    editor.create("venues", venue="Bell Inn", city="Larkford")
    editor.create("venues", venue="Bell Inn Garden")
    editor.create("categories", name="Quiz")
    make_event(editor, "Long walk", 3, end_date=f"{days_from_now(3)} 22:30:00")
    return app


@pytest.fixture
def desk(filled: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(filled, "editor")


def add(client: ConsoleClient, line: str, action: str = "draft", **fields: str) -> Any:
    return client.post(QUICK, {"line": line, "action": action, "back": "/console/", **fields})


def read_added(app: RunningApp, response: Any) -> dict[str, Any]:
    assert response.status_code == 303, response.text[:500]
    path, _, query = response.headers["location"].partition("?added=")
    assert path == "/console/"
    return app.caller("editor").read("events", int(query.partition("&")[0]))


def test_a_line_becomes_a_draft(filled: RunningApp, desk: ConsoleClient) -> None:
    response = add(desk, QUIZ)
    event = read_added(filled, response)
    assert (event["title"], event["status"]) == ("Pub quiz", "draft")
    assert (event["start_date"], event["end_date"]) == ("2031-11-24 20:00:00", "2031-11-24 21:00:00")
    assert (event["venue"]["venue"], event["cost"]) == ("Bell Inn", "£2")
    assert [row["name"] for row in event["categories"]] == ["Quiz"]
    page = desk.page(response.headers["location"])
    assert f"/console/events/{event['id']}" in page.html
    assert "Saved." in page.text


def test_publishing_needs_the_right(filled: RunningApp, desk: ConsoleClient) -> None:
    assert read_added(filled, add(desk, "Fair 5 Dec 2031", "publish"))["status"] == "publish"
    contributor = ConsoleClient.signed_in(filled, "contributor")
    assert 'name="action" value="pending"' in contributor.page("/console/").html
    assert read_added(filled, add(contributor, "Talk 5 Dec 2031 6pm", "pending"))["status"] == "pending"
    assert read_added(filled, add(contributor, "Talk 5 Dec 2031 6pm", "publish"))["status"] == "pending"


def test_without_time_the_event_takes_all_day(filled: RunningApp, desk: ConsoleClient) -> None:
    event = read_added(filled, add(desk, "Market 6 Dec 2031"))
    assert event["all_day"]
    assert event["start_date"] == "2031-12-06 00:00:00"


def test_an_event_is_as_long_as_the_last_one_with_its_title(filled: RunningApp, desk: ConsoleClient) -> None:
    event = read_added(filled, add(desk, "Long walk 7 Dec 2031 9am"))
    assert (event["start_date"], event["end_date"]) == ("2031-12-07 09:00:00", "2031-12-07 12:30:00")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Pub quiz 8pm", "Which day?"),
        ("5 Dec 2031 8pm", "What is it?"),
        ("", "Which day?"),
        ("\0", "Which day?"),
    ],
)
def test_an_incomplete_line_is_shown_again(filled: RunningApp, desk: ConsoleClient, line: str, message: str) -> None:
    count = filled.sql("SELECT count(*) AS n FROM events")[0]["n"]
    response = add(desk, line)
    assert response.status_code == 400
    page = Page.parse(response.text)
    assert message in page.text
    assert page.fields["line"] == [line.strip("\0")]
    assert filled.sql("SELECT count(*) AS n FROM events")[0]["n"] == count


def test_a_part_is_removed_without_script(filled: RunningApp, desk: ConsoleClient) -> None:
    page = Page.parse(add(desk, QUIZ, "check").text)
    assert "Pub quiz · Mon, Nov 24, 2031, 8:00 PM – 9:00 PM" in page.text
    assert 'value="Pub quiz 24 Nov 2031 8pm £2 #quiz"' in page.html
    shown = Page.parse(add(desk, QUIZ, "", without="Pub quiz 24 Nov 2031 8pm £2 #quiz").text)
    assert shown.fields["line"] == ["Pub quiz 24 Nov 2031 8pm £2 #quiz"]


def test_the_form_opens_filled_in_and_nothing_is_stored(filled: RunningApp, desk: ConsoleClient) -> None:
    count = filled.sql("SELECT count(*) AS n FROM events")[0]["n"]
    page = Page.parse(add(desk, QUIZ, "form").text)
    assert page.fields["title"] == ["Pub quiz"]
    assert (page.fields["start_day"], page.fields["start_time"]) == (["2031-11-24"], ["20:00"])
    assert page.fields["venue_name"][0] == "Bell Inn (Larkford)"
    assert (page.fields["cost"], page.fields["categories[]"]) == (["£2"], ["", str(find_category(filled))])
    assert filled.sql("SELECT count(*) AS n FROM events")[0]["n"] == count
    saved = desk.post("/console/events/new", page.form(action="draft"))
    assert saved.status_code == 303


def find_category(app: RunningApp) -> int:
    category: int = app.sql("SELECT id FROM categories WHERE name = 'Quiz'")[0]["id"]
    return category


def test_the_script_gets_the_parts(filled: RunningApp, desk: ConsoleClient) -> None:
    headers = {"accept": "application/json"}
    body = desk.get(QUICK, params={"line": QUIZ}, headers=headers).json()
    assert body["title"] == "Pub quiz"
    assert [part["text"] for part in body["parts"]] == ["24 Nov 2031", "8pm", "Bell Inn", "£2", "#Quiz"]
    assert body["missing"] == []
    body = desk.get(QUICK, params={"line": "Quiz free"}, headers=headers).json()
    assert len(body["missing"]) == 1
    assert [part["text"] for part in body["parts"]] == ["Free"]
    assert desk.get(QUICK, headers=headers).status_code == 200


def test_where_the_form_leads_back(filled: RunningApp, desk: ConsoleClient) -> None:
    response = add(desk, "Choir 9 Dec 2031 7pm", back="https://example.org/")
    assert response.headers["location"].startswith("/console/?added=")
    response = add(desk, "Choir 9 Dec 2031 7pm", back="/console/events")
    assert response.headers["location"].startswith("/console/events?added=")


@pytest.mark.parametrize("day", ["Tue", "tomorrow", "Tuesday"])
def test_days_in_words_are_in_the_future(filled: RunningApp, desk: ConsoleClient, day: str) -> None:
    event = read_added(filled, add(desk, f"Rehearsal {day} 6pm"))
    assert days_from_now(-1) < event["start_date"][:10] <= days_from_now(8)
    assert event["start_date"][11:] == "18:00:00"
