"""Every command in the documents works as it is written, but for the ports of this machine.

A fenced `sh` block is typed line by line into one shell per document, with a `vcbatch up` of its own. The documents for
a cluster are typed by `tests/cluster/test_documents.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import DOCUMENTS, ROOT, script, with_commands
from tests.support.lacking import need_kubectl
from tests.support.up import vcbatch

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"`((?:crds|docs|examples|helm|tests|vcbatch|webhooks)/[\w./*-]*)`")
MODULE = re.compile(r"`([\w/]+\.py)`")

pytestmark = pytest.mark.kubectl


@pytest.mark.parametrize("document", with_commands(cluster=False), ids=lambda path: path.stem)
def test_commands_of(document: Path, tmp_path: Path) -> None:
    need_kubectl()
    environment = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "KUBECACHEDIR": str(tmp_path / "kubecache"),
        "KUBECONFIG": str(tmp_path / "vcbatch" / "kubeconfig"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    typed = "set -e -x\n" + script(document)
    try:
        done = subprocess.run(
            ["bash", "-c", typed],
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_places_of(document: Path) -> None:
    """What a document says of the code is where it says; a module without its folder is somewhere."""
    text = document.read_text(encoding="utf-8")
    wrong = [place for place in PLACE.findall(text) if not any(ROOT.glob(place))]
    modules = (path for folder in ("vcbatch", "webhooks", "tests", "docs") for path in (ROOT / folder).rglob("*.py"))
    known = {f"/{path.relative_to(ROOT)}" for path in modules}
    wrong += [name for name in MODULE.findall(text) if not any(path.endswith(f"/{name}") for path in known)]
    assert not wrong
