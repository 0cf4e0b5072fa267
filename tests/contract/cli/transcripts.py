"""Sessions of commands as text files: what was typed, and below it all that came back.

    $ vcctl queue get -n nope
    Failed to get queue: queues.scheduling.volcano.sh "nope" not found|
    2> a line on standard error|
    [255]

The ends of lines are marked, since blanks before them belong to the layout. Writes to the server stand last, as `POST
/path {"the": "body"}`. `python -m tests.contract.cli.transcripts` writes the files anew; read the difference.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support.kubeconfigs import document, write
from tests.support.served_cluster import Cluster, served_cluster
from vcbatch.cli.vcctl import words
from vcbatch.cli.vcctl.commands import PROGRAMS
from vcbatch.cli.vcctl.main import run

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SESSIONS = HERE / "sessions"
NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def objects() -> list[dict[str, Any]]:
    """The recorded cluster: scenarios that were played with Volcano on a real control plane."""
    return json.loads((HERE / "cluster.json").read_text())


def sessions() -> list[Path]:
    return sorted(SESSIONS.glob("*.sh"))


def transcript(session: Path) -> str:
    """Type every line of the session (`NAME=VALUE` before a command sets a variable); what came back."""
    with quiet_world(), served_cluster(objects()) as cluster:
        blocks = [_typed(line, cluster) for line in session.read_text().splitlines() if line and line[0] != "#"]
    return "\n".join(blocks)


@contextlib.contextmanager
def quiet_world() -> Iterator[None]:
    """The same time, zone and place everywhere, and no configuration of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VOLCANO_", "VCCTL_", "KUBE"))}
    with (
        mock.patch.dict(os.environ, {**kept, "TZ": "UTC", "HOME": "/nonexistent"}, clear=True),
        mock.patch.object(words, "now", lambda: NOW),
        mock.patch("platform.python_version", lambda: "3.11.0"),
        mock.patch("platform.machine", lambda: "x86_64"),
        contextlib.chdir(HERE),
    ):
        time.tzset()
        try:
            yield
        finally:
            os.environ.pop("TZ")
            time.tzset()


def _typed(line: str, cluster: Cluster) -> str:
    arguments = shlex.split(line)
    variables: dict[str, str] = {}
    while "=" in arguments[0]:
        name, _, value = arguments.pop(0).partition("=")
        variables[name] = value
    cluster.writes.clear()
    code, out, err = call(arguments, cluster.url, variables)
    parts = [f"$ {line}\n", _marked(out, ""), _marked(err, "2> "), f"[{code}]\n" if code else ""]
    parts += [f"{method} {path} {json.dumps(body, sort_keys=True)}\n" for method, path, body in cluster.writes]
    return "".join(parts).replace(cluster.url, "http://server")


def call(arguments: list[str], url: str, variables: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a program on a server: its exit code, and what it said on stdout and stderr."""
    program, *rest = arguments
    with _kubeconfig(url) as file, mock.patch.dict(os.environ, {"KUBECONFIG": file, **(variables or {})}):
        code, out, err = captured(lambda: run(PROGRAMS[program], rest))
    return code, out.replace(file, "KUBECONFIG"), err.replace(file, "KUBECONFIG")


def captured(program: Callable[[], int]) -> tuple[int, str, str]:
    """Its exit code, and what it said on stdout and stderr."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = program()
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _kubeconfig(url: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        write(Path(file.name), document(url, namespace="of-the-context"))
        yield file.name


def _marked(text: str, prefix: str) -> str:
    lines = text.split("\n")
    whole = "".join(f"{prefix}{line}|\n" for line in lines[:-1])
    return whole + (f"{prefix}{lines[-1]}\n" if lines[-1] else "")


if __name__ == "__main__":
    for session in sessions():
        (GOLDEN / f"{session.stem}.txt").write_text(transcript(session))
