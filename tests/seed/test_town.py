"""`kalends seed --town`: one lifelike town, the same for the same day."""

import asyncio
import re
import subprocess
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from PIL import Image

from kalends.demo.town.programme import EVERY_WEEK, PROGRAMME, SUBMISSIONS, WRITERS
from kalends.demo.town.scenes import SCENES, draw_scene
from kalends.demo.town.town_places import CATEGORIES, HOSTS, PLACES, SITE, list_occurrences
from tests.robustness.consistency import assert_consistent
from tests.servers import KALENDS, Server, make_environment
from tools.screenshots import PEOPLE

TODAY = date(2026, 6, 17)


API = "/api/calendar/events/v1"
EXTENSION = "/api/kalends/v1"


def run_kalends(database_url: str, media: Path, *arguments: str) -> str:
    environment = make_environment(database_url, {"KALENDS_MEDIA_DIR": str(media)})
    return subprocess.run([*KALENDS, *arguments], env=environment, capture_output=True, text=True, check=True).stdout


def run_seed(database_url: str, media: Path) -> str:
    return run_kalends(database_url, media, "seed", "--town", "--today", str(TODAY))


@pytest.mark.process
def test_town_is_lifelike_and_added_once(database_url: str, tmp_path: Path) -> None:
    media = tmp_path / "media"
    single = [occurrence for occurrence in list_occurrences(TODAY) if occurrence.slot not in EVERY_WEEK]
    created = re.match(r"Created Larkford: (\d+) events, 8 series, 16 venues, ", run_seed(database_url, media))
    assert created is not None
    assert run_seed(database_url, media) == "The site has the town already; nothing was added.\n"
    assert_consistent(database_url)
    with psycopg.connect(database_url) as connection:
        (counts,) = connection.execute(
            """SELECT count(*), count(*) FILTER (WHERE series_id IS NULL), count(DISTINCT timezone),
                count(*) FILTER (WHERE featured), count(image_id), count(*) FILTER (WHERE cost = '0'),
                count(*) FILTER (WHERE end_utc - start_utc > interval '14 days'),
                count(DISTINCT title) FILTER (WHERE length(description) > 1500)
                FROM events"""
        )
        assert connection.execute("SELECT max(geo_lat) - min(geo_lat) < 0.02 FROM venues").fetchone() == (True,)
        assert connection.execute("SELECT count(*) FROM media WHERE alt_text = ''").fetchone() == (0,)
        origins = connection.execute("SELECT origin FROM proposals WHERE state = 'waiting' ORDER BY 1").fetchall()
        assert origins == [("agent",), ("api",), ("contributor",), ("public",), ("public",)]
    assert counts[:3] == (int(created[1]), len(single) + len(SUBMISSIONS), 1)
    assert all(number >= minimum for number, minimum in zip(counts[3:], (15, 200, 60, 5, 2), strict=True)), counts
    with (
        Server.start(database_url, log=tmp_path / "log", environment={"KALENDS_MEDIA_DIR": str(media)}) as server,
        server.client() as client,
    ):
        page = client.get("/events/month/2026-06/").raise_for_status().text
        assert SITE["name"] in page
        logo = re.search(r'<img src="([^"]+)" alt=""', page)
        assert logo is not None
        assert logo[1].startswith(server.base_url)
        assert httpx.get(logo[1]).raise_for_status().headers["content-type"] == "image/png"
        run_kalends(database_url, media, "user", "add", "ed", "--role", "editor")
        password = run_kalends(database_url, media, "app-password", "create", "ed", "test").splitlines()[-1]
        with server.client(login="ed", password=password) as editor:
            assert_lifelike(editor)


def assert_lifelike(client: httpx.Client) -> None:
    """Count by the API what an editor sees: series with changed dates, submissions, drafts, maps and pictures."""

    def list_all(path: str, **params: str) -> list[dict[str, Any]]:
        response = client.get(path, params={**params, "per_page": "50"}).raise_for_status().json()
        listed: list[dict[str, Any]] = response[path.rpartition("/")[2]]
        return listed

    series = {entry["title"]: entry for entry in list_all(f"{EXTENSION}/series")}
    assert set(series) == {slot.items[0].title for slot in EVERY_WEEK}
    authors: list[set[str]] = []
    for status, number in (("pending", 5), ("draft", 3), ("future", 1)):
        found = list_all(f"{API}/events", status=status, start_date=str(TODAY))
        assert len(found) == number, status
        authors.append({event["author"] for event in found})
    assert len(authors[0]) == 1
    assert authors[1] == authors[2] != authors[0]
    for state, number in (("cancelled", 2), ("moved_online", 1), ("postponed", 1), ("sold_out", 1)):
        found = list_all(f"{API}/events", event_status=state, start_date=str(TODAY))
        assert len(found) == number, state
        assert max(event["start_date"] for event in found) < str(TODAY + timedelta(days=16))
    story = series["Story time"]
    assert len(story["added"]) == 1
    dates = client.get(f"{EXTENSION}/series/{story['id']}/occurrences", params={"from": str(TODAY)}).json()
    changed = [entry for entry in dates["occurrences"] if entry["own"]]
    assert [entry["slot"] != entry["start_date"] for entry in changed] == [True, False]
    assert all(venue["image"] and venue["show_map"] for venue in list_all(f"{API}/venues"))
    assert all(len(category["description"]) > 60 for category in list_all(f"{API}/categories"))
    assert all(event["show_map"] for event in list_all(f"{API}/events", start_date=str(TODAY)))


@pytest.mark.parametrize("month", range(1, 13))
def test_programme_fills_every_season(month: int) -> None:
    occurrences = list_occurrences(date(2027, month, 10))
    assert 250 <= len(occurrences) <= 400
    assert {occurrence.slot.category for occurrence in occurrences} == set(CATEGORIES)
    assert occurrences == list_occurrences(date(2027, month, 10))


def test_programme_names_known_places() -> None:
    assert {slot.venue for slot in PROGRAMME} == {place.name for place in PLACES}
    assert {slot.organizer for slot in PROGRAMME} == {host.name for host in HOSTS}
    scenes = {category.scene for category in CATEGORIES.values()}
    used = {*scenes, *(slot.scene for slot in PROGRAMME), *(place.picture.split()[0] for place in PLACES)} - {""}
    assert used == set(SCENES)
    assert len(SCENES) == 20
    assert len({place.picture for place in PLACES}) == len(PLACES)
    assert not {login for login, *_ in PEOPLE} & set(WRITERS)


def test_pictures_are_small_and_repeatable() -> None:
    async def draw_all() -> list[bytes]:
        return list(await asyncio.gather(*(asyncio.to_thread(draw_scene, name, 0) for name in SCENES)))

    pictures = asyncio.run(draw_all())
    assert max(map(len, pictures)) < 60_000
    assert {Image.open(BytesIO(picture)).size for picture in pictures} == {(1200, 675)}
    assert draw_scene("music", 0) == pictures[0]
