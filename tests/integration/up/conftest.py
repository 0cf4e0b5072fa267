"""`vcbatch up` as a user runs it; whatever a test does to it, nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.lacking import need_kubectl
from tests.support.up import RunningVcbatch


@pytest.fixture(autouse=True)
def _kubectl() -> None:
    need_kubectl()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[RunningVcbatch]:
    """Not started yet; stopped at the end, however that went."""
    program = RunningVcbatch(tmp_path)
    yield program
    program.down()
    assert left_over(program.state) == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    """One that runs for all tests of a module."""
    program = RunningVcbatch(tmp_path_factory.mktemp("up"))
    program.up()
    yield program
    program.down()
    assert left_over(program.state) == []


def left_over(state: Path) -> list[str]:
    """The processes that have to do with a state directory: their command or their working directory names it."""
    found: list[str] = []
    for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
        reported = [*(process.info["cmdline"] or ()), process.info["cwd"] or ""]
        if process.pid != psutil.Process().pid and any(str(state) in part for part in reported):
            found.append(f"{process.pid} {' '.join(reported)[:200]}")
    return found
