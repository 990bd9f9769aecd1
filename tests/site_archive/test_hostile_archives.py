"""Archives that somebody has prepared or damaged: refused with a message, and nothing is left behind."""

import hashlib
import random
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from kalends.fleet.adapters import LIMITS, ArchiveReader, ArchiveRefused, Limits
from tests.conftest import replace_database, temporary_database
from tests.media.image_fixtures import make_image
from tests.robustness.two_sites import site_tables
from tests.site_archive.conftest import Place
from tests.site_archive.edited_archives import Archive

SCRIPT = "Name<script>alert(1)</script>"


def count_everything(place: Place) -> tuple[int, int]:
    """Return the number of rows of all sites, and of files in the media storage."""
    with psycopg.connect(place.url) as connection:
        rows = 0
        for table in (*site_tables(connection), "procrastinate_jobs"):
            found = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
            rows += found[0] if found else 0
    return rows, sum(path.is_file() for path in place.media_dir.rglob("*"))


class Refusals:
    """Imports edited archives into one database, which stays as it is."""

    def __init__(self, place: Place, archive: Path, directory: Path) -> None:
        self.place = place
        self.archive = archive
        self.path = directory / "hostile.zip"
        self.before = count_everything(place)

    def refuse(self, edit: Callable[[Archive], None], *options: str) -> str:
        """Return the message about an archive after an edit."""
        archive = Archive.load(self.archive)
        edit(archive)
        return self.refuse_file(archive.save(self.path), *options)

    def refuse_file(self, path: Path, *options: str) -> str:
        hosts = options or ("--host", "new.example", "--first-host", "old.example")
        message = self.place.fail("site", "import", str(path), *hosts)
        assert count_everything(self.place) == self.before, message
        return message.rpartition("\n" + str(path))[2] or message


@pytest.fixture(scope="module")
def refusals(
    archives: Callable[[bool], Path],
    postgres_url: str,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Refusals]:
    """Return one database for all tests, because every one leaves it as it was."""
    directory = tmp_path_factory.mktemp("refusals")
    with temporary_database(postgres_url, template=template_database) as name:
        place = Place(replace_database(postgres_url, name), directory / "media")
        yield Refusals(place, archives(True), directory)


def find_entry(content: bytes | bytearray, name: bytes) -> int:
    """Return where the directory of a zip file describes a member."""
    start = content.index(b"PK\x01\x02")
    while content[start + 46 : start + 46 + len(name)] != name:
        start = content.index(b"PK\x01\x02", start + 1)
    return start


def add_member(name: str, content: bytes = b"x", mode: int = stat.S_IFREG | 0o600) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.extra.append((info, content))

    return edit


def add_table(name: str) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        archive.members[f"{name}.jsonl"] = b""
        archive.manifest["tables"][name] = {}

    return edit


def set_value(table: str, column: str, value: object) -> Callable[[Archive], None]:
    return lambda archive: archive.edit(table, column, value)


def set_manifest(**values: Any) -> Callable[[Archive], None]:
    return lambda archive: archive.manifest.update(values)


def set_content(member: str, content: bytes) -> Callable[[Archive], None]:
    return lambda archive: archive.members.update({member: content})


def remove_member(name: str) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        del archive.members[name]

    return edit


def edit_row(table: str, **columns: Any) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        rows = archive.rows(table)
        rows[0].update(columns)
        archive.set_rows(table, rows)

    return edit


def drop_column(table: str, column: str) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        rows = archive.rows(table)
        del rows[0][column]
        archive.set_rows(table, rows)

    return edit


def repeat_row(table: str) -> Callable[[Archive], None]:
    return lambda archive: archive.set_rows(table, [*archive.rows(table), archive.rows(table)[0]])


def replace_image(content: bytes, extension: str = "png") -> Callable[[Archive], None]:
    """Replace the file of an image by another one with a right hash."""

    def edit(archive: Archive) -> None:
        old = archive.rows("media_files")[0]["name"]
        new = f"{hashlib.sha256(content).hexdigest()}.{extension}"
        for name in ("media", "media_files", "sites", "changes"):
            archive.members[f"{name}.jsonl"] = archive.members[f"{name}.jsonl"].replace(old.encode(), new.encode())
        del archive.members[f"media/{old}"]
        archive.members[f"media/{new}"] = content

    return edit


def change_history(**columns: Any) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        rows = archive.rows("changes")
        row = next(row for row in rows if row["kind"] == "events" and row["after"])
        row["after"].update(columns)
        archive.set_rows("changes", rows)

    return edit


