"""The form of an event without script: fields, actions by role, errors, times, conflicts, picture, preview."""

import re
from typing import Any

import httpx
import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.media.image_fixtures import make_image

EVERYTHING = {
    "title": "Jazz & wine",
    "start_day": "2031-05-02",
    "start_time": "19:30",
    "end_day": "2031-05-03",
    "end_time": "1h15",
    "timezone": "Europe/Paris",
    "description": "<p>With <strong>wine</strong>.</p>",
    "excerpt": "Short.",
    "cost": "12 - 15",
    "currency_symbol": "€",
    "currency_code": "eur",
    "currency_position": "postfix",
    "website": "https://jazz.example/",
    "ticket_url": "https://tickets.example/",
    "event_status": "postponed",
    "status_reason": "Rain",
    "online_url": "https://meet.example/",
    "show_map": "false",
    "show_map_link": "true",
    "hide_from_listings": "true",
    "sticky": "true",
    "featured": "true",
    "slug": "jazz-and-wine",
    "tags": "jazz, wine",
    "new_venue[venue]": "Cellar",
    "new_venue[city]": "Lyon",
    "new_organizer[organizer]": "Jazz club",
    "new_organizer[email]": "jazz@example.org",
}


def save(client: ConsoleClient, path: str, page: Page, **changes: Any) -> httpx.Response:
    return client.post(path, page.form(**changes))


def create_event(app: RunningApp, **fields: Any) -> dict[str, Any]:
    dates = {"start_date": "2031-03-04 19:00:00", "end_date": "2031-03-04 21:00:00"}
    return app.caller(fields.pop("role", "editor")).create("events", **{"title": "Fair", **dates, **fields})


def read_event(app: RunningApp, record_id: object) -> dict[str, Any]:
    event: dict[str, Any] = app.caller("editor").get(f"/events/{record_id}", {"password": "sesame-1"}).json()
    return event


def read_revision(app: RunningApp) -> int:
    revision: int = app.sql("SELECT revision FROM sites")[0]["revision"]
    return revision


def saved_id(response: httpx.Response) -> str:
    assert response.status_code == 303, Page.parse(response.text).text[:2000]
    return str(response.headers["location"].partition("?")[0].rpartition("/")[2])


