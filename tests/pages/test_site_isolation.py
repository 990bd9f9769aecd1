"""Each host shows its own site and nothing of another's."""

from tests.api.conftest import StartApp

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
    app, other = start_app(), start_app()
    other.set_site("name", "Other town")
    app.caller("editor").create(
        "events", title="Ours alone", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00", slug="ours-alone"
    )
    for path in (*PATHS[1:], "/event/ours-alone/"):
        own = app.raw("GET", path)
        foreign = other.raw("GET", path)
        unknown = app.raw("GET", path, headers=[("host", "nobody.test")])
        assert own[0] == 200
        assert b"alone" in own[2].lower(), path
        assert b"alone" not in foreign[2].lower(), path
        assert unknown[0] == 404, path
    assert b"Other town" in other.raw("GET", "/")[2]
