"""The console page about followers: numbers, previews, and one person by their address."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient
from tests.follow.follow_client import add_event, add_follower, find_follows, open_following

FOLLOWERS = "/console/followers"
PREVIEW = f"{FOLLOWERS}/preview"


@pytest.fixture
def site(start_app: Any) -> RunningApp:
    return open_following(start_app())


@pytest.fixture
def editor(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "editor")


@pytest.fixture
def administrator(site: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(site, "administrator")


def test_numbers_name_only_lists_with_five_followers(site: RunningApp, editor: ConsoleClient) -> None:
    music = site.caller("editor").create("categories", name="Music")
    for number in range(5):
        add_follower(site, f"a{number}@example.org", f"categories={music['id']}")
    add_follower(site, "b@example.org", "search=private+matter")
    add_follower(site, "c@example.org", "search=other")
    page = editor.page(FOLLOWERS)
    assert "7 people follow by email." in page.text
    assert "Music 5" in page.text
    assert "Followers of all other lists: 2" in page.text
    assert "private" not in page.html
    assert "example.org" not in page.html
    assert "One person" not in page.text


def test_days_are_listed(site: RunningApp, editor: ConsoleClient) -> None:
    site.sql("INSERT INTO mail_days (site_id, day, sent, refused) VALUES ($1, current_date, 41, 3), "
             "($1, current_date - 100, 999, 0)", site.site_id)  # fmt: skip
    text = editor.page(FOLLOWERS).text
    assert "Total 0 41 3 0 0" in text
    assert "999" not in text


@pytest.mark.parametrize("role", ["contributor", "author"])
def test_others_see_nothing(site: RunningApp, role: str) -> None:
    client = ConsoleClient.signed_in(site, role)
    assert FOLLOWERS not in client.page("/console/").html
    assert [client.get(path).status_code for path in (FOLLOWERS, PREVIEW, f"{PREVIEW}.html")] == [403] * 3
    assert client.post(f"{FOLLOWERS}/person", {"email": "a@example.org", "action": "erase"}).status_code == 403


def test_preview_shows_the_digest_of_any_list(site: RunningApp, editor: ConsoleClient) -> None:
    music = site.caller("editor").create("categories", name="Music")
    add_event(site, "Concert", categories=[music["id"]])
    add_event(site, "Market <b>& fair</b>")
    page = editor.page(PREVIEW)
    for text in ("Concert", "Market &amp; fair", "## ", "COMING UP"):
        assert text in page.html
    page = editor.page(f"{PREVIEW}?category={music['id']}")
    assert ("Concert" in page.html, "Market" in page.html) == (True, False)
    page = editor.page(
        f"{PREVIEW}?list=https%3A%2F%2Fcalendar.test%2Fevents%2Fsearch%2F%3Fsearch%3Dmarket&language=de"
    )
    assert ("Concert" in page.html, "Market" in page.html) == (False, True)
    assert '<html lang="de">' in page.html.replace("&#34;", '"').replace("&lt;", "<").replace("&gt;", ">")
    for other in ("?geoloc_lat=x", "/events/category/music/", "/events/search/?near=Basel"):
        assert editor.get(f"{PREVIEW}?{urlencode({'list': other})}").status_code == 400
    assert editor.get(f"{PREVIEW}.html?list=%3Fgeoloc_lat%3Dx").status_code == 404


def test_preview_frame_has_its_own_policy(site: RunningApp, editor: ConsoleClient) -> None:
    add_event(site, "Concert")
    response = editor.get(f"{PREVIEW}.html?list=%3Fsearch%3Dconcert&language=ja")
    policy = response.headers["content-security-policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"
    assert response.headers["cache-control"] == "private, no-store"
    assert '<html lang="ja">' in response.text
    assert "Concert" in response.text
    assert len(response.content) < 60_000


def test_administrators_find_and_erase_one_person(site: RunningApp, administrator: ConsoleClient) -> None:
    add_follower(site, "Anna@example.org", "search=jazz")
    person = f"{FOLLOWERS}/person"
    assert "No one follows" in administrator.post(person, {"email": "anna@example", "action": "find"}).text
    found = administrator.post(person, {"email": "anna@EXAMPLE.org", "action": "find"})
    assert "Anna@example.org" in found.text
    assert "jazz" in found.text
    response = administrator.post(person, {"email": "anna@example.org", "action": "erase"})
    assert (response.status_code, find_follows(site)) == (303, [])
    assert "anna" not in response.headers["location"].lower()


def test_administrators_lift_a_suppression(site: RunningApp, administrator: ConsoleClient) -> None:
    add_follower(site, "anna@example.org")
    site.sql("UPDATE followers SET suppressed_at = now(), refusal_code = '5.1.1'")
    site.sql("UPDATE follows SET next_at = NULL")
    form = {"email": "anna@example.org", "action": "find"}
    assert "5.1.1" in administrator.post(f"{FOLLOWERS}/person", form).text
    administrator.post(f"{FOLLOWERS}/person", {**form, "action": "resume"})
    [row] = find_follows(site)
    assert (row["suppressed_at"], row["next_at"] is not None) == (None, True)


def test_settings_say_what_is_missing(site: RunningApp, administrator: ConsoleClient) -> None:
    page = administrator.page("/console/settings")
    assert "No one can follow because something is missing" in page.text
    form = page.form(reply_to="ü@example.org", mail_footer="x" * 1001)
    response = administrator.post("/console/settings", form)
    assert (response.status_code, response.text.count("field-error")) == (400, 2)
    form = page.form(reply_to="office@example.org", mail_footer="Town hall\r\nMarket 1")
    assert administrator.post("/console/settings", form).status_code == 303
    [row] = site.sql("SELECT reply_to, mail_footer FROM sites WHERE id = $1", site.site_id)
    assert tuple(row) == ("office@example.org", "Town hall\nMarket 1")
