"""The public form: what it stores, what it refuses, and which events it takes for the same."""

import io

import pytest
from PIL import Image

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.proposals.submission_client import ADD, EVENT, SENT, SETTINGS, Submitter, find_proposals, open_form


@pytest.fixture(scope="module")
def server(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module(SETTINGS)


@pytest.fixture
def app(server: RunningApp) -> RunningApp:
    return open_form(server.add_site())


@pytest.fixture
def submitter(app: RunningApp) -> Submitter:
    return Submitter(app)


def test_form_stores_unconfirmed_event_and_sends_link(app: RunningApp, submitter: Submitter) -> None:
    response = submitter.send()
    assert (response.status_code, response.headers["location"]) == (303, SENT)
    (row,) = find_proposals(app)
    assert row["state"] == "unconfirmed"
    assert row["values"] == {
        "title": "Choir concert",
        "start_date": "2031-05-05 19:00:00",
        "end_date": "2031-05-05 21:00:00",
        "venue": [{"venue": "Old mill", "address": "Mill Lane 1", "city": "Larkford"}],
        "organizer": [{"organizer": "Larkford choir"}],
        "description": "Songs of &lt;spring&gt; &amp; summer\n\nFree.",
        "cost": "12",
        "website": "https://choir.example/",
    }
    assert (row["note"], row["submitter_name"], row["email"]) == (EVENT["note"], "Anna", "anna@example.org")
    (email,) = submitter.receive()
    assert email.to == "anna@example.org"
    for typed in ("Choir", "mill", "Anna", "spring", "choir.example"):
        assert typed not in email.subject + email.text
    assert len(email.links) == 1
    assert "48 hours" in submitter.page(SENT).text


def test_form_is_closed_by_default(server: RunningApp) -> None:
    app = server.add_site()
    for path in (ADD, SENT, "/events/add/link/", "/events/add/similar.json"):
        assert Submitter(app).request("GET", path).status_code == 404
    assert "/events/add/" not in Submitter(app).page("/events/month/").html
    open_form(app)
    assert "/events/add/" in Submitter(app).page("/events/month/").html
    assert "/events/add/" not in Submitter(app).page("/embed/events/month/").html
    for path in (ADD, "/submission/x.y"):
        assert Submitter(app).request("GET", f"/embed{path}").status_code == 404


def test_responses_are_never_stored(submitter: Submitter) -> None:
    link = submitter.submit()
    for path in (ADD, SENT, "/events/add/link/", link, f"{link}/change", "/submission/dead"):
        response = submitter.request("GET", path)
        assert response.headers["cache-control"] == "private, no-store", path
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "etag" not in response.headers
        assert 'content="noindex"' in response.text


@pytest.mark.parametrize("language", ["de", "es", "fr", "it", "ja", "nl", "pt-BR"])
def test_pages_have_the_language_of_the_link(submitter: Submitter, language: str) -> None:
    response = submitter.request("GET", f"{ADD}?lang={language}")
    assert response.headers["content-language"] == language
    assert f'action="{ADD}?lang={language}"' in response.text
    assert f'lang="{language}"' in submitter.page(f"/submission/dead?lang={language}", 404).html


def test_all_day_event_over_several_days(app: RunningApp, submitter: Submitter) -> None:
    submitter.send(all_day="1", end_day="2031-05-07", end_time="")
    values = find_proposals(app)[0]["values"]
    assert (values["start_date"], values["end_date"], values["all_day"]) == ("2031-05-05", "2031-05-07", True)


def test_night_ends_on_the_next_day(app: RunningApp, submitter: Submitter) -> None:
    submitter.send(start_time="22:00", end_time="02:00")
    assert find_proposals(app)[0]["values"]["end_date"] == "2031-05-06 02:00:00"


def test_known_venue_and_organizer_are_linked_by_name(app: RunningApp, submitter: Submitter) -> None:
    editor = app.caller("editor")
    mill = editor.create("venues", venue="Old mill", city="Larkford")["id"]
    editor.create("venues", venue="Old mill", city="Elsewhere")
    editor.create("venues", venue="Secret", status="draft")
    choir = editor.create("organizers", organizer="Larkford choir")["id"]
    assert 'value="Old mill (Larkford)"' in submitter.page(ADD).html
    assert "Secret" not in submitter.page(ADD).html
    for changes in ({"city": "Larkford"}, {"venue": "Old mill (Larkford)", "city": ""}, {"city": ""}):
        submitter.send(**changes, email=f"{len(find_proposals(app))}@example.org")
    submitter.send(venue="Secret", city="", address="", email="3@example.org")
    values = [row["values"] for row in find_proposals(app)]
    assert [row["venue"] for row in values] == [[mill], [mill], [mill], [{"venue": "Secret"}]]
    assert all(row["organizer"] == [choir] for row in values)


def test_existing_categories_can_be_chosen(app: RunningApp, submitter: Submitter) -> None:
    ids = [app.caller("editor").create("categories", name=name)["id"] for name in ("Music", "Dance & more")]
    assert "Dance &amp; more" in submitter.page(ADD).html
    assert submitter.send(categories=[str(term) for term in ids]).status_code == 303
    assert find_proposals(app)[0]["values"]["categories"] == ids
    assert submitter.send(categories=["999999"]).status_code == 400


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"start_day": ""}, "start_day"),
        ({"start_day": "5.5.2031"}, "start_day"),
        ({"start_day": "2001-05-05", "end_day": ""}, "end_day"),
        ({"start_time": ""}, "start_day"),
        ({"start_time": "25:00"}, "start_day"),
        ({"end_day": "2031-05-04"}, "end_day"),
        ({"website": "javascript:alert(1)"}, "website"),
        ({"ticket_url": "tickets"}, "ticket_url"),
        ({"email": "nobody"}, "email"),
        ({"email": ""}, "email"),
        ({"description": "http://a.example " * 6}, "description"),
        ({"description": "www.a.example " * 3, "note": "https://b.example " * 4}, "note"),
        ({"zip": "1" * 21}, "venue"),
    ],
)
def test_mistakes_are_explained_beside_their_field(
    app: RunningApp, submitter: Submitter, changes: dict[str, str], name: str
) -> None:
    response = submitter.send(**changes)
    assert response.status_code == 400
    assert f'id="{name}-error"' in response.text
    assert 'role="alert"' in response.text
    sent = {**EVENT, **changes}
    for kept in (sent["title"], "Mill Lane 1", sent["note"].strip()):
        assert kept in response.text
    assert find_proposals(app) == []
    assert app.jobs("send_proposal_email") == []


