"""Tables and forms of venues, organizers, categories and tags, without script."""

from typing import Any

import pytest

from kalends.calendar.kinds import BY_NAME
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page

VENUE = {"venue": "Town hall", "address": "Market 1", "city": "Linden", "zip": "12345", "country": "Germany"}
EVENT = {"title": "Concert", "start_date": "2035-05-01 19:00:00", "end_date": "2035-05-01 21:00:00"}
SAMPLES: dict[str, dict[str, Any]] = {
    "venues": {**VENUE, "phone": "1", "website": "https://hall.example/", "geo_lat": "50.5", "geo_lng": "9.25",
               "state": "S", "province": "P", "description": "<p>Old &amp; fine</p>", "status": "draft",
               "show_map": ["false", "true"], "show_map_link": "false"},
    "organizers": {"organizer": "Choir", "email": "choir@example.org", "phone": "2", "website": "https://choir.example/",
                   "description": "We <em>sing</em>", "status": "pending"},
    "categories": {"name": "Music", "description": "All of it", "slug": "tunes", "parent": "0"},
    "tags": {"name": "Outdoors", "description": "Bring a coat", "slug": "open-air"},
}  # fmt: skip
# A second name for each kind, because the name of a category or tag is unique.
NAMES = {
    "venues": {"venue": "Hall two"},
    "organizers": {"organizer": "Choir two"},
    "categories": {"name": "Music two"},
    "tags": {"name": "Outdoors two"},
}


def create(client: ConsoleClient, kind: str, **fields: Any) -> int:
    """Create a record by its form, and return its ID."""
    page = client.page(f"/console/{kind}/new")
    response = client.post(f"/console/{kind}/new", page.form(**fields))
    assert response.status_code == 303, response.text[:3000]
    path, _, notice = response.headers["location"].partition("?")
    assert notice == "notice=saved"
    return int(path.rpartition("/")[2])


def read_revision(client: ConsoleClient, kind: str, record_id: int) -> str:
    return client.page(f"/console/{kind}/{record_id}").fields["base_revision"][0]


@pytest.mark.quick("venues", "tags")
@pytest.mark.parametrize("kind", SAMPLES)
def test_every_field_is_saved_and_shown_again(editor: ConsoleClient, kind: str) -> None:
    record_id = create(editor, kind, **SAMPLES[kind])
    page = editor.page(f"/console/{kind}/{record_id}?notice=saved")
    assert "Saved." in page.text
    expected = {name: value[-1] if isinstance(value, list) else value for name, value in SAMPLES[kind].items()}
    shown = {name: page.fields[name][-1] for name in expected}
    assert shown == expected
    # Saving an unchanged form is no change.
    assert editor.post(f"/console/{kind}/{record_id}", page.form()).status_code == 303
    assert read_revision(editor, kind, record_id) == page.fields["base_revision"][0]


@pytest.mark.quick("venues", "tags")
@pytest.mark.parametrize("kind", SAMPLES)
def test_form_has_all_parameters_of_kind(editor: ConsoleClient, kind: str) -> None:
    fields = set(editor.page(f"/console/{kind}/new").fields)
    # `date_utc` is `date` in another time zone. The current image has no field until one is chosen.
    assert {field.name for field in BY_NAME[kind].fields} - {"date_utc"} <= fields


def test_table_lists_searches_and_filters(editor: ConsoleClient, app: RunningApp) -> None:
    create(editor, "venues", venue="Zeppelin hangar", city="Friedrich", status="publish")
    create(editor, "venues", venue="Zeppelin draft", status="draft")
    venue_id = create(editor, "venues", venue="Zeppelin museum", status="publish")
    app.caller("editor").create("events", **EVENT, venue=[venue_id])
    page = editor.page("/console/venues?search=zeppelin&sort=name")
    assert page.html.index("Zeppelin draft") < page.html.index("Zeppelin hangar") < page.html.index("Zeppelin museum")
    assert f'href="/console/events?venue={venue_id}">1<' in page.html
    drafts = editor.page("/console/venues?search=zeppelin&status=draft").text
    assert "Zeppelin draft" in drafts
    assert "Zeppelin hangar" not in drafts
    assert "Nothing matches this search." in editor.page("/console/venues?search=nowhere-at-all").text
    assert editor.get("/console/venues?status=nonsense").status_code == 400
    assert editor.get("/console/venues?page=99").status_code == 404


def test_table_has_pages(editor: ConsoleClient, app: RunningApp) -> None:
    caller = app.caller("editor")
    for number in range(51):
        caller.create("tags", name=f"Paged {number:02}")
    first = editor.page("/console/tags?search=paged")
    assert "Page 1 of 2" in first.text
    assert "Paged 50" not in first.text
    second = editor.page("/console/tags?search=paged&page=2")
    assert ("Paged 50" in second.text, "Paged 49" in second.text) == (True, False)