def change_template(**columns: Any) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        rows = archive.rows("series")
        rows[0]["template"].update(columns)
        archive.set_rows("series", rows)

    return edit


def change_logged_template(**columns: Any) -> Callable[[Archive], None]:
    def edit(archive: Archive) -> None:
        rows = archive.rows("changes")
        row = next(row for row in rows if row["kind"] == "series" and "template" in (row["after"] or {}))
        row["after"]["template"] = orjson.dumps({**orjson.loads(row["after"]["template"]), **columns}).decode()
        archive.set_rows("changes", rows)

    return edit


def lower_counter(name: str) -> Callable[[Archive], None]:
    return set_value("sites", name, 1)


# Edits and a part of the message that refuses each.
EDITS: dict[str, tuple[Callable[[Archive], None], str]] = {
    # Members
    "parent directory": (add_member("../evil.jsonl"), "'../evil.jsonl': is not a member of an archive"),
    "absolute path": (add_member("/etc/passwd"), "'/etc/passwd': is not a member"),
    "backslashes": (add_member("media\\..\\x.png"), "is not a member"),
    "drive": (add_member("C:/x.jsonl"), "is not a member"),
    "directory": (add_member("media/"), "is not a member"),
    "unknown file": (add_member("README.txt"), "'README.txt': is not a member"),
    "image outside of media": (add_member(f"{'a' * 64}.png"), "is not a member"),
    "path in media": (add_member(f"media/../{'a' * 64}.png"), "is not a member"),
    "script as image": (add_member(f"media/{'a' * 64}.svg"), "is not a member"),
    "control characters": (add_member("a\x1b[31m\nb"), r"'a\x1b[31m\nb': is not a member"),
    "symbolic link": (
        add_member(f"media/{'a' * 64}.png", b"/etc/passwd", stat.S_IFLNK | 0o777),
        "is not a plain file",
    ),
    "device": (add_member(f"media/{'a' * 64}.png", b"", stat.S_IFCHR | 0o777), "is not a plain file"),
    "unknown table": (add_member("secrets.jsonl"), "only one of the archive and its manifest has it"),
    "table of credentials": (
        add_table("sessions"),
        "sessions.jsonl: is not a table of an archive",
    ),
    "missing table": (remove_member("events.jsonl"), "only one of the archive and its manifest has it"),
    "unwanted image": (
        lambda archive: archive.members.update({f"media/{hashlib.sha256(b'x').hexdigest()}.png": b"x"}),
        "belongs to no image",
    ),
    "missing image": (
        lambda archive: archive.members.pop(f"media/{archive.rows('media_files')[0]['name']}") and None,
        "is missing",
    ),
    # The manifest
    "other format": (set_manifest(format="zip"), "is not an archive of a site"),
    "newer format": (set_manifest(format_version=2), "has the format version 2; this version of Kalends reads 1"),
    "older schema": (set_manifest(schema="0001"), "has the schema 0001, this database has"),
    "newer schema": (set_manifest(schema="9999"), "Upgrade Kalends and run `kalends migrate` first"),
    "no tables": (set_manifest(tables=[]), "`tables` is not an object"),
    "missing entry": (set_manifest(accounts=None), "`accounts` is missing or has the wrong type"),
    "no accounts": (set_manifest(accounts=False), "drafts.jsonl: is not a table of an archive"),
    "path as missing file": (set_manifest(missing_files=["../x"]), "is not the name of an image file"),
    # Rows
    "not JSON": (set_content("tags.jsonl", b"{]\n"), "tags.jsonl, line 1: is not valid JSON"),
    "not UTF-8": (set_content("tags.jsonl", b'{"name": "\xff"}\n'), "tags.jsonl, line 1: is not valid JSON"),
    "deep JSON": (set_content("tags.jsonl", b"[" * 100_000 + b"\n"), "tags.jsonl, line 1: is not valid JSON"),
    "list": (set_content("tags.jsonl", b"[1]\n"), "tags.jsonl, line 1: is not an object"),
    "empty line": (set_content("tags.jsonl", b"\n"), "tags.jsonl, line 1: is not valid JSON"),
    "incomplete line": (set_content("tags.jsonl", b"{}"), "its last line is incomplete"),
    "two sites": (repeat_row("sites"), "must have exactly one line"),
    "foreign site": (
        set_value("events", "site_id", 1),
        "events.jsonl, line 1, site_id: is not a column of the archive",
    ),
    "secret": (set_value("sites", "secret", "\\x00"), "sites.jsonl, line 1, secret: is not a column of the archive"),
    "password": (set_value("users", "password_hash", "x"), "users.jsonl, line 1, password_hash: is not a column"),
    "generated column": (set_value("events", "listed", True), "listed: is not a column of the archive"),
    "counter": (set_value("tags", "count", 5), "count: is not a column of the archive"),
    "missing column": (drop_column("events", "title"), "events.jsonl, line 1, title: is missing"),
    "null": (set_value("events", "title", None), "title: must not be null"),
    "number as text": (set_value("events", "title", 5), "title: must be a string"),
    "text as number": (set_value("events", "id", "5"), "id: must be an integer"),
    "negative": (set_value("events", "id", -5), "id: must be an integer"),
    "huge": (set_value("events", "id", 2**60), "id: must be an integer"),
    "boolean as number": (set_value("events", "id", True), "id: must be an integer"),
    "word as date": (set_value("events", "start_utc", "now"), "start_utc: must be a time in UTC"),
    "infinity": (set_value("events", "end_utc", "infinity"), "end_utc: must be a time in UTC"),
    "no date": (
        set_value("events", "end_utc", "2027-02-31T00:00:00+00:00"),
        "events: date/time field value out of range",
    ),
    "text as list": (set_value("series", "added", "x"), "added: must be a list"),
    "NUL": (set_value("events", "title", "a\0b"), "title: contains a NUL character"),
    "NUL in JSON": (change_history(title="a\0b"), "after: contains a NUL character"),
    "duplicate row": (repeat_row("events"), "duplicate key value violates unique constraint"),
    "unknown author": (set_value("events", "author_id", 99), "events: insert or update on table"),
    "unknown image": (set_value("venues", "image_id", 99_999), "violates foreign key constraint"),
    "unknown event": (set_value("event_tags", "event_id", 99_999), "names an event that is not in the archive"),
    "unknown parent": (set_value("categories", "parent", 99_999), "violates foreign key constraint"),
    "constraint": (set_value("events", "status", "secret"), "violates check constraint"),
    "end before start": (set_value("events", "end_utc", "0001-01-01T00:00:00+00:00"), "violates check constraint"),
    "low post counter": (lower_counter("last_post_id"), "sites: last_post_id is 1, but"),
    "low term counter": (lower_counter("last_term_id"), "sites: last_term_id is 1, but"),
    "low revision": (lower_counter("revision"), "sites: revision is 1, but"),
    "hash of a password": (
        set_value("events", "password_hash", "\\x01ff"),
        "password_hash: contains the hash of a password",
    ),
    "hash in a series": (change_template(password_hash="01ff"), "template: contains the hash of a password"),
    "hash in the history": (change_history(password_hash="01ff"), "after: contains the hash of a password"),
    "hash in text": (change_logged_template(password_hash="01ff"), "after: contains the hash of a password"),
    # Texts
    "script in a title": (
        set_value("events", "title", SCRIPT),
        "events.jsonl, line 1, title: is not as this version stores it",
    ),
    "script in a description": (set_value("events", "description", f"<p>{SCRIPT}</p>"), "description: is not as"),
    "script in a venue": (set_value("venues", "title", f"Hall {SCRIPT}"), "venues.jsonl, line 1, title: is not as"),
    "script in a term": (set_value("categories", "name", SCRIPT), "categories.jsonl, line 1, name: is not as"),
    "script in a caption": (set_value("media", "caption", SCRIPT), "caption: is not as"),
    "script in the site name": (set_value("sites", "name", SCRIPT), "sites.jsonl, line 1, name: is not as"),
    "script in the history": (change_history(title=SCRIPT), "after.title: is not as"),
    "script in a series": (change_template(title=SCRIPT), "template.title: is not as"),
    "script in the history of a series": (change_logged_template(title=SCRIPT), "after.template.title: is not as"),
    "script in a name": (set_value("users", "display_name", SCRIPT), "display_name: is not as"),
    "script in a slug": (set_value("events", "slug", '"><script>'), "slug: contains characters that no slug has"),
    "script as address": (set_value("events", "website", "javascript:alert(1)"), "website: must be an absolute http"),
    "script as logo": (set_value("sites", "logo_url", "javascript:alert(1)"), "logo_url: must be an absolute http"),
    "logo of another site": (set_value("sites", "logo_url", f"/media/9/aa/{'a' * 64}.png"), "image of another site"),
    "event handler": (set_value("events", "description", '<p onclick="x()">a</p>'), "description: is not as"),
    "style sheet": (set_value("site_styles", "css", "@import url(//evil.example)"), "css: "),
    "line in an identifier": (set_value("events", "uid", "a\r\nATTENDEE:x"), "uid: contains control characters"),
    "open redirect": (set_value("prefix_redirects", "new", "//evil.example/"), "new: must be a path"),
    "local calendar": (set_value("import_sources", "url", "file:///etc/passwd"), "url: "),
    "no UUID": (set_value("proposals", "id", "1"), "proposals.jsonl, line 1, id: must be a UUID"),
    "script as a proposer": (set_value("proposals", "submitter_name", SCRIPT), "submitter_name: is not as"),
    "list of proposed values": (set_value("proposals", "values", [1]), "values: must be an object"),
    "script as a submitter": (set_value("submitters", "email", SCRIPT), "email: "),
    "script as a follower": (set_value("followers", "email", SCRIPT), "email: "),
    "header in an address of answers": (set_value("sites", "reply_to", "a@b.example\r\nBcc: c"), "reply_to: "),
    "time zone": (set_value("events", "timezone", "Mars/Base"), "timezone: "),
    "file name": (set_value("media", "url", "../../x.png"), "url: must be an absolute http"),
    "sizes": (set_value("media", "sizes", {"full": {"url": "../x"}}), "sizes: "),
    "rule of a series": (set_value("series", "parts", [{"uid": "x"}]), "is not the definition of a series"),
    "unknown content": (change_template(site_id=1), "contains a field that no event has"),
    # Images
    "page as image": (replace_image(b"<html><script>alert(1)</script></html>"), "is not a supported image type"),
    "vector image": (replace_image(b"<svg onload='alert(1)'/>"), "SVG is not supported"),
    "other type": (replace_image(make_image("JPEG")), "has the content of another image type"),
    "head of an image": (replace_image(make_image("PNG")[:60] + SCRIPT.encode() * 10), "is damaged or incomplete"),
    "too many pixels": (
        replace_image(make_image("PNG")[:16] + (60_000).to_bytes(4) * 2 + make_image("PNG")[24:]),
        "is damaged or incomplete",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_archive_is_refused(refusals: Refusals, name: str) -> None:
    edit, message = EDITS[name]
    assert message in refusals.refuse(edit)


def test_unedited_copy_is_accepted(archives: Callable[[bool], Path], new_place: Place, tmp_path: Path) -> None:
    """The tests above would pass if saving alone made an archive unacceptable."""
    path = Archive.load(archives(True)).save(tmp_path / "copy.zip")
    new_place.run("site", "import", str(path), "--host", "new.example", "--first-host", "old.example")


def test_wrong_hashes_are_refused(refusals: Refusals) -> None:
    def keep_hashes(archive: Archive) -> None:
        archive.keeps_hashes = True
        archive.edit("events", "title", "Changed")

    assert "events.jsonl: does not have the hash that the manifest says" in refusals.refuse(keep_hashes)

    def drop_row(archive: Archive) -> None:
        archive.keeps_hashes = True
        archive.set_rows("changes", archive.rows("changes")[:-1])

    assert "rows, the manifest says" in refusals.refuse(drop_row)

    def swap_image(archive: Archive) -> None:
        archive.members[f"media/{archive.rows('media_files')[0]['name']}"] = make_image("PNG", seed=99)

    assert "does not have the hash in its name" in refusals.refuse(swap_image)


def test_duplicate_members_are_refused(refusals: Refusals) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        assert "'tags.jsonl': occurs twice" in refusals.refuse(add_member("tags.jsonl"))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(members=5), "has more than 5 members"),
        (Limits(total=10_000), "when unpacked; at most 10,000 are allowed"),
        (Limits(table=100), "at most 100 are allowed"),
        (Limits(image=100), "at most 100 are allowed"),
        (Limits(manifest=100), "manifest.json: has"),
        (Limits(line=100), "has a line of more than 100 bytes"),
        (Limits(rows=20), "has more than 20 rows"),
    ],
)
def test_limits(refusals: Refusals, monkeypatch: pytest.MonkeyPatch, limits: Limits, message: str) -> None:
    monkeypatch.setattr("kalends.fleet.operations.site_archive.LIMITS", limits)
    assert message in refusals.refuse_file(refusals.archive)


