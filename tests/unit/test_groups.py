"""Tests of one xdist group share expensive fixtures, so they have to run in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TESTS = """\
import os
import pytest

@pytest.mark.xdist_group("a group")
@pytest.mark.parametrize("number", range(12))
def test_of_a_group(number):
    with open({file!r}, "a") as out:
        out.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_a_group_runs_in_one_process(tmp_path: Path) -> None:
    workers = tmp_path / "workers.txt"
    (tmp_path / "test_groups.py").write_text(_TESTS.format(file=str(workers)))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = workers.read_text().splitlines()
    assert len(lines) == 12 and len(set(lines)) == 1, lines