def test_categories_are_shown_as_tree(editor: ConsoleClient) -> None:
    root = create(editor, "categories", name="Zoology")
    create(editor, "categories", name="Ants", parent=str(root))
    html = editor.page("/console/categories").html
    assert html.index("Zoology") < html.index(">Ants<")
    assert 'class="depth-1"' in html[html.index("Zoology") :]
    # Neither the category itself nor those below it can be its parent.
    options = editor.page(f"/console/categories/{root}").html
    assert f'<option value="{root}"' not in options


def test_invalid_values_are_rejected_as_by_api(editor: ConsoleClient, app: RunningApp) -> None:
    fields = {"venue": "", "website": "javascript:alert(1)", "geo_lat": "91", "geo_lng": "x", "image": "999999"}
    page = editor.page("/console/venues/new")
    response = editor.post("/console/venues/new", page.form(**fields))
    assert response.status_code == 400
    assert "This field is required." in response.text
    response = editor.post("/console/venues/new", page.form(**{**fields, "venue": "Kept"}))
    assert response.status_code == 400
    api = app.caller("editor").post("/venues", {**fields, "venue": "Kept"}).json()
    for name, message in api["data"]["params"].items():
        assert f'id="{name}-error"' in response.text
        assert message.split("`")[-1][:20] in response.text
    assert 'value="Kept"' in response.text
    assert '<details class="panel" open>' in response.text


def test_duplicate_category_is_rejected(editor: ConsoleClient) -> None:
    create(editor, "categories", name="Twice")
    response = editor.post("/console/categories/new", {"name": "Twice", "parent": "0"})
    assert response.status_code in (400, 409)
    assert 'role="alert"' in response.text


def test_identical_venue_is_not_added_twice(editor: ConsoleClient, contributor: ConsoleClient) -> None:
    fields = {"venue": "Only once", "city": "Linden", "status": "publish"}
    page = editor.page("/console/venues/new").form(**fields, author=None, date=None)
    first = editor.post("/console/venues/new", page)
    again = editor.post("/console/venues/new", page)
    assert again.headers["location"] == first.headers["location"].replace("saved", "existing")
    page = contributor.page("/console/venues/new").form(venue="Only once", city="Linden")
    assert contributor.post("/console/venues/new", page).headers["location"] == "/console/venues?notice=existing"


def test_derived_state_follows_state(editor: ConsoleClient) -> None:
    record_id = create(editor, "venues", venue="Derived", state="Ohio")
    page = editor.page(f"/console/venues/{record_id}")
    assert page.fields["stateprovince"] == ["Ohio"]
    editor.post(f"/console/venues/{record_id}", page.form(state="Iowa"))
    assert editor.page(f"/console/venues/{record_id}").fields["stateprovince"] == ["Iowa"]


def test_number_can_be_cleared(editor: ConsoleClient) -> None:
    record_id = create(editor, "venues", venue="Moved", geo_lat="1.5", geo_lng="2")
    page = editor.page(f"/console/venues/{record_id}")
    assert (page.fields["geo_lat"], page.fields["geo_lng"]) == (["1.5"], ["2"])
    assert editor.post(f"/console/venues/{record_id}", page.form(geo_lat="", geo_lng="")).status_code == 303
    assert editor.page(f"/console/venues/{record_id}").fields["geo_lat"] == [""]


def test_trash_and_restore(editor: ConsoleClient) -> None:
    record_id = create(editor, "organizers", organizer="Comes back", status="publish")
    revision = {"base_revision": read_revision(editor, "organizers", record_id)}
    trashed = editor.post(f"/console/organizers/{record_id}/trash", revision)
    assert trashed.headers["location"] == "/console/organizers?notice=trashed"
    assert "Comes back" in editor.page("/console/organizers?status=trash").text
    revision = {"base_revision": read_revision(editor, "organizers", record_id)}
    assert editor.post(f"/console/organizers/{record_id}/restore", revision).status_code == 303
    assert editor.page(f"/console/organizers/{record_id}").fields["status"] == ["publish"]


def test_deletion_of_category_announces_consequences(editor: ConsoleClient, app: RunningApp) -> None:
    caller = app.caller("editor")
    parent = create(editor, "categories", name="Grandparent")
    middle = create(editor, "categories", name="Middle", parent=str(parent))
    child = create(editor, "categories", name="Grandchild", parent=str(middle))
    event = caller.create("events", **EVENT, categories=[middle], status="draft")
    page = editor.page(f"/console/categories/{middle}/delete")
    assert "One event loses it." in page.text
    assert "move up" in page.text
    response = editor.post(f"/console/categories/{middle}/delete", page.form())
    assert response.headers["location"] == "/console/categories?notice=deleted"
    assert editor.page(f"/console/categories/{child}").fields["parent"] == [str(parent)]
    assert caller.read("events", event["id"])["categories"] == []


