"""The duration and exit code of a container, derived from its command without running it.

Supported are `sleep` (with s, m, h, d, `inf` or `infinity`), `exit`, `true`, `false`, `echo`, `trap` and `:`, alone or
as a script of a shell, joined by `;`, `&&`, `||` and line ends. The result of any other command is unknown.

The simulated nodes of the cluster tests interpret commands by the same rules (`tests/cluster/stages`), and a test
compares the two over one list of pods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_SHELL = re.compile(r"(\S*/)?(sh|bash|dash|ash|zsh)", re.ASCII)
_JOINS = re.compile(r"(&&|\|\||;|\n)")
_SUCCEEDS = re.compile(r"(\S*/)?(true|:|echo|trap)(\s.*)?", re.ASCII | re.DOTALL)
_FAILS = re.compile(r"(\S*/)?false(\s.*)?", re.ASCII | re.DOTALL)
_EXITS = re.compile(r"exit(?:\s+([0-9]{1,9}))?", re.ASCII)
_SLEEPS = re.compile(r"(?:\S*/)?sleep\s+(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)|inf(?:inity)?)", re.ASCII)
_IGNORES_SIGTERM = re.compile(r"\btrap\s+(''|\"\")\s+(SIG)?TERM\b", re.ASCII)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_SCRIPT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The duration and exit code of a command. `seconds` is None if it never ends by itself. `known` is False for an
    unsupported command."""

    seconds: float | None
    exit_code: int = 0
    known: bool = True


_UNKNOWN = Reading(seconds=None, known=False)


def read(container: Json) -> Reading:
    """The result of the container's command and arguments."""
    argv = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    if len(argv) >= 3 and _SHELL.fullmatch(argv[0]) and argv[1] == "-c":
        return _script(_JOINS.split(argv[2])) if len(argv[2]) <= _LONGEST_SCRIPT else _UNKNOWN
    line = " ".join(argv)
    return _script([line]) if line and len(line) <= _LONGEST_SCRIPT else _UNKNOWN


def ignores_sigterm(container: Json) -> bool:
    """Whether the command ignores SIGTERM until its grace period is over."""
    return bool(_IGNORES_SIGTERM.search(" ".join((*(container.get("command") or ()), *(container.get("args") or ())))))


def _script(parts: list[str]) -> Reading:
    """`parts` alternates between commands and the operators that join them."""
    seconds, code = 0.0, 0
    for index in range(0, len(parts), 2):
        part = parts[index].strip(" \t\n\f\r")
        joined_by = parts[index - 1] if index else ";"
        if not part or (joined_by == "&&" and code) or (joined_by == "||" and not code):
            continue
        if _SUCCEEDS.fullmatch(part):
            code = 0
        elif _FAILS.fullmatch(part):
            code = 1
        elif exits := _EXITS.fullmatch(part):
            return Reading(seconds=seconds, exit_code=int(exits[1]) % 256 if exits[1] else code)
        elif sleeps := _SLEEPS.fullmatch(part):
            if sleeps[1] is None:
                return Reading(seconds=None)
            seconds, code = seconds + float(sleeps[1]) * _UNITS[sleeps[2]], 0
        else:
            return _UNKNOWN
    return Reading(seconds=seconds, exit_code=code)
