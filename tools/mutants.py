"""Break one rule at a time and run the quick tests that must notice.

Each patch in `tests/mutants` breaks a rule. Its header names the rule, the area (a folder of tests) and, to save
time, the files there whose tests are about the rule. They run in a temporary worktree with the files of this one.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).parents[1]
# The ID of a failed test without its parameters, which may contain spaces.
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+::\w+)", re.MULTILINE)


def main(quick: str, *names: str) -> None:
    """Try the patches with these names or areas, or all of them. `quick` is the marker expression of quick tests."""
    problems: list[str] = []
    caught: set[str] = set()
    with temporary_worktree() as worktree:
        patches = sorted((worktree / "tests" / "mutants").glob("*.patch"))
        headers = {patch: read_header(patch) for patch in patches}
        chosen = [patch for patch in patches if not names or {patch.stem, headers[patch]["Area"]} & {*names}]
        if not chosen:
            problems.append("No patch has one of these names or areas.")
        for patch in chosen:
            started, header = time.monotonic(), headers[patch]
            if git("apply", str(patch), cwd=worktree, check=False).returncode:
                problems.append(f"{patch.stem}: the patch no longer applies.")
                continue
            failed = run_tests(worktree, quick, find_tests(worktree, header), "-x")
            git("apply", "--reverse", str(patch), cwd=worktree)
            seconds = time.monotonic() - started
            print(f"{patch.stem} ({seconds:.0f} s): {' '.join(failed) or 'NOT CAUGHT'}", flush=True)
            caught.update(failed)
            if not failed:
                problems.append(f"{patch.stem}: no quick test notices that this rule is broken: {header['Rule']}")
        # A test that fails with the rules intact proves nothing.
        broken = run_tests(worktree, quick, sorted(caught)) if caught else []
        problems += [f"{test} fails without a mutant." for test in broken]
    print(f"{len(chosen)} mutants, {len(problems)} problems")
    sys.exit("\n".join(problems) or 0)


def read_header(patch: Path) -> Mapping[str, str]:
    return dict(message_from_string(patch.read_text()).items())


def find_tests(worktree: Path, header: Mapping[str, str]) -> list[str]:
    """Return the named test files of an area, or its folders."""
    folders = [path for name in ("unit/", "") if (path := worktree / "tests" / f"{name}{header['Area']}").is_dir()]
    names = header.get("Tests", "").split()
    files = [path for name in names for folder in folders for path in folder.rglob(name)]
    if {path.name for path in files} != {*names} or not folders:
        raise SystemExit(f"The tests of a patch are missing: {header['Area']}, {' '.join(names)}")
    return [str(path.relative_to(worktree)) for path in files or folders]


@contextmanager
def temporary_worktree() -> Iterator[Path]:
    """Yield a worktree with this one's files, also if they are not committed."""
    with TemporaryDirectory(prefix="kalends-mutants-") as directory:
        worktree = Path(directory) / "worktree"
        git("worktree", "add", "--detach", str(worktree))
        try:
            listed = git("ls-files", "-z", "--modified", "--others", "--exclude-standard").stdout
            for name in filter(None, listed.split("\0")):
                (worktree / name).unlink(missing_ok=True)
                if (PROJECT / name).exists():
                    (worktree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(PROJECT / name, worktree / name)
            yield worktree
        finally:
            git("worktree", "remove", "--force", str(worktree))


def run_tests(worktree: Path, quick: str, tests: Sequence[str], *options: str) -> list[str]:
    """Run the quick ones of these tests with this Python and its packages; return those that fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", quick, *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(worktree)}
    completed = subprocess.run(command, cwd=worktree, env=environment, capture_output=True, text=True, check=False)
    if completed.returncode not in (0, 1):
        raise SystemExit(completed.stdout[-3000:] + completed.stderr[-3000:])
    return sorted(set(FAILED.findall(completed.stdout)))


def git(*arguments: str, cwd: Path = PROJECT, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=cwd, check=check, capture_output=True, text=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
