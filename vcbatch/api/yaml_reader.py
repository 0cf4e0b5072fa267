"""The only reader of YAML: manifests, policies, kubeconfigs, configuration files and request bodies.

Size, nesting and expansion of a text are limited (`Limits`), and exceeding a limit is an error with its line and
column, for texts of any author. No other module calls PyYAML's loaders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import yaml

from vcbatch.api.yaml_nodes import Composer, Document, Limits, Node, RepeatedKey, YamlError

__all__ = ["CONFIGURATION", "MANIFESTS", "Document", "Limits", "Node", "RepeatedKey", "YamlError", "documents", "only"]

MANIFESTS: Final = Limits(size=64 * 1024 * 1024)
"""Files that a user names on a command line."""
CONFIGURATION: Final = Limits(size=1024 * 1024, nodes=200_000, aliased=100_000, documents=1)
"""Scheduler configurations and other configuration, which may change while a component runs."""

# PyYAML may be built without libyaml; both parsers are iterative.
_PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(text: str | bytes, limits: Limits = MANIFESTS, *, letters: bool = True) -> Iterator[Document]:
    """The documents of a text in order, each read only when the iterator reaches it; an empty one has the value None.

    Bare `y`, `Y`, `n` and `N` are booleans, as for kubectl; without `letters` they are strings.

    Raises:
        YamlError: the text isn't YAML from some position on, or exceeds a limit.
    """
    if len(text) > limits.size:
        raise YamlError(f"larger than {limits.size} bytes")
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        line, column = _place(error.object[: error.start])
        raise YamlError(f"character {error.object[error.start]!a} isn't allowed in YAML", line, column) from None
    try:
        yield from Composer(limits, letters=letters).documents(cast("Any", yaml).parse(data, Loader=_PARSER))
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, data) from error
    except yaml.reader.ReaderError as error:
        raise _unreadable(error, data) from error
    except yaml.YAMLError as error:  # PyYAML raises no others
        raise YamlError(" ".join(str(error).split())) from error


def only(text: str | bytes, limits: Limits = CONFIGURATION) -> Document:
    """The single document of a text, with the value None where it is empty.

    Raises:
        YamlError: the text isn't YAML, has a second document, or exceeds a limit.
    """
    found: Document | None = None
    for document in documents(text, limits):
        found = document
    return found or Document(value=None, node=None)


def _malformed(error: yaml.MarkedYAMLError, data: bytes) -> YamlError:
    """The parser's error, at the start of the construct that isn't closed where that is the cause."""
    problem = str(error.problem or error.context or "not valid YAML")
    mark, began = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return YamlError(problem)
    line = data.splitlines()[mark.line : mark.line + 1]
    before = line[0].decode(errors="replace")[: mark.column + 1] if line else ""
    if "\t" in before and before.isspace():
        problem = "a tab where only spaces may be"
    elif error.context and began is not None and began.line < mark.line:
        problem += f", {error.context} that begins in line {began.line + 1}"
    return YamlError(problem, mark.line + 1, mark.column + 1)


def _unreadable(error: yaml.reader.ReaderError, data: bytes) -> YamlError:
    position = max(error.position, 0) if isinstance(error.position, int) else 0
    line, column = _place(data[:position].decode(errors="replace"))
    code = error.character if isinstance(error.character, int) else ord(str(error.character)[:1] or "\0")
    if error.encoding in ("?", "unicode"):
        return YamlError(f"character #x{code & 0xFFFFFFFF:04x} isn't allowed in YAML", line, column)
    return YamlError(f"not UTF-8 text: {error.reason}", line, column)


def _place(before: str) -> tuple[int, int]:
    """Line and column of the position after this text."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")
