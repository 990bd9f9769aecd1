"""Helpers for sandboxed programs: read the job, set the limits, write the result.

This module imports only a few standard library modules, because a new process starts for each file.
"""

import json
import os
import resource
import sys
from contextlib import suppress
from typing import Any, NoReturn

MEGABYTE = 1024 * 1024


def read_job() -> dict[str, Any]:
    """Read the job from standard input, then limit this process and lower its priority."""
    job: dict[str, Any] = json.load(sys.stdin)
    limits = job["limits"]
    memory, output = limits["megabytes"] * MEGABYTE, limits["file_megabytes"] * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_seconds"], limits["cpu_seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(limits["niceness"])
    # With autogroup scheduling, the session's priority counts, and this process runs in a separate session.
    with suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:  # noqa: PTH123
        group.write(str(limits["niceness"]))
    return job


def finish(result: bytes) -> NoReturn:
    """Write the result to standard output and exit immediately, because the libraries need no cleanup."""
    with open(1, "wb", closefd=False) as output:
        output.write(result)
    os._exit(0)
