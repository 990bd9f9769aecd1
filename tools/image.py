"""Builds the container image without Docker: a trimmed Debian, the locked dependencies and the wheel.

mmdebstrap makes the base, which is kept in `.local/image` for later builds; buildah adds the environment and the
configuration of the last stage of `Dockerfile`, and writes an OCI archive. After a first build, and as long as uv has
the dependencies in its cache, no network is needed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from kalends import __version__
from tools.dist import LOCKED

PROJECT: Final = Path(__file__).resolve().parent.parent
LOCAL: Final = PROJECT / ".local" / "image"
ARCHIVE: Final = LOCAL / f"kalends-{__version__}.tar"
NAME: Final = f"kalends:{__version__}"
BASE_IMAGE: Final = "localhost/kalends-base"
MAX_ARCHIVE_BYTES: Final = 90_000_000
PYTHON: Final = "3.13"
ENVIRONMENT: Final = "/opt/kalends"
SITE_PACKAGES: Final = f"{ENVIRONMENT}/lib/python{PYTHON}/site-packages"

# Modules that are imported once during the build. This compiles them and their dependencies: compiled modules cannot
# be written later to a read-only file system, and compiling all dependencies would make the image too large.
COMPILED: Final = (
    "alembic.command",
    "granian.server",
    "kalends.media.adapters.image_worker_main",
    "kalends.imports.adapters.import_worker_main",
    "kalends.asgi",
    "kalends.commands",
    "kalends.worker",
)

# Everything that neither Python nor a shell in the container needs. The list of packages, var/lib/dpkg/status, stays:
# scanners for vulnerabilities read it.
UNUSED: Final = (
    "etc/cron* etc/dpkg etc/logrotate.d etc/systemd etc/*-",
    "usr/bin/*dpkg* usr/bin/deb* usr/bin/perl* usr/sbin/*dpkg* usr/lib/dpkg usr/share/dpkg usr/share/debconf",
    "usr/lib/*/perl-base usr/share/perl5 usr/share/perl",
    "usr/lib/*/gconv usr/lib/systemd usr/lib/udev",
    "usr/share/bash-completion usr/share/bug usr/share/common-licenses usr/share/doc-base usr/share/gcc",
    "usr/share/info usr/share/lintian usr/share/locale usr/share/man usr/share/menu usr/share/pixmaps",
    "usr/share/applications usr/share/polkit-1 usr/share/zoneinfo",
    f"usr/lib/python{PYTHON}/test usr/lib/python{PYTHON}/pydoc_data usr/lib/python{PYTHON}/ensurepip",
    "var/cache/* var/lib/apt var/lib/dpkg/info var/lib/dpkg/*-old var/lib/pam var/lib/systemd var/log/*",
)
# Licences stay; changelogs and the like do not.
DOCUMENTATION: Final = "find usr/share/doc ! -type d ! -name copyright -delete"


class ImageError(Exception):
    """Explain why the image cannot be built or does not work."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh-base", action="store_true", help="download Debian's packages again")
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        size = build(fresh_base=arguments.fresh_base)
    except ImageError as error:
        print(f"No image: {error}", file=sys.stderr)
        return 1
    print(f"{ARCHIVE.relative_to(PROJECT)}: {size / 1e6:.1f} MB in {time.monotonic() - started:.0f} s")
    return 0


def build(*, fresh_base: bool) -> int:
    """Write the OCI archive and return its size in bytes."""
    for program in ("buildah", "mmdebstrap", "strip", "uv"):
        if shutil.which(program) is None:
            raise ImageError(f"{program} is not installed.")
    LOCAL.mkdir(parents=True, exist_ok=True)
    base = make_base(fresh=fresh_base)
    with tempfile.TemporaryDirectory(prefix="kalends-image-") as text:
        context = Path(text)
        install(context)
        (context / "Containerfile").write_text(write_containerfile((PROJECT / "Dockerfile").read_text()))
        storage = Storage(context / "storage")
        storage.import_base(base)
        storage.build(context, ARCHIVE)
    size = ARCHIVE.stat().st_size
    if size > MAX_ARCHIVE_BYTES:
        raise ImageError(f"the archive has {size / 1e6:.1f} MB, more than {MAX_ARCHIVE_BYTES / 1e6:.0f} MB.")
    return size


