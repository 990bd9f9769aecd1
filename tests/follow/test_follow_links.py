"""The pages behind links in emails: changing, pausing and ending what a person follows."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.core.times import utc_now
from kalends.follow import storage
from kalends.follow.rules.follow_tokens import make_end_token, make_manage_token
from kalends.http.bodies import hide_token
from tests.api.running_app import RunningApp
from tests.follow.follow_client import FOLLOW, Reader, find_follows

Act = Callable[..., None]


@pytest.fixture
def reader(site: RunningApp) -> Reader:
    return Reader(site)


@pytest.fixture
def link(reader: Reader) -> str:
    return reader.confirm()


def find_one(site: RunningApp) -> dict[str, Any]:
    [row] = find_follows(site)
    return row


def make_end_link(site: RunningApp) -> str:
    follow_id = find_one(site)["id"]
    row: Any = site.run_operation(lambda tx: storage.find_follow(tx, follow_id))
    return f"/follow/end/{make_end_token(row['key'], follow_id)}"


def test_day_and_hour_can_be_changed(site: RunningApp, reader: Reader, link: str) -> None:
    follow_id = find_one(site)["id"]
    reader.press(link, "change", follow=follow_id, rhythm="daily", weekday="2", hour="7")
    row = find_one(site)
    assert (row["rhythm"], row["weekday"], row["hour"], row["next_at"].hour in (6, 7)) == ("daily", 2, 7, True)
    reader.press(link, "change", follow=follow_id, rhythm="daily", weekday="2", hour="77")
    assert find_one(site) == row


def test_pausing_and_resuming(site: RunningApp, reader: Reader, link: str) -> None:
    follow_id = find_one(site)["id"]
    reader.press(link, "pause", follow=follow_id)
    assert (find_one(site)["paused"], find_one(site)["next_at"]) == (True, None)
    reader.press(link, "change", follow=follow_id, rhythm="daily", weekday="2", hour="7")
    assert find_one(site)["next_at"] is None
    reader.press(link, "resume", follow=follow_id)
    assert (find_one(site)["paused"], find_one(site)["next_at"] is not None) == (False, True)


def test_ending_one_of_two_keeps_the_other(site: RunningApp, reader: Reader, link: str) -> None:
    reader.confirm(f"{FOLLOW}?search=jazz")
    first, second = find_follows(site)
    assert reader.press(link, "end", follow=first["id"]).status_code == 303
    assert find_one(site) == second
    response = reader.press(link, "end", follow=second["id"])
    assert "deleted your email address" in response.text
    assert site.sql("SELECT * FROM followers") == []
    reader.page(link, 404)


def test_erasing_deletes_everything(site: RunningApp, reader: Reader, link: str) -> None:
    reader.follow(f"{FOLLOW}?search=jazz")
    assert reader.press(link, "erase").status_code == 200
    assert site.sql("SELECT FROM followers") == site.sql("SELECT FROM follows") == []
    [numbers] = site.sql("SELECT confirmed, ended FROM mail_days")
    assert tuple(numbers) == (1, 1)


def test_the_page_masks_the_address(reader: Reader, link: str) -> None:
    response = reader.request("GET", link)
    assert "a…@example.org" in response.text
    assert "anna@" not in response.text
    headers = response.headers
    assert (headers["cache-control"], headers["referrer-policy"]) == ("private, no-store", "no-referrer")
    assert '<meta name="robots" content="noindex">' in response.text


def test_people_cannot_change_the_follows_of_others(site: RunningApp, reader: Reader, link: str) -> None:
    other = reader.confirm(email="other@example.org")
    anna, _ = find_follows(site)
    reader.press(other, "end", follow=anna["id"])
    reader.press(other, "pause", follow=anna["id"])
    reader.press(other, "pause", follow="x")
    assert find_follows(site)[0] == anna


def test_one_click_ends_the_follow_without_asking(site: RunningApp, reader: Reader, link: str) -> None:
    end = make_end_link(site)
    page = reader.page(end)
    assert "Unsubscribe" in page.text
    assert find_one(site)  # Opening the link changes nothing.
    response = reader.request(
        "POST", end, data={"List-Unsubscribe": "One-Click"}, headers={"sec-fetch-site": "cross-site", "accept": "*/*"}
    )
    assert response.status_code == 200
    assert "set-cookie" not in response.headers
    assert find_follows(site) == []
    assert reader.request("POST", end).status_code == 200  # Programs repeat requests.
    assert reader.request("GET", end).status_code == 404


def test_a_token_opens_no_other_page(site: RunningApp, reader: Reader, link: str) -> None:
    end = make_end_link(site)
    token = end.rpartition("/")[2]
    assert reader.request("GET", f"/follow/{token}/").status_code == 404
    manage = link.strip("/").rpartition("/")[2]
    assert reader.request("GET", f"/follow/end/{manage}").status_code == 404
    reader.request("POST", f"/follow/end/{manage}")
    assert find_one(site)


def test_tokens_of_another_site_do_not_work(site: RunningApp, reader: Reader, link: str) -> None:
    follow_id = find_one(site)["id"]
    row: Any = site.run_operation(lambda tx: storage.find_follow(tx, follow_id))
    forged = make_manage_token(b"x" * 16, row["follower_id"], utc_now())
    assert reader.request("GET", f"/follow/{forged}/").status_code == 404
    for token in ("x", "é" * 48, "A" * 50, "A" * 5000, "%00"):
        assert reader.request("GET", f"/follow/{token}/").status_code == 404
        assert reader.request("GET", f"/follow/end/{token}").status_code == 404


def test_links_work_while_following_is_switched_off(site: RunningApp, reader: Reader, link: str) -> None:
    site.set_site("follow_by_email", "off")
    reader.page(link)
    assert reader.request("POST", make_end_link(site)).status_code == 200
    assert find_follows(site) == []


def test_refused_addresses_can_be_tried_again(site: RunningApp, reader: Reader, link: str) -> None:
    site.sql("UPDATE followers SET suppressed_at = now(), refusal_code = '5.1.1', refusals = 1")
    site.sql("UPDATE follows SET next_at = NULL")
    assert "5.1.1" in reader.page(link).text
    reader.press(link, "resume", follow=find_one(site)["id"])
    assert find_one(site)["next_at"] is None
    reader.press(link, "resume_address")
    row = find_one(site)
    assert (row["suppressed_at"], row["refusals"], row["next_at"] is not None) == (None, 0, True)


def test_logs_hide_tokens(link: str) -> None:
    assert hide_token(link) == "/follow/…"
    assert hide_token("/follow/end/abc") == "/follow/…"
    assert hide_token("/follow/") == "/follow/"
