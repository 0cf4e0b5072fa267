"""The command line of one container: what was typed, and what starts it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

_INTERPRETERS: Final = frozenset({"python", "python3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`target` are the words that name it, after the interpreter where it is `python`'s: `train.py`, or `-m MODULE`."""

    python: bool
    target: tuple[str, ...]
    arguments: tuple[str, ...]

    @staticmethod
    def of(command: tuple[str, ...]) -> Program:
        """Of the words as they were typed; there is at least one."""
        start = 1 if len(command) > 1 and command[0] in _INTERPRETERS else 0
        first, rest = command[start], command[start + 1 :]
        if first == "-m" and rest:
            return Program(python=True, target=(first, rest[0]), arguments=rest[1:])
        if first.endswith(".py"):
            return Program(python=True, target=(first,), arguments=rest)
        return Program(python=False, target=command[:1], arguments=command[1:])

    @property
    def stem(self) -> str:
        """What it is called: `train` of `src/train.py` and of `-m recipes.train`."""
        if self.target[0] == "-m":
            return self.target[1].rpartition(".")[2]
        path = PurePosixPath(self.target[0])
        return path.stem if self.python else path.name

    def words(self, python: str) -> list[str]:
        """As one process."""
        return [*((python,) if self.python else ()), *self.target, *self.arguments]

    def under_torchrun(self, python: str, options: list[str]) -> list[str]:
        """As the processes that torchrun starts."""
        flags = options if self.python else [*options, "--no-python"]
        return [python, "-m", "torch.distributed.run", *flags, *self.target, *self.arguments]


def literal(text: str) -> str:
    """The text such that Kubernetes leaves it as it is: `$(NAME)` is a variable there, and `$$` a dollar."""
    out: list[str] = []
    for position, char in enumerate(text):
        out.append("$$" if char == "$" and text[position + 1 : position + 2] in ("$", "(") else char)
    return "".join(out)


def shell(script: str, words: list[str]) -> list[str]:
    """A shell script that finds these words as its arguments."""
    return ["sh", "-c", literal(script), "sh", *words]
