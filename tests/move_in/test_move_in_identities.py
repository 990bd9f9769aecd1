"""What records of a former site keep: IDs in feeds, global IDs, addresses of files, images inside of texts."""

from typing import Any

import pytest

from tests.api.running_app import HOST, Caller, RunningApp, assert_error, expect_json
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.media.media_client import create_image, generate_sizes, read_image

TIMES = {"start_date": "2040-05-05 10:00:00", "end_date": "2040-05-05 12:00:00"}


@pytest.fixture(scope="module")
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")


def add_event(editor: Caller, **fields: Any) -> dict[str, Any]:
    return expect_json(editor.post("/events", {"title": "Event", **TIMES, **fields}), 201)


def read_event(caller: Caller, event: dict[str, Any]) -> dict[str, Any]:
    return expect_json(caller.get(f"/events/{event['id']}"))


def set_identity(app: RunningApp, event: dict[str, Any], uid: str, feed_guid: str | None) -> None:
    app.sql("UPDATE events SET uid = $2, feed_guid = $3 WHERE id = $1", event["id"], uid, feed_guid)
    app.set_site("name", f"Site {event['id']}")  # a new revision, because the response cache must not answer


@pytest.mark.quick("0193-guid-http://old.example/", "018f3f6e-0000-7000-8000-000000000000-")
@pytest.mark.parametrize(
    ("uid", "feed_guid", "shown"),
    [
        ("0193-guid", "http://old.example/?p=5&a", "http://old.example/?p=5&a"),
        ("1-2-3@old.example", None, "1-2-3@old.example"),
        ("018f3f6e-0000-7000-8000-000000000000", None, "urn:uuid:018f3f6e-0000-7000-8000-000000000000"),
    ],
)
def test_feeds_use_the_id_of_the_former_site(
    app: RunningApp, editor: Caller, uid: str, feed_guid: str | None, shown: str
) -> None:
    event, escaped = add_event(editor), shown.replace("&", "&amp;")
    set_identity(app, event, uid, feed_guid)
    anonymous = app.caller()
    assert f'<guid isPermaLink="false">{escaped}</guid>' in anonymous.get(f"http://{HOST}/events.rss").text
    assert f"<entry><id>{escaped}</id>" in anonymous.get(f"http://{HOST}/events.atom").text
    assert shown in [item["id"] for item in expect_json(anonymous.get(f"http://{HOST}/events.json"))["items"]]
    assert f"UID:{uid}\r\n" in anonymous.get(f"http://{HOST}/events.ics").text
    assert read_event(anonymous, event)["uid"] == uid


def test_the_lineage_names_the_former_site(app: RunningApp, editor: Caller) -> None:
    old, venue = (
        add_event(editor, venue={"venue": "Hall"}),
        expect_json(editor.post("/venues", {"venue": "Other"}), 201),
    )
    app.sql("UPDATE sites SET former_host = 'old.example', former_last_id = $1", venue["id"])
    new = add_event(editor)
    assert read_event(editor, old)["global_id_lineage"] == [f"{HOST}?id={old['id']}", f"old.example?id={old['id']}"]
    assert old["venue"]["global_id_lineage"] == [f"{HOST}?id={old['venue']['id']}"]  # written before
    assert read_event(editor, new)["global_id_lineage"] == [f"{HOST}?id={new['id']}"]
    app.sql("UPDATE sites SET former_host = $1", HOST)
    assert read_event(editor, old)["global_id_lineage"] == [f"{HOST}?id={old['id']}"]
    app.sql("UPDATE sites SET former_host = '', former_last_id = 0")


def test_old_files_redirect_to_the_nearest_size(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(width=320, height=240))
    generate_sizes(app, image)
    image = read_image(editor, image)
    for path, width, size in (
        ("a.png", 320, "full"),
        ("a-150x150.png", 150, "thumbnail"),
        ("a-151x99.png", 151, "medium"),
        ("ä b.png", 9000, "full"),
    ):
        app.sql(
            "INSERT INTO legacy_files (site_id, path, media_id, width) VALUES (1, $1, $2, $3)",
            f"/wp-content/uploads/{path}",
            image["id"],
            width,
        )
        response = app.caller().get(f"http://{HOST}/wp-content/uploads/{path}")
        assert (response.status_code, response.headers["location"]) == (301, image["sizes"][size]["url"])
        assert_error(app.caller().get(f"http://{HOST}/wp-content/uploads/x{path}"), 404, "rest_no_route")