def test_new_event_is_saved_as_draft_and_published(author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    response = save(
        author, "/console/events/new", page, action="draft", title="Choir & organ", start_day="2031-05-02"
    )
    path = f"/console/events/{saved_id(response)}"
    edit = author.page(path)
    assert (edit.fields["title"], edit.fields["end_day"]) == (["Choir & organ"], ["2031-05-02"])
    published = save(author, path, edit, action="publish")
    assert published.headers["location"] == f"{path}?notice=published"


def test_only_a_stored_event_has_a_history(author: ConsoleClient) -> None:
    new = author.page("/console/events/new")
    assert "/history" not in author.get("/console/events/new").text
    response = save(author, "/console/events/new", new, action="draft", title="Choir", start_day="2031-05-02")
    path = f"/console/events/{saved_id(response)}"
    assert f'<a href="{path}/history">' in author.get(path).text


def test_times_of_drafts_follow_the_region_of_the_site(app: RunningApp, author: ConsoleClient) -> None:
    app.set_site("language", "en-GB")
    try:
        assert 'data-region="en-GB"' in author.page("/console/events/new").html
    finally:
        app.set_site("language", "en")


def test_new_places_of_a_draft_are_published_with_it(app: RunningApp, author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    fields = {"title": "House concert", "start_day": "2031-05-02"}
    places = {
        "new_venue[venue]": "Our kitchen",
        "new_venue[address]": "Mill Lane 2",
        "new_organizer[organizer]": "Us",
    }
    response = save(author, "/console/events/new", page, action="draft", **fields, **places)
    record_id = saved_id(response)
    event = read_event(app, record_id)
    assert (event["venue"]["status"], event["organizer"][0]["status"]) == ("draft", "draft")
    assert app.caller().get(f"/venues/{event['venue']['id']}").status_code == 403
    path = f"/console/events/{record_id}"
    saved_id(save(author, path, author.page(path), action="publish"))
    public = app.caller().read("events", int(record_id))
    assert (public["venue"]["venue"], public["organizer"][0]["organizer"]) == ("Our kitchen", "Us")


def test_every_field_is_saved_and_shown_again(app: RunningApp, editor: ConsoleClient) -> None:
    music = app.caller("editor").create("categories", name="Music")
    page = editor.page("/console/events/new")
    fields = {**EVERYTHING, "categories[]": ["", str(music["id"])], "action": "publish", "new_password": "sesame-1"}
    record_id = saved_id(editor.post("/console/events/new", page.form(**fields)))
    event = read_event(app, record_id)
    expected = {
        "start_date": "2031-05-02 19:30:00",
        "end_date": "2031-05-03 01:15:00",
        "timezone": "Europe/Paris",
        "description": "<p>With <strong>wine</strong>.</p>",
        "cost": "12€ – 15€",
        "currency_code": "EUR",
        "website": "https://jazz.example/",
        "ticket_url": "https://tickets.example/",
        "event_status": "postponed",
        "status_reason": "Rain",
        "online_url": "https://meet.example/",
        "show_map": False,
        "show_map_link": True,
        "hide_from_listings": True,
        "sticky": True,
        "featured": True,
        "slug": "jazz-and-wine",
        "status": "publish",
    }
    assert {name: event[name] for name in expected} == expected
    assert (event["venue"]["venue"], event["organizer"][0]["email"]) == ("Cellar", "jazz@example.org")
    assert [term["name"] for term in event["tags"]] == ["jazz", "wine"]
    assert [term["id"] for term in event["categories"]] == [music["id"]]
    assert app.caller().get(f"/events/{record_id}").status_code == 403
    edit = editor.page(f"/console/events/{record_id}")
    unchanged = {name for name in EVERYTHING if "[" not in name} - {"end_time", "currency_code"}
    assert {name: edit.fields[name][-1] for name in unchanged} == {name: EVERYTHING[name] for name in unchanged}
    before = read_revision(app)
    assert saved_id(save(editor, f"/console/events/{record_id}", edit, action="save")) == record_id
    assert read_revision(app) == before, "an unchanged form writes nothing"


def test_description_is_not_sent_unless_edited(app: RunningApp, editor: ConsoleClient) -> None:
    html = "<table><tbody><tr><td>1</td></tr></tbody></table>\n<details><summary>x</summary>y</details>"
    event = create_event(app, description=html)
    path = f"/console/events/{event['id']}"
    save(editor, path, editor.page(path), action="save", title="Fair 2")
    stored = app.sql("SELECT description FROM events WHERE id = $1", event["id"])[0]["description"]
    assert stored == html
    assert read_event(app, event["id"])["title"] == "Fair 2"
    changes = app.sql("SELECT after FROM changes WHERE record_id = $1 ORDER BY revision DESC LIMIT 1", event["id"])
    assert "description" not in changes[0]["after"]


def test_roles_see_only_their_actions(
    app: RunningApp, contributor: ConsoleClient, author: ConsoleClient, editor: ConsoleClient
) -> None:
    pages = {name: client.page("/console/events/new").html for name, client in
             (("contributor", contributor), ("author", author), ("editor", editor))}  # fmt: skip
    assert [name for name, html in pages.items() if 'value="pending"' in html] == ["contributor"]
    assert [name for name, html in pages.items() if 'value="publish"' in html] == ["author", "editor"]
    assert [name for name, html in pages.items() if 'value="private"' in html] == ["author", "editor"]
    assert [name for name, html in pages.items() if 'type="file"' in html] == ["author", "editor"]
    assert [name for name, html in pages.items() if 'name="author"' in html] == ["editor"]
    other = create_event(app)
    assert author.get(f"/console/events/{other['id']}").status_code == 403
    assert contributor.post(f"/console/events/{other['id']}", {"title": "x", "action": "save"}).status_code == 403


def test_contributor_submits_for_review(app: RunningApp, contributor: ConsoleClient) -> None:
    page = contributor.page("/console/events/new")
    fields = {"title": "Reading", "start_day": "2031-05-02", "tags": "not yet a tag"}
    response = save(contributor, "/console/events/new", page, action="publish", **fields)
    record_id = saved_id(response)
    event = read_event(app, record_id)
    assert (event["status"], event["tags"]) == ("pending", [])
    assert response.headers["location"].endswith("notice=tags-left-out")
    assert contributor.get(f"/console/events/{record_id}").status_code == 200


def test_errors_are_shown_at_their_fields(app: RunningApp, editor: ConsoleClient) -> None:
    page = editor.page("/console/events/new")
    form = page.form(action="publish", title="Bad", start_day="2031-05-02", website="javascript:1", currency_code="x")
    response = editor.post("/console/events/new", form)
    assert response.status_code == 400
    shown = Page.parse(response.text)
    api = app.caller("editor").post("/events", {"title": "Bad", "start_date": "2031-05-02", "end_date": "2031-05-02",
                                                 "website": "javascript:1", "currency_code": "x"})  # fmt: skip
    params = api.json()["data"]["params"]
    assert set(params) == {"website", "currency_code"}
    for message in params.values():
        assert message.partition(": ")[2] in shown.text  # The form shows it at the field, without its name.
    assert 'id="website-error"' in response.text
    assert 'href="#currency_code"' in response.text
    assert shown.fields["title"] == ["Bad"]
    missing = editor.post("/console/events/new", page.form(action="publish", title="No day"))
    assert "This field is required." in missing.text


@pytest.mark.parametrize(("time", "becomes"), [("02:30", "03:30"), ("2:15 am", "03:15")])
def test_skipped_time_is_explained(app: RunningApp, editor: ConsoleClient, time: str, becomes: str) -> None:
    page = editor.page("/console/events/new")
    fields = {"title": "Night", "start_day": "2031-03-30", "end_time": "06:00", "timezone": "Europe/Berlin"}
    response = save(editor, "/console/events/new", page, action="draft", start_time=time, **fields)
    assert response.status_code == 400
    assert "does not exist in Europe/Berlin" in response.text
    corrected = Page.parse(response.text)
    assert corrected.fields["start_time"] == [becomes]
    record_id = saved_id(save(editor, "/console/events/new", corrected, action="draft"))
    assert read_event(app, record_id)["start_date"] == f"2031-03-30 {becomes}:00"


@pytest.mark.parametrize(("offset", "utc"), [("+02:00", "2031-10-26 00:30:00"), ("+01:00", "2031-10-26 01:30:00")])
def test_repeated_time_is_chosen(app: RunningApp, editor: ConsoleClient, offset: str, utc: str) -> None:
    page = editor.page("/console/events/new")
    fields = {"title": "Long night", "start_day": "2031-10-26", "start_time": "02:30", "end_time": "06:00"}
    response = save(editor, "/console/events/new", page, action="draft", timezone="Europe/Berlin", **fields)
    assert response.status_code == 400
    assert "occurs twice" in response.text
    chosen = Page.parse(response.text)
    record_id = saved_id(save(editor, "/console/events/new", chosen, action="draft", start_offset=offset))
    assert read_event(app, record_id)["utc_start_date"] == utc
    edit = editor.page(f"/console/events/{record_id}")
    assert edit.fields["start_offset"] == [offset]
    save(editor, f"/console/events/{record_id}", edit, action="save", title="Longer night")
    assert read_event(app, record_id)["utc_start_date"] == utc


def test_venue_is_found_by_name(app: RunningApp, editor: ConsoleClient) -> None:
    first = app.caller("editor").create("venues", venue="Hall", city="Ulm")
    second = app.caller("editor").create("venues", venue="Hall", city="Bonn")
    page = editor.page("/console/events/new")
    fields = {"title": "In the hall", "start_day": "2031-05-02", "action": "draft"}
    for name, expected in (("Hall", first), ("Hall (Bonn)", second)):
        record_id = saved_id(editor.post("/console/events/new", page.form(**fields, venue_name=name)))
        assert read_event(app, record_id)["venue"]["id"] == expected["id"]
    unknown = editor.post("/console/events/new", page.form(**fields, venue_name="Nowhere"))
    assert unknown.status_code == 400
    assert "There’s no venue “Nowhere”." in unknown.text
    again = Page.parse(unknown.text)
    assert again.fields["new_venue[venue]"] == ["Nowhere"]
    record_id = saved_id(save(editor, "/console/events/new", again, action="draft"))
    assert read_event(app, record_id)["venue"]["venue"] == "Nowhere"
    edit = editor.page(f"/console/events/{record_id}")
    saved_id(save(editor, f"/console/events/{record_id}", edit, action="save", venue_name=["", ""]))
    assert read_event(app, record_id)["venue"] == []


def test_status_changes(app: RunningApp, editor: ConsoleClient) -> None:
    event = create_event(app, status="draft", new_password="sesame-1")
    path = f"/console/events/{event['id']}"

    def send(**changes: Any) -> str:
        return str(save(editor, path, editor.page(path), **changes).headers["location"].rpartition("=")[2])

    assert send(action="publish", publish_day="2040-01-01") == "scheduled"
    assert read_event(app, event["id"])["status"] == "future"
    assert send(action="draft", clear_password="true") == "saved"
    assert app.sql("SELECT password_hash FROM events WHERE id = $1", event["id"])[0]["password_hash"] is None
    assert send(action="private") == "saved"
    assert send(action="trash") == "trashed"
    assert "In the trash" in editor.page(path).text
    assert send(action="restore") == "restored"
    assert read_event(app, event["id"])["status"] == "private"


def test_disjoint_changes_are_merged(app: RunningApp, editor: ConsoleClient) -> None:
    event = create_event(app, title="Market", cost="1")
    path = f"/console/events/{event['id']}"
    page = editor.page(path)
    app.caller("administrator").change("events", event["id"], cost="2")
    response = save(editor, path, page, action="save", title="Night market")
    assert response.headers["location"] == f"{path}?merged=cost&notice=saved"
    merged = read_event(app, event["id"])
    assert (merged["title"], merged["cost"]) == ("Night market", "$2")
    assert "Both changes are saved: Cost" in editor.page(f"{path}?merged=cost").text


@pytest.mark.parametrize(("choice", "title"), [("mine", "My market"), ("theirs", "Their market")])
def test_change_of_same_field_is_chosen(app: RunningApp, editor: ConsoleClient, choice: str, title: str) -> None:
    event = create_event(app, title="Market")
    path = f"/console/events/{event['id']}"
    page = editor.page(path)
    app.caller("administrator").change("events", event["id"], title="Their market")
    response = save(editor, path, page, action="save", title="My market", cost="7")
    assert response.status_code == 409
    assert read_event(app, event["id"])["title"] == "Their market"
    conflict = Page.parse(response.text)
    saved_id(save(editor, path, conflict, **{"choice[title]": choice}))
    saved = read_event(app, event["id"])
    assert (saved["title"], saved["cost"]) == (title, "$7")


def test_picture_is_uploaded_and_described(app: RunningApp, author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    fields = page.form(action="draft", title="Pictures", start_day="2031-05-02", image_alt="A bell", focus_x="0.25")
    files = {"file": ("bell.jpg", make_image(), "image/jpeg")}
    response = author.request("POST", "/console/events/new", data=fields, files=files)
    record_id = saved_id(response)
    image = read_event(app, record_id)["image"]
    assert (image["alt_text"], image["focus_x"], image["focus_y"]) == ("A bell", 0.25, 0.5)
    path = f"/console/events/{record_id}"
    saved_id(save(author, path, author.page(path), action="save", image_alt="Two bells", title="More pictures"))
    changed = read_event(app, record_id)
    assert (changed["image"]["alt_text"], changed["title"]) == ("Two bells", "More pictures")
    files = {"file": ("bell.jpg", b"no image", "image/jpeg")}
    rejected = author.request("POST", path, data=author.page(path).form(action="save"), files=files)
    assert (rejected.status_code, 'id="file-error" role="alert">' in rejected.text) == (400, True)
    saved_id(save(author, path, author.page(path), action="save", image="0"))
    assert read_event(app, record_id)["image"] is False


def test_contributor_may_not_upload(contributor: ConsoleClient) -> None:
    fields = contributor.page("/console/events/new").form(action="draft", title="Up", start_day="2031-05-02")
    files = {"file": ("bell.jpg", make_image(), "image/jpeg")}
    assert contributor.request("POST", "/console/events/new", data=fields, files=files).status_code == 403


def test_image_is_searched_without_losing_the_form(app: RunningApp, author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    form = page.form(action="find-image", image_search="zzz", title="Kept", start_day="2031-05-02")
    response = author.post("/console/events/new", form)
    assert (response.status_code, Page.parse(response.text).fields["title"]) == (200, ["Kept"])
    assert 'id="library" open' in response.text


def test_preview_saves_nothing(app: RunningApp, author: ConsoleClient) -> None:
    event = create_event(app, status="draft", role="author", title="Not yet")
    stored = author.get(f"/console/events/{event['id']}/preview")
    assert "Not yet" in stored.text
    assert "frame-ancestors 'self'" in stored.headers["content-security-policy"]
    assert stored.headers["cache-control"] == "private, no-store"
    before = read_revision(app)
    for path in ("/console/events/new", f"/console/events/{event['id']}"):
        form = author.page(path).form(
            action="preview", title="Imagined", start_day="2031-05-02", end_day="2031-05-02"
        )
        shown = author.post(path, form)
        assert (shown.status_code, "<h1>Imagined</h1>" in shown.text) == (200, True)
    assert read_revision(app) == before
    failed = author.post(path, author.page(path).form(action="preview", title=""))
    assert failed.status_code == 400
    assert "frame-ancestors 'self'" in failed.headers["content-security-policy"]
    assert (
        ConsoleClient.signed_in(app, "contributor").get(f"/console/events/{event['id']}/preview").status_code == 403
    )


def test_copy_is_moved(app: RunningApp, editor: ConsoleClient) -> None:
    event = create_event(app, title="Class", cost="3", tags=["yoga"], event_status="cancelled")
    page = editor.page(f"/console/events/new?copy={event['id']}&shift_days=-7")
    assert page.fields["start_day"] == ["2031-02-25"]
    assert (page.fields["cost"], page.fields["tags"], page.fields["event_status"]) == (["3"], ["yoga"], ["scheduled"])
    assert page.fields["slug"] == [""]


@pytest.mark.parametrize("number", ["9" * 17, "9" * 5000, "٣"])
def test_impossible_numbers_identify_no_record(app: RunningApp, editor: ConsoleClient, number: str) -> None:
    path = f"/console/events/{create_event(app)['id']}"
    fields = {"image": number, "categories": number, "base_revision": number, "image_alt": "A stage"}
    fields |= {"venue_name": "Hall", "venue_ref": f"{number}|Hall", "record_id": number}
    for target in (path, "/console/events/checks"):
        assert save(editor, target, editor.page(path), **fields).status_code < 500
    short = number[:1000]
    for url in (
        f"/console/events/new?copy={short}&shift_days=-{short}",
        f"/console/events?changed={short}-{short}&venue={short}",
        f"/console/venues?page={short}",
    ):
        assert editor.get(url).status_code < 500


def test_saved_event_leads_to_its_page_and_to_another(app: RunningApp, editor: ConsoleClient) -> None:
    page = editor.page("/console/events/new")
    draft = save(editor, "/console/events/new", page, action="draft", title="Lantern walk", start_day="2031-05-02")
    location = draft.headers["location"]
    links = find_notice_links(editor, location)
    assert links == ["/console/events/new"]
    path = location.partition("?")[0]
    published = save(editor, path, editor.page(path), action="publish").headers["location"]
    public, new = find_notice_links(editor, published)
    assert new == "/console/events/new"
    assert "Lantern walk" in app.caller().get(f"/{public}").text
    assert find_notice_links(editor, path) == []


def find_notice_links(client: ConsoleClient, path: str) -> list[str]:
    """Return where the links beside the message at the top of a page lead."""
    notice = re.search(r'<p class="notice is-positive saved-notice".*?</p>', client.page(path).html)
    return re.findall(r'href="([^"]+)"', notice[0]) if notice else []


@pytest.mark.parametrize(
    ("kind", "name", "public"),
    [("venues", "venue", "/venue/"), ("organizers", "organizer", "/organizer/"), ("tags", "name", "/tag/")],
)
def test_saved_record_leads_to_its_page_and_to_another(
    editor: ConsoleClient, kind: str, name: str, public: str
) -> None:
    form = editor.page(f"/console/{kind}/new").form(**{name: f"Notice of {kind}"})
    location = editor.post(f"/console/{kind}/new", form).headers["location"]
    page, new = find_notice_links(editor, location)
    assert public in page
    assert new == f"/console/{kind}/new"


def test_library_is_closed_until_it_is_opened(app: RunningApp, contributor: ConsoleClient) -> None:
    """Also for people who cannot upload; a search opens it without script."""
    page = contributor.get("/console/events/new").text
    assert '<details id="library">' in page
    form = Page.parse(page).form(action="find-image", title="Kept", start_day="2031-05-02")
    assert '<details id="library" open>' in contributor.post("/console/events/new", form).text
