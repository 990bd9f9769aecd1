"""The form of an event without script: fields, actions by role, times, drafts, warnings, preview."""

from tests.api.running_app import API_PATH, RunningApp
from tests.console.console_client import ConsoleClient


def test_new_event_is_saved_as_draft_and_published(author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    response = author.post(
        "/console/events/new",
        page.form(
            action="draft", title="Choir & organ", start_day="2031-05-02", start_time="19:30", end_time="21:00"
        ),
    )
    assert response.status_code == 303, response.text[:3000]
    path = response.headers["location"].partition("?")[0]
    edit = author.page(path)
    assert edit.fields["title"] == ["Choir & organ"]
    assert edit.fields["end_day"] == ["2031-05-02"]
    published = author.post(path, edit.form(action="publish"))
    assert published.headers["location"] == f"{path}?notice=published", published.text[:2000]
