"""The form for following: what it stores, what it sends, and its limits."""

from datetime import timedelta
from urllib.parse import quote

import pytest

from kalends.core.messages import LANGUAGES
from kalends.core.times import utc_now
from kalends.follow.operations.followings import clean_follows
from kalends.store.database import Database
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.follow.follow_client import FOLLOW, Reader, add_event, at, find_follows, open_following
from tests.lifecycle.processes import run_command


@pytest.fixture
def reader(site: RunningApp) -> Reader:
    return Reader(site)


def test_a_list_is_followed_after_the_confirmation(site: RunningApp, reader: Reader) -> None:
    music = site.caller("editor").create("categories", name="Music")
    path = f"{FOLLOW}?categories=music&page=2&start_date=2031-01-01"
    assert "Music" in reader.page(path).text
    response = reader.follow(path)
    assert response.status_code == 200
    assert "Check your email" in response.text
    [row] = find_follows(site)
    assert (row["query"], row["rhythm"], row["weekday"], row["hour"]) == (
        f"categories={music['id']}",
        "weekly",
        4,
        18,
    )
    assert (row["confirmed_at"], row["next_at"]) == (None, None)
    [email] = reader.receive()
    assert (email.to, "Music" in email.text) == ("anna@example.org", True)
    assert reader.page(email.link).html.count("Confirm") >= 1
    assert find_follows(site)[0]["confirmed_at"] is None  # Opening the link changes nothing.
    assert reader.press(email.link, "confirm", follow=row["id"]).status_code == 303
    [row] = find_follows(site)
    assert row["confirmed_at"] is not None
    assert row["next_at"] - utc_now() <= timedelta(days=7)
    assert (row["next_at"].isoweekday(), row["next_at"].hour in (17, 18)) == (4, True)


def test_pages_link_to_the_form_only_if_emails_can_be_sent(site: RunningApp, start_app: StartApp) -> None:
    reader = Reader(site)
    add_event(site, "Concert")
    assert 'href="/follow/?search=concert"' in reader.page("/events/list/?search=concert").html
    assert reader.request("GET", "/embed/follow/").status_code == 404
    site.set_site("follow_by_email", "off")
    assert "/follow/" not in reader.page("/events/list/").html
    assert reader.request("GET", FOLLOW).status_code == 404
    assert reader.follow().status_code == 404
    other = Reader(open_following(start_app()))  # no SMTP server
    assert "/follow/" not in other.page("/events/list/").html
    assert other.request("GET", FOLLOW).status_code == 404


def test_the_form_shows_an_example_and_changes_with_events(site: RunningApp, reader: Reader) -> None:
    event = add_event(site, "Choir concert")
    assert "Choir concert" in reader.page(FOLLOW).text
    site.caller("editor").change("events", event["id"], title="Organ concert")
    assert "Organ concert" in reader.page(FOLLOW).text
    assert "An example" not in reader.page(f"{FOLLOW}?search=opera").text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"email": ""}, "This field is required."),
        ({"email": "anna"}, "name@example.org"),
        ({"email": "änna@example.org"}, "name@example.org"),
        ({"email": "a@example.org\r\nBcc: b@example.org"}, "name@example.org"),
        ({"hour": "24"}, "Choose a day"),
        ({"hour": "x"}, "Choose a day"),
        ({"rhythm": "hourly"}, "Choose a day"),
        ({"weekday": "0"}, "Choose a day"),
    ],
)
def test_wrong_fields_are_explained(site: RunningApp, reader: Reader, fields: dict[str, str], text: str) -> None:
    response = reader.follow(**fields)
    assert (response.status_code, text in response.text) == (400, True), response.text
    assert find_follows(site) == []


def test_unknown_filters_cannot_be_followed(site: RunningApp, reader: Reader) -> None:
    assert reader.follow(f"{FOLLOW}?near=Atlantis").status_code == 400
    assert reader.request("GET", f"{FOLLOW}?near=Atlantis").status_code == 400
    assert reader.follow(f"{FOLLOW}?categories={'1,' * 150}9").status_code in (200, 400)
    assert reader.follow(f"{FOLLOW}?search={'ö' * 190}&venue={','.join(map(str, range(1, 400)))}").status_code == 400
    assert reader.follow(f"{FOLLOW}?geoloc_lat=x&geoloc_lng=1").status_code == 400
    assert all(len(row["query"]) <= 1000 for row in find_follows(site))


