"""Site settings, without script: saving, errors at their fields, the preview and the notes on contrast."""

import re
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from kalends.accounts.operations.sign_in_methods import hash_token
from kalends.calendar.operations import site_options
from kalends.store.database import Transaction
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import PASSWORD, ConsoleClient, Page, set_passwords

SETTINGS = "/console/settings"
APPEARANCE = f"{SETTINGS}/appearance"


@pytest.fixture(scope="module")
def administrator(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "administrator")


def save(client: ConsoleClient, path: str, **changes: Any) -> Page:
    """Submit the form of a page with changes, and return the page that follows."""
    response = client.post(path, client.page(path).form(**{"file": None, **changes}))
    if response.status_code == 303:
        assert response.headers["location"] == f"{path}?notice=saved"
        return client.page(response.headers["location"])
    assert response.status_code in (400, 409), response.text[:500]
    return Page.parse(response.text)


def read(app: RunningApp) -> dict[str, str]:
    return app.run_operation(site_options.read_settings)


def read_revision(app: RunningApp) -> int:
    async def find(tx: Transaction) -> int:
        return tx.site.revision

    return app.run_operation(find)


def test_all_settings_can_be_changed(app: RunningApp, administrator: ConsoleClient) -> None:
    general = {
        "name": "Town of Söll",
        "timezone": "Europe/Vienna",
        "language": "en-GB",
        "per_page": "25",
        "start_page": "calendar",
        "default_view": "list",
        "first_weekday": "sunday",
        "currency_symbol": "£",
        "currency_position": "prefix",
        "currency_code": "GBP",
        "imprint_url": "https://example.org/imprint",
        "privacy_url": "https://example.org/privacy",
        "parent_url": "https://example.org",
        "base_url": f"https://{app.host}",
        "submissions": "true",
        "follow_by_email": "true",
        "reply_to": "office@example.org",
        "mail_footer": "Town hall\nMarket 1",
    }
    appearance = {
        "logo_url": "https://example.org/logo.png",
        "accent": "#7a1b5e",
        "second_accent": "#005500",
        "fonts": "humanist",
        "custom_css": "h1 { color: green }",
    }
    assert {*general, *appearance} == set(site_options.SITE_KEYS)
    before = read_revision(app)
    assert "Saved." in save(administrator, SETTINGS, **general, confirm_base_url="true").text
    assert read_revision(app) == before + 1
    assert "Saved." in save(administrator, APPEARANCE, **appearance).text
    assert read_revision(app) == before + 2
    assert read(app) == {**general, **appearance}
    page = ConsoleClient(app).get("/")
    assert page.status_code == 200
    for part in ("Town of Söll", "https://example.org/imprint", "7a1b5e-005500.humanist.css", "/custom."):
        assert part in page.text
    assert page.headers["content-language"] == "en"


def test_public_form_says_what_is_missing(start_app: StartApp) -> None:
    texts = {"smtp": "KALENDS_SMTP_URL", "address": "the site address below is empty"}
    for settings, missing in (
        ({}, {"smtp", "address"}),
        ({"KALENDS_SMTP_URL": "smtp://localhost:1"}, {"address"}),
    ):
        app = start_app(settings)
        set_passwords(app)
        page = ConsoleClient.signed_in(app, "administrator").page(SETTINGS)
        assert {name for name, text in texts.items() if text in page.text} == missing
        assert page.fields["submissions"] == ["false"]
    app.set_site("base_url", f"https://{app.host}")
    assert "The form stays closed" not in ConsoleClient.signed_in(app, "administrator").page(SETTINGS).text


def test_a_new_address_requires_proof(app: RunningApp) -> None:
    """Links for a new password lead to it, so a session that was left open is not enough."""
    client = ConsoleClient.signed_in(app, "administrator")
    form = client.page(SETTINGS).form(base_url="https://elsewhere.example", confirm_base_url="true", name="Proof")
    before = read(app)
    app.sql(
        "UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '16 minutes' WHERE token_hash = $1",
        hash_token(client.token),
    )
    refused = client.post(SETTINGS, form)
    assert (refused.status_code, refused.headers["location"]) == (303, f"/console/confirm?next={SETTINGS}")
    assert read(app) == before
    page = client.page(SETTINGS)
    assert "base_url" not in page.fields
    assert f'href="/console/confirm?next={SETTINGS}"' in page.html
    # Other settings need no proof.
    assert client.post(SETTINGS, page.form(name="Proof")).headers["location"] == f"{SETTINGS}?notice=saved"
    assert client.post("/console/confirm", {"password": PASSWORD, "next": SETTINGS}).status_code == 303
    form = client.page(SETTINGS).form(
        base_url=f"https://{app.host}/new", confirm_base_url="true", name=before["name"]
    )
    assert client.post(SETTINGS, form).status_code == 303
    assert read(app)["base_url"] == f"https://{app.host}/new"
    app.set_site("base_url", before["base_url"])


