"""JSONPath in client-go's dialect (`util/jsonpath`), as in kubectl's `-o jsonpath` and printer columns of CRDs.

It differs from RFC 9535: `{...}` within text, `range`/`end`, text literals, a backslash before a dot of a name, and
`['a.b']` means `.a.b`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from vcbatch.api.jsonpath.evaluate import Budget, Evaluation
from vcbatch.api.jsonpath.nodes import Action, Identifier, MalformedPath, Part, PathError, Slice
from vcbatch.api.jsonpath.parser import parse
from vcbatch.api.jsonpath.text import shown

__all__ = [
    "MalformedPath",
    "Path",
    "PathError",
    "Template",
    "parse_column",
    "parse_path",
    "parse_template",
    "shown",
]

_VISITS: Final = 20_000_000
_VISITS_OF_COLUMN: Final = 100_000
_LONGEST_TEXT: Final = 64 * 1024 * 1024


class Path:
    """A parsed path. `visits` limits how many values one evaluation may visit."""

    __slots__ = ("_parts", "_visits", "text")

    def __init__(self, text: str, parts: Sequence[Part], *, visits: int = _VISITS) -> None:
        self.text = text
        self._parts = parts
        self._visits = visits

    def find(self, value: Any) -> list[Any]:
        """All values at the path; none where a field on the way is missing. Raises `PathError`."""
        found = Evaluation(self._parts, Budget(self._visits)).run(value)
        return found[0] if found else []

    def find_or_none(self, value: Any) -> list[Any]:
        """The same, and none where the path doesn't apply to the value."""
        try:
            return self.find(value)
        except PathError:
            return []


class Template:
    """Text with `{paths}` in it, as `-o jsonpath=` accepts it."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)

    def render(self, value: Any) -> str:
        """The text for one object; several values at one path are separated by spaces. Raises `PathError`."""
        out: list[str] = []
        left = _LONGEST_TEXT
        for results in Evaluation(self._parts, Budget(_VISITS)).run(value):
            for index, one in enumerate(results):
                text = f" {shown(one)}" if index else shown(one)
                left -= len(text)
                if left < 0:
                    raise PathError(f"the text is longer than {_LONGEST_TEXT} characters")
                out.append(text)
        return "".join(out)


def parse_path(text: str) -> Path:
    """Parse a path such as `.status.conditions[?(@.type=="Ready")].status`. The first dot may be omitted and braces may
    enclose it, as kubectl allows where one path is wanted. Raises `MalformedPath`."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    if not inner:
        raise MalformedPath("the path is empty, want one such as .metadata.name")
    if inner[0] not in ".[$@":
        inner = f".{inner}"
    parts = parse(f"{{{inner}}}")
    if len(parts) != 1:
        raise MalformedPath(f"{text[:64]!r}: want one path, without text around it")
    for error in _errors(parts):
        raise MalformedPath(error)
    return Path(inner, parts)


def parse_template(text: str) -> Template:
    """Parse a template such as `{range .items[*]}{.metadata.name}{"\\n"}{end}`. One without any braces is a single
    path.

    Raises `MalformedPath`, also for templates that can be parsed but never be evaluated.
    """
    if not text:
        return Template(())
    parts = parse(text) if "{" in text else parse(f"{{{text if text[0] in '.[$@' else f'.{text}'}}}")
    for error in _errors(parts):
        raise MalformedPath(error)
    return Template(parts)


def parse_column(text: str) -> Path:
    """Parse the `jsonPath` of a printer column (apiextensions-apiserver `tableconvertor.New`). Its values are those of
    the first part only, and a path that can't be evaluated shows with its first object. Raises `MalformedPath`."""
    return Path(text, parse(f"{{{text}}}"), visits=_VISITS_OF_COLUMN)


def _errors(parts: Sequence[Part]) -> Iterator[str]:
    """Errors of parts that can't be evaluated with any object."""
    depth = 0
    for part in parts:
        for node in part.nodes if isinstance(part, Action) else ():
            match node:
                case Identifier("range"):
                    depth += 1
                case Identifier("end"):
                    depth -= 1
                    if depth < 0:
                        yield "not in range, nothing to end"
                case Identifier(name):
                    yield f"unrecognized identifier {name}"
                case Slice(step=int(step)) if step <= 0:
                    yield "step must be > 0"
                case _:
                    pass
    if depth > 0:
        yield "a {range} has no {end}"
