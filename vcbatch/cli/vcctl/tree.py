"""The tree of commands, the search for one in the arguments, and their help as cobra prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vcbatch.cli.vcctl.flags import HELP, Flag, Kind

_NAME_WIDTH = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A group of commands, or a command that runs: then `run` is `module:function`, imported when it is called, which
    takes the parsed flags and returns the exit code."""

    name: str
    short: str = ""
    long: str = ""
    run: str = ""
    flags: Sequence[Flag] = ()
    below: Sequence[Command] = field(default=())

    def all_flags(self) -> list[Flag]:
        own = Flag(name=HELP, short="h", kind=Kind.BOOL, default=False, help=f"help for {self.name}")
        return sorted([*self.flags, own], key=lambda flag: flag.name)

    def child(self, name: str) -> Command | None:
        return next((command for command in self.below if command.name == name), None)


Path = tuple[Command, ...]
"""A command and its parents, from the root down."""


def title(path: Path) -> str:
    return " ".join(command.name for command in path)


def find(root: Command, arguments: Sequence[str]) -> tuple[Path, list[str]]:
    """The command that the arguments name, and the arguments without its names. As in cobra, flags may precede a
    command's name, and an unknown flag there is assumed to have a value."""
    path: Path = (root,)
    left = list(arguments)
    while True:
        at = next(_words(left, path[-1].all_flags()), None)
        child = path[-1].child(left[at]) if at is not None else None
        if at is None or child is None:
            return path, left
        del left[at]
        path = (*path, child)


def _words(arguments: Sequence[str], flags: Sequence[Flag]) -> Iterator[int]:
    """The indexes of the arguments that are neither flags nor values of flags."""
    switches = {f"-{flag.short}" for flag in flags if flag.kind is Kind.BOOL and flag.short}
    switches |= {f"--{flag.name}" for flag in flags if flag.kind is Kind.BOOL}
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "--":
            return
        if argument.startswith("-") and len(argument) > 1:
            alone = argument.startswith("--") or len(argument) == 2
            if alone and "=" not in argument and argument not in switches:
                at += 1
        elif argument and argument != "-":
            yield at
        at += 1


def help_text(path: Path) -> str:
    """The output of `--help`, without the last newline."""
    command = path[-1]
    said = (command.long or command.short).strip()
    return (f"{said}\n\n" if said else "") + usage(path)


def usage(path: Path) -> str:
    """The usage of the command, without the last newline."""
    command, name = path[-1], title(path)
    lines = ["Usage:"]
    lines += [f"  {name} [flags]"] if command.run and command.all_flags() else [f"  {name}"] if command.run else []
    if command.below:
        below = command.below if len(path) > 1 else (*command.below, _HELP_COMMAND)
        width = max(_NAME_WIDTH, *(len(one.name) for one in below))
        listed = sorted(below, key=lambda one: one.name)
        lines += [f"  {name} [command]", "", "Available Commands:"]
        lines += [f"  {one.name.ljust(width)} {one.short}" for one in listed]
    lines += ["", "Flags:", *_flag_lines(command.all_flags())]
    if command.below:
        lines += ["", f'Use "{name} [command] --help" for more information about a command.']
    return "\n".join(lines)


_HELP_COMMAND = Command(name=HELP, short="Help about any command")


def _flag_lines(flags: Sequence[Flag]) -> list[str]:
    heads = [_head(flag) for flag in flags]
    width = max(len(head) for head in heads)
    return [f"{head.ljust(width)}   {flag.help}{_default(flag)}" for head, flag in zip(heads, flags, strict=True)]


def _head(flag: Flag) -> str:
    head = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    return f"{head} {flag.kind}" if flag.kind is not Kind.BOOL else head


def _default(flag: Flag) -> str:
    if not flag.default:
        return ""
    return f' (default "{flag.default}")' if flag.kind is Kind.TEXT else f" (default {flag.default})"


def alike(name: str, group: Command) -> list[str]:
    """The commands with similar names, sorted."""
    meant = (one.name for one in group.below if _distance(name.lower(), one.name) <= 2 or one.name.startswith(name))
    return sorted(meant)


def _distance(one: str, other: str) -> int:
    """The Levenshtein distance: the number of letters to insert, delete or replace."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for at, facing in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (letter != facing))
    return row[-1]
