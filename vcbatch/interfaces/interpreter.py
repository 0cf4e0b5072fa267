"""Command lines that start another Python without the current directory in its module search path.

`python -m` and `python -c` put the current directory first, so that a `queue.py` there is executed. `-P` leaves it out
and keeps the rest, since vcbatch may be installed for one user or found through PYTHONPATH. The flag is used instead of
the variable PYTHONSAFEPATH because a child process may start programs of users, which may import from their own
directories.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The directory that contains the package `vcbatch`."""


def python() -> list[str]:
    """This interpreter with its own isolation flags, and without the current directory in its path."""
    if sys.flags.isolated:
        return [sys.executable, "-I"]
    flags = ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    return [sys.executable, *flags, "-P"]


def vcbatch(*arguments: str) -> list[str]:
    """The command `vcbatch` of this package, which need not be installed."""
    return [*python(), str(ROOT / "vcbatch" / "__main__.py"), *arguments]


def function(module: str, name: str, *arguments: str) -> list[str]:
    """A call of a function of vcbatch with these arguments, in a new process."""
    code = f"import sys; sys.path.append({str(ROOT)!r}); from {module} import {name}; {name}(*sys.argv[1:])"
    return [*python(), "-c", code, *arguments]
