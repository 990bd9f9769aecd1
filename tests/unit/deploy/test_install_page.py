"""The commands of docs/how-to/install.md that `just install-test` runs are found, valid, and name existing files."""

import re
import subprocess

from tests.docs.page_commands import PROJECT
from tools import install_test


def test_commands_of_both_sections_are_found() -> None:
    scripts = install_test.read_scripts(install_test.PAGE.read_text())
    assert [script.split()[0] for script in scripts[:2]] == ["apt-get", "tar"]
    assert scripts[-1].rstrip().endswith("https://calendar.example.org/readyz")
    # Other ways of installation are not part of it.
    assert not [script for script in scripts if re.search(r"docker|podman|kubectl", script)]


def test_commands_are_valid_and_name_existing_files() -> None:
    for script in install_test.read_scripts(install_test.PAGE.read_text()):
        subprocess.run(["bash", "-n", "-c", script], check=True)
        for path in re.findall(r"kalends-\*/(\S+)", script):
            assert list(PROJECT.glob(path)), path
