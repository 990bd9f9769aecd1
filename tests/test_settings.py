"""Settings from the environment: unknown names are rejected."""

import re
import subprocess
from pathlib import Path

import pytest

from kalends.settings import NOT_SETTINGS, InvalidSettings, Settings, find_unknown, read_settings
from tests.lifecycle.processes import run_command

ROOT = Path(__file__).resolve().parent.parent


def test_unknown_variable_is_rejected_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KALENDS_POOL_SISE", "3")
    with pytest.raises(
        InvalidSettings, match=r"KALENDS_POOL_SISE is not a setting\. Did you mean KALENDS_POOL_SIZE\?"
    ):
        read_settings()


def test_unknown_setting_is_refused_by_every_command() -> None:
    result = run_command("postgresql:///x", "site", "list", settings={"KALENDS_POL_SIZE": "3"})
    message = "KALENDS_POL_SIZE is not a setting. Did you mean KALENDS_POOL_SIZE?\n"
    assert (result.exit_code, result.stderr) == (1, message)


def test_variables_of_tests_and_other_programs_are_accepted() -> None:
    assert find_unknown(["KALENDS_SOAK", "KALENDS_POOL_SIZE", "PATH"]) == []


def test_every_variable_in_the_repository_is_known() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "justfile", ".ci", "deploy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    known = {f"KALENDS_{name.upper()}" for name in Settings.model_fields} | NOT_SETTINGS
    unknown = {
        (name, word)
        for name in listing.stdout.split()
        if name not in ("CHANGELOG.md", "tests/test_settings.py")
        for word in re.findall(r"\bKALENDS_[A-Z0-9_]*[A-Z0-9]\b(?!\*)", (ROOT / name).read_text(encoding="utf-8"))
    }
    assert {(name, word) for name, word in unknown if word not in known} == set()


@pytest.mark.parametrize("url", ["http://user:s3cret@mail.example", "smtp:mail.example?s3cret", "s3cret"])
def test_invalid_smtp_url_is_rejected_without_showing_its_password(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"^KALENDS_SMTP_URL: must be empty or an smtp:// or smtps:// URL\.$"):
        read_settings(smtp_url=url)


def test_sender_of_emails_is_an_address() -> None:
    assert read_settings(email_from="calendar@example.org").email_from == "calendar@example.org"
    with pytest.raises(InvalidSettings, match="KALENDS_EMAIL_FROM"):
        read_settings(email_from="Calendar <calendar@example.org>")
