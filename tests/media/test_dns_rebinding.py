"""A name that means another machine at each look-up, with a real name server and the resolver of the system."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.media.rebinding_server import NAME_SERVER

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare, to replace /etc/resolv.conf"
)
def test_dns_rebinding_is_blocked(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
    commands = [f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf")]
    command = " && ".join([*commands, f"exec {sys.executable} -m tests.media.rebinding_server"])
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", command], check=False, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout)
    # Each fetch looked its name up once per hop, and went where it was judged, or nowhere.
    assert outcome == {
        "status": 200,
        "refused": True,
        "redirected": True,
        "reached": {"permitted": 1, "redirecting": 1},
        "names": 5,
    }
