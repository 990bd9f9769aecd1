"""The command line itself: version, completion, descriptions of all arguments, settings."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kalends import __version__
from kalends.commands import app
from kalends.settings import InvalidSettings, read_settings
from tests.lifecycle.processes import run_command
from tests.servers import make_environment


def list_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for key, inner in getattr(command, "commands", {}).items():
        yield from list_commands(inner, f"{name} {key}")


COMMANDS = dict(list_commands(typer.main.get_command(app), "kalends"))


def test_version_is_printed() -> None:
    result = run_command("postgresql:///x", "--version")
    assert (result.exit_code, result.stdout) == (0, f"Kalends {__version__}\n")


def test_shell_completes_commands() -> None:
    program = Path(sys.executable).parent / "kalends"
    request = {"_KALENDS_COMPLETE": "complete_bash", "COMP_WORDS": "kalends site ex", "COMP_CWORD": "2"}
    environment = make_environment("postgresql:///x", request)
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["export"]
    options = {option for param in COMMANDS["kalends"].params for option in param.opts}
    assert {"--install-completion", "--show-completion", "--version", "--debug"} <= options


def test_every_command_and_argument_is_described() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        for param in command.params:
            assert param.help, f"{name} {param.name}"
            assert param.help[0].isupper(), f"{name} {param.name}"
            assert param.help.endswith("."), f"{name} {param.name}"


@pytest.mark.parametrize("port", ["0", "99999", "-1", "web"])
def test_port_that_does_not_exist_is_a_usage_error(port: str) -> None:
    result = run_command("postgresql:///x", "serve", "--port", port)
    assert result.exit_code == 2
    assert "Invalid value for '--port'" in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("POOL_SIZE", "abc", "must be an integer from 1 to 500"),
        ("POOL_SIZE", "501", "must be an integer from 1 to 500"),
        ("TRASH_DAYS", "0", "must be an integer of at least 1"),
        ("POOL_TIMEOUT", "soon", "must be a number above 0 and at most 60"),
        ("PREPARED_STATEMENTS", "perhaps", "must be true or false"),
        ("LOG_FORMAT", "xml", "must be json or plain"),
        ("TRUSTED_PROXIES", "10.0.0.1, nowhere", "each entry must be an IP address or a network"),
        ("CELLS", "a=postgresql://x/a", "needs KALENDS_DIRECTORY_URL"),
    ],
)
def test_invalid_setting_has_its_own_sentence(
    name: str, value: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KALENDS_{name}", value)
    with pytest.raises(InvalidSettings) as raised:
        read_settings()
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(f"KALENDS_{name}={value}: ")
    assert rule in str(raised.value)
    assert str(raised.value).endswith(".")
