"""A server and jobs that are started from a folder full of modules named like everybody's: none of them is executed,
but for what the user's own program imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch
from vcbatch.interfaces import interpreter

NAMES = ("queue", "json", "yaml", "asyncio", "ssl", "click", "msgspec", "sitecustomize", "usercustomize", "webhooks")
VCBATCH = Path(sys.executable).with_name("vcbatch")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in NAMES:
        text = f"from pathlib import Path\nPath({str(folder)!r}, 'executed-{name}').touch()\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def _executed(trap: Path) -> list[str]:
    return sorted(path.name for path in trap.glob("executed-*"))


@pytest.fixture
def down(tmp_path: Path) -> Iterator[Path]:
    """A state directory whose server ends with the test."""
    program = RunningVcbatch(tmp_path)
    yield program.state
    program.down()


def _run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_detached_server_executes_nothing_and_programs_find_their_own_modules(trap: Path, down: Path) -> None:
    _run([str(VCBATCH), "up", "--detach", "--port", "0", "--state-dir", str(down)], trap)
    assert _executed(trap) == []

    (trap / "helper.py").write_text("WORD = 'mine'\n")
    (trap / "train.py").write_text("import helper\nprint(helper.WORD)\n")
    said = _run([str(VCBATCH), "run", "--kubeconfig", str(down / "kubeconfig"), "python", "train.py"], trap)
    assert said == "mine\n"
    # Python itself imports these two wherever a program is told to look for modules.
    assert set(_executed(trap)) <= {"executed-sitecustomize", "executed-usercustomize"}


def test_the_server_that_the_client_starts_and_its_calls_execute_nothing(
    trap: Path, down: Path, tmp_path: Path
) -> None:
    script = tmp_path / "submit.py"
    script.write_text(
        "from pathlib import Path\nfrom vcbatch import Client, task\n"
        "@task(retries=1)\ndef double(number):\n    import queue\n    return 2 * number\n"
        f"with Client.local(state_dir=Path({str(down)!r})) as client:\n"
        "    print(client.submit(double, 21).result(timeout=120))\n"
    )
    assert _run([*interpreter.python(), str(script)], trap).strip() == "42"
    assert _executed(trap) == []
