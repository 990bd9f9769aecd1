"""Each host shows its own site and nothing of another's."""

from kalends.store import sites
from tests.api.conftest import Start
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


def test_pages_and_feeds_are_isolated_per_site(fresh: Start) -> None:
    interface = fresh()
    interface.caller("editor").create(
        "events", title="Ours alone", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00", slug="ours-alone"
    )
    interface.run(sites.add_host(interface.database_url, HOST, 1))
    interface.run(sites.add_site(interface.database_url, "other.test", "Other town"))
    for path in (*PATHS[1:], "/event/ours-alone/"):
        ours = interface.raw("GET", path)
        theirs = interface.raw("GET", path, headers=[("host", "other.test")])
        nobodys = interface.raw("GET", path, headers=[("host", "nobody.test")])
        assert ours[0] == 200
        assert b"alone" in ours[2].lower(), path
        assert b"alone" not in theirs[2].lower(), path
        assert nobodys[0] == 404, path
    page = interface.raw("GET", "/", headers=[("host", "other.test")])[2]
    assert b"Other town" in page
