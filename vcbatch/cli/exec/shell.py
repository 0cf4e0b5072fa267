"""`vcbatch shell`: an interactive shell in a pod of a job."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.names import job_names
from vcbatch.cli.exec.command import run_in_pod

_SCRIPT: Final = (
    'if [ -n "$1" ]; then export TERM="$1"; fi; if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh'
)
"""The type of the user's terminal is passed on, so that programs which draw on it work."""


@click.command("shell")
@click.argument("name", metavar="JOB", shell_complete=job_names)
@click.option("--task", default=None, metavar="NAME", help="Task of the pod.  [default: first running pod]")
@click.option("--index", type=click.IntRange(min=0), default=None, metavar="N", help="Index of the pod in its task.")
@click.option("-c", "--container", default=None, metavar="NAME", help="Container.  [default: first container]")
@access_options
def command(access: Access, name: str, task: str | None, index: int | None, container: str | None) -> int:
    """Open a shell in a running pod of a job, and exit with the shell's exit code.

    \b
    vcbatch shell train
    vcbatch shell train --task worker --index 3

    The shell is bash where the container has it, else sh. Without a terminal, it reads commands from standard input.
    """
    terminal = sys.stdin.isatty()
    words = ("sh", "-c", _SCRIPT, "sh", os.environ.get("TERM", "") if terminal else "")
    return run_in_pod(access, name, words, task=task, index=index, container=container, stdin=True, tty=terminal)
