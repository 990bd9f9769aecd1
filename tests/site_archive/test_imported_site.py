"""What an archive discloses, and how an imported site goes on: accounts, passwords, new records, missing files."""

import asyncio
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.fleet.operations import site_archive
from kalends.fleet.storage.archive_tables import SiteLoad
from tests.api.running_app import API_PATH, User
from tests.robustness.site_fixtures import DATES
from tests.servers import Server
from tests.site_archive.conftest import HOST, Place
from tests.site_archive.edited_archives import Archive
from tests.site_archive.full_site import PASSWORD
from tests.site_archive.test_hostile_archives import SCRIPT, Refusals

NEW_HOSTS = ("--host", "new.example", "--first-host", "old.example")


def read_all(path: Path) -> bytes:
    with zipfile.ZipFile(path) as file:
        return b"\n".join(file.read(name) for name in file.namelist() if not name.startswith("media/"))


def test_archives_contain_no_credentials(
    full_site: Place, archives: Callable[[bool], Path], user_template: tuple[str, dict[str, User]]
) -> None:
    with psycopg.connect(full_site.url) as connection:
        rows = connection.execute(
            "SELECT encode(secret, 'hex') FROM sites UNION ALL SELECT encode(hash, 'hex') FROM application_passwords "
            "UNION ALL SELECT encode(password_hash, 'hex') FROM events WHERE password_hash IS NOT NULL "
            "UNION ALL SELECT template ->> 'password_hash' FROM series WHERE template ->> 'password_hash' <> '' "
            "UNION ALL SELECT after ->> 'password_hash' FROM changes WHERE after ->> 'password_hash' <> '' "
        ).fetchall()
    secrets = {text for (text,) in rows} | {user.password for user in user_template[1].values()} | {PASSWORD}
    assert len(secrets) > 8
    for accounts in (False, True):
        content = read_all(archives(accounts)).decode()
        assert not [secret for secret in secrets if secret in content]


def test_archive_without_accounts_contains_no_persons(archives: Callable[[bool], Path]) -> None:
    private = ("editor@example.org", "Ada L.", "Unfinished", "administrator", "rosaword")
    without, with_accounts = read_all(archives(False)).decode(), read_all(archives(True)).decode()
    assert [word for word in private if word in without] == []
    assert [word for word in private if word not in with_accounts] == []
    assert Archive.load(archives(False)).rows("users") == [{"id": number} for number in range(1, 6)]


def test_archive_is_private_and_replaces_no_file(full_site: Place, archives: Callable[[bool], Path]) -> None:
    path = archives(False)
    content = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert full_site.fail("site", "export", HOST, "--to", str(path)).strip() == f"{path} exists already."
    assert path.read_bytes() == content
    missing = path.parent / "missing" / "x.zip"
    assert "No such file or directory" in full_site.fail("site", "export", HOST, "--to", str(missing))
    assert "There is no site other.example." in full_site.fail("site", "export", "other.example", "--to", "x.zip")
    assert list(path.parent.glob("*.incomplete")) == []