def test_zip_bombs_are_refused(refusals: Refusals) -> None:
    bomb = set_content("tags.jsonl", b" " * 20_000_000)
    assert "tags.jsonl: is compressed by more than 200:1" in refusals.refuse(bomb)

    # The directory of the archive claims that the member is small.
    archive = Archive.load(refusals.archive)
    bomb(archive)
    content = bytearray(archive.save(refusals.path).read_bytes())
    start = find_entry(content, b"tags.jsonl")
    content[start + 24 : start + 28] = (1000).to_bytes(4, "little")
    refusals.path.write_bytes(content)
    assert "tags.jsonl: cannot be read" in refusals.refuse_file(refusals.path)


def test_members_that_share_their_data_are_refused(refusals: Refusals) -> None:
    archive = Archive.load(refusals.archive)
    archive.compression = zipfile.ZIP_STORED
    content = bytearray(archive.save(refusals.path).read_bytes())
    start = find_entry(content, b"tags.jsonl")
    for offset in (20, 24):
        content[start + offset : start + offset + 4] = (len(content) - 1000).to_bytes(4, "little")
    refusals.path.write_bytes(content)
    assert "has members that overlap" in refusals.refuse_file(refusals.path)


def test_encrypted_members_are_refused(refusals: Refusals) -> None:
    content = bytearray(refusals.archive.read_bytes())
    content[find_entry(content, b"tags.jsonl") + 8] |= 1
    refusals.path.write_bytes(content)
    assert "tags.jsonl: is encrypted" in refusals.refuse_file(refusals.path)


