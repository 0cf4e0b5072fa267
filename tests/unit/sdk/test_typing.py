"""A user's script is clean in the strictest modes of both type checkers, and they find what is wrong in another."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = Path(__file__).parent / "typed"
WRONG = [
    number
    for number, line in enumerate((SCRIPTS / "wrong.py").read_text().splitlines(), 1)
    if line.endswith("  # wrong")
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The scripts by themselves, in a project that has vcbatch from elsewhere, as a user's has."""
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, tmp_path)
    return tmp_path


def test_mypy(folder: Path):
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=.mypy", "."]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = re.findall(r"^(\w+)\.py:(\d+): error", done.stdout, re.MULTILINE)
    assert [("wrong", str(number)) for number in WRONG] == found, done.stdout + done.stderr


def test_pyright(folder: Path):
    settings = {"typeCheckingMode": "strict", "include": ["."], "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    reported = json.loads(done.stdout)["generalDiagnostics"]
    found = {(Path(one["file"]).stem, one["range"]["start"]["line"] + 1) for one in reported}
    assert found == {("wrong", number) for number in WRONG}, reported
