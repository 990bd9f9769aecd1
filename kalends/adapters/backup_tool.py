"""The newest pgBackRest backups on this machine."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# Seconds to wait for pgBackRest to read its repository.
TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Backup:
    """A stanza's newest backup. If `finished` is None, the stanza has no backup."""

    stanza: str
    status: str
    label: str = ""
    kind: str = ""  # full, diff or incr
    finished: datetime | None = None


class BackupToolFailed(Exception):
    """Raised if pgBackRest is installed but cannot list its backups; the message is its output."""


def list_newest_backups(timeout: float = TIMEOUT) -> list[Backup] | None:
    """Return each stanza's newest backup, or None if pgBackRest is not installed."""
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