def test_unchanged_form_changes_nothing(app: RunningApp, administrator: ConsoleClient) -> None:
    before = read_revision(app)
    for path in (SETTINGS, APPEARANCE):
        assert "Saved." in save(administrator, path).text
    assert read_revision(app) == before


@pytest.mark.quick("/console/settings-per_page-51-", "/console/settings/appearance-file-")
@pytest.mark.parametrize(
    ("path", "name", "value", "message"),
    [
        (SETTINGS, "per_page", "51", "must be an integer from 1 to 50."),
        (SETTINGS, "per_page", "9" * 5000, "must be an integer from 1 to 50."),
        (SETTINGS, "timezone", "Europe/Pariss", "Did you mean Europe/Paris?"),
        (SETTINGS, "language", "xx", "must be one of en, de, "),
        (SETTINGS, "default_view", "year", "must be one of month, "),
        (SETTINGS, "start_page", "list", "must be one of front, calendar."),
        (SETTINGS, "first_weekday", "someday", "must be one of monday, "),
        (SETTINGS, "currency_code", "eur", "must be three capital letters, such as EUR."),
        (SETTINGS, "currency_position", "above", "must be prefix or postfix."),
        (SETTINGS, "imprint_url", "javascript:alert(1)", "must be an absolute http or https URL."),
        (SETTINGS, "base_url", "https://elsewhere.example", "Check the box to confirm the new address."),
        (APPEARANCE, "accent", "red", "must be a colour such as #1f6f8b."),
        (APPEARANCE, "second_accent", "#12", "must be a colour such as #1f6f8b."),
        (APPEARANCE, "fonts", "comic", "must be one of serif, "),
        (APPEARANCE, "custom_css", "@import 'x'", "must not contain @import."),
        (APPEARANCE, "custom_css", "a { background: url(//evil.example/x) }", "must not contain the address //evil"),
        (APPEARANCE, "file", "logo.png", "Press “Upload” to use this picture"),
    ],
)
def test_invalid_value_is_explained_at_its_field(
    app: RunningApp, administrator: ConsoleClient, path: str, name: str, value: str, message: str
) -> None:
    before = read(app)
    other = {"name": "Other"} if path == SETTINGS else {"custom_css": "p { color: red }"} if name == "accent" else {}
    page = save(administrator, path, **{**other, name: value})
    assert f'id="{name}-error">' in page.html
    assert message in page.html.partition(f'id="{name}-error">')[2].partition("</span>")[0]
    choices = ("language", "start_page", "default_view", "first_weekday", "currency_position", "fonts")
    if name not in ("file", *choices):
        assert page.fields[name][0] == value
    assert read(app) == before


def test_several_errors_are_shown_at_once(administrator: ConsoleClient) -> None:
    page = save(administrator, SETTINGS, per_page="0", currency_code="x", timezone="Nowhere")
    assert page.html.count('class="field-error"') == 3


def test_change_by_somebody_else_is_noticed(app: RunningApp, administrator: ConsoleClient) -> None:
    form = administrator.page(SETTINGS).form(name="Mine")
    app.set_site("name", "Theirs")
    outdated = administrator.post(SETTINGS, form)
    assert outdated.status_code == 409
    assert "Someone else has changed these settings" in outdated.text
    assert read(app)["name"] == "Theirs"
    page = Page.parse(outdated.text)
    assert page.fields["name"] == ["Mine"]
    assert administrator.post(SETTINGS, page.form()).status_code == 303
    assert read(app)["name"] == "Mine"


