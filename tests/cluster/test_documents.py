"""Every command in the documents for a cluster works as it is written, but for the ports of this machine.

They are typed line by line into one shell per document, on a fresh control plane with nodes and nothing else, by
somebody who may do everything there. What they leave running in the background ends with the shell.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cluster.binaries.build import Binaries, build
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import Program
from tests.support.documents import ROOT, script, with_commands

_TYPED_IN = ("crds", "helm", "examples")
_PROLOGUE = """\
end() { local programs; programs=$(jobs -p); [ -z "$programs" ] || kill $programs; wait; }
trap end EXIT
"""


@pytest.mark.parametrize("document", with_commands(cluster=True), ids=lambda path: path.stem)
def test_commands_of(document: Path, binaries: Binaries, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in _TYPED_IN:
        shutil.copytree(ROOT / name, checkout / name)
    typed = tmp_path / "typed.sh"
    typed.write_text(f"{_PROLOGUE}{script(document)}\n", encoding="utf-8")
    with ControlPlane(tmp_path / "plane", binaries) as plane:
        plane.add_nodes(2)
        shell = Program(
            "shell",
            ["bash", "-e", "-v", str(typed)],
            log=plane.logs / "shell.log",
            guard=plane.guard,
            cwd=checkout,
            env={
                "KUBECONFIG": str(plane.kubeconfig),
                "KUBECACHEDIR": str(tmp_path / "kubecache"),
                "PATH": os.pathsep.join(
                    [
                        str(Path(sys.executable).parent),
                        str(binaries.path("kubectl").parent),
                        str(build("helm").path("helm").parent),
                        os.environ["PATH"],
                    ]
                ),
            },
        )
        shell.start()
        try:
            assert shell.wait_ended(timeout=240) == 0, shell.said()
        finally:
            shell.kill()
