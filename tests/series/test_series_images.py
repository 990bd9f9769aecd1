"""Images of series: who sees them, and what happens when they are deleted."""

from itertools import count
from typing import Any

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error
from tests.console.console_client import ConsoleClient, set_passwords
from tests.series.series_client import EXTENSION, SeriesClient

CORE = "//wp-json/wp/v2"
TWO_DATES = {"rule": "FREQ=WEEKLY;COUNT=2"}
IMAGE_IDS = count(900_000)


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module({"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"})


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


@pytest.fixture
def image(app: RunningApp) -> int:
    """Return the ID of an image that no record has."""
    number = next(IMAGE_IDS)
    app.sql(
        """INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize)
            SELECT id, $1::bigint, $1::bigint, $2, 'png', 1, 1, 1 FROM sites""",
        number,
        f"https://images.example/{number}.png",
    )
    return number


def create_with_image(client: SeriesClient, image: int, **fields: object) -> Any:
    """Create a series that alone has an image: its dates have none."""
    series = client.create(image=image, **TWO_DATES, **fields)
    for event in client.events(series["id"]):
        client.edit(event["id"], "this", image=False)
    return series


def is_shown(caller: Caller, image: int) -> bool:
    listed = image in [entry["id"] for entry in caller.get(f"{CORE}/media", {"per_page": 100}).json()]
    assert (caller.get(f"{CORE}/media/{image}").status_code == 200) == listed
    return listed


def test_the_image_of_a_series_is_as_public_as_the_series(
    client: SeriesClient, image: int, anonymous: Caller
) -> None:
    series = create_with_image(client, image, title="Pictured")
    assert is_shown(anonymous, image)
    url = f"{EXTENSION}/series/{series['id']}"
    for fields, expected in (
        ({"status": "draft"}, False),
        ({"status": "publish"}, True),
        ({"hide_from_listings": True}, False),
        ({"hide_from_listings": False}, True),
        ({"new_password": "open sesame"}, False),
        ({"new_password": ""}, True),
        ({"image": False}, False),
        ({"image": image}, True),
    ):
        assert client.caller.patch(url, fields).status_code == 200, fields
        assert is_shown(anonymous, image) == expected, fields
    assert client.caller.delete(url).status_code == 200
    assert not is_shown(anonymous, image)


def test_the_image_of_a_series_is_in_use(client: SeriesClient, image: int) -> None:
    series = create_with_image(client, image, title="In use", status="draft")
    url = f"{EXTENSION}/media/{image}"
    data = assert_error(client.caller.delete(url), 409, "rest_media_in_use")
    assert data["used_by"] == [{"kind": "series", "id": series["id"]}]
    assert client.caller.delete(f"{url}?force=true").status_code == 200
    assert client.read(series["id"])["image"] is False
    summary = client.post(f"/series/{series['id']}/dates", add=["2027-01-06"])
    assert (summary["created"], summary["series"]["image"]) == (1, False)


def test_an_image_of_later_dates_is_in_use(client: SeriesClient, image: int) -> None:
    """The dates that have the image do not exist yet: they are beyond the horizon."""
    series = client.create(title="Later", rule="FREQ=WEEKLY")
    edited = client.caller.patch(
        f"{EXTENSION}/series/{series['id']}?scope=following&from=2040-01-03", {"image": image}
    )
    assert edited.status_code == 200, edited.text
    data = assert_error(client.caller.delete(f"{EXTENSION}/media/{image}"), 409, "rest_media_in_use")
    assert data["used_by"] == [{"kind": "series", "id": series["id"]}]
    assert client.caller.delete(f"{EXTENSION}/media/{image}?force=true").status_code == 200


def test_an_author_may_not_delete_an_image_that_series_of_others_have(
    client: SeriesClient, image: int, app: RunningApp, author: Caller
) -> None:
    create_with_image(client, image, title="Of the editor")
    app.sql("UPDATE media SET author_id = $1 WHERE id = $2", author.id, image)
    response = author.delete(f"{EXTENSION}/media/{image}?force=true")
    assert_error(response, 403, "rest_forbidden")


def test_a_change_of_an_image_is_a_change_of_its_series(client: SeriesClient, image: int) -> None:
    series = create_with_image(client, image, title="Described")
    before = client.caller.get(f"{EXTENSION}/series/{series['id']}").headers["etag"]
    changed = client.caller.patch(f"{EXTENSION}/media/{image}", {"alt_text": "A mat"})
    assert changed.status_code == 200, changed.text
    response = client.caller.get(f"{EXTENSION}/series/{series['id']}")
    assert response.headers["etag"] != before
    assert response.json()["image"]["alt_text"] == "A mat"


def test_the_console_shows_the_series_that_have_an_image(client: SeriesClient, image: int, app: RunningApp) -> None:
    series = create_with_image(client, image, title="Listed in the console")
    set_passwords(app)
    browser = ConsoleClient.signed_in(app, "editor")
    for path in (f"/console/media/{image}", f"/console/media/{image}/delete"):
        assert f'href="/console/series/{series["id"]}"' in browser.get(path).text
