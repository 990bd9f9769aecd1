"""The optimized Python of Debian 13, in a directory made by mmdebstrap, with the packages of this environment.

An interpreter that was built without optimization makes all figures a quarter too high. The compiled packages of the
virtual environment fit, because both interpreters are CPython 3.13.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT / ".local/trixie"
VERSION = (3, 13)
PACKAGES = "python3.13,ca-certificates"
# Mounts what a server needs at the same paths. They belong to the namespace of this process and end with it.
ENTER = 'for path in /proc /dev /tmp "$1"; do mkdir -p "$0$path"; mount --rbind "$path" "$0$path"; done; '
ENTER += 'root=$0 project=$1; shift; exec chroot "$root" env --chdir="$project" "$@"'


class NoOptimizedPython(Exception):
    """Explains why there is no optimized interpreter."""


def find_optimized_python() -> tuple[str, ...]:
    """Return the command that runs Debian's Python; install it first if necessary."""
    if sys.version_info[:2] != VERSION:
        raise NoOptimizedPython("The virtual environment has another Python than Debian 13, which has 3.13.")
    if shutil.which("mmdebstrap") is None:
        raise NoOptimizedPython("mmdebstrap is not installed.")
    if not ROOT.exists():
        unfinished = ROOT.with_name("trixie-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _run("mmdebstrap", "--quiet", "--variant=apt", f"--include={PACKAGES}", "trixie", str(unfinished))
        unfinished.rename(ROOT)
    search_path = f"PYTHONPATH={PROJECT}:{sysconfig.get_path('purelib')}"
    return ("unshare", "--mount", "sh", "-ec", ENTER, str(ROOT), str(PROJECT), search_path, "python3.13")


def describe_python(python: tuple[str, ...]) -> str:
    """Return an interpreter's version and the options it was compiled with."""
    program = "import sys, sysconfig; print(sys.version.split()[0], sysconfig.get_config_var('PY_CFLAGS'))"
    version, _, flags = _run(*python, "-c", program).strip().partition(" ")
    options = [option for option in ("-O2", "-O3", "-flto", "-fprofile-use") if option in flags]
    return f"CPython {version} ({' '.join(options)})"


def _run(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603  Our own command.
