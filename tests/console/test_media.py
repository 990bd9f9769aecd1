"""The media library without script: upload, description, focus point, deletion."""

import re
from typing import Any

import httpx
import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient
from tests.media.image_fixtures import make_image

EVENT = {"title": "Concert", "start_date": "2035-05-01 19:00:00", "end_date": "2035-05-01 21:00:00"}


def send(client: ConsoleClient, seed: int, name: str = "photo.jpg", **fields: str) -> httpx.Response:
    files = {"file": (name, make_image(seed=seed), "image/jpeg")}
    return client.request("POST", "/console/media", files=files, data=fields)


def upload(client: ConsoleClient, seed: int, name: str = "photo.jpg", **fields: str) -> int:
    response = send(client, seed, name, **fields)
    assert response.status_code == 303, response.text[:2000]
    return int(response.headers["location"].partition("?")[0].rpartition("/")[2])


def save(client: ConsoleClient, image_id: int, **changes: Any) -> httpx.Response:
    page = client.page(f"/console/media/{image_id}")
    return client.post(f"/console/media/{image_id}", page.form(**changes))


def test_upload_leads_to_description(author: ConsoleClient) -> None:
    response = send(author, 1, "Choir in church.jpg")
    assert response.headers["location"].endswith("?notice=uploaded")
    page = author.page(response.headers["location"])
    assert "Please describe the picture." in page.text
    assert re.search(r'<textarea[^>]* name="alt_text"[^>]* autofocus', page.html)
    assert page.fields["title"] == ["Choir in church"]


def test_texts_and_focus_are_saved(author: ConsoleClient) -> None:
    image_id = upload(author, 2)
    changes = {
        "alt_text": "A choir",
        "title": "Choir",
        "caption": "<em>Photo</em>: Me",
        "focus_x": "0.2",
        "focus_y": "0",
    }
    assert save(author, image_id, **changes).headers["location"] == f"/console/media/{image_id}?notice=saved"
    page = author.page(f"/console/media/{image_id}")
    assert {name: page.fields[name] for name in changes} == {name: [value] for name, value in changes.items()}
    assert 'class="crop is-wide x2 y0"' in page.html


def test_empty_focus_is_center(author: ConsoleClient) -> None:
    image_id = upload(author, 3, focus_x="0.1")
    assert author.page(f"/console/media/{image_id}").fields["focus_x"] == ["0.1"]
    save(author, image_id, focus_x="")
    assert author.page(f"/console/media/{image_id}").fields["focus_x"] == ["0.5"]


def test_library_is_searched_and_filtered(author: ConsoleClient) -> None:
    described, bare = upload(author, 4, "lantern one.jpg"), upload(author, 5, "lantern two.jpg")
    save(author, described, alt_text="Lanterns at night")
    found = author.page("/console/media?search=lantern").html
    assert f'/console/media/{described}"' in found
    assert f'/console/media/{bare}"' in found
    missing = author.page("/console/media?search=lantern&without_alt_text=true").html
    assert f'/console/media/{described}"' not in missing
    assert f'/console/media/{bare}"' in missing
    assert author.get("/console/media?without_alt_text=perhaps").status_code == 400


@pytest.mark.quick("-400", "<svg onload=alert(1)>-400")
@pytest.mark.parametrize(("content", "status"), [(b"", 400), (b"no image", 400), (b"<svg onload=alert(1)>", 400)])
def test_unusable_file_is_rejected(author: ConsoleClient, content: bytes, status: int) -> None:
    files = {"file": ("x.jpg", content, "image/jpeg")}
    response = author.request("POST", "/console/media", files=files)
    assert response.status_code == status
    assert 'role="alert"' in response.text
    assert author.request("POST", "/console/media", files={"other": ("x", b"x", "image/jpeg")}).status_code == 400


def test_invalid_values_are_rejected(author: ConsoleClient) -> None:
    image_id = upload(author, 6)
    response = save(author, image_id, focus_x="1.5", alt_text="Kept")
    assert response.status_code == 400
    assert 'id="focus_x-error"' in response.text
    assert "Kept" in response.text


def test_usage_is_shown_and_deletion_needs_confirmation(author: ConsoleClient, app: RunningApp) -> None:
    image_id = upload(author, 7)
    caller = app.caller("author")
    event = caller.create("events", **EVENT, image=image_id)
    caller.create("venues", venue="Shown venue", image=image_id)
    page = author.page(f"/console/media/{image_id}")
    assert f'href="/console/events/{event["id"]}">Concert<' in page.html
    assert "Shown venue" in page.text
    path = f"/console/media/{image_id}/delete"
    refused = author.post(path, {})
    assert refused.status_code == 409
    assert "Concert" in refused.text
    page = author.page(path)
    assert author.post(path, page.form(force="true")).headers["location"] == "/console/media?notice=deleted"
    assert author.get(f"/console/media/{image_id}").status_code == 404
    assert caller.read("events", event["id"])["image"] is False


def test_unused_image_is_deleted(author: ConsoleClient) -> None:
    image_id = upload(author, 8)
    page = author.page(f"/console/media/{image_id}/delete")
    assert "force" not in page.html
    assert author.post(f"/console/media/{image_id}/delete", page.form()).status_code == 303


def test_changes_of_others_are_merged(author: ConsoleClient, editor: ConsoleClient) -> None:
    image_id = upload(author, 9)
    page = author.page(f"/console/media/{image_id}")
    save(editor, image_id, caption="By the editor")
    assert author.post(f"/console/media/{image_id}", page.form(alt_text="By the author")).status_code == 303
    fields = author.page(f"/console/media/{image_id}").fields
    assert (fields["caption"], fields["alt_text"]) == (["By the editor"], ["By the author"])


# Roles ---------------------------------------------------------------------------------------


def test_contributor_reads_but_does_not_write(contributor: ConsoleClient, author: ConsoleClient) -> None:
    image_id = upload(author, 10)
    page = contributor.page("/console/media")
    assert "Upload pictures" not in page.text
    page = contributor.page(f"/console/media/{image_id}")
    assert "alt_text" not in page.fields
    assert send(contributor, 11).status_code == 403
    assert contributor.post(f"/console/media/{image_id}", {"alt_text": "x"}).status_code == 403
    assert contributor.post(f"/console/media/{image_id}/delete", {}).status_code == 403


def test_author_changes_only_own_images(author: ConsoleClient, editor: ConsoleClient) -> None:
    image_id = upload(editor, 12)
    assert "alt_text" not in author.page(f"/console/media/{image_id}").fields
    assert author.post(f"/console/media/{image_id}", {"alt_text": "x"}).status_code == 403
    assert author.get(f"/console/media/{image_id}/delete").status_code == 403
    assert author.post(f"/console/media/{image_id}/delete", {}).status_code == 403
    own = upload(author, 13)
    assert save(editor, own, alt_text="Improved").status_code == 303


def test_titles_of_unreadable_records_are_hidden(author: ConsoleClient, app: RunningApp) -> None:
    image_id = upload(author, 14)
    app.caller("editor").create("events", **{**EVENT, "title": "Secret plan"}, image=image_id, status="draft")
    page = author.page(f"/console/media/{image_id}")
    assert "Secret plan" not in page.text
    assert "One other record that you can’t open" in page.text