def make_base(*, fresh: bool) -> Path:
    """Return an archive of Debian with Python; make it unless there is one for the current list of files."""
    arguments = [
        "--variant=essential",
        "--include=python3,ca-certificates",
        '--aptopt=APT::Install-Recommends "false"',
        f'--customize-hook=cd "$1" && rm -rf {" ".join(UNUSED)} && {DOCUMENTATION}',
        "trixie",
    ]
    digest = hashlib.sha256(json.dumps(arguments).encode()).hexdigest()[:12]
    base = LOCAL / f"base-{digest}.tar"
    if fresh or not base.exists():
        unfinished = base.with_name("unfinished.tar")
        run("mmdebstrap", *arguments, unfinished)
        unfinished.rename(base)
    return base


def install(context: Path) -> None:
    """Install the locked dependencies and the wheel into `site-packages`, for the Python of the base."""
    requirements, wheels, packages = context / "requirements.txt", context / "wheels", context / "site-packages"
    run("uv", "export", "--quiet", *LOCKED, f"--output-file={requirements}")
    run("uv", "build", "--quiet", "--wheel", f"--out-dir={wheels}", PROJECT)
    platform = (f"--python-version={PYTHON}", f"--python-platform={os.uname().machine}-manylinux_2_40")
    # The files are copied, because those in the cache of uv must not be stripped.
    target = ("--quiet", "--link-mode=copy", "--only-binary=:all:", f"--target={packages}", *platform)
    run("uv", "pip", "install", *target, "--require-hashes", "--no-deps", f"--requirement={requirements}")
    run("uv", "pip", "install", *target, "--no-deps", *wheels.glob("*.whl"))
    trim(packages)


def trim(packages: Path) -> None:
    """Remove the tests, the commands and the debugging symbols of dependencies."""
    shutil.rmtree(packages / "bin")
    for folder in [path for path in packages.rglob("test*") if path.is_dir() and path.name in ("test", "tests")]:
        shutil.rmtree(folder)
    modules = [path for path in packages.rglob("*.so") if not path.parent.name.endswith(".libs")]
    run("strip", "--strip-debug", *modules)


def write_containerfile(dockerfile: str) -> str:
    """Return the last stage of Dockerfile on the trimmed base, after a stage that makes the environment."""
    launcher = f"#!{ENVIRONMENT}/bin/python3\\nimport sys\\nfrom kalends.commands import main\\nsys.exit(main())\\n"
    last_stage = re.split(r"(?m)^FROM .*\n", dockerfile)[-1]
    return f"""FROM {BASE_IMAGE} AS build
COPY site-packages {SITE_PACKAGES}
RUN python3 -m venv --without-pip {ENVIRONMENT} \\
    && printf '{launcher}' > {ENVIRONMENT}/bin/kalends \\
    && chmod 0755 {ENVIRONMENT}/bin/kalends \\
    && {ENVIRONMENT}/bin/python3 -m compileall -q {SITE_PACKAGES}/kalends \\
    && {ENVIRONMENT}/bin/python3 -c 'import {", ".join(COMPILED)}'
FROM {BASE_IMAGE}
{last_stage}"""


class Storage:
    """Run buildah without a daemon, with its images and containers in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self._options = ("--root", directory / "root", "--runroot", directory / "run", "--storage-driver=vfs")

    def import_base(self, archive: Path) -> None:
        """Make an image with one layer from an archive of files."""
        container = self.run("from", "scratch")
        self.run("add", "--quiet", container, archive, "/")
        self.run("commit", "--quiet", "--rm", container, BASE_IMAGE)

    def build(self, context: Path, archive: Path) -> None:
        """Build the Containerfile of a directory, and write the image as an OCI archive."""
        self.run("build", "--quiet", "--pull-never", f"--file={context / 'Containerfile'}", f"--tag={NAME}", context)
        archive.unlink(missing_ok=True)  # buildah adds to an existing archive.
        self.run("push", "--quiet", NAME, f"oci-archive:{archive}:{NAME}")

    def run(self, *arguments: str | Path) -> str:
        """Run a command of buildah and return its output."""
        return run("buildah", *self._options, *arguments, isolation="chroot")


def run(*command: str | Path, isolation: str = "") -> str:
    """Run a command and return its output; raise ImageError if it fails."""
    environment = {**os.environ, "BUILDAH_ISOLATION": isolation, "BUILDAH_LAYERS": "false"}
    words = [*map(str, command)]
    done = subprocess.run(words, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ImageError(f"{' '.join(words[:3])} failed with exit code {done.returncode}.")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