def test_imported_site_goes_on(
    archives: Callable[[bool], Path], new_place: Place, start_server: Callable[..., Server]
) -> None:
    """New records have new IDs, and a protected event stays locked until it gets a new password."""
    output = new_place.run("site", "import", str(archives(False)), *NEW_HOSTS)
    assert "5 authors cannot sign in. Add an administrator with `kalends user add`." in output
    new_place.run("user", "add", "anna", "--role", "administrator", "--site", "new.example")
    password = new_place.run("app-password", "create", "anna", "test", "--site", "new.example").split("\n")[0]
    users = new_place.run("user", "list", "--site", "new.example")
    assert len(re.findall(r"subscriber +disabled +never +author-[1-5]$", users, re.MULTILINE)) == 5
    with psycopg.connect(new_place.url) as connection:
        row = connection.execute("SELECT last_post_id, revision FROM sites WHERE id = 2").fetchone()
        event = connection.execute("SELECT id FROM events WHERE site_id = 2 AND title = 'Secret'").fetchone()
    assert row is not None
    assert event is not None
    server = start_server(new_place.url, environment=new_place.settings)
    headers = {"Host": "new.example"}
    with httpx.Client(base_url=server.base_url + API_PATH, headers=headers, timeout=30) as client:
        auth = ("anna", password)
        created = client.post("/events", json={"title": "New", **DATES}, auth=auth)
        assert (created.status_code, created.json()["id"]) == (201, row[0] + 1), created.text
        path = f"/events/{event[0]}"
        assert client.get(path, params={"password": PASSWORD}).status_code == 403
        changed = client.patch(path, json={"new_password": PASSWORD}, auth=auth)
        assert changed.status_code == 200, changed.text
        assert "Hidden text" in client.get(path, params={"password": PASSWORD}).json()["description"]
        changes = client.get(f"{server.base_url}/api/kalends/v1/changes?since={row[1]}").json()
        assert [entry["id"] for entry in changes["changes"]] == [created.json()["id"], event[0]]


def test_hosts_and_base_url_of_the_archive(
    full_site: Place, archives: Callable[[bool], Path], new_place: Place, tmp_path: Path
) -> None:
    """Without --host a site keeps its hosts and its base URL, which would lead elsewhere under other hosts."""
    archive = Archive.load(archives(False))
    archive.manifest["site"] |= {"hosts": ["b.example", "A.example"], "base_url": "https://a.example"}
    path = archive.save(tmp_path / "two.zip")
    new_place.run("site", "import", str(path), "--first-host", "old.example")
    new_place.run("site", "import", str(path), "--host", "c.example")
    for site, hosts, base_url in ((2, "a.example, b.example", "https://a.example"), (3, "c.example", "")):
        lines = new_place.run("site", "show", "--site", str(site)).splitlines()
        shown = {name: value.strip() for name, _, value in (line.partition(" ") for line in lines)}
        assert (shown["hosts"], shown["base_url"]) == (hosts, base_url)
        assert shown["logo_url"].startswith(f"/media/{site}/")
    assert "belongs to site 2" in new_place.fail("site", "import", str(path))


def test_missing_files_are_reported(full_site: Place, new_place: Place, tmp_path: Path) -> None:
    """An archive of a site with missing files is complete apart from them."""
    path = next(path for path in sorted(full_site.media_dir.rglob("*.webp")))
    content = path.read_bytes()
    path.unlink()
    try:
        export = ("site", "export", HOST, "--to", str(tmp_path / "a.zip"))
        with pytest.raises(AssertionError, match="1 image files are missing; see `kalends media check`"):
            full_site.run(*export)
    finally:
        path.write_bytes(content)
    assert Archive.load(tmp_path / "a.zip").manifest["missing_files"] == [path.name]
    new_place.run("site", "import", str(tmp_path / "a.zip"), *NEW_HOSTS)
    repaired = new_place.run("media", "check", "--site", "new.example")
    assert "1 of them damaged or missing; 0 images incomplete" in repaired


def test_sizes_that_the_archive_does_not_have_are_generated(
    archives: Callable[[bool], Path], new_place: Place, tmp_path: Path
) -> None:
    archive = Archive.load(archives(False))
    archive.set_rows("media", [{**row, "sizes": {}} for row in archive.rows("media")])
    new_place.run("site", "import", str(archive.save(tmp_path / "bare.zip")), *NEW_HOSTS)
    with psycopg.connect(new_place.url) as connection:
        jobs = connection.execute(
            "SELECT args FROM procrastinate_jobs WHERE task_name = 'make_sizes' ORDER BY id"
        ).fetchall()
    assert sorted(job["media_id"] for (job,) in jobs) == sorted(row["id"] for row in archive.rows("media"))
    assert {job["site_id"] for (job,) in jobs} == {2}


