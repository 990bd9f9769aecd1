"""The media library over the interface: adding, reading, describing, removing, showing."""

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from PIL import Image, ImageCms

from tests.api.running_app import API_PATH, HOST, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import POSTS, Sample
from tests.media.image_fixtures import EXTENSION_PATH, EXTENSION_URL, encode_image, make_image
from tests.media.media_client import (
    count_jobs,
    create_image,
    generate_sizes,
    media_root,
    read_file,
    read_image,
    upload_file,
)

ALL_CODECS = pytest.mark.parametrize("codec", ["JPEG", "PNG", "WEBP", "AVIF", "GIF"])
EXTENSIONS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "AVIF": "avif", "GIF": "gif"}


def open_image(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def build_scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http", "method": "POST", "scheme": "http", "path": f"{EXTENSION_PATH}/media", "query_string": b"",
        "headers": [(b"host", HOST.encode()), *headers], "client": ("127.0.0.1", 1), "server": (HOST, 80),
    }  # fmt: skip


# Adding ---------------------------------------------------------------------------------------


@pytest.mark.quick("JPEG", "GIF")
@ALL_CODECS
def test_image_type_is_detected_from_content(app: RunningApp, author: Caller, codec: str) -> None:
    image = create_image(
        author,
        make_image(codec, 64, 48),
        "Käse & more.exe",
        alt_text="Cheese",
        caption="By <b>me</b>",
        focus_x="0.25",
    )
    extension = EXTENSIONS[codec]
    digest = image["url"].rpartition("/")[2].partition(".")[0]
    assert image == {
        "url": f"http://{HOST}/media/1/{digest[:2]}/{digest}.{extension}", "id": image["id"], "extension": extension,
        "width": 64, "height": 48, "filesize": len(read_file(app, image["url"])), "alt_text": "Cheese",
        "caption": "By <b>me</b>", "focus_x": 0.25, "focus_y": 0.5, "title": "Käse & more",
        "mime_type": f"image/{codec.lower()}", "author": str(author.id), "date": image["date"],
        "date_utc": image["date_utc"], "modified": image["modified"], "modified_utc": image["modified_utc"],
        "source_url": "",
    }  # fmt: skip
    stored = open_image(read_file(app, image["url"]))
    assert (stored.format, stored.size) == (codec, (64, 48))
    assert read_image(author, image) == image
    assert count_jobs(app, image) == 1


@pytest.mark.quick('attachment; filename="a b.jpg"-', 'attachment; FileName="a \\\\"quoted\\\\"')
@pytest.mark.parametrize(
    ("disposition", "title"),
    [
        ('attachment; filename="a b.jpg"', "a b"),
        ("attachment; filename=a.b.jpg", "a.b"),
        ("attachment; filename=\"x.jpg\"; filename*=UTF-8''%C3%A4%20b.jpg", "ä b"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="C:\\\\windows\\\\a.jpg"', "a"),
        ("attachment", ""),
        ("attachment; filename*=UTF-8''%00%ff.jpg", "\ufffd"),
        ('attachment; filename="<b>x.jpg"', "x"),
        ("attachment; filename*=utf-8'en'na%C3%AFve.jpg", "naïve"),
        ('attachment; FileName="a \\"quoted\\" word.jpg"', 'a "quoted" word'),
    ],
)
def test_image_can_be_uploaded_as_request_body(author: Caller, disposition: str, title: str) -> None:
    headers = {"Content-Disposition": disposition, "Content-Type": "text/plain"}
    response = author.request(
        "POST", f"{EXTENSION_URL}/media?alt_text=Raw", content=make_image(seed=2), headers=headers
    )
    image = expect_json(response, 201)
    assert (image["title"], image["alt_text"]) == (title, "Raw")
    assert response.headers["location"] == author.app.make_url(f"{EXTENSION_URL}/media/{image['id']}")


def test_content_type_suffices_for_raw_upload(author: Caller) -> None:
    for kind in ("image/jpeg", "image/svg+xml", "application/octet-stream"):
        headers = {"Content-Type": kind}
        image = expect_json(
            author.request("POST", f"{EXTENSION_URL}/media", content=make_image(), headers=headers), 201
        )
        assert (image["title"], image["mime_type"]) == ("", "image/jpeg")


def test_upload_without_file_is_rejected(author: Caller) -> None:
    for options in (
        {"json": {"alt_text": "x"}},
        {"data": {"alt_text": "x"}},
        {"files": {"other": ("a", make_image())}},
        {},
    ):
        response = author.request("POST", f"{EXTENSION_URL}/media", **options)
        data = assert_error(response, 400, "rest_missing_callback_param")
        assert data["params"] == ["file"]


@pytest.mark.quick("-empty", "content5-damaged")
@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "SVG"),
        (b"%PDF-1.7", "JPEG, PNG, WebP, AVIF, GIF"),
        (make_image("BMP"), "JPEG, PNG, WebP, AVIF, GIF"),
        (make_image("JPEG", 640, 480)[:-900], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "damaged"),
    ],
)
def test_unsupported_content_is_rejected(author: Caller, content: bytes, word: str) -> None:
    response = upload_file(author, content, "picture.jpg")
    assert word in assert_error(response, 400, "rest_invalid_param", "file")["params"]["file"]