@pytest.mark.quick("venues", "tags")
@pytest.mark.parametrize("kind", SAMPLES)
def test_changes_of_others_are_merged(editor: ConsoleClient, app: RunningApp, kind: str) -> None:
    record_id = create(editor, kind, **{**SAMPLES[kind], **NAMES[kind]})
    page = editor.page(f"/console/{kind}/{record_id}")
    app.caller("editor").change(kind, record_id, description="Changed elsewhere")
    (name,) = NAMES[kind]
    response = editor.post(f"/console/{kind}/{record_id}", page.form(**{name: "Mine"}))
    assert response.status_code == 303
    fields = editor.page(f"/console/{kind}/{record_id}").fields
    assert (fields[name], fields["description"]) == (["Mine"], ["Changed elsewhere"])


@pytest.mark.parametrize(("choice", "expected"), [("mine", "My text"), ("theirs", "Their text")])
def test_two_versions_of_one_field_are_offered(
    editor: ConsoleClient, app: RunningApp, choice: str, expected: str
) -> None:
    record_id = create(editor, "venues", venue=f"Contested {choice}")
    page = editor.page(f"/console/venues/{record_id}")
    app.caller("editor").change("venues", record_id, description="Their text")
    response = editor.post(f"/console/venues/{record_id}", page.form(description="My text", city="Linden"))
    assert response.status_code == 409
    conflict = Page.parse(response.text)
    editor.post(f"/console/venues/{record_id}", conflict.form(**{"choice[description]": choice}))
    fields = editor.page(f"/console/venues/{record_id}").fields
    assert (fields["description"], fields["city"]) == ([expected], ["Linden"])


def test_old_revision_is_not_trashed(editor: ConsoleClient, app: RunningApp) -> None:
    record_id = create(editor, "venues", venue="Still wanted")
    page = editor.page(f"/console/venues/{record_id}")
    app.caller("editor").change("venues", record_id, city="Elsewhere")
    assert editor.post(f"/console/venues/{record_id}/trash", page.form()).status_code == 412


# Roles ---------------------------------------------------------------------------------------


def test_contributor_edits_own_unpublished_venue(contributor: ConsoleClient, editor: ConsoleClient) -> None:
    page = contributor.page("/console/venues/new")
    assert page.fields["status"] == ["draft"]
    assert 'value="publish"' not in page.html
    assert "author" not in page.fields
    record_id = create(contributor, "venues", venue="Contributed")
    page = contributor.page(f"/console/venues/{record_id}")
    assert "Merge into" not in page.html
    # A forged status becomes what the API makes of it.
    contributor.post(f"/console/venues/{record_id}", page.form(status="publish"))
    page = editor.page(f"/console/venues/{record_id}")
    assert page.fields["status"] == ["pending"]
    editor.post(f"/console/venues/{record_id}", page.form(status="publish"))
    refused = contributor.get(f"/console/venues/{record_id}")
    assert refused.status_code == 403
    assert "already published" in refused.text
    table = contributor.page("/console/venues?search=contributed").html
    assert f'href="/console/venues/{record_id}"' not in table
    assert "/venue/contributed/" in table


@pytest.mark.quick("contributor-allowed0", "editor-allowed2")
@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("contributor", {"venues", "organizers"}),
        ("author", {"venues", "organizers", "categories"}),
        ("editor", {"venues", "organizers", "categories", "tags"}),
    ],
)
def test_roles_reach_only_their_kinds(app: RunningApp, role: str, allowed: set[str]) -> None:
    client = ConsoleClient.signed_in(app, role)
    for kind in SAMPLES:
        for path in (f"/console/{kind}", f"/console/{kind}/new"):
            assert client.get(path).status_code == (200 if kind in allowed else 403), path
        assert client.post(f"/console/{kind}/new", {}).status_code == (400 if kind in allowed else 403)


def test_author_may_not_name_another_author(author: ConsoleClient, app: RunningApp) -> None:
    other = str(app.users["editor"].id)
    record_id = create(author, "venues", venue="Mine alone")
    page = author.page(f"/console/venues/{record_id}")
    assert author.post(f"/console/venues/{record_id}", {**page.form(), "author": other}).status_code == 403


def test_subscribers_and_strangers_are_refused(app: RunningApp, visitor: ConsoleClient) -> None:
    subscriber = ConsoleClient.signed_in(app, "subscriber")
    assert subscriber.get("/console/venues").status_code == 403
    assert visitor.get("/console/venues").headers["location"].startswith("/console/sign-in")
