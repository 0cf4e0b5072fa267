"""How this program starts another Python: never with the current folder among the places where modules are looked for.

`python -m` and `python -c` put the current folder first, so that a `queue.py` there is executed. `-P` leaves it out and
keeps the rest, since vcbatch may be installed for one user or found through PYTHONPATH. It is a flag and no variable
(PYTHONSAFEPATH), because what we start may start the programs of users, which have a right to their own folders.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""Where the package `vcbatch` is."""


def python() -> list[str]:
    """This interpreter, as isolated as it runs itself, and without the current folder in its path."""
    if sys.flags.isolated:
        return [sys.executable, "-I"]
    flags = ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    return [sys.executable, *flags, "-P"]


def vcbatch(*arguments: str) -> list[str]:
    """The command `vcbatch` of this very package, which need not be installed."""
    return [*python(), str(ROOT / "vcbatch" / "__main__.py"), *arguments]


def function(module: str, name: str, *arguments: str) -> list[str]:
    """A call of one of our functions in a process of its own, with these arguments."""
    code = f"import sys; sys.path.append({str(ROOT)!r}); from {module} import {name}; {name}(*sys.argv[1:])"
    return [*python(), "-c", code, *arguments]