def test_files_are_removed_if_a_later_one_is_refused(
    archives: Callable[[bool], Path], new_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_archive, "BATCH_IMAGES", 1)
    archive = Archive.load(archives(True))
    last = [name for name in archive.members if name.startswith("media/")][-1]
    archive.members[last] = b"GIF89a"
    stored: list[int] = []
    remove = site_archive._StoredFiles.remove

    async def count_files(files: site_archive._StoredFiles) -> None:
        stored.append(sum(path.is_file() for path in new_place.media_dir.rglob("*")))
        await remove(files)

    monkeypatch.setattr(site_archive._StoredFiles, "remove", count_files)
    Refusals(new_place, archives(True), tmp_path).refuse_file(archive.save(tmp_path / "x.zip"))
    assert stored == [len([name for name in archive.members if name.startswith("media/")]) - 1]


def test_other_sites_are_not_blocked_and_see_nothing(
    archives: Callable[[bool], Path], new_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an import is under way, other sites are written to, and the new host leads nowhere."""
    new_place.run("site", "add", "second.example", "--first-host", "first.example")
    seen: list[object] = []
    publish = SiteLoad.publish

    async def look_before(load: SiteLoad, hosts: list[str]) -> None:
        await asyncio.to_thread(look)
        await publish(load, hosts)

    def look() -> None:
        with psycopg.connect(new_place.url) as connection:
            connection.execute("SET lock_timeout = '1s'")
            for site_id in (1, 2):
                connection.execute("SELECT FROM sites WHERE id = %s FOR NO KEY UPDATE", [site_id])
                connection.execute("UPDATE sites SET revision = revision + 1 WHERE id = %s", [site_id])
                connection.execute(
                    "INSERT INTO tags (site_id, id, revision, name, name_folded, slug) "
                    "VALUES (%s, 1, 1, 'a', 'a', 'a')",
                    [site_id],
                )
            seen.extend(connection.execute("SELECT id FROM sites ORDER BY id").fetchall())
            seen.extend(connection.execute("SELECT host FROM site_hosts WHERE host = 'new.example'").fetchall())

    monkeypatch.setattr(SiteLoad, "publish", look_before)
    new_place.run("site", "import", str(archives(True)), "--host", "new.example")
    assert seen == [(1,), (2,)]


def test_script_never_comes_out_as_markup(
    archives: Callable[[bool], Path], new_place: Place, tmp_path: Path, start_server: Callable[..., Server]
) -> None:
    """Sanitized texts, and texts that look like markup but are none, in pages, feeds and the API."""
    archive = Archive.load(archives(True))
    escaped = "Name &lt;script&gt;alert(1)&lt;/script&gt;"
    for table, column in (
        *(("events", "title"), ("events", "description"), ("events", "excerpt"), ("venues", "title")),
        *(("venues", "address"), ("organizers", "title"), ("categories", "name"), ("tags", "description")),
        *(("series", "title"), ("media", "caption"), ("sites", "name"), ("users", "display_name")),
    ):
        rows = archive.rows(table)
        for number, row in enumerate(rows):
            row[column] = (SCRIPT, escaped)[number % 2]
        archive.set_rows(table, rows)
    archive.edit("import_rows", "title", SCRIPT)
    new_place.run("site", "import", str(archive.save(tmp_path / "script.zip")), *NEW_HOSTS, "--sanitize")
    server = start_server(new_place.url, environment=new_place.settings)
    paths = ["/", "/events/list/", "/events/map/", "/events.rss", "/events.atom", "/sitemap.xml"]
    with httpx.Client(base_url=server.base_url, headers={"Host": "new.example"}, timeout=30) as client:
        listed = client.get(f"{API_PATH}/events?start_date=2000-01-01&per_page=50").text
        paths += sorted(set(re.findall(r'"url":"http://new\.example(/[a-z]+/[^"]+/)"', listed)))
        assert len(paths) > 12
        for path in paths:
            response = client.get(path)
            assert response.status_code in (200, 403), path
            assert not re.search(r"<script[^>]*>\s*alert", response.text), path
            assert "<script>alert" not in response.text, path
