"""Series in the console without script: the editor of a rule, the scope of an edit, and the page of a series."""

import re
from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.series.series_client import SeriesClient

WEEKLY = {
    "repeat[frequency]": "weekly",
    "repeat[ends]": "until",
    "repeat[until]": "2031-05-06",
}


@pytest.fixture
def api(app: RunningApp) -> SeriesClient:
    return SeriesClient(app.caller("editor"))


def send_new(client: ConsoleClient, title: str, **fields: Any) -> Any:
    """Submit the form of a new event on Tuesdays at 19:30 with a rule."""
    page = client.page("/console/events/new")
    when = {"start_day": "2031-01-07", "start_time": "19:30", "end_day": "2031-01-07", "end_time": "21:00"}
    zone = {"timezone": "Europe/Berlin"}
    return client.post(
        "/console/events/new", page.form(title=title, action="publish", **when, **zone, **{**WEEKLY, **fields})
    )


def create(client: ConsoleClient, title: str, **fields: Any) -> int:
    response = send_new(client, title, **fields)
    assert response.status_code == 303, Page.parse(response.text).text
    found = re.fullmatch(r"/console/series/(\d+)\?notice=series-created", response.headers["location"])
    assert found, response.headers["location"]
    return int(found[1])


def save(client: ConsoleClient, event_id: int, **changes: Any) -> Page:
    """Submit the form of a date with changes and return the page that offers the scopes."""
    path = f"/console/events/{event_id}"
    response = client.post(path, client.page(path).form(action="save", **changes))
    assert response.status_code == 200, response.headers.get("location")
    return Page.parse(response.text)


def choose(client: ConsoleClient, event_id: int, page: Page, scope: str, **fields: Any) -> str:
    response = client.post(f"/console/events/{event_id}", page.form(scope=scope, **fields))
    assert response.status_code == 303, Page.parse(response.text).text
    location: str = response.headers["location"]
    return location


