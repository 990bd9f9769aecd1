"""Requests with a session cookie pass Varnish, and their responses are never cached."""

import hashlib

import psycopg
import pytest

from kalends.http.auth import COOKIE
from tests.varnish.conftest import NS, Stage

TOKEN = "t" * 43
DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 11:00:00"}


@pytest.fixture(scope="module")
def session_headers(stage: Stage) -> dict[str, str]:
    """Return the headers of a page of the console in which an editor is signed in."""
    with psycopg.connect(stage.database_url) as connection:
        connection.execute(
            "INSERT INTO sessions SELECT site_id, %s, id, now(), now(), now(), '127.0.0.1', '' FROM users "
            "WHERE login = 'editor'",
            [hashlib.sha256(TOKEN.encode()).digest()],
        )
    return {"cookie": f"theme=dark; {COOKIE}={TOKEN}", "sec-fetch-site": "same-origin"}


def test_response_for_a_session_is_never_cached(stage: Stage, session_headers: dict[str, str]) -> None:
    draft = stage.write("POST", "/events", title="Secret draft", status="draft", **DATES)
    path = f"{NS}/events/{draft['id']}"
    for _ in range(3):
        own = stage.public.get(path, headers=session_headers)
        assert (own.status_code, own.headers["x-cache"]) == (200, "miss")
        assert own.headers["cache-control"] == "private, no-store"
        public = stage.public.get(path)
        assert (public.status_code, "Secret" in public.text) == (403, False)


def test_cached_response_is_not_used_for_a_session(stage: Stage, session_headers: dict[str, str]) -> None:
    stage.warm_cache("/venues")
    own = stage.public.get(f"{NS}/venues", headers=session_headers)
    assert (own.headers["x-cache"], own.headers["cache-control"]) == ("miss", "private, no-store")
    assert stage.is_hit("/venues")
    # Other cookies do not prevent caching.
    assert stage.is_hit("/venues", headers={"cookie": "theme=dark; kalends=1"})


def test_console_is_never_cached(stage: Stage, session_headers: dict[str, str]) -> None:
    for path, headers in (("/console/sign-in", {}), ("/console/account", session_headers)):
        for _ in range(2):
            response = stage.public.get(path, headers=headers)
            assert (response.status_code, response.headers["x-cache"]) == (200, "miss")
            assert response.headers["cache-control"] == "private, no-store"
    assert stage.public.get("/console/account").status_code == 303