def test_fields_are_validated_before_decoding(author: Caller) -> None:
    response = upload_file(author, make_image(), focus_x="2", alt_text="x" * 3000)
    assert_error(response, 400, "rest_invalid_param", "focus_x", "alt_text")


def test_oversized_file_is_413(start_app: Callable[..., RunningApp]) -> None:
    author = start_app({"KALENDS_MAX_UPLOAD_BYTES": "5000"}).caller("author")
    assert create_image(author, make_image())
    large = b"\xff\xd8\xff" + b"x" * 500_000
    assert_error(upload_file(author, large), 413, "rest_body_too_large")
    assert_error(upload_file(author, large[:10_000]), 413, "rest_body_too_large")

    async def pieces():
        for _ in range(20):
            yield b"x" * 1000

    headers = {"Content-Type": "image/jpeg"}
    response = author.request("POST", f"{EXTENSION_URL}/media", content=pieces(), headers=headers)
    assert_error(response, 413, "rest_body_too_large")


@pytest.mark.quick("anonymous-401", "administrator-201")
@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 401), ("subscriber", 403), ("contributor", 403), ("author", 201), ("administrator", 201)],
)
def test_authors_and_higher_roles_can_upload(app: RunningApp, role: str, status: int) -> None:
    assert upload_file(app.caller(role), make_image()).status_code == status


def test_unauthorized_upload_is_rejected_before_reading_body(app: RunningApp) -> None:
    messages: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body is read")

    async def send(message: Any) -> None:
        messages.append(message)

    # Without `Expect` the server would discard the body, so that proxies receive the response.
    headers = [(b"content-type", b"image/jpeg"), (b"content-length", b"10000000"), (b"expect", b"100-continue")]
    app.run(app.asgi(build_scope(*headers), receive, send))
    assert (messages[0]["status"], b"rest_forbidden" in messages[1]["body"]) == (401, True)


@pytest.mark.quick("DELETE FROM application_passwords-", "UPDATE users SET role = 'subscriber'-")
@pytest.mark.parametrize(
    ("statement", "status", "code"),
    [
        ("DELETE FROM application_passwords", 401, "incorrect_password"),
        ("UPDATE application_passwords SET read_only = true", 403, "rest_read_only"),
        ("UPDATE users SET role = 'subscriber'", 403, "rest_forbidden"),
    ],
)
def test_permission_revoked_during_an_upload_is_denied(
    start_app: Callable[..., RunningApp], statement: str, status: int, code: str
) -> None:
    app = start_app()
    author = app.caller("author")

    async def chunks():
        yield make_image()[:100]
        connection = await asyncpg.connect(app.database_url)
        await connection.execute(statement)
        await connection.close()
        yield make_image()[100:]

    headers = {"Content-Type": "image/jpeg"}
    assert author.request("POST", f"{EXTENSION_URL}/media", content=make_image(), headers=headers).status_code == 201
    response = author.request("POST", f"{EXTENSION_URL}/media", content=chunks(), headers=headers)
    assert_error(response, status, code)
    assert app.sql("SELECT count(*) FROM media")[0][0] == 1


