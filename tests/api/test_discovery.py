"""The discovery document at the REST roots, and /openapi.json."""

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json

WITH_ALIAS = {"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"}


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    app = start_app_for_module(WITH_ALIAS)
    app.set_site("name", "Town calendar")
    app.set_site("timezone", "Asia/Kolkata")
    return app


@pytest.mark.parametrize(
    ("root", "namespaces"),
    [("/api", ["calendar/events/v1", "kalends/v1"]), ("/wp-json", ["tribe/events/v1", "wp/v2"])],
)
def test_root_describes_the_site_and_its_namespaces(anonymous: Caller, root: str, namespaces: list[str]) -> None:
    response = anonymous.get(f"/{root}/")
    document = expect_json(response)
    routes = document.pop("routes")
    assert document == {
        "name": "Town calendar",
        "description": "",
        "url": anonymous.app.base_url,
        "home": anonymous.app.base_url,
        "gmt_offset": 5.5,
        "timezone_string": "Asia/Kolkata",
        "page_for_posts": 0,
        "page_on_front": 0,
        "show_on_front": "posts",
        "namespaces": namespaces,
        "authentication": {"application-passwords": {"endpoints": {}}},
        "site_logo": 0,
        "site_icon": 0,
        "site_icon_url": "",
        "_links": {"help": [{"href": f"{anonymous.app.base_url}/docs"}]},
    }
    for namespace in namespaces:
        index = expect_json(anonymous.get(f"/{root}/{namespace}"))
        assert routes.items() >= index["routes"].items()
    prefixes = tuple(f"/{name}" for name in namespaces)
    assert [path for path in routes if not path.startswith(prefixes)] == ["/"]
    assert response.headers["allow"] == "GET"
    assert response.headers["link"] == f'<{anonymous.app.base_url}{root}/>; rel="https://api.w.org/"'


def test_all_spellings_of_the_root_are_served(anonymous: Caller) -> None:
    document = anonymous.get("//api/").json()
    assert anonymous.get("//api").json() == document
    assert anonymous.get("//API/").json() == document
    assert anonymous.request("OPTIONS", "//api/").json() == document
    assert anonymous.request("HEAD", "//api/").status_code == 200
    assert anonymous.get("//api/?_fields=name,namespaces").json() == {
        "name": "Town calendar",
        "namespaces": ["calendar/events/v1", "kalends/v1"],
    }
    assert_error(anonymous.post("//api/", {}), 405, "rest_method_not_allowed")
    assert anonymous.get("//api/nothing").status_code == 404
    assert anonymous.get("//api/doc").status_code == 404


def test_link_of_a_response_leads_to_the_document(anonymous: Caller) -> None:
    link = anonymous.get("/events").headers["link"]
    address = link.partition(">")[0].removeprefix("<")
    assert expect_json(anonymous.get(address))["name"] == "Town calendar"


def test_fixed_offset_has_no_name(app: RunningApp, anonymous: Caller) -> None:
    app.set_site("timezone", "UTC-3")
    document = expect_json(anonymous.get("//api/"))
    assert (document["gmt_offset"], document["timezone_string"]) == (-3, "")


def test_openapi_json_redirects_to_the_document(anonymous: Caller) -> None:
    response = anonymous.get("//openapi.json")
    assert (response.status_code, response.headers["location"]) == (302, "/api/calendar/events/v1/doc")
    assert expect_json(anonymous.get(f"/{response.headers['location']}"))["openapi"] == "3.1.0"
    assert_error(anonymous.post("//openapi.json", {}), 405, "rest_method_not_allowed")
