"""The media library as tests use it: through the interface, with jobs done at once in this process."""

from pathlib import Path
from typing import Any

import httpx

from kalends.bootstrap import open_library
from kalends.core.times import utc_now
from kalends.media import jobs as media_jobs
from kalends.media.adapters.library import Library
from kalends.settings import read_settings
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.media.image_fixtures import EXTENSION_URL, make_image


def upload_file(caller: Caller, content: bytes, name: str = "picture.jpg", **fields: Any) -> httpx.Response:
    form = {key: str(value) for key, value in fields.items()}
    return caller.request("POST", f"{EXTENSION_URL}/media", files={"file": (name, content)}, data=form)


def create_image(
    caller: Caller, content: bytes | None = None, name: str = "picture.jpg", **fields: Any
) -> dict[str, Any]:
    return expect_json(upload_file(caller, make_image() if content is None else content, name, **fields), 201)


def read_image(caller: Caller, image: dict[str, Any]) -> dict[str, Any]:
    return expect_json(caller.get(f"{EXTENSION_URL}/media/{image['id']}"))


def media_root(app: RunningApp) -> Path:
    return Path(app._directory.name) / "media"


def open_media_library(app: RunningApp) -> Library:
    return open_library(read_settings(media_dir=str(media_root(app))))


def generate_sizes(app: RunningApp, image: dict[str, Any]) -> bool:
    """What the worker does."""
    library = open_media_library(app)
    return app.run_with_database(
        lambda database: media_jobs.make_sizes(database, library, utc_now(), app.site_id, image["id"])
    )


def count_jobs(app: RunningApp, image: dict[str, Any]) -> int:
    return sum(job["args"]["media_id"] == image["id"] for job in app.jobs("make_sizes"))


def read_file(app: RunningApp, url: str) -> bytes:
    return (media_root(app) / url.partition("/media/")[2]).read_bytes()