def test_upload_with_idempotency_key_is_stored_once(author: Caller) -> None:
    """Although the boundary of the form is another one each time."""
    headers = {"Idempotency-Key": "upload-1"}

    def upload(content: bytes, **fields: str) -> Any:
        return author.request(
            "POST", f"{EXTENSION_URL}/media", files={"file": ("a.jpg", content)}, data=fields, headers=headers
        )

    first, second = upload(make_image(seed=5)), upload(make_image(seed=5))
    assert first.json() == second.json()
    assert second.headers["idempotent-replay"] == "true"
    assert_error(upload(make_image(seed=6)), 422, "rest_idempotency_mismatch")
    assert_error(upload(make_image(seed=5), alt_text="x"), 422, "rest_idempotency_mismatch")


# Stored files ---------------------------------------------------------------------------------


def test_exif_location_is_removed(app: RunningApp, author: Caller) -> None:
    image = Image.new("RGB", (40, 20), "red")
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    exif[0x8825] = {1: "N", 2: (52.0, 27.0, 0.0), 3: "E", 4: (13.0, 18.0, 0.0)}
    for codec in ("JPEG", "PNG", "WEBP", "AVIF"):
        upload = encode_image(image, codec, exif=exif)
        assert b"Secret Camera" in upload
        stored = read_file(app, create_image(author, upload)["url"])
        assert b"Secret Camera" not in stored
        assert (dict(open_image(stored).getexif()), open_image(stored).info.get("exif")) == ({}, None)


def test_comments_profiles_and_trailing_data_are_removed(app: RunningApp, author: Caller) -> None:
    from PIL import ImageCms, PngImagePlugin

    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "secretword")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = Image.new("RGB", (40, 20), "red")
    uploads = [
        encode_image(image, "PNG", pnginfo=texts), encode_image(image, "PNG", icc_profile=profile) + b"secretword",
        encode_image(image, "JPEG", comment=b"secretword"), encode_image(image, "GIF", comment=b"secretword"),
        encode_image(image, "JPEG", icc_profile=profile) + b"<?php secretword ?>",
        encode_image(image, "WEBP", xmp=b"secretword"),
    ]  # fmt: skip
    for content in uploads:
        stored = read_file(app, create_image(author, content)["url"])
        assert b"secretword" not in stored
        assert "icc_profile" not in open_image(stored).info


