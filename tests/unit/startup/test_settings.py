"""Settings from the environment: unknown names are rejected."""

import re
import subprocess
from pathlib import Path

import pytest

from kalends.settings import NOT_SETTINGS, InvalidSettings, Settings, find_unknown, read_settings
from tests.lifecycle.processes import run_command

ROOT = Path(__file__).resolve().parents[3]


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
        if name not in ("CHANGELOG.md", "tests/unit/startup/test_settings.py")
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


DIRECTORY = {"directory_url": "postgresql:///directory"}


def test_cells_are_names_with_urls() -> None:
    cells = "a=postgresql://kalends:p,w@one,two:5433/a?x=1, b-2=postgres:///b"
    settings = read_settings(**DIRECTORY, cells=cells, cell_queues="b-2=postgresql://q@b/b,a=postgresql://q@a/a")
    assert settings.cells == {"a": "postgresql://kalends:p,w@one,two:5433/a?x=1", "b-2": "postgres:///b"}
    member = settings.for_cell("a")
    assert (member.database_url, member.owner_url, member.queue_url) == (
        settings.cells["a"],
        settings.cells["a"],
        "postgresql://q@a/a",
    )
    assert (member.directory_url, member.cells) == ("", {})
    assert list(settings.members) == ["a", "b-2"]
    assert list(read_settings().members) == [""]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (DIRECTORY, "KALENDS_CELLS={}: is required if KALENDS_DIRECTORY_URL is set."),
        ({"cells": "a=postgresql:///a"}, "needs KALENDS_DIRECTORY_URL."),
        ({**DIRECTORY, "cells": "A=postgresql:///a"}, "each entry must be NAME=URL"),
        ({**DIRECTORY, "cells": "postgresql:///a"}, "each entry must be NAME=URL"),
        ({**DIRECTORY, "cells": f"{'a' * 32}=postgresql:///a"}, "each entry must be NAME=URL"),
        ({**DIRECTORY, "cells": "a=postgresql:///a,a=postgresql:///b"}, "has the name a twice."),
        ({**DIRECTORY, "cells": "a=postgresql:///a,b=postgresql:///a"}, "has the same URL twice."),
        ({**DIRECTORY, "cells": "a=mysql://a"}, "the URL of a must begin with postgresql://."),
        (
            {**DIRECTORY, "cells": "a=postgresql:///a", "cell_owners": "b=postgresql:///a"},
            "must have the same names as KALENDS_CELLS.",
        ),
        ({"directory_url": "mysql://a", "cells": "a=postgresql:///a"}, "KALENDS_DIRECTORY_URL"),
        (
            {**DIRECTORY, "cells": "a=postgresql:///a", "replica_url": "postgresql:///r"},
            "cannot be used together with KALENDS_REPLICA_URL.",
        ),
    ],
)
def test_invalid_cells_are_explained(values: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(message)):
        read_settings(**values)


def test_passwords_of_cells_are_not_shown() -> None:
    cells = "a=postgresql://kalends:s3cret@127.0.0.1:1/a,B=postgresql://kalends:an0ther@127.0.0.1:1/b"
    settings = {"KALENDS_DIRECTORY_URL": "postgresql://kalends:th1rd@127.0.0.1:1/d", "KALENDS_CELLS": cells}
    for arguments in (["cell", "list"], ["site", "list"]):
        result = run_command("postgresql:///x", *arguments, settings=settings)
        assert result.exit_code == 1
        assert not any(secret in result.output for secret in ("s3cret", "an0ther", "th1rd"))
