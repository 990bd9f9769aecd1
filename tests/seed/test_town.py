"""`kalends seed --town`: one lifelike town, the same for the same day."""

import asyncio
import re
import subprocess
import sys
from datetime import date
from io import BytesIO
from pathlib import Path

import httpx
import psycopg
import pytest
from PIL import Image

from kalends.demo.town.programme import PROGRAMME
from kalends.demo.town.scenes import SCENES, draw_scene
from kalends.demo.town.town_places import CATEGORIES, HOSTS, PLACES, SITE, list_occurrences
from tests.robustness.consistency import assert_consistent
from tests.servers import Server, make_environment

TODAY = date(2026, 6, 17)


def run_seed(database_url: str, media: Path) -> str:
    command = [sys.executable, "-m", "kalends", "seed", "--town", "--today", str(TODAY)]
    environment = make_environment(database_url, {"KALENDS_MEDIA_DIR": str(media)})
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.process
def test_town_is_lifelike_and_added_once(database_url: str, tmp_path: Path) -> None:
    media = tmp_path / "media"
    occurrences = list_occurrences(TODAY)
    assert run_seed(database_url, media).startswith(f"Created Larkford: {len(occurrences)} events, 16 venues, ")
    assert run_seed(database_url, media) == "The site has the town already; nothing was added.\n"
    assert_consistent(database_url)
    with psycopg.connect(database_url) as connection:
        (counts,) = connection.execute(
            """SELECT count(*), count(DISTINCT timezone), count(*) FILTER (WHERE featured), count(image_id),
                count(*) FILTER (WHERE cost = '0'), count(*) FILTER (WHERE end_utc - start_utc > interval '14 days')
                FROM events"""
        )
        assert connection.execute("SELECT max(geo_lat) - min(geo_lat) < 0.02 FROM venues").fetchone() == (True,)
        assert connection.execute("SELECT count(*) FROM media WHERE alt_text = ''").fetchone() == (0,)
        states = connection.execute(
            "SELECT event_status, count(*), min(start_local::date) > %s, max(start_local::date) <= %s + 7 "
            "FROM events WHERE event_status <> 'scheduled' GROUP BY event_status ORDER BY event_status",
            [TODAY, TODAY],
        ).fetchall()
    assert states == [(state, 1, True, True) for state in ("cancelled", "moved_online", "postponed", "sold_out")]
    assert counts[:2] == (len(occurrences), 1)
    assert all(number >= minimum for number, minimum in zip(counts[2:], (15, 200, 60, 5), strict=True)), counts
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


@pytest.mark.parametrize("month", range(1, 13))
def test_programme_fills_every_season(month: int) -> None:
    occurrences = list_occurrences(date(2027, month, 10))
    assert 250 <= len(occurrences) <= 400
    assert {occurrence.slot.category for occurrence in occurrences} == set(CATEGORIES)
    assert occurrences == list_occurrences(date(2027, month, 10))


def test_programme_names_known_places() -> None:
    assert {slot.venue for slot in PROGRAMME} == {place.name for place in PLACES}
    assert {slot.organizer for slot in PROGRAMME} == {host.name for host in HOSTS}
    assert set(CATEGORIES.values()) == set(SCENES)


def test_pictures_are_small_and_repeatable() -> None:
    async def draw_all() -> list[bytes]:
        return list(await asyncio.gather(*(asyncio.to_thread(draw_scene, name, 0) for name in SCENES)))

    pictures = asyncio.run(draw_all())
    assert max(map(len, pictures)) < 60_000
    assert {Image.open(BytesIO(picture)).size for picture in pictures} == {(1200, 675)}
    assert draw_scene("music", 0) == pictures[0]
