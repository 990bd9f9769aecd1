"""`image` as an address: fetched at once, through the guarded client, and one record however often it is named."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import POSTS, Sample
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.media.image_source import ImageSource, serve_images
from tests.media.media_client import count_jobs, read_file


@pytest.fixture(scope="module")
def running() -> Iterator[ImageSource]:
    with serve_images() as source:
        yield source


@pytest.fixture(scope="module")
def application(start_app_for_module: Callable[..., RunningApp], running: ImageSource) -> RunningApp:
    return start_app_for_module({"KALENDS_FETCH_ALLOWED_NETWORKS": f"{running.host}:{running.port}"})


@pytest.fixture
def source(running: ImageSource) -> ImageSource:
    """As new for each test."""
    running.files, running.headers, running.statuses = {"/picture.jpg": make_image()}, {}, {}
    running.requests.clear()
    return running


@pytest.fixture
def empty_app(application: RunningApp, source: ImageSource) -> RunningApp:
    """With nothing in it."""
    for table in ("events", "venues", "organizers", "media", "login_failures"):
        application.sql(f"DELETE FROM {table}")
    return application


@pytest.fixture
def writer(empty_app: RunningApp) -> Caller:
    return empty_app.caller("author")


def list_library(here: RunningApp) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = expect_json(here.caller("editor").get(f"{EXTENSION_URL}/media", {"per_page": 50}))[
        "media"
    ]
    return listed


def age_fetches(here: RunningApp) -> None:
    here.sql("UPDATE media SET fetched_at = fetched_at - $1::interval", timedelta(hours=2))


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post.kind)
def test_image_url_is_stored_in_library(
    empty_app: RunningApp, writer: Caller, source: ImageSource, post: Sample
) -> None:
    created = writer.create(post.kind, **post.body(image=source.url()))
    (image,) = list_library(empty_app)
    assert created["image"] == {name: image[name] for name in created["image"]}
    assert (image["source_url"], image["title"], image["author"]) == (source.url(), "picture", str(writer.id))
    assert read_file(empty_app, image["url"])[:3] == b"\xff\xd8\xff"
    assert count_jobs(empty_app, image) == 1
    ((path, headers),) = source.requests
    assert (path, headers["host"]) == ("/picture.jpg", f"{source.host}:{source.port}")
    assert "authorization" not in headers


def test_same_url_is_fetched_once_and_stored_once(empty_app: RunningApp, writer: Caller, source: ImageSource) -> None:
    first = writer.create("venues", venue="A", image=source.url())
    second = writer.create("organizers", organizer="B", image=source.url())
    third = writer.change("venues", writer.create("venues", venue="C")["id"], image=source.url())
    assert first["image"] == second["image"] == third["image"]
    assert (len(list_library(empty_app)), len(source.requests)) == (1, 1)


def test_concurrent_requests_for_same_url_store_one_image(
    empty_app: RunningApp, writer: Caller, source: ImageSource
) -> None:
    async def create_concurrently() -> list[Any]:
        bodies = [{"venue": name, "image": source.url()} for name in "ABCDEF"]
        return await asyncio.gather(*[writer.request_async("POST", "/venues", json=body) for body in bodies])

    responses = [expect_json(response, 201)["image"]["id"] for response in empty_app.run(create_concurrently())]
    assert len(responses) == 6
    assert len(set(responses)) == len(list_library(empty_app)) == 1


def test_source_is_revalidated_later(empty_app: RunningApp, writer: Caller, source: ImageSource) -> None:
    source.headers = {"ETag": '"one"', "Last-Modified": "Mon, 01 Mar 2027 10:00:00 GMT"}
    venue = writer.create("venues", venue="A", image=source.url())
    age_fetches(empty_app)
    assert writer.create("venues", venue="B", image=source.url())["image"] == venue["image"]
    _, second = source.requests
    assert second[1]["if-none-match"] == '"one"'
    assert second[1]["if-modified-since"] == "Mon, 01 Mar 2027 10:00:00 GMT"
    writer.create("venues", venue="C", image=source.url())
    assert len(source.requests) == 2  # The second request came from the last write.

    age_fetches(empty_app)
    source.headers, source.files["/picture.jpg"] = {"ETag": '"two"'}, make_image("PNG", seed=7)
    changed = writer.create("venues", venue="D", image=source.url())["image"]
    assert (changed["id"], changed["extension"]) == (venue["image"]["id"], "png")
    assert writer.read("venues", venue["id"])["image"] == changed
    assert count_jobs(empty_app, changed) == 2
    assert empty_app.sql("SELECT source_etag, source_last_modified FROM media")[0]["source_etag"] == '"two"'

    # A change that only fetches a new file returns the record with it.
    age_fetches(empty_app)
    source.headers, source.files["/picture.jpg"] = {"ETag": '"three"'}, make_image("PNG", seed=8)
    refreshed = writer.change("venues", venue["id"], image=source.url())
    assert refreshed["image"]["url"] != changed["url"]
    assert refreshed.items() <= writer.read("venues", venue["id"]).items()


def test_stored_image_survives_unavailable_source(empty_app: RunningApp, writer: Caller, source: ImageSource) -> None:
    venue = writer.create("venues", venue="A", image=source.url())
    age_fetches(empty_app)
    source.statuses["/picture.jpg"] = 500
    for name in ("B", "and again, without asking"):
        assert writer.create("venues", venue=name, image=source.url())["image"] == venue["image"]
    age_fetches(empty_app)
    source.statuses, source.files["/picture.jpg"] = {}, b"no image any more"
    assert writer.create("venues", venue="C", image=source.url())["image"] == venue["image"]
    assert len(source.requests) == 3


def test_image_urls_of_linked_records_and_batches_are_fetched(
    empty_app: RunningApp, writer: Caller, source: ImageSource
) -> None:
    source.files |= {f"/{number}.jpg": make_image(seed=number) for number in range(4)}
    event = writer.create(
        "events", title="x", start_date="2027-01-01", end_date="2027-01-02", image=source.url("/0.jpg"),
        venue={"venue": "New", "image": source.url("/1.jpg")},
        organizer=[{"organizer": "New", "image": source.url("/2.jpg")}],
    )  # fmt: skip
    image_ids = {event["image"]["id"], event["venue"]["image"]["id"], event["organizer"][0]["image"]["id"]}
    operations = [
        {"method": "POST", "path": "/venues", "body": {"venue": "Batch", "image": source.url("/3.jpg")}},
        {"method": "POST", "path": "/venues", "body": {"venue": "Bad", "image": source.url("/none.jpg")}},
    ]
    body = {"operations": operations, "atomic": False}
    results = expect_json(writer.post(f"{EXTENSION_URL}/batch", body))["results"]
    assert [row["status"] for row in results] == [201, 400]
    image_ids.add(results[0]["body"]["image"]["id"])
    assert image_ids == {image["id"] for image in list_library(empty_app)}
    assert len(image_ids) == 4


@pytest.mark.quick("/none.jpg--404-404", "/empty.jpg--200-empty")
@pytest.mark.parametrize(
    ("path", "content", "status", "word"),
    [
        ("/none.jpg", b"", 404, "404"),
        ("/broken.jpg", b"x", 500, "500"),
        ("/page.jpg", b"<html><img src=x>", 200, "JPEG"),
        ("/drawing.jpg", b"<svg onload='x'/>", 200, "SVG"),
        ("/half.jpg", make_image(width=640, height=480)[:-2000], 200, "damaged"),
        ("/empty.jpg", b"", 200, "empty"),
    ],
)
def test_unusable_response_is_rejected_with_reason(
    empty_app: RunningApp, writer: Caller, source: ImageSource, path: str, content: bytes, status: int, word: str
) -> None:
    source.files[path], source.statuses[path] = content, status
    response = writer.post("/venues", {"venue": "A", "image": source.url(path)})
    assert word in assert_error(response, 400, "rest_invalid_param", "image")["params"]["image"]
    assert (source.paths, list_library(empty_app)) == ([path], [])
    assert writer.ids("venues") == []


@pytest.mark.quick("http://127.0.0.1/a.jpg", "http://does-not-exist.invalid/a.jpg")
@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1/a.jpg", "http://127.0.0.9/a.jpg", "http://127.0.0.9:1/a.jpg", "http://[::1]/", "http://2130706433/",
     "http://169.254.169.254/latest/meta-data/", "http://localhost/", "http://does-not-exist.invalid/a.jpg"],
)  # fmt: skip
def test_forbidden_urls_are_rejected(writer: Caller, address: str) -> None:
    response = writer.post("/venues", {"venue": "A", "image": address})
    assert_error(response, 400, "rest_invalid_param", "image")


def test_only_publishers_trigger_fetches(empty_app: RunningApp, source: ImageSource) -> None:
    body = {"venue": "A", "image": source.url()}
    assert_error(empty_app.caller().post("/venues", body), 401, "rest_forbidden")
    assert_error(empty_app.caller("subscriber").post("/venues", body), 403, "rest_forbidden")
    assert_error(empty_app.caller("contributor").post("/venues", body), 400, "rest_invalid_param", "image")
    wrong = empty_app.caller("author")
    wrong.auth = type(wrong.auth)("author", "wrong") if wrong.auth else None
    assert_error(wrong.post("/venues", body), 401, "incorrect_password")
    assert source.requests == []


def test_number_of_fetches_per_request_is_limited(empty_app: RunningApp, writer: Caller, source: ImageSource) -> None:
    operations = [
        {"method": "POST", "path": "/venues", "body": {"venue": str(n), "image": source.url(f"/{n}.jpg")}}
        for n in range(11)
    ]
    response = writer.post(f"{EXTENSION_URL}/batch", {"operations": operations})
    assert_error(response, 400, "rest_invalid_param", "image")
    assert source.requests == []


def test_oversized_image_is_not_downloaded_completely(
    start_app: Callable[..., RunningApp], source: ImageSource
) -> None:
    here = start_app(
        {"KALENDS_FETCH_ALLOWED_NETWORKS": f"{source.host}:{source.port}", "KALENDS_MAX_UPLOAD_BYTES": "1500"}
    )
    source.files["/large.jpg"] = make_image(width=640, height=480)
    response = here.caller("author").post("/venues", {"venue": "A", "image": source.url("/large.jpg")})
    assert "1500" in assert_error(response, 400, "rest_invalid_param", "image")["params"]["image"]
