"""The media library over the interface: adding, reading, describing, removing, showing."""

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image, ImageCms

from tests.api.running_app import HOST, NAMESPACE, Caller, Interface, assert_refused, done
from tests.api.sample_records import POSTS, Sample
from tests.media.image_fixtures import EXTENSION, EXTENSION_PATH, encoded, picture
from tests.media.media_client import add, file_of, jobs_of, make_sizes, read, root_of, send

FORMS = pytest.mark.parametrize("codec", ["JPEG", "PNG", "WEBP", "AVIF", "GIF"])
EXTENSIONS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "AVIF": "avif", "GIF": "gif"}


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def scope_of(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http", "method": "POST", "scheme": "http", "path": f"{EXTENSION_PATH}/media", "query_string": b"",
        "headers": [(b"host", HOST.encode()), *headers], "client": ("127.0.0.1", 1), "server": (HOST, 80),
    }  # fmt: skip


# Adding ---------------------------------------------------------------------------------------


@FORMS
def test_image_type_is_detected_from_content(interface: Interface, author: Caller, codec: str) -> None:
    made = add(
        author, picture(codec, 64, 48), "Käse & more.exe", alt_text="Cheese", caption="By <b>me</b>", focus_x="0.25"
    )
    extension = EXTENSIONS[codec]
    digest = made["url"].rpartition("/")[2].partition(".")[0]
    assert made == {
        "url": f"http://{HOST}/media/1/{digest[:2]}/{digest}.{extension}", "id": made["id"], "extension": extension,
        "width": 64, "height": 48, "filesize": len(file_of(interface, made["url"])), "alt_text": "Cheese",
        "caption": "By <b>me</b>", "focus_x": 0.25, "focus_y": 0.5, "title": "Käse & more",
        "mime_type": f"image/{codec.lower()}", "author": str(author.id), "date": made["date"],
        "date_utc": made["date_utc"], "modified": made["modified"], "modified_utc": made["modified_utc"],
        "source_url": "",
    }  # fmt: skip
    kept = opened(file_of(interface, made["url"]))
    assert (kept.format, kept.size) == (codec, (64, 48))
    assert read(author, made) == made
    assert jobs_of(interface, made) == 1


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
    answer = author.request("POST", f"{EXTENSION}/media?alt_text=Raw", content=picture(seed=2), headers=headers)
    made = done(answer, 201)
    assert (made["title"], made["alt_text"]) == (title, "Raw")
    assert answer.headers["location"] == f"{EXTENSION}/media/{made['id']}"


def test_content_type_suffices_for_raw_upload(author: Caller) -> None:
    for kind in ("image/jpeg", "image/svg+xml", "application/octet-stream"):
        headers = {"Content-Type": kind}
        made = done(author.request("POST", f"{EXTENSION}/media", content=picture(), headers=headers), 201)
        assert (made["title"], made["mime_type"]) == ("", "image/jpeg")


def test_upload_without_file_is_rejected(author: Caller) -> None:
    for options in (
        {"json": {"alt_text": "x"}},
        {"data": {"alt_text": "x"}},
        {"files": {"other": ("a", picture())}},
        {},
    ):
        answer = author.request("POST", f"{EXTENSION}/media", **options)
        data = assert_refused(answer, 400, "rest_missing_callback_param")
        assert data["params"] == ["file"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "SVG"),
        (b"%PDF-1.7", "JPEG, PNG, WebP, AVIF, GIF"),
        (picture("BMP"), "JPEG, PNG, WebP, AVIF, GIF"),
        (picture("JPEG", 640, 480)[:-900], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "damaged"),
    ],
)
def test_unsupported_content_is_rejected(author: Caller, content: bytes, word: str) -> None:
    answer = send(author, content, "picture.jpg")
    assert word in assert_refused(answer, 400, "rest_invalid_param", "file")["params"]["file"]


