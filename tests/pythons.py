"""`make test-pythons`: a part of the tests on every Python that this machine has and vcbatch claims to run on.

Each interpreter gets a virtual environment of its own beside the checkout, `.venv-3.12` and so on. Interpreters are
found on the PATH and below pyenv's folder; a version that isn't there is named at the end. Exit code 1 where a test
failed or an environment couldn't be made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

TESTS = (
    "tests/unit/api",
    "tests/unit/cli",
    "tests/unit/runtime",
    "tests/unit/sdk",
    "tests/unit/observe",
    "tests/unit/kubelet",
    "tests/unit/apiserver/core",
    "tests/unit/webhooks/test_managed_certificates.py",
    "tests/unit/scheduler/policy/test_policy.py",
    "tests/unit/scheduler/policy/test_policy_faults.py",
    "tests/unit/test_interpreters.py",
    "tests/integration/sdk",
    "tests/integration/cli/test_current_folder.py",
    "tests/integration/runtime/test_components.py",
)
"""What depends on the version: parsing, TLS, asyncio, processes, pickled functions, and the whole program once."""


def interpreters() -> Iterator[tuple[str, Path]]:
    """The Pythons of this machine with their versions, one of each."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for version in VERSIONS:
        found = [shutil.which(f"python{version}"), *sorted(map(str, root.glob(f"versions/{version}.*/bin/python3")))]
        for path in filter(None, found):
            said = subprocess.run(
                [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if said.stdout.strip() == version:
                yield version, Path(path)
                break


def environment(version: str, python: Path) -> Path:
    """The Python of an environment with everything that the tests need. Raises `CalledProcessError`."""
    folder = ROOT / f".venv-{version}"
    ours, ready = folder / "bin" / "python", folder / ".ready"
    needs = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    if ready.exists() and all(ready.stat().st_mtime >= file.stat().st_mtime for file in needs):
        return ours
    click.echo(f"Setting up {folder.name} with {python} ...")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([ours, *install, "pip>=25.1"], check=True)
    subprocess.run([ours, *install, "-e", f"{ROOT}[all]", "--group", "dev"], check=True, cwd=ROOT)
    ready.touch()
    return ours


def tested(version: str, python: Path, tests: Sequence[str], jobs: str) -> bool:
    """Whether these tests pass on that Python."""
    click.echo(f"--- Python {version} ({python})")
    try:
        ours = environment(version, python)
    except subprocess.CalledProcessError as error:
        click.echo(f"Python {version}: no environment: {error}", err=True)
        return False
    chosen = [*tests, "-m", "not training and not cluster and not ray"]
    command = [ours, "-m", "pytest", "-p", "no:cacheprovider", "-n", jobs, "--dist", "loadgroup", *chosen]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


@click.command()
@click.option("--jobs", default="2", show_default=True, help="Tests at a time.")
@click.option("--remove", is_flag=True, help="Remove the environments at the end, some 850 MB each.")
@click.argument("tests", nargs=-1)
def main(jobs: str, remove: bool, tests: tuple[str, ...]) -> None:
    """Run TESTS, or those that depend on the version of Python, on each Python."""
    outcomes = {version: tested(version, python, tests or TESTS, jobs) for version, python in interpreters()}
    for version in VERSIONS:
        passed = outcomes.get(version)
        click.echo(f"Python {version}: {'not on this machine' if passed is None else 'passed' if passed else 'FAILED'}")
        if remove:
            shutil.rmtree(ROOT / f".venv-{version}", ignore_errors=True)
    sys.exit(0 if outcomes and all(outcomes.values()) else 1)


if __name__ == "__main__":
    main()
