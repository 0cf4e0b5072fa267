"""The examples of property tests: the same in each run of `make test`, others for each seed of `make explore`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROPERTY = """
from hypothesis import given, settings
from hypothesis import strategies as st

DRAWN = []

@settings(max_examples=30)
@given(st.lists(st.integers() | st.text()))
def test_property(values):
    DRAWN.append(values)

def test_example():
    print("drawn", hash_free(DRAWN))

def hash_free(values):
    import hashlib
    return hashlib.sha256(repr(values).encode()).hexdigest()
"""


def drawn(tmp_path: Path, *options: str, hash_seed: str, ci: bool = False) -> str:
    """What the property draws under the project's conftest, in a process of its own."""
    (tmp_path / "test_drawn.py").write_text(PROPERTY)
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    environment.pop("CI", None)
    if ci:
        environment["CI"] = "true"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.conftest"),
        *(f"--rootdir={tmp_path}", f"--confcutdir={tmp_path}", *options, str(tmp_path / "test_drawn.py")),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((line for line in done.stdout.splitlines() if "drawn " in line), done.stdout).split("drawn ")[-1]


def test_draws_the_same_examples_in_each_run(tmp_path: Path) -> None:
    first = drawn(tmp_path, hash_seed="1")
    assert drawn(tmp_path, hash_seed="2") == first
    assert drawn(tmp_path, hash_seed="3", ci=True) == first
    assert not (tmp_path / ".hypothesis/examples").exists()


def test_exploration_runs_property_tests_only(tmp_path: Path) -> None:
    done = drawn(tmp_path, "--hypothesis-profile=explore", "--hypothesis-seed=1", "-rA", hash_seed="1")
    assert "test_property" in done
    assert "test_example" not in done
