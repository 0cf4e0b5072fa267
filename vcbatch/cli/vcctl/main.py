"""The programs: `vcctl`, and `vsub`, `vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

Exit codes are Volcano's: 0, 255 for errors (printed on stdout as `Failed to ...`, which scripts parse), 1 for wrong
usage of vcctl, 254 for that of the others. Hints go to stderr, which no script parses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from operator import attrgetter
from typing import NoReturn

from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.terminal import clean
from vcbatch.cli.vcctl.flags import HELP, FlagError, Given, parse
from vcbatch.cli.vcctl.tree import Command, Path, alike, find, help_text, title, usage
from vcbatch.interfaces.api import ApiError

FAILED = 255
WRONG_USAGE = 1
WRONG_USAGE_ALONE = 254

ERRORS = "VCCTL_ERRORS"
"""Environment variable: with `stderr` errors go to stderr, with exit code 1, as in other programs."""


def run(root: Command, arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; returns the exit code."""
    try:
        path, left = find(root, arguments)
        if root.below and len(path) == 1 and left[:1] == [HELP]:
            return _help(root, left[1:])
        try:
            given = parse(left, path[-1].all_flags())
        except FlagError as error:
            return _misused(path, str(error))
        if given.on(HELP) or (path[-1].below and given.rest[:1] in ([], [HELP])):
            say(help_text(path))
            return 0
        if path[-1].below:
            return _unknown(path, given.rest[0])
        return _done(path, given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has closed the output, so errors can't be shown either
        return 141


def _done(path: Path, given: Given) -> int:
    if given.rest:
        note(f"ignored: {' '.join(given.rest)} ({title(path)} takes flags only)")
    module, _, function = path[-1].run.partition(":")
    try:
        return attrgetter(function)(import_module(module))(given)
    except CliError as error:
        chain = "".join(f" {command.name}" for command in reversed(path[1:]))
        return _failed(f"Failed to{chain}: {clean(_words(error))}", error)


def _words(error: CliError) -> str:
    """The message. For a forbidden request it is the server's own, which scripts match."""
    cause = error.__cause__
    return cause.message if isinstance(cause, ApiError) and cause.code == 403 else str(error)


def _failed(sentence: str, error: CliError) -> int:
    modern = os.environ.get(ERRORS) == "stderr"
    (note if modern else say)(sentence)
    if error.hint:
        note(f"  {error.hint}")
    return error.exit_code if modern else FAILED


def _misused(path: Path, message: str) -> int:
    if path[0].below:
        note(f"{usage(path)}\n\nError: {message}")
        return WRONG_USAGE
    note(f"Error: {message}\n{usage(path)}\n")
    say(f"Failed to execute {path[0].name}: {message}")
    return WRONG_USAGE_ALONE


def _unknown(path: Path, name: str) -> int:
    message = f'Error: unknown command "{name}" for "{title(path)}"'
    meant = alike(name, path[-1])
    if meant:
        message += "\n\nDid you mean this?\n" + "".join(f"\t{one}\n" for one in meant)
    note(message)
    return WRONG_USAGE


def _help(root: Command, names: Sequence[str]) -> int:
    path: Path = (root,)
    for name in names:
        child = path[-1].child(name)
        if child is None:
            return _unknown(path, name)
        path = (*path, child)
    say(help_text(path))
    return 0


def _program(name: str) -> NoReturn:
    from vcbatch.cli.vcctl.commands import PROGRAMS

    sys.exit(run(PROGRAMS[name], sys.argv[1:]))


def vcctl() -> NoReturn:
    _program("vcctl")


def vsub() -> NoReturn:
    _program("vsub")


def vjobs() -> NoReturn:
    _program("vjobs")


def vcancel() -> NoReturn:
    _program("vcancel")


def vsuspend() -> NoReturn:
    _program("vsuspend")


def vresume() -> NoReturn:
    _program("vresume")


def vqueues() -> NoReturn:
    _program("vqueues")