def test_new_event_with_a_rule_becomes_a_series(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(
        editor, "Yoga", **{"repeat[remove][]": ["2031-02-11", ""], "repeat[add][]": ["2031-03-06", ""]}
    )
    series = api.read(series_id)
    assert series["rule"]["rrule"] == "FREQ=WEEKLY;BYDAY=TU;UNTIL=20310506"
    assert (series["removed"], series["added"]) == (["2031-02-11 19:30:00"], ["2031-03-06 19:30:00"])
    page = editor.page(f"/console/series/{series_id}")
    assert "Tue, Jan 7, 2031" in page.text
    assert "Skipped" in page.text
    assert "Yoga" in editor.page("/console/series").text


@pytest.mark.quick("fields0-FREQ=DAILY;INTERVAL=2;UNTIL=20310506", "fields4-FREQ=WEEKLY;BYDAY=TU,TH")
@pytest.mark.parametrize(
    ("fields", "rrule"),
    [
        ({"repeat[frequency]": "daily", "repeat[interval]": "2"}, "FREQ=DAILY;INTERVAL=2;UNTIL=20310506"),
        ({"repeat[frequency]": "monthly"}, "FREQ=MONTHLY;BYMONTHDAY=7;UNTIL=20310506"),
        ({"repeat[frequency]": "monthly", "repeat[day]": "weekday"}, "FREQ=MONTHLY;BYDAY=1TU;UNTIL=20310506"),
        (
            {"repeat[frequency]": "yearly", "repeat[ends]": "count", "repeat[count]": "3", "repeat[day]": "weekday"},
            "FREQ=YEARLY;BYMONTH=1;BYDAY=1TU;COUNT=3",
        ),
        (
            {"repeat[weekdays][]": ["tuesday", "thursday"], "repeat[ends]": "never"},
            "FREQ=WEEKLY;BYDAY=TU,TH",
        ),
    ],
)
def test_fields_of_the_editor_become_a_rule(
    editor: ConsoleClient, api: SeriesClient, fields: dict[str, Any], rrule: str
) -> None:
    assert api.read(create(editor, "Rules", **fields))["rule"]["rrule"] == rrule


def test_rejected_rule_keeps_the_form(editor: ConsoleClient) -> None:
    response = send_new(editor, "Wrong", **{"repeat[frequency]": "monthly", "repeat[day]": "last_weekday"})
    page = Page.parse(response.text)
    assert response.status_code == 400
    assert "2031-01-07 is not a date of this rule. Its first date is 2031-01-28." in page.text
    assert page.fields["repeat[frequency]"] == ["monthly"]
    assert page.fields["repeat[day]"] == ["last_weekday"]


def test_list_of_dates_is_a_series(editor: ConsoleClient, api: SeriesClient) -> None:
    fields = {"repeat[frequency]": "dates", "repeat[add][]": ["2031-01-09", "2031-02-01"]}
    series = api.read(create(editor, "Listed", **fields))
    assert (series["rule"], series["total"]) == (None, 3)


def test_preview_names_dates_warnings_and_errors(editor: ConsoleClient, contributor: ConsoleClient) -> None:
    form = {"start_day": "2031-01-31", "start_time": "19:30", "repeat[frequency]": "monthly"}
    body = contributor.post("/console/series/preview", form).json()
    assert [entry[:12] for entry in body["dates"]] == [
        "Fri, Jan 31,", "Mon, Mar 31,", "Sat, May 31,", "Thu, Jul 31,", "Sun, Aug 31,",
    ]  # fmt: skip
    assert "Months without this day are skipped." in body["warnings"][0]
    assert list(body["days"]) == ["day", "last_weekday", "last_day"]
    wrong = editor.post("/console/series/preview", {**form, "repeat[ends]": "until", "repeat[until]": "2030-01-01"})
    assert "before the start" in wrong.json()["error"]
    assert editor.post("/console/series/preview", {"repeat[frequency]": "monthly"}).json() == {}


def test_scopes_show_their_effect_before_anything_is_saved(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(editor, "Choir")
    events = api.events(series_id)
    assert len(events) == 18
    page = save(editor, events[2]["id"], title="Large choir")
    assert "18 dates change, from Tue, Jan 7, 2031 to Tue, May 6, 2031." in page.text
    assert "16 dates change" in page.text
    assert "Changed: Title." in page.text
    assert {event["title"] for event in api.events(series_id)} == {"Choir"}
    location = choose(editor, events[2]["id"], page, "this")
    assert location == f"/console/events/{events[2]['id']}?notice=saved"
    assert [event["title"] for event in api.events(series_id)[1:4]] == ["Choir", "Large choir", "Choir"]


def test_form_can_be_continued_from_the_page_about_scopes(editor: ConsoleClient, api: SeriesClient) -> None:
    event = api.events(create(editor, "Quiz"))[1]
    page = save(editor, event["id"], title="Quiz night", tags="new tag")
    path = f"/console/events/{event['id']}"
    assert f'href="{path}?draft={event["id"]}"' in page.html
    form = editor.page(f"{path}?draft={event['id']}")
    assert (form.fields["title"], form.fields["tags"]) == (["Quiz night"], ["new tag"])
    again = Page.parse(editor.post(path, form.form(action="save")).text)
    assert "Changed: Title, Tags." in again.text
    choose(editor, event["id"], again, "following")
    assert "Unsaved changes" not in editor.page(path).text


def test_own_changes_are_kept_unless_replaced(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(editor, "Chess")
    events = api.events(series_id)
    choose(editor, events[3]["id"], save(editor, events[3]["id"], title="Chess with guests"), "this")
    page = save(editor, events[0]["id"], title="Fast chess")
    assert "These dates were changed individually and keep their changes:" in page.text
    assert choose(editor, events[0]["id"], page, "following") == f"/console/series/{series_id}?notice=saved"
    assert api.events(series_id)[3]["title"] == "Chess with guests"
    page = save(editor, events[0]["id"], title="Slow chess")
    choose(editor, events[0]["id"], page, "all", **{"replace[all]": "1"})
    assert {event["title"] for event in api.events(series_id)} == {"Slow chess"}


def test_new_time_of_one_date_moves_all_dates_alike(editor: ConsoleClient, api: SeriesClient) -> None:
    """The form sends the day of its date, but all dates keep their own days."""
    series_id = create(editor, "Dance")
    before = api.events(series_id)
    page = save(editor, before[5]["id"], start_time="20:00", end_time="21:30")
    choose(editor, before[5]["id"], page, "all")
    after = api.events(series_id)
    assert [event["start_date"] for event in after] == [
        event["start_date"].replace("19:30", "20:00") for event in before
    ]
    assert [event["id"] for event in after] == [event["id"] for event in before]
    page = save(editor, before[5]["id"], start_day="2031-02-12", end_day="2031-02-12")
    choose(editor, before[5]["id"], page, "following")
    assert [event["start_date"][:10] for event in api.events(series_id)[4:7]] == [
        "2031-02-04", "2031-02-12", "2031-02-19",
    ]  # fmt: skip


def test_dates_move_to_the_trash_by_scope(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(editor, "Film")
    events = api.events(series_id)
    path = f"/console/events/{events[4]['id']}"
    page = Page.parse(editor.post(path, editor.page(path).form(action="trash")).text)
    assert "14 dates move to the trash." in page.text
    assert len(api.events(series_id)) == 18
    choose(editor, events[4]["id"], page, "this")
    assert len(api.events(series_id)) == 17
    assert api.read(series_id)["removed"] == [events[4]["start_date"]]
    path = f"/console/events/{events[10]['id']}"
    page = Page.parse(editor.post(path, editor.page(path).form(action="trash")).text)
    choose(editor, events[10]["id"], page, "following")
    assert len(api.events(series_id)) == 9


def test_conflicting_changes_are_merged_first(
    editor: ConsoleClient, administrator: ConsoleClient, api: SeriesClient
) -> None:
    series_id = create(editor, "Reading")
    event = api.events(series_id)[1]
    path = f"/console/events/{event['id']}"
    opened = editor.page(path)
    api.edit(event["id"], "this", title="Reading aloud")
    response = editor.post(path, opened.form(action="save", title="Reading group"))
    assert response.status_code == 409
    conflict = Page.parse(response.text)
    response = editor.post(path, conflict.form(**{"choice[title]": "mine"}))
    page = Page.parse(response.text)
    assert "Which dates change?" in page.text
    # The series changes while the page is open.
    api.edit(event["id"], "all", cost="5")
    again = Page.parse(editor.post(path, page.form(scope="all")).text)
    assert "Which dates change?" in again.text
    choose(editor, event["id"], again, "following")
    assert api.events(series_id)[2]["title"] == "Reading group"
    assert api.events(series_id)[2]["cost"] == "$5"


def test_rule_changes_after_its_effect_is_confirmed(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(editor, "Course")
    events = api.events(series_id)
    choose(editor, events[2]["id"], save(editor, events[2]["id"], title="Course with guest"), "this")
    path = f"/console/series/{series_id}"
    form = editor.page(path).form()
    fields = {**form, "repeat[interval]": "2", "repeat[weekdays][]": ["thursday"], "from": "2031-01-14 19:30:00"}
    response = editor.post(f"{path}/rule", fields)
    page = Page.parse(response.text)
    assert response.status_code == 200, page.text
    assert "dates move to the trash." in page.text
    assert "These dates were changed individually and move to the trash:" in page.text
    assert len(api.events(series_id)) == 18
    refused = editor.post(f"{path}/rule", page.form())
    assert refused.status_code == 409
    assert editor.post(f"{path}/rule", page.form(replace="1")).status_code == 303
    days = [event["start_date"][:10] for event in api.events(series_id)[:4]]
    assert days == ["2031-01-07", "2031-01-16", "2031-01-30", "2031-02-13"]


def test_series_moves_to_the_trash(editor: ConsoleClient, api: SeriesClient) -> None:
    series_id = create(editor, "Market")
    path = f"/console/series/{series_id}"
    page = Page.parse(editor.post(f"{path}/trash", editor.page(path).form()).text)
    assert "18 dates move to the trash." in page.text
    assert editor.post(f"{path}/trash", page.form()).headers["location"] == "/console/series?notice=trashed"
    assert api.events(series_id) == []


def test_pages_require_the_right_to_edit(
    author: ConsoleClient, contributor: ConsoleClient, editor: ConsoleClient, api: SeriesClient
) -> None:
    series_id = create(editor, "Closed")
    event = api.events(series_id)[0]
    for client in (author, contributor):
        for path in (f"/console/series/{series_id}", f"/console/events/{event['id']}"):
            assert client.get(path).status_code == 403
        assert client.post(f"/console/series/{series_id}/trash").status_code == 403
        assert client.post(f"/console/series/{series_id}/rule", WEEKLY).status_code == 403
        assert "You can’t change this" in client.page("/console/series").text
    own = api.create(title="Given away", start_date="2031-01-07 19:30:00", end_date="2031-01-07 21:00:00",
                     rule="FREQ=WEEKLY;BYDAY=TU;COUNT=4")  # fmt: skip
    dates = api.events(own["id"])
    api.edit(dates[1]["id"], "this", author=author.app.users["author"].id)
    page = save(author, dates[1]["id"], title="Taken")
    assert page.text.count("Not possible:") == 2
    choose(author, dates[1]["id"], page, "this")
    assert api.events(own["id"])[1]["title"] == "Taken"