def test_queries_have_coarse_coordinates_and_folded_searches(site: RunningApp, reader: Reader) -> None:
    reader.follow(f"{FOLLOW}?geoloc_lat=48.208174&geoloc_lng=-0.001&geoloc_radius=5&search=Köl%C3%A9")
    [row] = find_follows(site)
    assert row["query"] == "geoloc_lat=48.21&geoloc_lng=0.00&geoloc_radius=5&search=" + quote("kole")


def test_the_response_does_not_tell_whether_an_address_is_known(site: RunningApp, reader: Reader) -> None:
    reader.confirm()
    known, unknown = reader.follow(), reader.follow(email="new@example.org")
    assert known.text == unknown.text
    assert len(find_follows(site)) == 2
    first = next(row for row in find_follows(site) if row["email"] == "anna@example.org")
    reader.follow(hour="3", rhythm="daily")  # Others cannot change what was confirmed.
    again = next(row for row in find_follows(site) if row["email"] == "anna@example.org")
    assert again == first
    assert "30 days" in reader.receive()[0].text


def test_confirmations_contain_nothing_that_was_typed(site: RunningApp, reader: Reader) -> None:
    for language in LANGUAGES:
        site.sql("DELETE FROM login_failures")
        path = f"{FOLLOW}?lang={language}&search=buy+pills+at+evil.example"
        assert reader.follow(path, email=f"{language}@example.org").status_code == 200
        [email] = reader.receive()
        assert "evil" not in email.subject + email.text
        assert "{" not in email.subject + email.text
        assert (f"?lang={language}" in email.text) is (language != "en")


def test_programs_that_fill_in_every_field_are_ignored(site: RunningApp, reader: Reader) -> None:
    assert reader.follow(company="Spam Ltd.").status_code == 200
    assert find_follows(site) == []


def test_a_client_can_send_ten_forms(site: RunningApp, reader: Reader) -> None:
    statuses = [reader.follow(email=f"p{number}@example.org").status_code for number in range(12)]
    assert statuses == [200] * 10 + [429] * 2
    assert reader.follow().headers["retry-after"]
    assert Reader(site, "192.0.2.9").follow().status_code == 200


def test_an_address_gets_three_emails(site: RunningApp, reader: Reader) -> None:
    responses = [Reader(site, f"192.0.2.{number}").follow(hour=str(number)) for number in range(5)]
    assert {(row.status_code, row.text) for row in responses} == {(200, responses[0].text)}
    assert len(reader.receive()) == 3
    assert len(find_follows(site)) == 1


def test_an_address_can_follow_twenty_lists(site: RunningApp, reader: Reader) -> None:
    for number in range(22):
        site.sql("DELETE FROM login_failures")
        reader.follow(f"{FOLLOW}?search=term{number}")
    assert len(find_follows(site)) == 20


def test_forms_of_other_sites_are_rejected(site: RunningApp, reader: Reader) -> None:
    response = reader.request("POST", FOLLOW, data={"email": "a@b.example"}, headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 404
    assert find_follows(site) == []


def test_unconfirmed_follows_are_forgotten_after_two_days(site: RunningApp, reader: Reader) -> None:
    reader.confirm()
    reader.follow(f"{FOLLOW}?search=jazz", email="other@example.org")
    for hours, emails in ((47, ["anna@example.org", "other@example.org"]), (49, ["anna@example.org"])):

        async def clean(database: Database, hours: int = hours) -> None:
            await clean_follows(database, utc_now() + timedelta(hours=hours))

        site.run_with_database(clean)
        assert [row["email"] for row in find_follows(site)] == emails
    assert [row["email"] for row in site.sql("SELECT email FROM followers")] == ["anna@example.org"]


def test_forget_command_erases_a_person(site: RunningApp, reader: Reader) -> None:
    reader.confirm()
    assert "with 1 follows" in run_command(site.database_url, "follower", "forget", "ANNA@example.org").stdout
    assert site.sql("SELECT * FROM followers") == []
    assert "no data" in run_command(site.database_url, "follower", "forget", "anna@example.org").stdout


def test_expired_time_is_not_trusted(site: RunningApp, reader: Reader) -> None:
    link = reader.confirm()
    with at(utc_now() + timedelta(days=31)):
        page = reader.page(link)
        assert "@example.org" not in page.text
        assert "Send me a new link" in page.html
        assert "Check your email" in reader.request("POST", link, data={}).text
    assert reader.receive()[0].to == "anna@example.org"