@pytest.mark.parametrize("name", ["sticky", "status", "new_password", "hide_from_listings", "image", "tags", "slug"])
def test_form_ignores_other_parameters(app: RunningApp, submitter: Submitter, name: str) -> None:
    assert submitter.send(**{name: "1"}).status_code == 303
    assert name not in find_proposals(app)[0]["values"]


def test_hostile_forms_are_client_errors(app: RunningApp, submitter: Submitter) -> None:
    form = submitter.page(ADD).form(**EVENT)
    for changes in (
        {"title": "a\0b"}, {"categories": "x"}, {"categories": ["1" * 40]}, {"stamp": "x"}, {"stamp": "1.2"},
        {"title[a]": "b"}, {"title": ["a", "b"]}, {"start_day": "0001-01-01"}, {"start_day": "9999-12-31"},
        {"venue": "<script>"}, {"venue": "x" * 5000}, {"description": "í\xa0\x80"},
        {"start_time": "٣:00"}, {"is_different": "1"}, {"organizer[0]": "x"},
    ):  # fmt: skip
        response = submitter.post(ADD, {**form, **changes})
        assert response.status_code in (303, 400, 429), (changes, response.text[:500])
        app.sql("DELETE FROM login_failures")
    for body, kind in (
        (b"x", "multipart/form-data; boundary=b"),
        (b"{}", "application/json"),
        (b"%ff=", "application/x-www-form-urlencoded"),
    ):
        response = submitter.request("POST", ADD, content=body, headers={"content-type": kind})
        assert response.status_code in (400, 415), (kind, response.status_code)
    assert submitter.request("PUT", ADD).status_code == 405
    assert submitter.request("POST", ADD, data=form, headers={"sec-fetch-site": "cross-site"}).status_code == 404


# Duplicates --------------------------------------------------------------------------------------


