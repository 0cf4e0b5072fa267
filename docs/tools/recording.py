"""Recordings of a terminal: `python -m docs.tools.recording` runs the commands of each and writes docs/images/NAME.svg.

The commands run on a `vcbatch up` of their own, in a terminal of 88 columns, and the image shows what they printed.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from docs.tools.page import ROOT

WIDTH = 88
RECORDINGS = {
    "first-job": (
        "Run a gang of three pods",
        (
            "vcbatch up --detach",
            "vcbatch run --name hello --nodes 3 -- sh -c 'echo pod $VC_TASK_INDEX of 3'",
            "vcbatch job list",
            "kubectl get vcjob,podgroup",
        ),
    ),
    "job-explain": (
        "Why a job is pending",
        (
            "vcbatch up --detach --kubelet-mode none --virtual-nodes 4",
            "kubectl apply -f examples/simulation/gangs.yaml",
            "vcbatch wait first --for running --timeout 60s",
            "sleep 3",
            "vcbatch job list",
            "vcbatch job explain second",
        ),
    ),
}
"""Name of the image -> title and commands."""
_HIDDEN = ("sleep ", "vcbatch up ")
"""Commands that are run and not shown: the time that a server needs to start says how busy the recording machine was.
"""
_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->", re.DOTALL)
"""What names other servers: fonts, which a browser would fetch, and the address of Rich."""
_ERASE = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlnsu]")


def typed(command: str, environment: dict[str, str]) -> str:
    """What the command prints on a terminal.

    Raises:
        RuntimeError: it fails.
    """
    leader, follower = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", f"stty cols {WIDTH} rows 60; {command}"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(follower)
        output = bytearray()
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the last program that has the terminal has ended
                break
            if not part:
                break
            output += part
    os.close(leader)
    text = output.decode()
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}:\n{text}")
    return text


def shown(output: str) -> str:
    """The lines as they stay on the screen: of a line that was written several times, the last."""
    lines = (_ERASE.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in output.split("\n"))
    return "\n".join(line for line in lines).rstrip("\n")


def record(name: str) -> None:
    """Run the commands of a recording, and write its image."""
    title, commands = RECORDINGS[name]
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "XDG_STATE_HOME": folder,
            "KUBECONFIG": str(Path(folder, "vcbatch", "kubeconfig")),
            "KUBECACHEDIR": str(Path(folder, "kubecache")),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLUMNS": str(WIDTH),
        }
        try:
            for command in commands:
                output = shown(typed(command, environment)).replace(folder, "~/.local/state")
                if command.startswith(_HIDDEN):
                    continue
                console.print(Text(f"$ {command}", style="bold"))
                if output:
                    console.print(Text.from_ansi(output))
        finally:
            subprocess.run(["vcbatch", "down"], env=environment, check=False, capture_output=True)
    svg = _ELSEWHERE.sub("", console.export_svg(title=title, unique_id=name))
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (ROOT / "docs" / "images" / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> int:
    """Record all, or those that are named."""
    for name in sys.argv[1:] or RECORDINGS:
        record(name)
        sys.stdout.write(f"docs/images/{name}.svg\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
