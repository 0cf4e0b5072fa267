"""Remove from a folder of installed packages what no component reads, then compile what components import.

Run by the Dockerfile in the layer that installs, as `slim.py FOLDER`. Modules keep their source, for tracebacks.
"""

from __future__ import annotations

import compileall
import py_compile
import re
import shutil
import sys
from pathlib import Path

_TEST_FOLDERS = frozenset({"tests", "test"})
_UNREAD_SUFFIXES = frozenset({".pyi", ".pyx", ".pxd", ".c", ".h", ".hpp", ".a"})
"""Stubs, sources and headers: read by type checkers and compilers."""
_UNREAD_FOLDERS = ("numpy/_core/include", "numpy/_core/lib", "numpy/f2py")
_UNREAD_RECORDS = frozenset(
    {"INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json", "top_level.txt", "zip-safe"}
)
"""Of a `*.dist-info`; its METADATA, entry points and licenses stay."""
_KEPT_SCRIPTS = re.compile(r"^(python[0-9.]*|vcbatch)$")


def slim(site: Path) -> None:
    """Remove what isn't read below `site`, a `site-packages`."""
    for path in sorted(site.rglob("*")):
        if not path.exists() and not path.is_symlink():
            continue  # inside of what was removed
        if path.is_dir() and not path.is_symlink():
            # A package of that name at the top is one that somebody asked for.
            if path.name == "__pycache__" or (path.name in _TEST_FOLDERS and path.parent != site):
                shutil.rmtree(path)
        elif path.suffix in _UNREAD_SUFFIXES or (path.parent.suffix == ".dist-info" and path.name in _UNREAD_RECORDS):
            path.unlink()
    for name in _UNREAD_FOLDERS:
        shutil.rmtree(site / name, ignore_errors=True)


def compile_packages(site: Path) -> bool:
    """Compile modules, marked as never to be compared with their source; whether all could be."""
    return bool(compileall.compile_dir(site, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH))


def keep_scripts(folder: Path) -> None:
    """Remove all scripts of `folder` but the interpreter and our own."""
    for script in folder.iterdir():
        if not _KEPT_SCRIPTS.match(script.name):
            script.unlink()


def main(folder: Path) -> int:
    """0, or 1 where a module can't be compiled or there is no `site-packages`."""
    sites = sorted(folder.glob("lib/python3*/site-packages"))
    if not sites:
        print(f"error: no lib/python3*/site-packages in {folder}", file=sys.stderr)
        return 1
    for site in sites:
        slim(site)
        if not compile_packages(site):
            return 1
    if (folder / "bin").is_dir():
        keep_scripts(folder / "bin")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
