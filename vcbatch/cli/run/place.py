"""Where a program will run: on a cluster, or as processes of this machine."""

from __future__ import annotations

import os
import shutil
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
    """Whether the server is one of `vcbatch up`. Raises `CliError` where there is none."""
    version = access.once(lambda api: api.version())  # type: ignore[attr-defined]
    return names.LOCAL_SERVER_MARK in str(version.get("gitVersion", ""))


def on_this_machine(job: Json, access: Access) -> Json:
    """The job such that none of its pods goes to a virtual node, where it would only pretend to run. Raises `CliError`
    where there is no other."""
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
    """Raises `CliError` for one that isn't on this machine: a pod would wait for it."""
    for directory in directories:
        if not Path(directory).exists():
            raise CliError(f"{directory}: no such directory")


def here(command: tuple[str, ...]) -> tuple[tuple[str, ...], str, str]:
    """The command, the interpreter and the directory such that this machine's kubelet, whose PATH is another, starts
    what this shell would. Raises `CliError` for a program that isn't here."""
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