def test_similar_event_asks_first(app: RunningApp, submitter: Submitter) -> None:
    app.caller("editor").create(
        "events", title="Choir concert", start_date="2031-05-05 19:00", end_date="2031-05-05 21:00"
    )
    response = submitter.send()
    assert response.status_code == 200
    assert 'href="/event/choir-concert/"' in response.text
    assert 'name="is_different"' in response.text
    assert find_proposals(app) == []
    form = submitter.page(ADD).form(**EVENT, is_different="1")
    assert submitter.post(ADD, form).status_code == 303
    assert len(find_proposals(app)) == 1


def test_unpublished_and_protected_events_are_not_shown(app: RunningApp, submitter: Submitter) -> None:
    dates = {"start_date": "2031-05-05 19:00", "end_date": "2031-05-05 21:00"}
    editor = app.caller("editor")
    editor.create("events", title="Choir concert", **dates, new_password="secret pass")
    editor.create("events", title="Choir concert", **dates, status="draft")
    editor.create("events", title="Choir concert", **dates, status="pending")
    query = "?title=Choir+concert&start_day=2031-05-05&start_time=19:00"
    assert submitter.request("GET", f"/events/add/similar.json{query}").json() == []
    assert submitter.send().status_code == 303


def test_hints_while_typing(app: RunningApp, submitter: Submitter) -> None:
    app.caller("editor").create(
        "events", title="Choir concert", start_date="2031-05-05 19:00", end_date="2031-05-05 21:00"
    )
    query = "?title=Choir+concert&start_day=2031-05-05&start_time=19:00&venue=Old+mill"
    response = submitter.request("GET", f"/events/add/similar.json{query}&lang=de")
    assert response.json() == [
        {"title": "Choir concert", "when": "Montag, 5. Mai 2031, 19:00", "url": "/event/choir-concert/?lang=de"}
    ]
    assert response.headers["cache-control"] == "private, no-store"
    for query in ("", "?title=x", "?start_day=x&title=y"):
        assert submitter.request("GET", f"/events/add/similar.json{query}").json() == []


# Pictures ----------------------------------------------------------------------------------------


def draw(width: int, height: int, *, is_noisy: bool = False) -> bytes:
    file = io.BytesIO()
    image = (
        Image.effect_noise((width, height), 200).convert("RGB")
        if is_noisy
        else Image.new("RGB", (width, height), "#aa3366")
    )
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def test_picture_becomes_a_small_webp(app: RunningApp, submitter: Submitter) -> None:
    assert submitter.send(picture=draw(3000, 1500), picture_alt="A choir").status_code == 303
    [row] = app.sql("SELECT content, alt_text FROM proposal_pictures")
    image = Image.open(io.BytesIO(row["content"]))
    assert (image.format, image.size, row["alt_text"]) == ("WEBP", (1600, 800), "A choir")


def test_unusable_pictures_are_explained(app: RunningApp, submitter: Submitter) -> None:
    app.sql("DELETE FROM login_failures")
    pictures = (b"no picture", draw(2000, 2000, is_noisy=True), draw(10, 10) + bytes(9_000_000))
    for picture in pictures:
        response = submitter.send(picture=picture)
        assert response.status_code == 400
        assert 'id="file-error"' in response.text
        app.sql("DELETE FROM login_failures")
    assert submitter.send(picture=bytes(17_000_000)).status_code == 413
    assert find_proposals(app) == []


def test_form_works_without_pictures_if_there_is_no_room(app: RunningApp, submitter: Submitter) -> None:
    submitter.send(picture=draw(50, 50))
    app.sql(
        """INSERT INTO proposals (site_id, id, values, origin, state, starts_at, created_at, expires_at)
            SELECT site_id, gen_random_uuid(), values, origin, state, starts_at, created_at, expires_at
            FROM proposals, generate_series(1, 175)"""
    )
    app.sql(
        """INSERT INTO proposal_pictures (site_id, proposal_id, content)
            SELECT site_id, id, convert_to(repeat('x', 600000), 'UTF8') FROM proposals ON CONFLICT DO NOTHING"""
    )
    form = submitter.page(ADD)
    assert 'type="file"' not in form.html
    assert "Pictures can’t be added at the moment" in form.text
    response = submitter.send(picture=draw(50, 50), email="b@example.org")
    assert (response.status_code, "Send the event without one." in response.text) == (400, True)
    assert submitter.send(email="b@example.org").status_code == 303
    app.sql("UPDATE proposals SET state = 'waiting'")
    assert 'type="file"' in submitter.page(ADD).html
