"""The commands of docs/how-to/backup.md."""

import re
import shlex
import textwrap

from tools.release import PROJECT

PAGE = PROJECT / "docs" / "how-to" / "backup.md"
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PGBACKREST = "sudo -u postgres pgbackrest --stanza=kalends "


def read_blocks(heading: str) -> list[str]:
    """Return the blocks of commands of a section."""
    _, _, text = PAGE.read_text().partition(f"## {heading}\n")
    section = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(section)]
    assert blocks, heading
    return blocks


def read_pgbackrest_commands() -> list[list[str]]:
    """Return the arguments of each call of pgBackRest, without the name of the stanza."""
    lines = "".join(read_blocks("Point-in-time recovery with pgBackRest")).splitlines()
    assert all(line.startswith(PGBACKREST) for line in lines)
    return [shlex.split(line.removeprefix(PGBACKREST)) for line in lines]
