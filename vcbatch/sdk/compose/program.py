"""The command line of one container: the given words, and the command that starts them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

_INTERPRETERS: Final = frozenset({"python", "python3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`target` are the words that name the program, after the interpreter where that is `python`: `train.py`, or
    `-m MODULE`."""

    python: bool
    target: tuple[str, ...]
    arguments: tuple[str, ...]

    @staticmethod
    def of(command: tuple[str, ...]) -> Program:
        """Parse the words of a command line; there is at least one."""
        start = 1 if len(command) > 1 and command[0] in _INTERPRETERS else 0
        first, rest = command[start], command[start + 1 :]
        if first == "-m" and rest:
            return Program(python=True, target=(first, rest[0]), arguments=rest[1:])
        if first.endswith(".py"):
            return Program(python=True, target=(first,), arguments=rest)
        return Program(python=False, target=command[:1], arguments=command[1:])

    @property
    def stem(self) -> str:
        """The name of the program: `train` for `src/train.py` and for `-m recipes.train`."""
        if self.target[0] == "-m":
            return self.target[1].rpartition(".")[2]
        path = PurePosixPath(self.target[0])
        return path.stem if self.python else path.name

    def words(self, python: str) -> list[str]:
        """The command of a single process."""
        return [*((python,) if self.python else ()), *self.target, *self.arguments]

    def under_torchrun(self, python: str, options: list[str]) -> list[str]:
        """The command with which torchrun starts the processes."""
        flags = options if self.python else [*options, "--no-python"]
        return [python, "-m", "torch.distributed.run", *flags, *self.target, *self.arguments]


def literal(text: str) -> str:
    """The text with Kubernetes' escapes: there `$(NAME)` is a variable, and `$$` a dollar."""
    out: list[str] = []
    for position, char in enumerate(text):
        out.append("$$" if char == "$" and text[position + 1 : position + 2] in ("$", "(") else char)
    return "".join(out)


def shell(script: str, words: list[str]) -> list[str]:
    """The command of a shell script with these words as its arguments."""
    return ["sh", "-c", literal(script), "sh", *words]
