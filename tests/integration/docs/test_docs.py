"""Every command in the documents works as it is written.

A fenced `sh` block is typed line by line into one shell per document, with a `vcbatch up` of its own. The two commands
of the README that set everything up (`make …`) are what runs the tests, so they are left out here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.up import vcbatch

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SET_UP = re.compile(r"^(make |git clone |cd )")

pytestmark = pytest.mark.kubectl


def commands(document: Path) -> list[str]:
    lines = "".join(BLOCK.findall(document.read_text(encoding="utf-8"))).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#") and not SET_UP.match(line)]


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if commands(path)], ids=lambda path: path.stem)
def test_commands_of(document: Path, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on the PATH")
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "KUBECACHEDIR": str(tmp_path / "kubecache"),
        "KUBECONFIG": str(tmp_path / "vcbatch" / "kubeconfig"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    script = "set -e -x\n" + "\n".join(commands(document))
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        vcbatch("down", "--state-dir", str(tmp_path / "vcbatch"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_of(document: Path) -> None:
    broken = [
        link for link in LINK.findall(document.read_text(encoding="utf-8")) if not (document.parent / link).exists()
    ]
    assert not broken
