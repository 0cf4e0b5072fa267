"""Print what extras of pyproject.toml need, one requirement a line: `requirements.py [-f FILE] controllers,scheduler`.

Installed in a layer of its own, before the project: a change of the project leaves that layer as it is.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_EXTRAS_OF = re.compile(r"^([A-Za-z0-9._-]+)\[([A-Za-z0-9._,\s-]+)\]$")


class UnknownExtraError(Exception):
    """pyproject.toml has no extra of that name."""


def requirements(project: dict[str, Any], extras: Sequence[str]) -> list[str]:
    """The project's dependencies and those of `extras`, in order and each once; `NAME[extra]` of the project itself
    stands for that extra. Raises `UnknownExtraError`."""
    known: dict[str, list[str]] = project.get("optional-dependencies", {})
    found = dict.fromkeys(project.get("dependencies", []))
    waiting, seen = list(extras), set[str]()
    while waiting:
        extra = waiting.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in known:
            raise UnknownExtraError(f"no extra {extra!r}; there are: {', '.join(sorted(known))}")
        for requirement in known[extra]:
            own = _EXTRAS_OF.match(requirement)
            if own and own[1].lower() == project["name"].lower():
                waiting.extend(name.strip() for name in own[2].split(","))
            else:
                found.setdefault(requirement)
    return list(found)


def main() -> int:
    """0, or 2 for an extra that doesn't exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-f", "--file", type=Path, default=Path("pyproject.toml"))
    parser.add_argument("extras", help="names, separated by commas; may be empty")
    given = parser.parse_args()
    project = tomllib.loads(given.file.read_text(encoding="utf-8"))["project"]
    try:
        names = requirements(project, [name for name in given.extras.replace(" ", "").split(",") if name])
    except UnknownExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(names))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
