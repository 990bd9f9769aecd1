"""Unknown parameters add no cache entries, and neither does a malformed host."""

import re
from pathlib import Path

import httpx
import pytest

from kalends.api.routes import EXTENSION, INTERFACE
from kalends.http.request_head import COMMON_NAMES
from kalends.website.routes import ROUTES
from tests.varnish.conftest import NS, Stage

VCL = Path("deploy/varnish/default.vcl")


def test_vcl_lists_all_server_parameters() -> None:
    match = re.search(r"\(\?!\(\?:([a-z_|]+)\)", VCL.read_text())
    assert match is not None
    routes = [*INTERFACE.routes, *EXTENSION.routes, *ROUTES]
    known = {name for route in routes for name in route.known_names}
    assert set(match[1].split("|")) == known | COMMON_NAMES | {"lang", "namespace", "password"}


@pytest.mark.parametrize(
    "query",
    ["?z=1", "?utm_source=news&z", "?z=1&per_page=5&y=2", "?per_page=5&z=%20", "?per_page=5&&", "?&per_page=5&z=1"],
)
def test_meaningless_parameters_share_cache_entry(stage: Stage, query: str) -> None:
    plain = "?per_page=5" if "per_page" in query else ""
    stage.warm_cache(f"/venues{plain}")
    assert stage.is_hit(f"/venues{query}")
    assert stage.get(f"/venues{query}").json() == stage.get(f"/venues{plain}").json()


@pytest.mark.parametrize("query", ["?include[]=1", "?include%5B%5D=1", "?_fields=total", "?lang=de", "?search=z=1"])
def test_meaningful_parameters_have_own_cache_entries(stage: Stage, query: str) -> None:
    stage.warm_cache("/venues")
    response = stage.public.get(f"{NS}/venues{query}")
    assert response.headers["x-cache"] == "miss"


@pytest.mark.parametrize("host", ["a.test:80@evil.example", "a.test:999999", "a.test/x", "a b", "a" * 256])
def test_malformed_host_is_rejected_and_not_cached(stage: Stage, host: str) -> None:
    for _ in range(2):
        response = httpx.get(f"{stage.varnish.address}{NS}/venues", headers={"Host": host}, trust_env=False)
        assert (response.status_code, response.headers.get("x-cache", "miss")) == (400, "miss")
        assert "evil" not in response.text


def test_strict_request_reaches_the_server_with_all_parameters(stage: Stage) -> None:
    stage.warm_cache("/venues")
    assert "x-kalends-ignored-params" not in stage.get("/venues?foo=1").headers
    strict = stage.public.get(f"{NS}/venues?foo=1&strict=1")
    assert (strict.status_code, strict.headers["x-kalends-ignored-params"]) == (400, "foo")
    assert stage.public.get(f"{NS}/venues?strict=1").status_code == 200
