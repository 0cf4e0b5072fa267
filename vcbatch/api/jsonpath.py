"""JSONPath as kubectl speaks it (client-go `util/jsonpath`): paths into an object, and templates of text around them.

What client-go's language has and RFC 9535's hasn't: `{…}` inside of text, `range`/`end`, string literals, names with
`\\.` for a dot. A name that isn't there finds nothing, as with `kubectl get`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

Step = Callable[[Any], Iterator[Any]]

_LONGEST: Final = 16_384
_DEEPEST: Final = 32
_NAME = re.compile(r"(?:[^\s.\[\](){}'\"\\,?*@$<>=!|]|\\.)+")
_INDEX = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>")
_LITERAL = re.compile(r"(?:-?\d+(?:\.\d+)?|true|false)(?=[\s)])")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class MalformedPath(ValueError):
    """Text that is no path or template; says what stands where."""


class Path:
    """A path that was read: `find` gives all values at it."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: Sequence[Step]) -> None:
        self.text = text
        self._steps = steps

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in the order of the document; none where something on the way isn't there."""
        found = [value]
        for step in self._steps:
            found = [one for each in found for one in step(each)]
        return found


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Range:
    over: Path
    body: tuple[_Part, ...]


_Part = _Text | Path | _Range


class Template:
    """Text with `{paths}` in it, as `-o jsonpath=` takes it."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = tuple(parts)

    def render(self, value: Any) -> str:
        """The text for one object; several values at one path are separated by spaces."""
        out: list[str] = []
        _render(self._parts, value, out)
        return "".join(out)


def parse_path(text: str) -> Path:
    """Read a path such as `.status.conditions[?(@.type=="Ready")].status`. The first dot may be left out and braces
    may stand around it, as kubectl allows where just one path is wanted. Raises `MalformedPath`."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    _check_length(inner)
    if not inner:
        raise MalformedPath("the path is empty, want one such as .metadata.name")
    if inner[0] not in ".[$@":
        inner = f".{inner}"
    reader = _Reader(inner)
    path = reader.path()
    reader.skip_spaces()
    if not reader.at_end:
        raise reader.unexpected()
    return path


def parse_template(text: str) -> Template:
    """Read a template such as `{range .items[*]}{.metadata.name}{"\\n"}{end}`. One without any braces is a path alone.
    Raises `MalformedPath`."""
    _check_length(text)
    if "{" not in text:
        return Template([parse_path(text)])
    open_ranges: list[tuple[Path, list[_Part]]] = []
    parts: list[_Part] = []
    for literal, block, at in _blocks(text):
        if literal:
            parts.append(_Text(literal))
        if block is None:
            continue
        if block == "end":
            if not open_ranges:
                raise MalformedPath(f"{{end}} at {at} closes no {{range}}")
            over, outer = open_ranges.pop()
            outer.append(_Range(over, tuple(parts)))
            parts = outer
        elif block.startswith("range") and block[5:6] in (" ", "\t", "\n", ".", "[", "@", "$"):
            if len(open_ranges) >= _DEEPEST:
                raise MalformedPath(f"{{range}} at {at} is nested deeper than {_DEEPEST}")
            open_ranges.append((parse_path(block[5:]), parts))
            parts = []
        else:
            parts.extend(_items(block))
    if open_ranges:
        raise MalformedPath("a {range} has no {end}")
    return Template(parts)


