"""The media library as tests use it: through the interface, with jobs done at once in this process."""

from pathlib import Path
from typing import Any

import httpx

from kalends.bootstrap import open_library
from kalends.core.clock import utc_now
from kalends.operations.media import maintenance
from kalends.operations.media.library import Library
from kalends.settings import read_settings
from kalends.store.database import Database, Options
from tests.api.running_app import Caller, Interface, done
from tests.media.image_fixtures import EXTENSION, picture


def send(caller: Caller, content: bytes, name: str = "picture.jpg", **fields: Any) -> httpx.Response:
    form = {key: str(value) for key, value in fields.items()}
    return caller.request("POST", f"{EXTENSION}/media", files={"file": (name, content)}, data=form)


def add(caller: Caller, content: bytes | None = None, name: str = "picture.jpg", **fields: Any) -> dict[str, Any]:
    return done(send(caller, picture() if content is None else content, name, **fields), 201)


def read(caller: Caller, image: dict[str, Any]) -> dict[str, Any]:
    return done(caller.get(f"{EXTENSION}/media/{image['id']}"))


def root_of(interface: Interface) -> Path:
    return Path(interface._directory.name) / "media"


def library_of(interface: Interface) -> Library:
    return open_library(read_settings(media_dir=str(root_of(interface))))


def make_sizes(interface: Interface, image: dict[str, Any]) -> bool:
    """What the worker does."""

    async def work() -> bool:
        database = await Database.open(Options(url=interface.database_url))
        try:
            return await maintenance.make_sizes(database, library_of(interface), utc_now(), 1, image["id"])
        finally:
            await database.close()

    return interface.run(work())


def jobs_of(interface: Interface, image: dict[str, Any]) -> int:
    rows = interface.sql(
        "SELECT count(*) FROM procrastinate_jobs "
        "WHERE task_name = 'make_sizes' AND (args ->> 'media_id')::bigint = $1",
        image["id"],
    )
    found: int = rows[0][0]
    return found


def file_of(interface: Interface, url: str) -> bytes:
    return (root_of(interface) / url.partition("/media/")[2]).read_bytes()