def test_preview_never_changes_the_site(app: RunningApp, administrator: ConsoleClient) -> None:
    before, revision = read(app), read_revision(app)
    values = {"accent": "#aa0000", "second_accent": "", "fonts": "rounded", "custom_css": "h1 { color: blue }"}
    for response in (
        administrator.get(f"{SETTINGS}/preview", params=values),
        administrator.post(f"{SETTINGS}/preview", values),
    ):
        assert response.status_code == 200
        assert re.search(r"/assets/site\.[0-9a-f]{12}\.aa0000\.rounded\.css", response.text)
        assert "<style>h1 { color: blue }</style>" in response.text
        assert response.headers["cache-control"] == "private, no-store"
        policy = response.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
        assert re.search(r"style-src 'self' 'sha256-[\w+/=]{44}';", policy)
    assert (read(app), read_revision(app)) == (before, revision)
    public = ConsoleClient(app).get("/")
    assert "aa0000" not in public.text


def test_preview_shows_the_start_page(app: RunningApp, administrator: ConsoleClient) -> None:
    for start_page, kind in (("front", "front-page"), ("calendar", "month-page")):
        app.set_site("start_page", start_page)
        app.set_site("default_view", "month")
        assert f'class="container {kind}"' in administrator.post(f"{SETTINGS}/preview", {"fonts": "sans"}).text


def test_preview_ignores_invalid_values(administrator: ConsoleClient) -> None:
    values = {"accent": "red;}", "fonts": "x", "custom_css": "</style><script>alert(1)</script>", "logo_url": "x:y"}
    response = administrator.post(f"{SETTINGS}/preview", values)
    assert response.status_code == 200
    assert "alert(1)" not in response.text
    assert "x:y" not in response.text


@pytest.mark.parametrize(
    ("colour", "light", "dark"),
    [
        (
            "#ffff00",
            r"On light pages, links will use #\w{6} to stay readable\. .* is 4\.[6-9]:1, your colour’s 1\.1:1\.",
            r"On dark pages, links use your colour\. Its contrast is 13\.\d:1\.",
        ),
        (
            "#000000",
            r"On light pages, links use your colour\. Its contrast is 18\.\d:1\.",
            r"On dark pages, links will use #\w{6} to stay readable\. .* is 4\.[6-9]:1, your colour’s 1\.4:1\.",
        ),
    ],
)
def test_contrast_is_explained(administrator: ConsoleClient, colour: str, light: str, dark: str) -> None:
    rows = administrator.get(f"{SETTINGS}/contrast", params={"accent": colour}).json()["accent"]
    assert [bool(re.fullmatch(*pair)) for pair in zip((light, dark), (row["text"] for row in rows), strict=True)] == [
        True,
        True,
    ], rows
    assert [row["colour"] == colour for row in rows] == [colour == "#000000", colour == "#ffff00"]
    page = save(administrator, APPEARANCE, accent=colour, fonts="x")
    assert all(row["text"] in page.text for row in rows)


def test_uploaded_logo_is_selected_but_not_saved(app: RunningApp, administrator: ConsoleClient) -> None:
    before = read(app)
    with BytesIO() as content:
        Image.new("RGB", (64, 64), "#336699").save(content, "PNG")
        body = content.getvalue()
    form = administrator.page(APPEARANCE).form(accent="#123456", file=None)
    shown = administrator.request(
        "POST", f"{SETTINGS}/appearance/logo", data=form, files={"file": ("logo.png", body)}
    )
    assert shown.status_code == 200, shown.text[:500]
    page = Page.parse(shown.text)
    assert page.fields["accent"] == ["#123456"]
    [logo] = page.fields["logo_url"]
    assert re.fullmatch(r"/media/\d+/\w\w/\w+\.png", logo)
    assert "These values aren’t saved yet." in page.text
    assert read(app) == before
    assert administrator.post(APPEARANCE, page.form(file=None)).status_code == 303
    assert (read(app)["logo_url"], read(app)["accent"]) == (logo, "#123456")
    for content, message in ((b"nonsense", "is not a supported image type"), (b"", "Choose a file first.")):
        files = {"file": ("logo.png" if content else "", content)}
        refused = administrator.request("POST", f"{SETTINGS}/appearance/logo", data=page.form(file=None), files=files)
        assert (refused.status_code, message in refused.text) == (400, True)