@pytest.mark.parametrize("host", ["", "a b", "https://a.example/", "a.example:80", "<script>", "-", "x" * 254])
def test_invalid_hosts_are_refused(refusals: Refusals, host: str) -> None:
    def set_host(archive: Archive) -> None:
        archive.manifest["site"]["hosts"] = [host]

    problem = "must be a host name such as events.example.org"
    assert problem in refusals.refuse_file(refusals.archive, "--host", host, "--first-host", "old.example")
    assert f"manifest.json: a host name {problem}" in refusals.refuse(set_host, "--first-host", "old.example")


def test_hosts_in_use_are_refused(refusals: Refusals) -> None:
    assert "Site 1 (Kalends) has no host name" in refusals.refuse_file(refusals.archive, "--host", "new.example")
    taken = refusals.refuse_file(refusals.archive, "--host", "New.example", "--first-host", "new.example")
    assert "The host name new.example belongs to site 1" in taken


def test_sanitize_stores_safe_texts(archives: Callable[[bool], Path], new_place: Place, tmp_path: Path) -> None:
    """Archives of older versions may contain texts that this version would store differently."""
    archive = Archive.load(archives(True))
    archive.edit("events", "title", SCRIPT)
    archive.edit("venues", "description", SCRIPT)
    change_logged_template(title=SCRIPT)(archive)
    path = archive.save(tmp_path / "old.zip")
    hosts = ("--host", "new.example", "--first-host", "old.example")
    new_place.run("site", "import", str(path), *hosts, "--sanitize")
    new_place.run("site", "export", "new.example", "--to", str(tmp_path / "again.zip"), "--accounts")
    again = Archive.load(tmp_path / "again.zip")
    assert again.rows("events")[0]["title"] == "Name"
    assert again.rows("venues")[0]["description"] == "Name"
    for name, content in again.members.items():
        assert b"<script" not in content, name


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip file", b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b" * 50])
def test_other_files_are_refused(refusals: Refusals, content: bytes) -> None:
    refusals.path.write_bytes(content)
    message = refusals.refuse_file(refusals.path)
    assert "is not a zip file, or is damaged" in message or "has no manifest.json" in message