def test_fields_are_validated_before_decoding(author: Caller) -> None:
    answer = send(author, picture(), focus_x="2", alt_text="x" * 3000)
    assert_refused(answer, 400, "rest_invalid_param", "focus_x", "alt_text")


def test_oversized_file_is_413(fresh: Callable[..., Interface]) -> None:
    author = fresh({"KALENDS_MAX_UPLOAD_BYTES": "5000"}).caller("author")
    assert add(author, picture())
    large = b"\xff\xd8\xff" + b"x" * 500_000
    assert_refused(send(author, large), 413, "rest_body_too_large")
    assert_refused(send(author, large[:10_000]), 413, "rest_body_too_large")

    async def pieces():
        for _ in range(20):
            yield b"x" * 1000

    headers = {"Content-Type": "image/jpeg"}
    answer = author.request("POST", f"{EXTENSION}/media", content=pieces(), headers=headers)
    assert_refused(answer, 413, "rest_body_too_large")


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 401), ("subscriber", 403), ("contributor", 403), ("author", 201), ("administrator", 201)],
)
def test_authors_and_higher_roles_can_upload(interface: Interface, role: str, status: int) -> None:
    assert send(interface.caller(role), picture()).status_code == status


def test_unauthorized_upload_is_rejected_before_reading_body(interface: Interface) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body is asked for")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = scope_of((b"content-type", b"image/jpeg"), (b"content-length", b"10000000"))
    interface.run(interface.app(scope, receive, send))
    assert (sent[0]["status"], b"rest_forbidden" in sent[1]["body"]) == (401, True)


def test_upload_with_idempotency_key_is_stored_once(author: Caller) -> None:
    """Although the boundary of the form is another one each time."""
    headers = {"Idempotency-Key": "upload-1"}

    def again(content: bytes, **fields: str) -> Any:
        return author.request(
            "POST", f"{EXTENSION}/media", files={"file": ("a.jpg", content)}, data=fields, headers=headers
        )

    first, second = again(picture(seed=5)), again(picture(seed=5))
    assert first.json() == second.json()
    assert second.headers["idempotent-replay"] == "true"
    assert_refused(again(picture(seed=6)), 422, "rest_idempotency_mismatch")
    assert_refused(again(picture(seed=5), alt_text="x"), 422, "rest_idempotency_mismatch")


# What is kept ---------------------------------------------------------------------------------


def test_exif_location_is_removed(interface: Interface, author: Caller) -> None:
    image = Image.new("RGB", (40, 20), "red")
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    exif[0x8825] = {1: "N", 2: (52.0, 27.0, 0.0), 3: "E", 4: (13.0, 18.0, 0.0)}
    for codec in ("JPEG", "PNG", "WEBP", "AVIF"):
        sent = encoded(image, codec, exif=exif)
        assert b"Secret Camera" in sent
        kept = file_of(interface, add(author, sent)["url"])
        assert b"Secret Camera" not in kept
        assert (dict(opened(kept).getexif()), opened(kept).info.get("exif")) == ({}, None)


def test_comments_profiles_and_trailing_data_are_removed(interface: Interface, author: Caller) -> None:
    from PIL import ImageCms, PngImagePlugin

    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "secretword")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = Image.new("RGB", (40, 20), "red")
    sent = [
        encoded(image, "PNG", pnginfo=texts), encoded(image, "PNG", icc_profile=profile) + b"secretword",
        encoded(image, "JPEG", comment=b"secretword"), encoded(image, "GIF", comment=b"secretword"),
        encoded(image, "JPEG", icc_profile=profile) + b"<?php secretword ?>",
        encoded(image, "WEBP", xmp=b"secretword"),
    ]  # fmt: skip
    for content in sent:
        kept = file_of(interface, add(author, content)["url"])
        assert b"secretword" not in kept
        assert "icc_profile" not in opened(kept).info


