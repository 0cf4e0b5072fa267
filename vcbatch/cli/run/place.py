"""Where a program will run: on a cluster, or as local processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from vcbatch.api import names
from vcbatch.api.resources import NODES
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.fields import words
from vcbatch.cli.base.output import CliError
from vcbatch.sdk.compose.program import Program
from vcbatch.sdk.real_nodes import off_virtual_nodes

Json = dict[str, Any]


def is_local(access: Access) -> bool:
    """Whether the server is in local mode. Raises `CliError` where there is no server."""
    version = access.once(lambda api: api.version())  # type: ignore[attr-defined]
    return names.LOCAL_SERVER_MARK in str(version.get("gitVersion", ""))


def on_this_machine(job: Json, access: Access) -> Json:
    """The job, excluded from virtual nodes, where its pods would only be simulated. Raises `CliError` where there are
    only virtual nodes."""
    nodes = access.once(lambda api: api.list(NODES)).items
    virtual = [node for node in nodes if words(node, "metadata", "labels").get(names.VIRTUAL_NODE) == "true"]
    if len(virtual) == len(nodes):
        raise CliError(
            f"{'all nodes are simulated' if virtual else 'the server has no nodes'}; nothing can run",
            hint="Restart the server without --kubelet-mode none: `vcbatch down`, then `vcbatch up`.",
        )
    if virtual:
        for task in job["spec"]["tasks"]:
            task["template"]["spec"]["affinity"] = off_virtual_nodes()
    return job


def must_be_here(*directories: str) -> None:
    """Raise `CliError` for a directory that doesn't exist locally: a pod would wait for it."""
    for directory in directories:
        if not Path(directory).exists():
            raise CliError(f"{directory}: no such directory")


def must_have_torch(python: str, *, processes: int, directory: str) -> None:
    """Raise `CliError` where the interpreter that starts the processes in `directory` lacks PyTorch: its torchrun is
    what starts them. The directory is searched first, as for the job."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    if subprocess.run([python, "-c", code], check=False, stdin=subprocess.DEVNULL, cwd=directory).returncode == 0:
        return
    other = "" if processes > 1 else ", or run the program without torchrun: --framework none"
    raise CliError(
        f"PyTorch is not installed for {python}, and the job starts with torchrun",
        hint=f"Install it (pip install torch){other}",
    )


def here(command: tuple[str, ...]) -> tuple[tuple[str, ...], str, str]:
    """The command, the interpreter and the directory with which the local kubelet, whose PATH differs, starts the
    program that this shell would. Raises `CliError` for a program that doesn't exist."""
    directory = str(Path.cwd())
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    program = Program.of(command)
    first = program.target[0]
    if program.python:
        if first != "-m" and not Path(first).is_file():
            raise CliError(f"{first}: no such file in {directory}")
        return command, python, directory
    if "/" in first:
        if not os.access(first, os.X_OK):
            raise CliError(f"{first}: not executable", hint=f"Checked in {directory}.")
        return command, python, directory
    found = shutil.which(first)
    if found is None:
        raise CliError(
            f"{first}: command not found in PATH", hint=f"To run a script in the current directory: ./{first}"
        )
    return (found, *command[1:]), python, directory