def test_other_bases_of_paths_redirect(app: RunningApp, editor: Caller) -> None:
    app.sql(
        "INSERT INTO prefix_redirects (site_id, old, new) VALUES (1, '/veranstaltung/', '/event/'),"
        " (1, '/veranstaltungen/', '/events/')"
    )
    for path, target in (("/veranstaltung/a%20b/?x=1", "/event/a%20b/?x=1"), ("/veranstaltungen/", "/events/")):
        response = app.caller().get(f"http://{HOST}{path}")
        assert (response.status_code, response.headers["location"]) == (301, target)
    assert app.caller().get(f"http://{HOST}/veranstaltungx").status_code == 404


@pytest.fixture(scope="module")
def image(app: RunningApp) -> dict[str, Any]:
    return create_image(app.caller("editor"), make_image(seed=1))


def test_images_in_texts_are_references(app: RunningApp, editor: Caller, image: dict[str, Any]) -> None:
    text = f'<p>Text <img src="media:{image["id"]}" alt="Poster"></p>'
    event = add_event(editor, description=text, excerpt=text)
    shown = text.replace(f"media:{image['id']}", image["url"])
    assert (event["description"], event["excerpt"]) == (shown, shown)
    items = expect_json(app.caller().get(f"http://{HOST}/events.json"))["items"]
    assert any(shown in item["content_html"] for item in items)
    assert image["url"] in app.caller().get(event["url"]).text
    stored = app.sql("SELECT description, inline_image_ids FROM events WHERE id = $1", event["id"])
    assert [*stored[0].values()] == [text, [image["id"]]]


def test_writing_back_what_was_read_keeps_references(app: RunningApp, editor: Caller, image: dict[str, Any]) -> None:
    for kind, name in (("venues", "venue"), ("organizers", "organizer")):
        path = f"/{kind}"
        record = expect_json(editor.post(path, {name: "New", "description": f'<img src="media:{image["id"]}">'}), 201)
        changed = editor.patch(f"{path}/{record['id']}", {"description": f"<p>New</p>{record['description']}"})
        assert image["url"] in expect_json(changed)["description"]
        stored = app.sql(f"SELECT description FROM {kind} WHERE id = $1", record["id"])[0][0]
        assert f'<img src="media:{image["id"]}">' in stored


def test_unknown_images_are_left_out(editor: Caller, image: dict[str, Any]) -> None:
    event = add_event(editor, description=f'<p>a<img src="media:{image["id"] + 1000}">b<img src="/x.png"></p>')
    assert event["description"] == '<p>ab<img src="/x.png"></p>'


def test_images_in_texts_are_in_use(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(seed=2))
    event = add_event(editor, description=f'<p>a<img src="media:{image["id"]}">b</p>')
    refused = editor.delete(f"{EXTENSION_URL}/media/{image['id']}")
    assert_error(refused, 409, "rest_media_in_use")
    revision = app.sql("SELECT revision FROM events WHERE id = $1", event["id"])[0][0]
    expect_json(editor.delete(f"{EXTENSION_URL}/media/{image['id']}?force=true"))
    assert read_event(editor, event)["description"] == "<p>ab</p>"
    assert app.sql("SELECT revision FROM events WHERE id = $1", event["id"])[0][0] > revision


def test_series_have_images_in_texts(app: RunningApp, editor: Caller, image: dict[str, Any]) -> None:
    fields = {"title": "Weekly", **TIMES, "description": f'<img src="media:{image["id"]}">'}
    series = expect_json(
        editor.post(f"{EXTENSION_URL}/series", {**fields, "rule": {"frequency": "weekly", "count": 3}}), 201
    )
    assert image["url"] in series["description"]
    dates = app.sql("SELECT id FROM events WHERE series_id = $1 ORDER BY id", series["id"])
    assert image["url"] in read_event(editor, {"id": dates[1][0]})["description"]
    assert image["url"] in app.caller().get(series["url"].rstrip("/") + ".ics").text.replace("\r\n ", "")
    assert_error(editor.delete(f"{EXTENSION_URL}/media/{image['id']}"), 409, "rest_media_in_use")


def test_history_restores_references(editor: Caller, image: dict[str, Any]) -> None:
    event = add_event(editor, description=f'<img src="media:{image["id"]}">')
    expect_json(editor.patch(f"/events/{event['id']}", {"description": "None"}))
    history = expect_json(editor.get(f"{EXTENSION_URL}/events/{event['id']}/history"))["history"]
    expect_json(editor.post(f"{EXTENSION_URL}/events/{event['id']}/restore", {"revision": history[-1]["revision"]}))
    assert image["url"] in read_event(editor, event)["description"]