def test_exif_orientation_is_applied(interface: Interface, author: Caller) -> None:
    image = Image.new("RGB", (40, 20), "red")
    image.paste("blue", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # The right side of what is stored is the bottom.
    made = add(author, encoded(image, "PNG", exif=exif))
    assert (made["width"], made["height"]) == (20, 40)
    kept = opened(file_of(interface, made["url"]))
    assert (kept.getpixel((10, 5)), kept.getpixel((10, 35))) == ((0, 0, 255), (255, 0, 0))


def test_color_modes_are_converted_for_web(interface: Interface, author: Caller) -> None:
    modes = {
        "L": ("PNG", "L"), "1": ("PNG", "L"), "P": ("PNG", "RGB"), "RGBA": ("PNG", "RGBA"), "LA": ("PNG", "RGBA"),
        "I;16": ("PNG", "L"), "CMYK": ("JPEG", "RGB"),
    }  # fmt: skip
    for mode, (codec, kept) in modes.items():
        made = add(author, encoded(Image.new(mode, (20, 10)), codec))
        assert opened(file_of(interface, made["url"])).mode == kept, mode


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "L"])
def test_color_profile_is_applied(interface: Interface, author: Caller, mode: str) -> None:
    """With a profile in which red and green have changed places, red is green."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exchanged = profile.replace(b"rXYZ", b"????").replace(b"gXYZ", b"rXYZ").replace(b"????", b"gXYZ")
    codec = "JPEG" if mode == "CMYK" else "PNG"
    red = Image.new("RGB", (20, 10), (255, 0, 0)).convert(mode)
    kept = opened(file_of(interface, add(author, encoded(red, codec, icc_profile=exchanged))["url"]))
    if mode in ("RGB", "RGBA", "P"):
        assert kept.convert("RGB").getpixel((5, 5)) == (0, 255, 0)
    else:  # A profile that does not fit is as good as none.
        assert kept.getpixel((5, 5)) == pytest.approx(
            opened(encoded(red, codec)).convert(kept.mode).getpixel((5, 5)), abs=3
        )
    assert kept.mode == ("RGBA" if mode == "RGBA" else "L" if mode == "L" else "RGB")


def test_large_image_is_downscaled(interface: Interface, author: Caller) -> None:
    made = add(author, encoded(Image.new("RGB", (6000, 3000)), "JPEG"))
    assert (made["width"], made["height"]) == (2560, 1280)
    assert opened(file_of(interface, made["url"])).size == (2560, 1280)


def test_duplicate_uploads_share_one_file(author: Caller) -> None:
    first, second = add(author, picture(seed=9)), add(author, picture(seed=9))
    assert first["url"] == second["url"]
    assert first["id"] != second["id"]


# Sizes ----------------------------------------------------------------------------------------


@FORMS
def test_sizes_are_generated_in_original_type_and_webp(interface: Interface, author: Caller, codec: str) -> None:
    made = add(author, picture(codec, 1600, 800))
    assert "sizes" not in made
    assert make_sizes(interface, made)
    sizes = read(author, made)["sizes"]
    assert {name: (size["width"], size["height"]) for name, size in sizes.items()} == {
        "thumbnail": (150, 150), "medium": (300, 150), "large": (1024, 512), "full": (1600, 800),
    }  # fmt: skip
    for size in sizes.values():
        for shown, kind in ((size, codec), (size["webp"], "WEBP")):
            content = file_of(interface, shown["url"])
            kept = opened(content)
            assert (kept.format, kept.size, len(content)) == (
                kind,
                (size["width"], size["height"]),
                shown["filesize"],
            )
    assert sizes["full"]["url"] == made["url"]
    assert sizes["full"]["mime-type"] == made["mime_type"]


def test_small_image_is_not_upscaled(interface: Interface, author: Caller) -> None:
    made = add(author, picture("PNG", 40, 30))
    make_sizes(interface, made)
    assert list(read(author, made)["sizes"]) == ["full"]


def test_thumbnail_is_cropped_around_focus_point(interface: Interface, author: Caller) -> None:
    image = Image.new("RGB", (900, 300), "white")
    image.paste("red", (800, 0, 900, 300))
    made = add(author, encoded(image, "PNG"), focus_x=1)

    def corner() -> Any:
        make_sizes(interface, made)
        thumbnail = opened(file_of(interface, read(author, made)["sizes"]["thumbnail"]["url"]))
        return thumbnail.convert("RGB").getpixel((145, 75))

    assert corner() == (255, 0, 0)
    before = jobs_of(interface, made)
    done(author.patch(f"{EXTENSION}/media/{made['id']}", {"focus_x": 0}))
    assert jobs_of(interface, made) == before + 1
    assert corner() == (255, 255, 255)


def test_sizes_of_deleted_image_are_not_written(interface: Interface, author: Caller) -> None:
    made = add(author)
    done(author.delete(f"{EXTENSION}/media/{made['id']}"))
    assert not make_sizes(interface, made)


# Showing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post.kind)
def test_records_contain_image_with_alt_text_and_sizes(interface: Interface, editor: Caller, post: Sample) -> None:
    image = add(editor, picture(width=400, seed=20), alt_text="A gate")
    record = editor.create(post.kind, **post.body(image=str(image["id"])))
    keys = ("url", "id", "extension", "width", "height", "filesize", "alt_text", "caption", "focus_x", "focus_y")
    assert record["image"] == {key: image[key] for key in keys}
    make_sizes(interface, image)
    done(editor.patch(f"{EXTENSION}/media/{image['id']}", {"alt_text": "An old gate"}))
    shown = editor.read(post.kind, record["id"])
    assert shown["image"]["alt_text"] == "An old gate"
    assert set(shown["image"]["sizes"]) == {"thumbnail", "medium", "full"}
    assert shown["image"] == {key: read(editor, image)[key] for key in (*keys, "sizes")}
    assert shown["modified_utc"] >= record["modified_utc"]


def test_image_changes_appear_in_change_log_of_records(interface: Interface, editor: Caller) -> None:
    image = add(editor, picture(seed=21))
    venue = editor.create("venues", venue="With image", image=image["id"])
    since = done(editor.get(f"{EXTENSION}/changes", {"since": 0, "per_page": 500}))["next_since"]
    done(editor.patch(f"{EXTENSION}/media/{image['id']}", {"alt_text": "A door"}))
    told = done(editor.get(f"{EXTENSION}/changes", {"since": since}))["changes"]
    assert [(entry["kind"], entry["id"]) for entry in told] == [("venues", venue["id"])]
    assert told[0]["record"]["image"]["alt_text"] == "A door"


def test_venue_in_event_has_current_alt_text(interface: Interface, editor: Caller) -> None:
    image = add(editor, picture(seed=22), alt_text="Old")
    venue = editor.create("venues", venue="Inside", image=image["id"])
    body = {"title": "x", "start_date": "2027-01-01", "end_date": "2027-01-02", "venue": venue["id"]}
    event = editor.create("events", **body)
    anonymous = interface.caller()
    assert anonymous.read("events", event["id"])["venue"]["image"]["alt_text"] == "Old"
    done(editor.patch(f"{EXTENSION}/media/{image['id']}", {"alt_text": "New"}))
    assert anonymous.read("events", event["id"])["venue"]["image"]["alt_text"] == "New"


def test_image_can_be_referenced_by_any_of_its_urls(interface: Interface, editor: Caller) -> None:
    image = add(editor, picture(width=400, seed=23))
    make_sizes(interface, image)
    sizes = read(editor, image)["sizes"]
    name = image["url"].partition("/media/")[2]
    addresses = [
        image["url"],
        sizes["thumbnail"]["url"],
        sizes["medium"]["webp"]["url"],
        f"https://cdn.test/x/{name}",
    ]
    for address in addresses:
        assert editor.create("venues", venue=f"At {address[-30:]}", image=address)["image"]["id"] == image["id"]


def test_files_are_immutable_and_served_as_images_only(interface: Interface, author: Caller) -> None:
    made = add(author)
    anonymous = interface.caller()
    answer = anonymous.get(made["url"])
    assert answer.content == file_of(interface, made["url"])
    headers = dict(answer.headers)
    for name in ("last-modified", "x-request-id"):
        del headers[name]
    digest = made["url"].rpartition("/")[2]
    assert headers == {
        "content-type": "image/jpeg", "content-length": str(made["filesize"]), "accept-ranges": "bytes",
        "cache-control": "public, max-age=31536000, immutable", "content-disposition": "inline",
        "content-security-policy": "default-src 'none'; sandbox", "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*", "etag": f'"{digest[:32]}"', "x-content-type-options": "nosniff",
    }  # fmt: skip
    assert anonymous.get(made["url"], headers={"If-None-Match": headers["etag"]}).status_code == 304
    part = anonymous.get(made["url"], headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, answer.content[2:6])
    head = anonymous.request("HEAD", made["url"])
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(made["filesize"]), b"")


@pytest.mark.parametrize(
    "path",
    ["", "1", "../settings.py", "..%2f..%2fetc%2fpasswd", "1/ab/../../x", "incoming/x", f"1/ab/ab{'0' * 62}.jpg",
     f"1/ab/ab{'0' * 62}.svg", f"1/ab/cd{'0' * 62}.jpg", f"2/ab/ab{'0' * 62}.jpg\n", "%00"],
)  # fmt: skip
def test_other_paths_are_not_served(interface: Interface, path: str) -> None:
    status, _, body = interface.raw("GET", f"/media/{path}")
    assert (status, b"rest_no_route" in body) == (404, True)


def test_files_are_read_only(interface: Interface, author: Caller) -> None:
    url = add(author)["url"]
    assert_refused(author.delete(url), 405, "rest_method_not_allowed")
    assert_refused(author.post(url), 405, "rest_method_not_allowed")


# Lists ----------------------------------------------------------------------------------------


def test_contributors_can_list_images(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    author, editor = interface.caller("author"), interface.caller("editor")
    gate = add(author, picture(seed=1), "gate.jpg", alt_text="A gate")
    door = add(editor, picture("PNG", seed=2), "Tür.png", caption="Painted by Anna")
    listed = done(interface.caller("contributor").get(f"{EXTENSION}/media"))
    assert listed == {
        "media": [read(editor, door), read(editor, gate)], "rest_url": f"{EXTENSION}/media/", "total": 2,
        "total_pages": 1,
    }  # fmt: skip

    def ids(**query: Any) -> list[int]:
        return [image["id"] for image in done(author.get(f"{EXTENSION}/media", query))["media"]]

    assert ids(search="tur") == ids(search="painted anna") == ids(mime_type="image/png") == [door["id"]]
    assert ids(author=author.id) == ids(search="-tür") == ids(without_alt_text="no") == [gate["id"]]
    assert ids(without_alt_text="1") == [door["id"]]
    assert ids(search="nothing") == []
    page = done(author.get(f"{EXTENSION}/media", {"per_page": 1}))
    assert page["next_rest_url"] == f"{EXTENSION}/media/?per_page=1&page=2"
    assert [image["id"] for image in done(author.get(page["next_rest_url"]))["media"]] == [gate["id"]]


@pytest.mark.parametrize(("role", "status"), [("anonymous", 401), ("subscriber", 403), ("contributor", 200)])
def test_library_needs_write_permission(interface: Interface, author: Caller, role: str, status: int) -> None:
    """An image may belong to an event that is not published yet."""
    made, caller = add(author), interface.caller(role)
    assert caller.get(f"{EXTENSION}/media").status_code == status
    assert caller.get(f"{EXTENSION}/media/{made['id']}").status_code == status


# Changing and removing ------------------------------------------------------------------------


def test_update_changes_only_submitted_fields(author: Caller) -> None:
    made = add(author, alt_text="A", caption="C")
    changed = done(author.patch(f"{EXTENSION}/media/{made['id']}", {"alt_text": "B <i>x</i>", "focus_y": 0.1}))
    assert changed == {**made, "alt_text": "B x", "focus_y": 0.1, "modified": changed["modified"],
                       "modified_utc": changed["modified_utc"]}  # fmt: skip
    cleared = done(author.patch(f"{EXTENSION}/media/{made['id']}", {"alt_text": None, "focus_y": None}))
    assert (cleared["alt_text"], cleared["focus_y"], cleared["caption"]) == ("", 0.5, "C")
    tag = author.get(f"{EXTENSION}/media/{made['id']}").headers["etag"]
    done(author.patch(f"{EXTENSION}/media/{made['id']}", {"title": "T"}, headers={"If-Match": tag}))
    answer = author.patch(f"{EXTENSION}/media/{made['id']}", {"title": "U"}, headers={"If-Match": tag})
    assert_refused(answer, 412, "rest_precondition_failed")


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "middle", True, [0.5], {}])
def test_focus_point_must_be_inside_image(author: Caller, wrong: object) -> None:
    made = add(author)
    answer = author.patch(f"{EXTENSION}/media/{made['id']}", {"focus_x": wrong})
    assert_refused(answer, 400, "rest_invalid_param", "focus_x")


def test_authors_can_change_only_their_own_images(interface: Interface, author: Caller, editor: Caller) -> None:
    made = add(editor)
    address = f"{EXTENSION}/media/{made['id']}"
    assert_refused(author.patch(address, {"title": "x"}), 403, "rest_forbidden")
    assert_refused(author.delete(address), 403, "rest_forbidden")
    assert_refused(interface.caller().delete(address), 401, "rest_forbidden")
    assert done(editor.delete(address)) == made
    assert_refused(editor.get(address), 404, "rest-media-not-found")


def test_image_in_use_is_not_deleted_without_force(interface: Interface, editor: Caller) -> None:
    made = add(editor, picture(seed=30))
    body = {"title": "x", "start_date": "2027-01-01", "end_date": "2027-01-02", "image": made["id"]}
    event, venue = editor.create("events", **body), editor.create("venues", venue="x", image=made["id"])
    address = f"{EXTENSION}/media/{made['id']}"
    data = assert_refused(editor.delete(address), 409, "rest_media_in_use")
    assert data["used_by"] == [{"kind": "events", "id": event["id"]}, {"kind": "venues", "id": venue["id"]}]
    assert editor.read("events", event["id"])["image"]
    done(editor.delete(f"{address}?force=true"))
    assert editor.read("events", event["id"])["image"] is False
    assert "image" not in editor.read("venues", venue["id"])
    history = done(editor.get(f"{EXTENSION}/events/{event['id']}/history"))["history"][0]
    assert history["changes"]["image"] == {"before": made["id"], "after": None}


def test_forced_deletion_is_recorded_for_each_record(editor: Caller) -> None:
    image = add(editor, picture(seed=33))
    venues = [editor.create("venues", venue=f"Of many {n}", image=image["id"]) for n in range(5)]
    done(editor.delete(f"{EXTENSION}/media/{image['id']}?force=1"))
    revisions: set[int] = set()
    for venue in venues:
        assert "image" not in editor.read("venues", venue["id"])
        newest = done(editor.get(f"{EXTENSION}/venues/{venue['id']}/history"))["history"][0]
        assert newest["changes"]["image"] == {"before": image["id"], "after": None}
        revisions.add(newest["revision"])
    assert len(revisions) == 5


def test_forced_deletion_needs_permission_for_all_records(author: Caller, editor: Caller) -> None:
    made = add(author, picture(seed=31))
    venue = editor.create("venues", venue="Theirs", image=made["id"])
    assert_refused(author.delete(f"{EXTENSION}/media/{made['id']}?force=1"), 403, "rest_forbidden")
    assert editor.read("venues", venue["id"])["image"]["id"] == made["id"]


def test_image_of_trashed_record_is_in_use(editor: Caller) -> None:
    made = add(editor, picture(seed=32))
    venue = editor.create("venues", venue="Gone", image=made["id"])
    editor.trash("venues", venue["id"])
    assert_refused(editor.delete(f"{EXTENSION}/media/{made['id']}"), 409, "rest_media_in_use")


def test_file_urls_follow_media_url_setting(fresh: Callable[..., Interface]) -> None:
    interface = fresh({"KALENDS_MEDIA_URL": "https://cdn.example/pictures/"})
    editor = interface.caller("editor")
    made = add(editor)
    assert made["url"].startswith("https://cdn.example/pictures/1/")
    assert editor.create("venues", venue="x", image=made["url"])["image"]["url"] == made["url"]


def test_compatible_api_has_no_media_routes(editor: Caller) -> None:
    assert_refused(editor.get(f"http://{HOST}{NAMESPACE}/media"), 404, "rest_no_route")


# Forms that are none --------------------------------------------------------------------------

PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="%"\r\n\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b""),
        ("multipart/form-data", PART),
        ("multipart/form-data; boundary=", PART),
        ("multipart/form-data; boundary=x; charset=nothing", PART + b"x\r\n--x--"),
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
        ("multipart/form-data; boundary=x", PART + b"\xff\xd8\xff never ends"),
        ("multipart/form-data; boundary=x", (PART + b"x\r\n") * 3 + b"--x--"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n' * 100 + b"--x--",
        ),
        ("multipart/form-data; boundary=x", FIELD.replace(b"%", b"alt_text") + b"x" * 100_000 + b"\r\n--x--"),
        ("multipart/form-data; boundary=x", FIELD.replace(b"%", b"focus_x[][][][][][]") + b"x\r\n--x--"),
    ],
)
def test_malformed_form_is_rejected(interface: Interface, kind: str, body: bytes) -> None:
    import base64

    person = interface.people["author"]
    token = base64.b64encode(f"{person.login}:{person.password}".encode()).decode()
    headers = [("content-type", kind), ("authorization", f"Basic {token}")]
    status, _, answer = interface.raw("POST", f"{EXTENSION_PATH}/media", headers=headers, body=[body])
    assert status == 400, answer


def test_truncated_form_is_reported(author: Caller) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = author.request("POST", f"{EXTENSION}/media", content=PART + picture(), headers=headers)
    assert_refused(answer, 400, "rest_invalid_form")
    assert "its end is missing" in answer.json()["message"]


def test_file_of_image_cannot_be_replaced(author: Caller) -> None:
    made = add(author, picture(seed=40))
    address, sent = f"{EXTENSION}/media/{made['id']}", {"file": ("b.jpg", picture(seed=41))}
    data = assert_refused(author.request("POST", address, files=sent), 400, "rest_invalid_param")
    assert set(data["params"]) == {"file"}


def test_aborted_upload_leaves_no_files(interface: Interface) -> None:
    import base64

    person = interface.people["author"]
    token = base64.b64encode(f"{person.login}:{person.password}".encode()).decode()
    before = interface.sql("SELECT count(*) FROM media")[0][0]

    async def receive() -> Any:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    for kind in (b"image/jpeg", b"multipart/form-data; boundary=x"):
        pieces = [{"type": "http.request", "body": PART + picture()[:100], "more_body": True}]
        scope = scope_of((b"content-type", kind), (b"authorization", f"Basic {token}".encode()))
        interface.run(interface.app(scope, receive, send))
    assert interface.sql("SELECT count(*) FROM media")[0][0] == before
    assert list((root_of(interface) / "incoming").iterdir()) == []


def test_image_libraries_are_not_imported_by_server() -> None:
    """They take time and memory in every process, and most never need them."""
    text = "import sys, kalends.asgi; print(sorted({'PIL', 'httpcore', 'minio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
