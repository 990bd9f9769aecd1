"""`image` as an address: fetched at once, through the guarded client, and one record however often it is named."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.api.interface import Caller, Interface, assert_refused, done
from tests.api.samples import POSTS, Sample
from tests.media.kit import EXTENSION, picture
from tests.media.library import file_of, jobs_of
from tests.media.sources import Source, serving


@pytest.fixture(scope="module")
def running() -> Iterator[Source]:
    with serving() as source:
        yield source


@pytest.fixture(scope="module")
def application(fresh_for_module: Callable[..., Interface], running: Source) -> Interface:
    return fresh_for_module({"KALENDS_FETCH_ALLOW": f"{running.host}:{running.port}"})


@pytest.fixture
def source(running: Source) -> Source:
    """As new for each test."""
    running.files, running.headers, running.statuses = {"/picture.jpg": picture()}, {}, {}
    running.asked.clear()
    return running


@pytest.fixture
def here(application: Interface, source: Source) -> Interface:
    """With nothing in it."""
    for table in ("events", "venues", "organizers", "media", "login_failures"):
        application.sql(f"DELETE FROM {table}")
    return application


@pytest.fixture
def writer(here: Interface) -> Caller:
    return here.caller("author")


def library(here: Interface) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = done(here.caller("editor").get(f"{EXTENSION}/media", {"per_page": 50}))["media"]
    return listed


def grow_old(here: Interface) -> None:
    here.sql("UPDATE media SET fetched_at = fetched_at - $1::interval", timedelta(hours=2))


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post.kind)
def test_an_address_becomes_an_image_of_the_library(
    here: Interface, writer: Caller, source: Source, post: Sample
) -> None:
    made = writer.create(post.kind, **post.body(image=source.address()))
    (image,) = library(here)
    assert made["image"] == {name: image[name] for name in made["image"]}
    assert (image["source_url"], image["title"], image["author"]) == (source.address(), "picture", str(writer.id))
    assert file_of(here, image["url"])[:3] == b"\xff\xd8\xff"
    assert jobs_of(here, image) == 1
    ((path, headers),) = source.asked
    assert (path, headers["host"]) == ("/picture.jpg", f"{source.host}:{source.port}")
    assert "authorization" not in headers


def test_the_same_address_is_one_image_and_asked_once(here: Interface, writer: Caller, source: Source) -> None:
    first = writer.create("venues", venue="A", image=source.address())
    second = writer.create("organizers", organizer="B", image=source.address())
    third = writer.change("venues", writer.create("venues", venue="C")["id"], image=source.address())
    assert first["image"] == second["image"] == third["image"]
    assert (len(library(here)), len(source.asked)) == (1, 1)


def test_two_who_name_an_address_at_once_get_one_image(here: Interface, writer: Caller, source: Source) -> None:
    async def both() -> list[Any]:
        bodies = [{"venue": name, "image": source.address()} for name in "ABCDEF"]
        return await asyncio.gather(*[writer.ask("POST", "/venues", json=body) for body in bodies])

    answers = [done(answer, 201)["image"]["id"] for answer in here.run(both())]
    assert len(answers) == 6
    assert len(set(answers)) == len(library(here)) == 1


def test_later_the_source_is_asked_whether_it_has_changed(here: Interface, writer: Caller, source: Source) -> None:
    source.headers = {"ETag": '"one"', "Last-Modified": "Mon, 01 Mar 2027 10:00:00 GMT"}
    venue = writer.create("venues", venue="A", image=source.address())
    grow_old(here)
    assert writer.create("venues", venue="B", image=source.address())["image"] == venue["image"]
    _, second = source.asked
    assert second[1]["if-none-match"] == '"one"'
    assert second[1]["if-modified-since"] == "Mon, 01 Mar 2027 10:00:00 GMT"
    writer.create("venues", venue="C", image=source.address())
    assert len(source.asked) == 2  # It has just been asked.

    grow_old(here)
    source.headers, source.files["/picture.jpg"] = {"ETag": '"two"'}, picture("PNG", seed=7)
    changed = writer.create("venues", venue="D", image=source.address())["image"]
    assert (changed["id"], changed["extension"]) == (venue["image"]["id"], "png")
    assert writer.read("venues", venue["id"])["image"] == changed
    assert jobs_of(here, changed) == 2
    assert here.sql("SELECT source_etag, source_last_modified FROM media")[0]["source_etag"] == '"two"'


def test_what_was_fetched_stays_while_its_source_is_away(here: Interface, writer: Caller, source: Source) -> None:
    venue = writer.create("venues", venue="A", image=source.address())
    grow_old(here)
    source.statuses["/picture.jpg"] = 500
    for name in ("B", "and again, without asking"):
        assert writer.create("venues", venue=name, image=source.address())["image"] == venue["image"]
    grow_old(here)
    source.statuses, source.files["/picture.jpg"] = {}, b"no image any more"
    assert writer.create("venues", venue="C", image=source.address())["image"] == venue["image"]
    assert len(source.asked) == 3


def test_an_address_inside_a_linked_record_or_a_batch_is_fetched_too(
    here: Interface, writer: Caller, source: Source
) -> None:
    source.files |= {f"/{number}.jpg": picture(seed=number) for number in range(4)}
    event = writer.create(
        "events", title="x", start_date="2027-01-01", end_date="2027-01-02", image=source.address("/0.jpg"),
        venue={"venue": "New", "image": source.address("/1.jpg")},
        organizer=[{"organizer": "New", "image": source.address("/2.jpg")}],
    )  # fmt: skip
    shown = {event["image"]["id"], event["venue"]["image"]["id"], event["organizer"][0]["image"]["id"]}
    operations = [
        {"method": "POST", "path": "/venues", "body": {"venue": "Batch", "image": source.address("/3.jpg")}},
        {"method": "POST", "path": "/venues", "body": {"venue": "Bad", "image": source.address("/none.jpg")}},
    ]
    body = {"operations": operations, "atomic": False}
    results = done(writer.post(f"{EXTENSION}/batch", body))["results"]
    assert [row["status"] for row in results] == [201, 400]
    shown.add(results[0]["body"]["image"]["id"])
    assert shown == {image["id"] for image in library(here)}
    assert len(shown) == 4


@pytest.mark.parametrize(
    ("path", "content", "status", "word"),
    [
        ("/none.jpg", b"", 404, "404"),
        ("/broken.jpg", b"x", 500, "500"),
        ("/page.jpg", b"<html><img src=x>", 200, "JPEG"),
        ("/drawing.jpg", b"<svg onload='x'/>", 200, "SVG"),
        ("/half.jpg", picture(width=640, height=480)[:-2000], 200, "damaged"),
        ("/empty.jpg", b"", 200, "empty"),
    ],
)
def test_what_is_no_image_is_refused_with_its_reason(
    here: Interface, writer: Caller, source: Source, path: str, content: bytes, status: int, word: str
) -> None:
    source.files[path], source.statuses[path] = content, status
    answer = writer.post("/venues", {"venue": "A", "image": source.address(path)})
    assert word in assert_refused(answer, 400, "rest_invalid_param", "image")["params"]["image"]
    assert (source.paths, library(here)) == ([path], [])
    assert writer.ids("venues") == []


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1/a.jpg", "http://127.0.0.9/a.jpg", "http://127.0.0.9:1/a.jpg", "http://[::1]/", "http://2130706433/",
     "http://169.254.169.254/latest/meta-data/", "http://localhost/", "http://does-not-exist.invalid/a.jpg"],
)  # fmt: skip
def test_what_must_not_be_asked_is_refused(writer: Caller, address: str) -> None:
    answer = writer.post("/venues", {"venue": "A", "image": address})
    assert_refused(answer, 400, "rest_invalid_param", "image")


def test_who_may_not_publish_makes_the_server_ask_nobody(here: Interface, source: Source) -> None:
    body = {"venue": "A", "image": source.address()}
    assert_refused(here.caller().post("/venues", body), 401, "rest_forbidden")
    assert_refused(here.caller("subscriber").post("/venues", body), 403, "rest_forbidden")
    assert_refused(here.caller("contributor").post("/venues", body), 400, "rest_invalid_param", "image")
    wrong = here.caller("author")
    wrong.auth = type(wrong.auth)("author", "wrong") if wrong.auth else None
    assert_refused(wrong.post("/venues", body), 401, "incorrect_password")
    assert source.asked == []


def test_not_many_addresses_are_fetched_for_one_request(here: Interface, writer: Caller, source: Source) -> None:
    operations = [
        {"method": "POST", "path": "/venues", "body": {"venue": str(n), "image": source.address(f"/{n}.jpg")}}
        for n in range(11)
    ]
    answer = writer.post(f"{EXTENSION}/batch", {"operations": operations})
    assert_refused(answer, 400, "rest_invalid_param", "image")
    assert source.asked == []


def test_an_image_that_is_larger_than_the_limit_is_not_fetched_whole(
    fresh: Callable[..., Interface], source: Source
) -> None:
    here = fresh({"KALENDS_FETCH_ALLOW": f"{source.host}:{source.port}", "KALENDS_MEDIA_LIMIT": "1500"})
    source.files["/large.jpg"] = picture(width=640, height=480)
    answer = here.caller("author").post("/venues", {"venue": "A", "image": source.address("/large.jpg")})
    assert "1500" in assert_refused(answer, 400, "rest_invalid_param", "image")["params"]["image"]
