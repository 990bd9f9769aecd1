"""Follows docs/how-to/install.md on a bare Debian, from nothing to HTTPS, and prints the time of each step.

mmdebstrap makes a directory with Debian and systemd, which boots in namespaces of its own, without a network. The
commands of the page run inside, in their order. Those that download something (apt-get, pip) use the network of this
machine; all others, and the services that systemd starts, only see their own loopback interface. Then every command
of Kalends runs once, with the settings of the page. Needs root.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tools import dist
from tools.command_runs import RUNS, CommandRun, find_forgotten, write_files
from tools.timing import timed

PAGE: Final = dist.PROJECT / "docs" / "how-to" / "install.md"
SECTIONS: Final = ("## Debian with systemd", "### nginx")
HOME: Final = "root"
# The bundle of certificate authorities of this machine, for networks with an authority of their own.
AUTHORITIES: Final = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
BOOT: Final = """
set -eu
root="$1"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
# systemd must not change the kernel of this machine.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup "$root/sys/fs/cgroup"
for folder in run dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
exec env -i container=kalends PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
"""
# The files that commands use, and how each of them is run.
FILES: Final = "/var/lib/kalends/commands"
COMMAND: Final = """
set -a; . /etc/kalends/kalends.env; {owner} set +a
cd /var/lib/kalends
status=0
printf '%s' {answers} | runuser -u kalends -- {timeout} /opt/kalends/bin/kalends {arguments} 2>&1 || status=$?
echo
echo "$status"
"""
# Show that images are decoded under the restrictions of the units, and that the worker runs jobs.
WORK: Final = """
set -a; . /etc/kalends/kalends.env; set +a
password="$(/opt/kalends/bin/kalends app-password create anna install-test | tail -n 1)"
echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg== \\
    | base64 --decode > dot.png
host=calendar.example.org
request() {
    curl --silent --show-error --fail --cacert "/etc/letsencrypt/live/$host/fullchain.pem" \\
        --resolve "$host:443:127.0.0.1" --user "anna:$password" "$@"
}
request "https://$host/api/kalends/v1/media?_fields=id,width" --form file=@dot.png
echo
# The job leaves the list once the worker has generated the sizes; if that fails, it stays.
for _ in $(seq 120); do
    /opt/kalends/bin/kalends job list | grep --quiet make_sizes || break
    sleep 0.5
done
/opt/kalends/bin/kalends job list | tee jobs
if grep --quiet make_sizes jobs; then exit 1; fi
systemctl is-active kalends-server kalends-worker nginx postgresql
systemd-analyze security --no-pager kalends-server | tail -n 1
"""


class InstallError(Exception):
    """Explain which step failed."""


def main() -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="kalends-install-") as directory:
            root = Path(directory) / "machine"
            timed("mmdebstrap: a bare Debian with systemd", lambda: make_machine(root))
            timed("just dist", lambda: dist.build(root / HOME))
            with boot(root) as machine:
                follow_page(machine)
                timed("every command of `kalends --help`", lambda: run_commands(machine, root))
                print(machine.run(WORK))
                stopped = time.monotonic()
                machine.run("systemctl stop kalends-server kalends-worker")
                print(f"{time.monotonic() - stopped:8.1f} s  stopped both services")
    except InstallError as error:
        print(f"Not installed: {error}", file=sys.stderr)
        return 1
    return 0


def make_machine(root: Path) -> None:
    """Make a directory with the packages of a bare Debian, and the settings of this machine's network."""
    packages = "--include=systemd,systemd-sysv,dbus,ca-certificates"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, "trixie", root], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    shutil.copy(AUTHORITIES, root / "etc" / "authorities.pem")


class Machine:
    """Run commands beside systemd, which is process 1 of the namespaces."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def run(self, script: str, *, uses_network: bool = False) -> str:
        """Run a script as root and return its output."""
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", *([] if uses_network else ["--net"])]
        registries = {name: value for name, value in os.environ.items() if name.startswith("PIP_INDEX")}
        environment = {
            **registries,
            "DEBIAN_FRONTEND": "noninteractive",
            "HOME": f"/{HOME}",
            "LANG": "C.UTF-8",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PIP_CERT": "/etc/authorities.pem",
        }
        nsenter = ["nsenter", f"--target={self._pid}", *namespaces, f"--wdns=/{HOME}"]
        result = subprocess.run(
            [*nsenter, "bash", "-euo", "pipefail", "-c", script],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if result.returncode:
            raise InstallError(f"this script failed:\n{script}\n{result.stdout[-4000:]}")
        return result.stdout.strip()


@contextmanager
def boot(root: Path) -> Iterator[Machine]:
    """Start systemd in a directory; end it and everything in it afterwards."""
    namespaces = ["--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--net", "--propagation=private"]
    process = subprocess.Popen(
        ["unshare", *namespaces, "--kill-child", "sh", "-c", BOOT, "sh", root],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        machine = Machine(find_child(process))
        machine.run("for _ in $(seq 300); do systemctl is-system-running | grep -E 'running|degraded' && break; "
                    "sleep 0.2; done")  # fmt: skip
        yield machine
    finally:
        process.kill()  # unshare ends systemd with it, and the kernel everything else.
        process.wait()


def find_child(process: subprocess.Popen[bytes]) -> int:
    """Wait until systemd runs; return its process ID as this machine sees it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                return int(child)
        time.sleep(0.05)
    raise InstallError("systemd did not start in the directory.")


def follow_page(machine: Machine) -> None:
    """Run the commands of the page, and print the time of each block and of all."""
    started = time.monotonic()
    for script in read_scripts(PAGE.read_text()):
        uses_network = re.search(r"apt-get|bin/pip", script) is not None
        first = script.splitlines()[0]
        output = timed(first, partial(machine.run, script, uses_network=uses_network))
        if script.rstrip().endswith(("readyz", "--invite")):
            print(f"            {output.splitlines()[-1]}")
    print(f"{time.monotonic() - started:8.1f} s  from a bare Debian to HTTPS, by the commands of the page")


def run_commands(machine: Machine, root: Path) -> None:
    """Run every command once as the user of the services; raise if one ends in another way than it should."""
    if forgotten := find_forgotten():
        raise InstallError(f"tools/command_runs.py lacks {', '.join(forgotten)}.")
    write_files(root / FILES.lstrip("/"))
    machine.run(f"chown --recursive kalends:kalends {FILES}")
    problems = [problem for run in RUNS if (problem := run_command(machine, run))]
    if problems:
        raise InstallError("\n".join(problems))


def run_command(machine: Machine, run: CommandRun) -> str:
    """Run a command and return what is wrong with its outcome, or nothing."""
    script = COMMAND.format(
        owner=". /etc/kalends/owner.env;" if run.needs_owner else "",
        answers=shlex.quote(run.answers),
        timeout="timeout --preserve-status 8" if run.runs_on else "",
        arguments=shlex.join(run.split(FILES)),
    )
    output, _, status = machine.run(script).rpartition("\n")
    if int(status) == run.status and run.output in output:
        return ""
    return f"kalends {run.command} {run.arguments} ended with {status}:\n{output[-2000:]}"


def read_scripts(page: str) -> list[str]:
    """Return the blocks of commands of the two sections, in the order of the page."""
    scripts = []
    for heading in SECTIONS:
        level = heading.split(" ")[0]
        section = page.partition(f"\n{heading}\n")[2]
        section = re.split(rf"(?m)^#{{2,{len(level)}}} ", section)[0]
        scripts += re.findall(r"(?ms)^```sh\n(.*?)^```$", section)
    return scripts


if __name__ == "__main__":
    sys.exit(main())
