"""The programs `vcctl`, `vsub`, … as files of a directory. They are written only on request and replace nothing, since
Volcano's own have the same names."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Final

from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.vcctl.commands import PROGRAMS
from vcbatch.interfaces import interpreter

_MARK: Final = b"#!/bin/sh\n# Written by `vcbatch vcctl --install`.\n"
"""The beginning of a file that is ours."""


def install(directory: Path) -> int:
    """Write all programs to the directory. Warns about others of the same names on the PATH. Raises `CliError` where a
    name is taken by a file that isn't ours; then nothing is written."""
    directory = directory.expanduser()
    taken = [name for name in PROGRAMS if _exists(directory / name) and not _ours(directory / name)]
    if taken:
        raise CliError(
            f"{directory / taken[0]} exists and is not one of vcbatch's",
            hint="Choose another directory: vcbatch vcctl --install DIR",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            _write(directory / name, name)
    except OSError as error:
        raise CliError(f"can't write to {directory}: {error.strerror}") from error
    say(f"{', '.join(PROGRAMS)} installed in {directory}")
    _warn(directory)
    return 0


def uninstall(directory: Path) -> int:
    """Remove the programs that `install` wrote, and no others. Raises `CliError` where a file can't be removed."""
    directory = directory.expanduser()
    ours = [name for name in PROGRAMS if _ours(directory / name)]
    try:
        for name in ours:
            (directory / name).unlink()
    except OSError as error:
        raise CliError(f"can't remove from {directory}: {error.strerror}") from error
    say(f"{', '.join(ours)} removed from {directory}" if ours else f"no programs of vcbatch in {directory}")
    return 0


def _write(path: Path, name: str) -> None:
    """Written beside the file and renamed, so that a running shell never reads half of it."""
    beside = path.with_name(f".{name}.{os.getpid()}")
    beside.write_bytes(_MARK + f'exec {shlex.join(interpreter.vcbatch("vcctl", name))} "$@"\n'.encode())
    beside.chmod(0o755)
    beside.replace(path)


def _ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _warn(directory: Path) -> None:
    """Report which program the shell finds, where it isn't the installed one or hides another."""
    path = os.environ.get("PATH", os.defpath)
    here = str(directory.resolve())
    if here not in [os.path.realpath(each) for each in path.split(os.pathsep)]:
        note(f"{directory} is not on the PATH: export PATH={shlex.quote(str(directory))}:$PATH")
        return
    rest = os.pathsep.join(each for each in path.split(os.pathsep) if os.path.realpath(each) != here)
    for name in PROGRAMS:
        other, first = shutil.which(name, path=rest), shutil.which(name, path=path)
        if other is None or first is None:
            continue
        if os.path.realpath(first) == os.path.realpath(directory / name):
            note(f"warning: {first} hides {other}")
        else:
            note(f"warning: {other} hides {directory / name}")
