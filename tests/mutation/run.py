"""`make mutation`: change the job controller's decisions in thousands of small ways, and see which of them no test
notices.

mutmut changes one function at a time and runs the tests that touch it, in forks of one process. What survives that gets
a second chance in a process of its own, with all tests of the job machine: there a change also counts in what is
computed while modules are imported (the table of states). The rest is printed, as differences to read.

Everything happens in a copy below `.mutation/`, so that the tree may be edited meanwhile. A run that is interrupted
goes on where it was; a function that changed is tried anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
SANDBOX = ROOT / ".mutation"
MUTANTS = SANDBOX / "mutants"
VERDICTS = SANDBOX / "second.json"
CORE = "vcbatch/core/job"
COPIED = ("vcbatch", "tests", "docs", "pyproject.toml")
ALL_TESTS = ("tests/unit/core", "tests/properties/test_job_machine.py", "tests/properties/test_job_replay.py")
SECONDS = 300.0
"""For one mutant with all tests; one that takes longer loops, and is noticed by that."""

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True, slots=True)
class Mutant:
    """`code` is what mutmut's run of the tests ended with: None before it, 0 where all passed, 33 without any test."""

    name: str
    file: str
    code: int | None

    @property
    def unnoticed(self) -> bool:
        return self.code in (0, 33)


def copy_tree() -> None:
    """Bring the copy up to date; what hasn't changed isn't touched."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *COPIED]
    found = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    wanted = {path for path in found if path and (ROOT / path).is_file()}
    for path in wanted:
        source, target = ROOT / path, SANDBOX / path
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    for part in COPIED:
        for present in [path for path in (SANDBOX / part).rglob("*.py") if "__pycache__" not in path.parts]:
            if str(present.relative_to(SANDBOX)) not in wanted:
                present.unlink()


def pattern_of(file: str) -> str:
    """mutmut's names of the mutants of a file, or of all below a folder."""
    module = file.rstrip("/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{module}.x*" if file.endswith(".py") else f"{module}.*"


def mutants(files: list[str]) -> Iterator[Mutant]:
    """Those of these files, as far as mutmut has come."""
    for meta in sorted(MUTANTS.glob(f"{CORE}/**/*.meta")):
        file = str(meta.relative_to(MUTANTS)).removesuffix(".meta")
        if any(file == given or file.startswith(given.rstrip("/") + "/") for given in files):
            for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
                yield Mutant(name, file, code)


def environment(**more: str) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | more


def first_pass(files: list[str], jobs: int) -> None:
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *map(pattern_of, files)]
    subprocess.run(command, cwd=SANDBOX, env=environment(), check=True)


def difference(mutant: Mutant) -> str:
    command = [sys.executable, "-m", "mutmut", "show", mutant.name]
    shown = subprocess.run(command, cwd=SANDBOX, env=environment(), check=True, capture_output=True, text=True)
    lines = [line for line in shown.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join(lines)


def second_pass(survivors: list[Mutant]) -> set[str]:
    """The names of those that all tests together don't notice either."""
    known: dict[str, bool] = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    unnoticed: set[str] = set()
    for number, mutant in enumerate(survivors, start=1):
        key = f"{mutant.name} {hashlib.sha256(difference(mutant).encode()).hexdigest()[:12]}"
        if key not in known:
            console.print(f"  {number}/{len(survivors)} {mutant.name}")
            known[key] = noticed(mutant)
            VERDICTS.write_text(json.dumps(known, indent=1))
        if not known[key]:
            unnoticed.add(mutant.name)
    return unnoticed


def noticed(mutant: Mutant) -> bool:
    plugins = ("-p", "tests.mutation.plugin", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", "-x", *plugins, *ALL_TESTS]
    ours = environment(MUTANT_UNDER_TEST=mutant.name, PY_IGNORE_IMPORTMISMATCH="1")
    try:
        ended = subprocess.run(command, cwd=MUTANTS, env=ours, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


def report(files: list[str], unnoticed: set[str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("file", "mutants", "tried", "killed", "%"):
        table.add_column(column, justify="left" if column == "file" else "right")
    everything = list(mutants(files))
    for file in [*dict.fromkeys(mutant.file for mutant in everything), ""]:
        mine = [mutant for mutant in everything if mutant.file == file or not file]
        tried = [mutant for mutant in mine if mutant.code is not None]
        killed = [mutant for mutant in tried if mutant.name not in unnoticed]
        share = f"{len(killed) / len(tried):.0%}" if tried else ""
        table.add_row(file or "all", str(len(mine)), str(len(tried)), str(len(killed)), share)
    for mutant in everything:
        if mutant.name in unnoticed:
            console.print(f"\n[bold]{mutant.file}[/bold]  {mutant.name}", markup=True)
            console.print(difference(mutant), markup=False)
    console.print()
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the job controller's decisions.")
    parser.add_argument("files", nargs="*", default=[CORE], help=f"files or folders below {CORE}")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tried at a time")
    parser.add_argument("--quick", action="store_true", help="leave out the second chance")
    given = parser.parse_args()
    files: list[str] = given.files or [CORE]
    for file in files:
        if not (ROOT / file).exists() or not file.startswith(CORE):
            parser.error(f"{file}: want a file or folder below {CORE}")
    copy_tree()
    try:
        first_pass(files, given.jobs)
        survivors = [mutant for mutant in mutants(files) if mutant.unnoticed]
        unnoticed = {mutant.name for mutant in survivors} if given.quick else second_pass(survivors)
    except KeyboardInterrupt:
        unnoticed = {mutant.name for mutant in mutants(files) if mutant.unnoticed}
        console.print("interrupted; the next run goes on from here")
    report(files, unnoticed)


if __name__ == "__main__":
    main()
