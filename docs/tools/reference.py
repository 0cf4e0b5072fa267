"""Write the reference pages from the code: `python -m docs.tools.reference`.

With `--check` nothing is written; the pages that differ are named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import functools
import sys

from docs.tools.command_pages import command_pages
from docs.tools.configuration_page import configuration_pages
from docs.tools.kind_pages import kind_pages
from docs.tools.name_pages import name_pages
from docs.tools.page import ROOT
from docs.tools.sdk_page import sdk_pages

PAGES = ROOT / "docs" / "reference"


@functools.cache
def pages() -> dict[str, str]:
    """Name of a file in docs/reference -> its text."""
    return {**command_pages(), **sdk_pages(), **kind_pages(), **name_pages(), **configuration_pages()}


def outdated() -> list[str]:
    """The files that differ from the code, are missing, or should not exist."""
    wanted = pages()
    found = {file.name: file.read_text(encoding="utf-8") for file in PAGES.glob("*.md")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    names = outdated()
    if parser.parse_args().check:
        for name in names:
            sys.stderr.write(f"docs/reference/{name} isn't what the code says: make reference\n")
        return 1 if names else 0
    wanted = pages()
    PAGES.mkdir(exist_ok=True)
    for name in names:
        if name in wanted:
            (PAGES / name).write_text(wanted[name], encoding="utf-8")
        else:
            (PAGES / name).unlink()
        sys.stdout.write(f"docs/reference/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
