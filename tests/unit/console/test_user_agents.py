"""Names of browsers and systems from the User-Agent header."""

import pytest

from kalends.accounts.console.account_page import describe_user_agent

WINDOWS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
)
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.6 Safari/605.1.15"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) CriOS/141.0 Mobile/15E148 Safari/604.1"
ANDROID = "Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0"


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [
        (WINDOWS, ("Chrome", "Windows")),
        (f"{WINDOWS} Edg/141.0.0.0", ("Edge", "Windows")),
        (MAC, ("Safari", "macOS")),
        (PHONE, ("Chrome", "iPhone")),
        (ANDROID, ("Firefox", "Android")),
        ("curl/8.5", ("", "")),
        ("", ("", "")),
    ],
)
def test_browser_and_system(user_agent: str, expected: tuple[str, str]) -> None:
    assert describe_user_agent(user_agent) == expected
