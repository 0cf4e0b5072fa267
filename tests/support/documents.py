"""The documents and the commands in them, and where those are typed.

A fenced `sh` block is for a shell. A document says with `CLUSTER` in its first line that its commands are for a
cluster: then the cluster tier types them on a real control plane. All others are typed beside a `vcbatch up`.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CLUSTER = "<!-- runs on: a cluster -->"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SET_UP = re.compile(r"^(make |git clone |cd )")


def commands(document: Path) -> list[str]:
    """The lines to type, without those that set up a checkout: that is where tests run."""
    lines = "".join(_BLOCK.findall(document.read_text(encoding="utf-8"))).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#") and not _SET_UP.match(line)]


def for_a_cluster(document: Path) -> bool:
    """Whether its commands are for a cluster."""
    return document.read_text(encoding="utf-8").startswith(f"{CLUSTER}\n")


def with_commands(*, cluster: bool) -> list[Path]:
    """The documents with something to type, for a cluster or for this machine."""
    return [path for path in DOCUMENTS if commands(path) and for_a_cluster(path) == cluster]
