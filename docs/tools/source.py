"""What the source says of names: assignments and definitions, each with its docstring, without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from docs.tools.page import ROOT


class Named(NamedTuple):
    """A name of a module or a class. `section` is the title of the comment line above it, if any."""

    name: str
    node: ast.stmt
    docstring: str
    section: str = ""


def module(dotted: str) -> ast.Module:
    """The module of this repository."""
    path = ROOT / (dotted.replace(".", "/") + ".py")
    if not path.exists():
        path = ROOT / dotted.replace(".", "/") / "__init__.py"
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def sections(dotted: str) -> list[tuple[int, str]]:
    """Line number and title of each `# Title ----` of a module."""
    path = ROOT / (dotted.replace(".", "/") + ".py")
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [(n, line.strip("# -")) for n, line in lines if line.startswith("# ") and line.endswith("-----")]


def named(body: list[ast.stmt]) -> Iterator[Named]:
    """The assignments, classes and functions; the docstring of an assignment is the string below it."""
    for node, below in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Named(node.name, node, ast.get_docstring(node) or "")
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield Named(name, node, _string(below))
            case _:
                pass


def class_of(dotted: str, name: str) -> ast.ClassDef:
    """The class with that name in a module."""
    found = next(one.node for one in named(module(dotted).body) if one.name == name)
    assert isinstance(found, ast.ClassDef)
    return found


def _string(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""