def shown(value: Any) -> str:
    """A value as text: objects and lists as compact JSON, `null` for nothing."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        case _:
            return str(value)


def _check_length(text: str) -> None:
    if len(text) > _LONGEST:
        raise MalformedPath(f"{len(text)} characters, want at most {_LONGEST}")


def _render(parts: Sequence[_Part], value: Any, out: list[str]) -> None:
    for part in parts:
        match part:
            case _Text(text):
                out.append(text)
            case Path():
                out.append(" ".join(shown(one) for one in part.find(value)))
            case _Range(over, body):
                for one in over.find(value):
                    _render(body, one, out)


def _blocks(text: str) -> Iterator[tuple[str, str | None, int]]:
    """The text before each `{…}`, what is inside it, and where it starts; at last the text after all of them."""
    at = 0
    while (start := text.find("{", at)) >= 0:
        end = start + 1
        while end < len(text) and text[end] != "}":
            quoted = _QUOTED.match(text, end) if text[end] in "'\"" else None
            end = quoted.end() if quoted else end + 1
        if end >= len(text):
            raise MalformedPath(f"the brace at {start} isn't closed")
        yield text[at:start], text[start + 1 : end].strip(), start
        at = end + 1
    yield text[at:], None, at


def _items(block: str) -> Iterator[_Part]:
    reader = _Reader(block)
    reader.skip_spaces()
    if reader.at_end:
        raise MalformedPath("empty braces, want a path such as {.metadata.name}")
    while not reader.at_end:
        literal = reader.quoted()
        yield _Text(literal) if literal is not None else reader.path()
        reader.skip_spaces()


class _Operand(NamedTuple):
    path: Path | None
    value: Any


class _Reader:
    """Reads paths off a text."""

    def __init__(self, text: str, *, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def skip_spaces(self) -> None:
        while not self.at_end and self._text[self._at].isspace():
            self._at += 1

    def unexpected(self) -> MalformedPath:
        rest = self._text[self._at : self._at + 20]
        what = f"unexpected {rest!r}" if rest else "it ends too soon"
        return MalformedPath(f"{self._text[:64]!r}: {what} at {self._at}")

    def quoted(self) -> str | None:
        """A string literal, where one is next."""
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return _unescaped(found[1] if found[1] is not None else found[2])

    def path(self) -> Path:
        start = self._at
        if self._peek() in "$@":
            self._at += 1
        steps: list[Step] = []
        while (next_ := self._peek()) and next_ in ".[":
            steps.extend(self._bracket() if next_ == "[" else self._dotted())
        if self._at == start:
            raise self.unexpected()
        return Path(self._text[start : self._at], steps)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, word: str) -> bool:
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def _dotted(self) -> Iterator[Step]:
        if self._take(".."):
            yield _everything_below
            if self._peek() == "[":
                return
        else:
            self._at += 1
        if self._take("*"):
            yield _every
            return
        if (name := _NAME.match(self._text, self._at)) is not None:
            self._at = name.end()
            yield _key(re.sub(r"\\(.)", r"\1", name[0]))
        elif not (self.at_end or self._peek() in " \t\n[)=!<>,"):  # a lone dot is the object itself
            raise self.unexpected()

    def _bracket(self) -> Iterator[Step]:
        self._at += 1
        self.skip_spaces()
        if self._take("?("):
            yield self._filter()
            self._close()
            return
        steps = [self._subscript()]
        while self._take(","):
            self.skip_spaces()
            steps.append(self._subscript())
        self._close()
        yield steps[0] if len(steps) == 1 else _union(steps)

    def _close(self) -> None:
        self.skip_spaces()
        if not self._take("]"):
            raise self.unexpected()

    def _subscript(self) -> Step:
        if self._take("*"):
            return _every
        name = self.quoted()
        if name is not None:
            self.skip_spaces()
            return _key(name)
        if (span := _SLICE.match(self._text, self._at)) is not None:
            self._at = span.end()
            first, last, step = (int(number) if number else None for number in span.groups())
            if step is not None and step <= 0:
                raise MalformedPath(f"{self._text[:64]!r}: step {step}, want 1 or more")
            return _slice(slice(first, last, step))
        if (index := _INDEX.match(self._text, self._at)) is not None:
            self._at = index.end()
            self.skip_spaces()
            return _item(int(index[0]))
        raise self.unexpected()

    def _filter(self) -> Step:
        if self._depth >= _DEEPEST:
            raise MalformedPath(f"filters are nested deeper than {_DEEPEST}")
        left = self._operand()
        self.skip_spaces()
        operator = _OPERATOR.match(self._text, self._at)
        right: _Operand | None = None
        if operator is not None:
            self._at = operator.end()
            right = self._operand()
            self.skip_spaces()
        if not self._take(")"):
            raise self.unexpected()
        return _matching(left, operator[0] if operator else "", right)

    def _operand(self) -> _Operand:
        self.skip_spaces()
        literal = self.quoted()
        if literal is not None:
            return _Operand(None, literal)
        if (number := _LITERAL.match(self._text, self._at)) is not None:
            self._at = number.end()
            return _Operand(None, json.loads(number[0]))
        self._depth += 1
        path = self.path()
        self._depth -= 1
        return _Operand(path, None)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


# -- steps ----------------------------------------------------------------------------------------------------------


def _key(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _item(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        items = cast("list[Any]", value) if isinstance(value, list) else []
        if -len(items) <= index < len(items):
            yield items[index]

    return step


def _slice(span: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from cast("list[Any]", value)[span]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from cast("list[Any]", value)
    elif isinstance(value, dict):
        # By key, since an object has no order of its own on the wire.
        yield from (each for _, each in sorted(cast("dict[str, Any]", value).items()))


def _everything_below(value: Any) -> Iterator[Any]:
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(list(_every(one))))


def _union(steps: Sequence[Step]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for each in steps:
            yield from each(value)

    return step


def _matching(left: _Operand, operator: str, right: _Operand | None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in cast("list[Any]", value) if isinstance(value, list) else ():
            ours = _values(left, item)
            if right is None:
                if ours:
                    yield item
                continue
            theirs = _values(right, item)
            if len(ours) == 1 and len(theirs) == 1 and _holds(ours[0], operator, theirs[0]):
                yield item

    return step


def _values(operand: _Operand, item: Any) -> list[Any]:
    return operand.path.find(item) if operand.path is not None else [operand.value]


def _holds(left: Any, operator: str, right: Any) -> bool:
    """Values of different types are unequal, and neither is less than the other."""
    alike = _type(left) == _type(right)
    if operator in ("==", "!="):
        return (alike and left == right) is (operator == "==")
    if not alike or _type(left) not in ("number", "text"):
        return False
    match operator:
        case "<":
            return left < right
        case ">":
            return left > right
        case "<=":
            return left <= right
        case _:
            return left >= right


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__
