"""What holds for the whole source tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for package in ("vcbatch", "webhooks") for path in (ROOT / package).rglob("*.py"))
VOCABULARY = ROOT / "vcbatch" / "api"

# Group names appear where resources are named; everything else under these domains is a label or an annotation.
WIRE_KEY = re.compile(r"^(?:[a-z0-9.-]+\.)?(?:volcano\.sh|scheduling\.k8s\.io)/[A-Za-z0-9._-]+$")
VERSIONS = re.compile(r"/v\d+(?:(?:alpha|beta)\d+)?$")


def test_imports_go_downwards() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_wire_keys_are_named_in_one_place() -> None:
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in SOURCES
        if VOCABULARY not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and WIRE_KEY.match(node.value)
        and not VERSIONS.search(node.value)
    ]
    assert not strays, "labels and annotations belong into vcbatch/api/names.py:\n" + "\n".join(strays)


def test_decisions_read_no_clock() -> None:
    """`datetime` is imported for its type; asking it for the time is the interface's business."""
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[:2] in (("vcbatch", "api"), ("vcbatch", "core"), ("vcbatch", "scheduler"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("now", "utcnow", "today")
    ]
    assert not strays, strays


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent, silent


def test_citations_name_files_that_a_reader_can_open() -> None:
    """A numbered section of a Markdown file is one of a document that isn't here: the pages have no numbers."""
    cited = re.compile(r"[a-z-]+\.md [0-9]+\.[0-9]")
    sources = [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    strays = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in sources
        for found in cited.findall(path.read_text(encoding="utf-8"))
    ]
    assert not strays, strays