def test_exif_orientation_is_applied(app: RunningApp, author: Caller) -> None:
    image = Image.new("RGB", (40, 20), "red")
    image.paste("blue", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # The right side of what is stored is the bottom.
    created = create_image(author, encode_image(image, "PNG", exif=exif))
    assert (created["width"], created["height"]) == (20, 40)
    stored = open_image(read_file(app, created["url"]))
    assert (stored.getpixel((10, 5)), stored.getpixel((10, 35))) == ((0, 0, 255), (255, 0, 0))


def test_color_modes_are_converted_for_web(app: RunningApp, author: Caller) -> None:
    modes = {
        "L": ("PNG", "L"), "1": ("PNG", "L"), "P": ("PNG", "RGB"), "RGBA": ("PNG", "RGBA"), "LA": ("PNG", "RGBA"),
        "I;16": ("PNG", "L"), "CMYK": ("JPEG", "RGB"),
    }  # fmt: skip
    for mode, (codec, expected) in modes.items():
        image = create_image(author, encode_image(Image.new(mode, (20, 10)), codec))
        assert open_image(read_file(app, image["url"])).mode == expected, mode


@pytest.mark.quick("RGB", "L")
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "L"])
def test_color_profile_is_applied(app: RunningApp, author: Caller, mode: str) -> None:
    """With a profile in which red and green have changed places, red is green."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    swapped_profile = profile.replace(b"rXYZ", b"????").replace(b"gXYZ", b"rXYZ").replace(b"????", b"gXYZ")
    codec = "JPEG" if mode == "CMYK" else "PNG"
    red = Image.new("RGB", (20, 10), (255, 0, 0)).convert(mode)
    stored = open_image(
        read_file(app, create_image(author, encode_image(red, codec, icc_profile=swapped_profile))["url"])
    )
    if mode in ("RGB", "RGBA", "P"):
        assert stored.convert("RGB").getpixel((5, 5)) == (0, 255, 0)
    else:  # A profile that does not fit is as good as none.
        assert stored.getpixel((5, 5)) == pytest.approx(
            open_image(encode_image(red, codec)).convert(stored.mode).getpixel((5, 5)), abs=3
        )
    assert stored.mode == ("RGBA" if mode == "RGBA" else "L" if mode == "L" else "RGB")


def test_large_image_is_downscaled(app: RunningApp, author: Caller) -> None:
    image = create_image(author, encode_image(Image.new("RGB", (6000, 3000)), "JPEG"))
    assert (image["width"], image["height"]) == (2560, 1280)
    assert open_image(read_file(app, image["url"])).size == (2560, 1280)


def test_duplicate_uploads_share_one_file(author: Caller) -> None:
    first, second = create_image(author, make_image(seed=9)), create_image(author, make_image(seed=9))
    assert first["url"] == second["url"]
    assert first["id"] != second["id"]


# Sizes ----------------------------------------------------------------------------------------


@pytest.mark.quick("JPEG", "GIF")
@ALL_CODECS
def test_sizes_are_generated_in_original_type_and_webp(app: RunningApp, author: Caller, codec: str) -> None:
    image = create_image(author, make_image(codec, 1600, 800))
    assert "sizes" not in image
    assert generate_sizes(app, image)
    sizes = read_image(author, image)["sizes"]
    assert {name: (size["width"], size["height"]) for name, size in sizes.items()} == {
        "thumbnail": (150, 150), "medium": (300, 150), "large": (1024, 512), "full": (1600, 800),
    }  # fmt: skip
    for size in sizes.values():
        for entry, kind in ((size, codec), (size["webp"], "WEBP")):
            content = read_file(app, entry["url"])
            stored = open_image(content)
            assert (stored.format, stored.size, len(content)) == (
                kind,
                (size["width"], size["height"]),
                entry["filesize"],
            )
    assert sizes["full"]["url"] == image["url"]
    assert sizes["full"]["mime-type"] == image["mime_type"]


def test_small_image_is_not_upscaled(app: RunningApp, author: Caller) -> None:
    image = create_image(author, make_image("PNG", 40, 30))
    generate_sizes(app, image)
    assert list(read_image(author, image)["sizes"]) == ["full"]


def test_thumbnail_is_cropped_around_focus_point(app: RunningApp, author: Caller) -> None:
    image = Image.new("RGB", (900, 300), "white")
    image.paste("red", (800, 0, 900, 300))
    created = create_image(author, encode_image(image, "PNG"), focus_x=1)

    def corner() -> Any:
        generate_sizes(app, created)
        thumbnail = open_image(read_file(app, read_image(author, created)["sizes"]["thumbnail"]["url"]))
        return thumbnail.convert("RGB").getpixel((145, 75))

    assert corner() == (255, 0, 0)
    before = count_jobs(app, created)
    expect_json(author.patch(f"{EXTENSION_URL}/media/{created['id']}", {"focus_x": 0}))
    assert count_jobs(app, created) == before + 1
    assert corner() == (255, 255, 255)


def test_sizes_of_deleted_image_are_not_written(app: RunningApp, author: Caller) -> None:
    image = create_image(author)
    expect_json(author.delete(f"{EXTENSION_URL}/media/{image['id']}"))
    assert not generate_sizes(app, image)


# Showing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post.kind)
def test_records_contain_image_with_alt_text_and_sizes(app: RunningApp, editor: Caller, post: Sample) -> None:
    image = create_image(editor, make_image(width=400, seed=20), alt_text="A gate")
    record = editor.create(post.kind, **post.body(image=str(image["id"])))
    keys = ("url", "id", "extension", "width", "height", "filesize", "alt_text", "caption", "focus_x", "focus_y")
    assert record["image"] == {key: image[key] for key in keys}
    generate_sizes(app, image)
    expect_json(editor.patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "An old gate"}))
    current = editor.read(post.kind, record["id"])
    assert current["image"]["alt_text"] == "An old gate"
    assert set(current["image"]["sizes"]) == {"thumbnail", "medium", "full"}
    assert current["image"] == {key: read_image(editor, image)[key] for key in (*keys, "sizes")}
    assert current["modified_utc"] >= record["modified_utc"]


def test_image_changes_appear_in_change_log_of_records(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(seed=21))
    venue = editor.create("venues", venue="With image", image=image["id"])
    since = expect_json(editor.get(f"{EXTENSION_URL}/changes", {"since": 0, "per_page": 500}))["next_since"]
    expect_json(editor.patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "A door"}))
    changes = expect_json(editor.get(f"{EXTENSION_URL}/changes", {"since": since}))["changes"]
    assert [(entry["kind"], entry["id"]) for entry in changes] == [("venues", venue["id"])]
    assert changes[0]["record"]["image"]["alt_text"] == "A door"


def test_venue_in_event_has_current_alt_text(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(seed=22), alt_text="Old")
    venue = editor.create("venues", venue="Inside", image=image["id"])
    body = {"title": "x", "start_date": "2027-01-01", "end_date": "2027-01-02", "venue": venue["id"]}
    event = editor.create("events", **body)
    anonymous = app.caller()
    assert anonymous.read("events", event["id"])["venue"]["image"]["alt_text"] == "Old"
    expect_json(editor.patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "New"}))
    assert anonymous.read("events", event["id"])["venue"]["image"]["alt_text"] == "New"


def test_image_can_be_referenced_by_any_of_its_urls(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(width=400, seed=23))
    generate_sizes(app, image)
    sizes = read_image(editor, image)["sizes"]
    name = image["url"].partition("/media/")[2]
    addresses = [
        image["url"],
        sizes["thumbnail"]["url"],
        sizes["medium"]["webp"]["url"],
        f"https://cdn.test/x/{name}",
    ]
    for url in addresses:
        assert editor.create("venues", venue=f"At {url[-30:]}", image=url)["image"]["id"] == image["id"]


def test_files_are_immutable_and_served_as_images_only(app: RunningApp, author: Caller) -> None:
    image = create_image(author)
    anonymous = app.caller()
    response = anonymous.get(image["url"])
    assert response.content == read_file(app, image["url"])
    headers = dict(response.headers)
    for name in ("last-modified", "x-request-id"):
        del headers[name]
    digest = image["url"].rpartition("/")[2]
    assert headers == {
        "content-type": "image/jpeg", "content-length": str(image["filesize"]), "accept-ranges": "bytes",
        "cache-control": "public, max-age=31536000, immutable", "content-disposition": "inline",
        "content-security-policy": "default-src 'none'; sandbox", "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*", "etag": f'"{digest[:32]}"', "x-content-type-options": "nosniff",
    }  # fmt: skip
    assert anonymous.get(image["url"], headers={"If-None-Match": headers["etag"]}).status_code == 304
    part = anonymous.get(image["url"], headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, response.content[2:6])
    head = anonymous.request("HEAD", image["url"])
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(image["filesize"]), b"")


@pytest.mark.quick("", "%00")
@pytest.mark.parametrize(
    "path",
    ["", "1", "../settings.py", "..%2f..%2fetc%2fpasswd", "1/ab/../../x", "incoming/x", f"1/ab/ab{'0' * 62}.jpg",
     f"1/ab/ab{'0' * 62}.svg", f"1/ab/cd{'0' * 62}.jpg", f"2/ab/ab{'0' * 62}.jpg\n", "%00"],
)  # fmt: skip
def test_other_paths_are_not_served(app: RunningApp, path: str) -> None:
    status, _, body = app.raw("GET", f"/media/{path}")
    assert (status, b"rest_no_route" in body) == (404, True)


def test_files_are_read_only(app: RunningApp, author: Caller) -> None:
    url = create_image(author)["url"]
    assert_error(author.delete(url), 405, "rest_method_not_allowed")
    assert_error(author.post(url), 405, "rest_method_not_allowed")


# Lists ----------------------------------------------------------------------------------------


def test_contributors_can_list_images(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    author, editor = app.caller("author"), app.caller("editor")
    gate = create_image(author, make_image(seed=1), "gate.jpg", alt_text="A gate")
    door = create_image(editor, make_image("PNG", seed=2), "Tür.png", caption="Painted by Anna")
    listed = expect_json(app.caller("contributor").get(f"{EXTENSION_URL}/media"))
    assert listed == {
        "media": [read_image(editor, door), read_image(editor, gate)],
        "rest_url": app.make_url(f"{EXTENSION_URL}/media/"), "total": 2,
        "total_pages": 1,
    }  # fmt: skip

    def ids(**query: Any) -> list[int]:
        return [image["id"] for image in expect_json(author.get(f"{EXTENSION_URL}/media", query))["media"]]

    assert ids(search="tur") == ids(search="painted anna") == ids(mime_type="image/png") == [door["id"]]
    assert ids(author=author.id) == ids(search="-tür") == ids(without_alt_text="no") == [gate["id"]]
    assert ids(without_alt_text="1") == [door["id"]]
    assert ids(search="nothing") == []
    page = expect_json(author.get(f"{EXTENSION_URL}/media", {"per_page": 1}))
    assert page["next_rest_url"] == app.make_url(f"{EXTENSION_URL}/media/?per_page=1&page=2")
    assert [image["id"] for image in expect_json(author.get(page["next_rest_url"]))["media"]] == [gate["id"]]


@pytest.mark.quick("anonymous-401", "contributor-200")
@pytest.mark.parametrize(("role", "status"), [("anonymous", 401), ("subscriber", 403), ("contributor", 200)])
def test_library_needs_write_permission(app: RunningApp, author: Caller, role: str, status: int) -> None:
    """An image may belong to an event that is not published yet."""
    image, caller = create_image(author), app.caller(role)
    assert caller.get(f"{EXTENSION_URL}/media").status_code == status
    assert caller.get(f"{EXTENSION_URL}/media/{image['id']}").status_code == status


# Changing and removing ------------------------------------------------------------------------


def test_update_changes_only_submitted_fields(author: Caller) -> None:
    image = create_image(author, alt_text="A", caption="C")
    changed = expect_json(
        author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": "B <i>x</i>", "focus_y": 0.1})
    )
    assert changed == {**image, "alt_text": "B x", "focus_y": 0.1, "modified": changed["modified"],
                       "modified_utc": changed["modified_utc"]}  # fmt: skip
    cleared = expect_json(author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"alt_text": None, "focus_y": None}))
    assert (cleared["alt_text"], cleared["focus_y"], cleared["caption"]) == ("", 0.5, "C")
    tag = author.get(f"{EXTENSION_URL}/media/{image['id']}").headers["etag"]
    expect_json(author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"title": "T"}, headers={"If-Match": tag}))
    response = author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"title": "U"}, headers={"If-Match": tag})
    assert_error(response, 412, "rest_precondition_failed")


@pytest.mark.quick("-0.1", "wrong5")
@pytest.mark.parametrize("wrong", [-0.1, 1.1, "middle", True, [0.5], {}])
def test_focus_point_must_be_inside_image(author: Caller, wrong: object) -> None:
    image = create_image(author)
    response = author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"focus_x": wrong})
    assert_error(response, 400, "rest_invalid_param", "focus_x")


def test_authors_can_change_only_their_own_images(app: RunningApp, author: Caller, editor: Caller) -> None:
    image = create_image(editor)
    url = f"{EXTENSION_URL}/media/{image['id']}"
    assert_error(author.patch(url, {"title": "x"}), 403, "rest_forbidden")
    assert_error(author.delete(url), 403, "rest_forbidden")
    assert_error(app.caller().delete(url), 401, "rest_forbidden")
    assert expect_json(editor.delete(url)) == image
    assert_error(editor.get(url), 404, "rest-media-not-found")


def test_image_in_use_is_not_deleted_without_force(app: RunningApp, editor: Caller) -> None:
    image = create_image(editor, make_image(seed=30))
    body = {"title": "x", "start_date": "2027-01-01", "end_date": "2027-01-02", "image": image["id"]}
    event, venue = editor.create("events", **body), editor.create("venues", venue="x", image=image["id"])
    url = f"{EXTENSION_URL}/media/{image['id']}"
    data = assert_error(editor.delete(url), 409, "rest_media_in_use")
    assert data["used_by"] == [{"kind": "events", "id": event["id"]}, {"kind": "venues", "id": venue["id"]}]
    assert editor.read("events", event["id"])["image"]
    expect_json(editor.delete(f"{url}?force=true"))
    assert editor.read("events", event["id"])["image"] is False
    assert "image" not in editor.read("venues", venue["id"])
    history = expect_json(editor.get(f"{EXTENSION_URL}/events/{event['id']}/history"))["history"][0]
    assert history["changes"]["image"] == {"before": image["id"], "after": None}


def test_forced_deletion_is_recorded_for_each_record(editor: Caller) -> None:
    image = create_image(editor, make_image(seed=33))
    venues = [editor.create("venues", venue=f"Of many {n}", image=image["id"]) for n in range(5)]
    expect_json(editor.delete(f"{EXTENSION_URL}/media/{image['id']}?force=1"))
    revisions: set[int] = set()
    for venue in venues:
        assert "image" not in editor.read("venues", venue["id"])
        newest = expect_json(editor.get(f"{EXTENSION_URL}/venues/{venue['id']}/history"))["history"][0]
        assert newest["changes"]["image"] == {"before": image["id"], "after": None}
        revisions.add(newest["revision"])
    assert len(revisions) == 5


def test_forced_deletion_needs_permission_for_all_records(author: Caller, editor: Caller) -> None:
    image = create_image(author, make_image(seed=31))
    venue = editor.create("venues", venue="Theirs", image=image["id"])
    assert_error(author.delete(f"{EXTENSION_URL}/media/{image['id']}?force=1"), 403, "rest_forbidden")
    assert editor.read("venues", venue["id"])["image"]["id"] == image["id"]


def test_image_of_trashed_record_is_in_use(editor: Caller) -> None:
    image = create_image(editor, make_image(seed=32))
    venue = editor.create("venues", venue="Gone", image=image["id"])
    editor.trash("venues", venue["id"])
    assert_error(editor.delete(f"{EXTENSION_URL}/media/{image['id']}"), 409, "rest_media_in_use")


def test_file_urls_follow_media_url_setting(start_app: Callable[..., RunningApp]) -> None:
    app = start_app({"KALENDS_MEDIA_URL": "https://cdn.example/pictures/"})
    editor = app.caller("editor")
    image = create_image(editor)
    assert image["url"].startswith("https://cdn.example/pictures/1/")
    assert editor.create("venues", venue="x", image=image["url"])["image"]["url"] == image["url"]


def test_compatible_api_has_no_media_routes(editor: Caller) -> None:
    assert_error(editor.get(f"http://{HOST}{API_PATH}/media"), 404, "rest_no_route")


# Forms that are none --------------------------------------------------------------------------

FILE_PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
FIELD_PART = b'--x\r\nContent-Disposition: form-data; name="%"\r\n\r\n'


@pytest.mark.quick(
    "multipart/form-data-",
    'multipart/form-data; boundary=x---x\\r\\nContent-Disposition: form-data; name="focus_x[]',
)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b""),
        ("multipart/form-data", FILE_PART),
        ("multipart/form-data; boundary=", FILE_PART),
        ("multipart/form-data; boundary=x; charset=nothing", FILE_PART + b"x\r\n--x--"),
        ("multipart/form-data; boundary=\xff", b"x"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"no part at all"),
        ("multipart/form-data; boundary=x", b"--x"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nx\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\xff\xfe\r\n\r\nx\r\n--x--",
        ),
        ("multipart/form-data; boundary=x", b"--x\r\n: empty\r\n\r\nx\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A: b\r\n" * 5000 + b"\r\nx\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\nX: " + b"y" * 500_000 + b"\r\n\r\nx\r\n--x--"),
        ("multipart/form-data; boundary=x", FILE_PART + b"\xff\xd8\xff never ends"),
        ("multipart/form-data; boundary=x", (FILE_PART + b"x\r\n") * 3 + b"--x--"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n' * 100 + b"--x--",
        ),
        ("multipart/form-data; boundary=x", FIELD_PART.replace(b"%", b"alt_text") + b"x" * 100_000 + b"\r\n--x--"),
        ("multipart/form-data; boundary=x", FIELD_PART.replace(b"%", b"focus_x[][][][][][]") + b"x\r\n--x--"),
    ],
)
def test_malformed_form_is_rejected(app: RunningApp, kind: str, body: bytes) -> None:
    import base64

    user = app.users["author"]
    token = base64.b64encode(f"{user.login}:{user.password}".encode()).decode()
    headers = [("content-type", kind), ("authorization", f"Basic {token}")]
    status, _, response = app.raw("POST", f"{EXTENSION_PATH}/media", headers=headers, body=[body])
    assert status == 400, response


def test_truncated_form_is_reported(author: Caller) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    response = author.request("POST", f"{EXTENSION_URL}/media", content=FILE_PART + make_image(), headers=headers)
    assert_error(response, 400, "rest_invalid_form")
    assert "the closing boundary is missing" in response.json()["message"]


def test_file_of_image_cannot_be_replaced(author: Caller) -> None:
    image = create_image(author, make_image(seed=40))
    url, upload = f"{EXTENSION_URL}/media/{image['id']}", {"file": ("b.jpg", make_image(seed=41))}
    data = assert_error(author.request("POST", url, files=upload), 400, "rest_invalid_param")
    assert set(data["params"]) == {"file"}


def test_aborted_upload_leaves_no_files(app: RunningApp) -> None:
    import base64

    user = app.users["author"]
    token = base64.b64encode(f"{user.login}:{user.password}".encode()).decode()
    before = app.sql("SELECT count(*) FROM media")[0][0]

    async def receive() -> Any:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    for kind in (b"image/jpeg", b"multipart/form-data; boundary=x"):
        pieces = [{"type": "http.request", "body": FILE_PART + make_image()[:100], "more_body": True}]
        scope = build_scope((b"content-type", kind), (b"authorization", f"Basic {token}".encode()))
        app.run(app.asgi(scope, receive, send))
    assert app.sql("SELECT count(*) FROM media")[0][0] == before
    assert list((media_root(app) / "incoming").iterdir()) == []


def test_image_libraries_are_not_imported_by_server() -> None:
    """They take time and memory in every process, and most never need them."""
    text = "import sys, kalends.asgi; print(sorted({'PIL', 'httpcore', 'minio'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
