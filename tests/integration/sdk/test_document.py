"""The examples of docs/sdk.md and docs/notebooks.md, as one program, print what they say that they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.documents import ROOT
from tests.support.up import vcbatch

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(r"^( *)print\((.*)\)  # (.*)$", re.MULTILINE)
EITHER = "line)  # worker/0 │ hello, and worker/1 │ hello"

PROLOGUE = """
checked = 0
def says(expected, *values):
    global checked
    checked += 1
    shown = " ".join(map(str, values))
    assert shown == expected, f"{shown!r} instead of {expected!r}"
"""


def program() -> tuple[str, int]:
    """The examples in their order, and how many of their lines say what they print."""
    pages = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("sdk.md", "notebooks.md"))
    blocks = BLOCK.findall(pages.replace(EITHER, "line)"))
    source, claims = EXPECTED.subn(r"\1says('''\3''', \2)", "\n".join(blocks))
    return f"{PROLOGUE}{source}\nassert checked == {claims}, checked\n", claims


def test_the_examples_do_what_they_say(tmp_path: Path):
    source, claims = program()
    assert claims > 15
    script = tmp_path / "examples.py"
    script.write_text(source, encoding="utf-8")
    state = tmp_path / "vcbatch"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    try:
        # With a port of its own: the one that `Client.local()` would take may be another's.
        vcbatch("up", "--detach", "--port", "0", "--state-dir", str(state))
        done = subprocess.run(
            [sys.executable, script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert "worker/0 │ hello" in done.stdout and "worker/1 │ hello" in done.stdout
    finally:
        vcbatch("down", "--state-dir", str(state))
