"""What a container would do, read off its command without running it.

Understood are `sleep` (with s, m, h, d or `infinity`), `exit`, `true`, `false`, `echo` and `:`, alone or as a script of
a shell, joined by `;`, `&&`, `||` and line ends. Whatever else a command is, it runs until its pod is deleted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_LONGEST_SCRIPT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretence:
    """`seconds` None means: until the pod is deleted."""

    seconds: float | None
    exit_code: int = 0


_FOREVER = Pretence(seconds=None)


def pretence(container: Json) -> Pretence:
    """How long the container would run, and how it would end."""
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not argv:
        return _FOREVER
    if _program(argv[0]) in _SHELLS and len(argv) >= 3 and argv[1] == "-c":
        return _script(argv[2])
    return _words(argv) or _FOREVER


def _script(text: str) -> Pretence:
    if len(text) > _LONGEST_SCRIPT:
        return _FOREVER
    seconds, code = 0.0, 0
    joined_by = ";"
    for part in re.split(r"(&&|\|\||;|\n)", text):
        if part in ("&&", "||", ";", "\n"):
            joined_by = part
            continue
        if not part.strip() or (joined_by == "&&" and code) or (joined_by == "||" and not code):
            continue
        try:
            words = shlex.split(part)
        except ValueError:
            return _FOREVER
        step = _words(words)
        if step is None or step.seconds is None:
            return _FOREVER
        seconds, code = seconds + step.seconds, step.exit_code
        if words[0] == "exit":
            break
    return Pretence(seconds=seconds, exit_code=code)


def _words(words: Sequence[str]) -> Pretence | None:
    """None for a command that isn't understood."""
    match [_program(words[0]), *words[1:]]:
        case ["true" | ":" | "echo", *_]:
            return Pretence(seconds=0.0)
        case ["false", *_]:
            return Pretence(seconds=0.0, exit_code=1)
        case ["exit"]:
            return Pretence(seconds=0.0)
        case ["exit", code] if code.isdigit():
            return Pretence(seconds=0.0, exit_code=int(code) % 256)
        case ["sleep", "infinity"]:
            return _FOREVER
        case ["sleep", duration] if found := _DURATION.fullmatch(duration):
            return Pretence(seconds=float(found[1]) * _UNITS[found[2]])
        case _:
            return None


def _program(path: str) -> str:
    return path.rpartition("/")[2]
