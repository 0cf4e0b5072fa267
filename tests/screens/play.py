"""Sessions of `vcbatch` as text files: what was typed, and below it all that came back.

    $ SCREEN=80 vcbatch job list
    NAME   PHASE
    a      {green}Running{/}
    2> a line on standard error
    [1]

`SCREEN=80` types it at a terminal of that width; without it the output is a pipe. `DENIED=jobs,pods/log` are kinds that
the user may do nothing with. Colours are shown as `{green}…{/}`. Writes to the server stand last.

`python -m tests.screens.play` writes the files anew; read the difference.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support.kubeconfigs import kubeconfig
from tests.support.served_cluster import Cluster, served_cluster
from vcbatch.cli.base.access import Access
from vcbatch.cli.main import main

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SESSIONS = HERE / "sessions"
NOW = datetime(2026, 11, 22, 20, 20, tzinfo=UTC)
_TONES = {"1": "bold", "31": "red", "32": "green", "33": "yellow"}


class Screen(io.TextIOWrapper):
    """A stream in UTF-8 that is a terminal, or isn't."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="\n")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        self.flush()
        written = self.buffer
        assert isinstance(written, io.BytesIO)
        return written.getvalue().decode()


def objects(session: str = "") -> list[dict[str, Any]]:
    """The recorded cluster: a `vcbatch up` with queues, jobs, a flow and a schedule; and what only this session has."""
    files = [HERE / "world.jsonl", *(HERE / "worlds").glob(f"{session}.jsonl")]
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def sessions() -> list[Path]:
    return sorted(SESSIONS.glob("*.sh"))


def transcript(session: Path) -> str:
    """Type every line of the session; what came back."""
    with served_cluster(objects(session.stem)) as cluster, tempfile.TemporaryDirectory() as folder:
        file = kubeconfig(Path(folder), cluster.url)
        lines = session.read_text(encoding="utf-8").splitlines()
        return "\n".join(_typed(line, cluster, file) for line in lines if line and line[0] != "#")


def call(arguments: list[str], kubeconfig: str, *, width: int = 0, **variables: str) -> tuple[int, str, str]:
    """Run `vcbatch`, at a terminal where a width is given: its exit code, and what it said on stdout and stderr."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    environment = {**kept, "KUBECONFIG": kubeconfig, "TERM": "xterm", **variables}
    if width:
        environment["COLUMNS"] = str(width)
    out, err = Screen(terminal=bool(width)), Screen(terminal=False)
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(Access, "now", lambda _: NOW),
        mock.patch.object(sys, "argv", ["vcbatch", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return code, out.text.replace(kubeconfig, "KUBECONFIG"), err.text.replace(kubeconfig, "KUBECONFIG")


def _typed(line: str, cluster: Cluster, kubeconfig: str) -> str:
    arguments = shlex.split(line)
    variables: dict[str, str] = {}
    while "=" in arguments[0]:
        name, _, value = arguments.pop(0).partition("=")
        variables[name] = value
    assert arguments.pop(0) == "vcbatch", line
    cluster.writes.clear()
    cluster.broken = set(filter(None, variables.pop("DENIED", "").split(",")))
    width = int(variables.pop("SCREEN", "0"))
    code, out, err = call(arguments, kubeconfig, width=width, **variables)
    assert not width or all(len(_plain(row)) <= max(width, 80) for row in out.splitlines() if " " not in _plain(row))
    parts = [f"$ {line}\n", _painted(out), "".join(f"2> {row}\n" for row in err.splitlines())]
    parts += [f"[{code}]\n" if code else ""]
    parts += [f"{method} {path} {json.dumps(body, sort_keys=True)}\n" for method, path, body in cluster.writes]
    return "".join(parts).replace(cluster.url, "http://server")


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def _painted(text: str) -> str:
    shown = re.sub(r"\x1b\[(\d+)m", lambda code: f"{{{_TONES.get(code[1], '/')}}}", text)
    return shown if not shown or shown.endswith("\n") else f"{shown}%\n"


if __name__ == "__main__":
    for session in sessions():
        (GOLDEN / f"{session.stem}.txt").write_text(transcript(session), encoding="utf-8")
