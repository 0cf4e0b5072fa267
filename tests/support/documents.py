"""The documents and the commands in them, and where those are typed.

A fenced `sh` block is for a shell. A document says with `CLUSTER` in its first line that its commands are for a
cluster: then the cluster tier types them on a real control plane. With `TRAINING` there they need the frameworks of the
training tier. All others are typed beside a `vcbatch up`.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CLUSTER = "<!-- runs on: a cluster -->"
TRAINING = "<!-- runs on: training frameworks -->"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SET_UP = re.compile(r"^(make |git clone |cd )")


def commands(document: Path) -> list[str]:
    """The lines to type, without those that set up a checkout: that is where tests run."""
    lines = "".join(_BLOCK.findall(document.read_text(encoding="utf-8"))).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#") and not _SET_UP.match(line)]


def sections(document: Path) -> dict[str, list[str]]:
    """The lines to type below each heading."""
    parts = re.split(r"^## (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        title: "".join(_BLOCK.findall(text)).splitlines() for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def place_of(document: Path) -> str:
    """What its first line says about where its commands are typed; "" where it says nothing."""
    first = document.read_text(encoding="utf-8").partition("\n")[0]
    return first if first in (CLUSTER, TRAINING) else ""


def with_commands(*, cluster: bool) -> list[Path]:
    """The documents with something to type, for a cluster or beside a `vcbatch up` alone."""
    place = CLUSTER if cluster else ""
    return [path for path in DOCUMENTS if commands(path) and place_of(path) == place]
