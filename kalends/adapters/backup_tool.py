"""The backups that pgBackRest knows on this machine."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# Seconds for the program to read its repository.
TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Backup:
    """The newest backup of a stanza; `finished` is None if there is none."""

    stanza: str
    status: str
    label: str = ""
    kind: str = ""  # full, diff or incr
    finished: datetime | None = None


class BackupToolFailed(Exception):
    """The program is installed but cannot list its backups; the message is its own."""


def list_newest_backups(timeout: float = TIMEOUT) -> list[Backup] | None:
    """Return the newest backup of each stanza; None if pgBackRest is not installed."""
    program = shutil.which("pgbackrest")
    if program is None:
        return None
    try:
        command = [program, "info", "--output=json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout)  # noqa: S603
    except subprocess.SubprocessError as error:
        raise BackupToolFailed(getattr(error, "stderr", "") or str(error)) from error
    return [_read_stanza(stanza) for stanza in json.loads(done.stdout)]


def _read_stanza(stanza: dict[str, Any]) -> Backup:
    status = stanza.get("status", {}).get("message", "")
    backups = stanza.get("backup") or []
    if not backups:
        return Backup(stanza["name"], status)
    newest = max(backups, key=lambda backup: backup["timestamp"]["stop"])
    finished = datetime.fromtimestamp(newest["timestamp"]["stop"], UTC)
    return Backup(stanza["name"], status, newest["label"], newest["type"], finished)
