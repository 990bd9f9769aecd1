"""A short run of `just schemathesis`: every operation responds as /doc describes."""

import subprocess
import sys

import pytest


@pytest.mark.process
def test_server_conforms_to_openapi_document() -> None:
    command = [sys.executable, "-m", "tools.fuzz", "--small"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
