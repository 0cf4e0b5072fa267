"""The example jobs, with the real frameworks, to the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import sections
from tests.support.up import RunningVcbatch
from tests.training.jobs import DOCUMENT, EXAMPLES, type_section

pytestmark = pytest.mark.training


def accuracy(log: str, label: str) -> float:
    found = re.search(rf"^{label} accuracy ([0-9.]+)$", log, re.MULTILINE)
    assert found, log
    return float(found[1])


def test_pytorch_learns_the_digits_on_three_ranks(running: RunningVcbatch, tmp_path: Path) -> None:
    log = type_section(running, "PyTorch on several pods", tmp_path)
    assert "3 ranks" in log
    assert accuracy(log, "test") > 0.95


def test_tensorflow_workers_mirror_their_variables(running: RunningVcbatch, tmp_path: Path) -> None:
    assert accuracy(type_section(running, "TensorFlow on several pods", tmp_path), "training") > 0.9


def test_any_program_can_be_a_gang(running: RunningVcbatch, tmp_path: Path) -> None:
    log = type_section(running, "A gang of any program", tmp_path)
    assert "I am 1 on anything-member-1, one of 3: anything-member-0.anything," in log


def test_every_section_of_the_document_is_typed() -> None:
    """By a test of this folder, each of which names the section's title."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    untyped = [title for title, lines in sections(DOCUMENT).items() if lines and f'"{title}"' not in tests]
    assert not untyped


def test_the_demo_shows_the_training_and_leaves_nothing_running() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Completed" in done.stdout
    assert re.search(r"epoch +1/12 +loss", done.stdout)
