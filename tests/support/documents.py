"""The documents, the commands in them, and where these are run.

Fenced `sh` blocks contain shell commands. With `CLUSTER` in its first line a document's commands are for a cluster: the
cluster tier runs them on a real control plane. With `TRAINING` they need the frameworks of the training tier. All
others are run with a `vcbatch up`.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CLUSTER = "<!-- runs on: a cluster -->"
TRAINING = "<!-- runs on: training frameworks -->"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"\b127\.0\.0\.1:(\d+)\b")
_SET_UP = re.compile(r"^(make |git clone |cd )")


def commands(document: Path) -> list[str]:
    """The lines to run, without those that set up a checkout, where tests run already."""
    lines = "".join(_BLOCK.findall(document.read_text(encoding="utf-8"))).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#") and not _SET_UP.match(line)]


def script(document: Path) -> str:
    """The commands as a test runs them: ports of 127.0.0.1 are replaced by free ones, since other programs may use
    those in the document."""
    text = "\n".join(commands(document))
    named = set(_PORT.findall(text))
    free: set[int] = set()
    while len(free) < len(named):
        free.add(free_port())
    for port, instead in zip(sorted(named), free, strict=True):
        text = re.sub(rf"\b{port}\b", str(instead), text)
    return text


def sections(document: Path) -> dict[str, list[str]]:
    """The lines to run below each heading."""
    parts = re.split(r"^## (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        title: "".join(_BLOCK.findall(text)).splitlines() for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def place_of(document: Path) -> str:
    """The marker in the first line for where its commands are run; "" without one."""
    first = document.read_text(encoding="utf-8").partition("\n")[0]
    return first if first in (CLUSTER, TRAINING) else ""


def with_commands(*, cluster: bool) -> list[Path]:
    """The documents with commands, either for a cluster or for a `vcbatch up` alone."""
    place = CLUSTER if cluster else ""
    return [path for path in DOCUMENTS if commands(path) and place_of(path) == place]