def test_damaged_archives_never_give_a_traceback(refusals: Refusals) -> None:
    """Truncated archives and archives with changed bytes are refused; a change that does not matter is harmless."""
    numbers, good = random.Random(22), refusals.archive.read_bytes()
    directory = find_entry(good, b"sites.jsonl")
    for _ in range(60):
        content = bytearray(good)
        if numbers.random() < 0.3:
            del content[numbers.randrange(len(content)) :]
        else:
            for _ in range(numbers.choice((1, 1, 5))):
                start = directory if numbers.random() < 0.5 else 0
                content[numbers.randrange(start, len(content))] ^= 1 << numbers.randrange(8)
        refusals.path.write_bytes(content)
        try:
            with ArchiveReader.open(refusals.path, LIMITS) as reader:
                for table in reader.manifest["tables"]:
                    for _line in reader.iterate_rows(table):
                        pass
                for name in reader.images:
                    reader.extract_image(name, refusals.path.with_name("image"))
        except ArchiveRefused:
            pass
    for _ in range(5):
        content = bytearray(good)
        content[numbers.randrange(len(content) // 2)] ^= 0xFF
        del content[len(content) - numbers.randrange(1, 100) :]
        refusals.path.write_bytes(content)
        refusals.refuse_file(refusals.path)
