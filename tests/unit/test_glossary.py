"""The words that the glossary replaces stay out of the code, its messages and the documents."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
SOURCES: Final = sorted(path for package in ("vcbatch", "webhooks") for path in (ROOT / package).rglob("*.py"))
PAGES: Final = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path != GLOSSARY] + [ROOT / "README.md"]

REPLACED: Final = re.compile(
    r"\b(?:anew|books|(?<!inject )(?<!injected )faults?(?! injection)|foresees?|pictures?|seams?|steers?|told"
    r"|wish(?:es)?)\b",
    re.IGNORECASE,
)
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<[^>\n]*>", re.DOTALL)


def _spoken(identifier: str) -> str:
    """`PolicyError.requeue_at` as words: `Policy Error requeue at`."""
    return " ".join(_PARTS.findall(identifier))


def _strays(path: Path, texts: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {found[0]}" for line, text in texts if (found := REPLACED.findall(text))]


def _identifiers(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], _spoken(token.string)


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and messages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, _CODE.sub(" ", node.value)


@pytest.mark.parametrize("identifier", ["queue_fault", "QueueFault", "TOLD", "_wishes", "seams"])
def test_words_are_found_in_identifiers(identifier: str) -> None:
    assert REPLACED.search(_spoken(identifier))


@pytest.mark.parametrize("identifier", ["faulty", "DEFAULTS", "lookup", "faulthandler", "bookmark"])
def test_other_words_that_contain_them_are_not_found(identifier: str) -> None:
    assert not REPLACED.search(_spoken(identifier))


def test_modules_and_identifiers_use_the_glossary() -> None:
    names = [str(path.relative_to(ROOT)) for path in SOURCES if REPLACED.search(_spoken(path.stem))]
    strays = [stray for path in SOURCES for stray in _strays(path, _identifiers(path))]
    assert not names + strays, "see docs/glossary.md:\n" + "\n".join(names + strays)


def test_docstrings_comments_and_messages_use_the_glossary() -> None:
    strays = [
        stray for path in SOURCES for texts in (_comments(path), _strings(path)) for stray in _strays(path, texts)
    ]
    assert not strays, "see docs/glossary.md:\n" + "\n".join(strays)


def test_documents_use_the_glossary() -> None:
    strays = []
    for path in PAGES:
        text = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), path.read_text(encoding="utf-8"))
        strays += _strays(path, iter(enumerate(text.splitlines(), 1)))
    assert not strays, "see docs/glossary.md:\n" + "\n".join(strays)


def test_the_glossary_lists_each_word_that_is_replaced() -> None:
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words that are replaced")[2]
    listed = {found.lower() for row in table.splitlines() for found in REPLACED.findall(row.partition(" | ")[0])}
    words = {"anew", "books", "faults", "foresee", "picture", "seams", "steer", "told", "wish"}
    assert listed == words
