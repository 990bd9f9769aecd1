"""Each host shows its own site and nothing of another's."""

from kalends.store import sites
from tests.api.conftest import StartApp
from tests.api.running_app import HOST

PATHS = (
    "/",
    "/events/month/2031-03/",
    "/events/list/",
    "/events/search/",
    "/events.ics",
    "/events.json",
    "/sitemap/0.xml",
)


def test_pages_and_feeds_are_isolated_per_site(start_app: StartApp) -> None:
    app = start_app()
    app.caller("editor").create(
        "events", title="Ours alone", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00", slug="ours-alone"
    )
    app.run(sites.add_host(app.database_url, HOST, 1))
    app.run(sites.add_site(app.database_url, "other.test", "Other town"))
    for path in (*PATHS[1:], "/event/ours-alone/"):
        own = app.raw("GET", path)
        other = app.raw("GET", path, headers=[("host", "other.test")])
        unknown = app.raw("GET", path, headers=[("host", "nobody.test")])
        assert own[0] == 200
        assert b"alone" in own[2].lower(), path
        assert b"alone" not in other[2].lower(), path
        assert unknown[0] == 404, path
    page = app.raw("GET", "/", headers=[("host", "other.test")])[2]
    assert b"Other town" in page
