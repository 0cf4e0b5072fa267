"""The syntax of the Common Expression Language: text to a tree, bounded in size and nesting.

Source: cel-spec `doc/langdef.md`, with the macros and the optional syntax (`a.?b`, `a[?i]`, `[?a]`) that Kubernetes
enables (k8s.io/apiserver `pkg/cel/environment`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vcbatch.api.cel.values import UInt

LONGEST = 20_000
"""The maximum of code points of an expression; parsing them takes some 0.2 s. cel-go allows five times as many."""
DEEPEST = 48
"""The maximum nesting of brackets and conditionals."""
_LONGEST_CHAIN = 100
"""The maximum of operators or selections in a row, which nest to the left."""


class CelSyntaxError(ValueError):
    """An invalid expression, in cel-go's words: `ERROR: <input>:1:7: Syntax error: …`."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; `optional` for `.?`, `test` within `has()`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator. `target` is the receiver of a method call."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]
    optional: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]
    optional: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Macro:
    """A loop over `operand` (all, exists, exists_one, map, filter, transformList, transformMap), or a binding of one
    value (optMap, optFlatMap, bind). `variables` are bound in `args`."""

    name: str
    operand: Node
    variables: tuple[str, ...]
    args: tuple[Node, ...]


Node = Literal | Ident | Select | Index | Call | ListOf | MapOf | Macro

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
  | (?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:'''(?s:.)*?(?<!\\)'''|\"\"\"(?s:.)*?(?<!\\)\"\"\"
      |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<int>0[xX][0-9a-fA-F]+[uU]?|\d+[uU]?)
  | (?P<name>[A-Za-z_]\w*|`[A-Za-z0-9_./\- ]+`)
  | (?P<mark>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_LOOPS = {
    "all": (1, 1), "exists": (1, 1), "exists_one": (1, 1), "existsOne": (1, 1), "map": (1, 2), "filter": (1, 1),
    "transformList": (1, 2), "transformMap": (1, 2),
}  # fmt: skip
"""Macros: the minimum and maximum number of arguments after their variables."""
_TWO_VARIABLES = frozenset({"all", "exists", "existsOne", "transformList", "transformMap"})
_RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})


def parse(text: str) -> Node:
    """The tree of an expression. Raises `CelSyntaxError`."""
    if len(text) > LONGEST:
        raise CelSyntaxError(
            f"ERROR: <input>:-1:0: expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        )
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._at = 0
        self._depth = 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"token recognition error at: '{text[position]}'", position)
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup or "", match[0], position))
            position = match.end()
        self._tokens.append(("end", "<EOF>", len(text)))

    def _error(self, message: str, position: int) -> CelSyntaxError:
        line = self._text.count("\n", 0, position) + 1
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        return CelSyntaxError(f"ERROR: <input>:{line}:{column}: Syntax error: {message}")

    def _unexpected(self) -> CelSyntaxError:
        _, text, position = self._tokens[self._at]
        return self._error(f"mismatched input '{text}'", position)

    def _is(self, mark: str) -> bool:
        kind, text, _ = self._tokens[self._at]
        return text == mark and kind in ("mark", "name")

    def _take(self, mark: str) -> bool:
        if self._is(mark):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._unexpected()

    def whole(self) -> Node:
        node = self._expression()
        if self._tokens[self._at][0] != "end":
            raise self._unexpected()
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"expression nests deeper than {DEEPEST} levels", self._tokens[self._at][2])
        condition = self._chain("||", lambda: self._chain("&&", self._relation))
        if self._take("?"):
            chosen = self._chain("||", lambda: self._chain("&&", self._relation))
            self._expect(":")
            condition = Call("_?_:_", (condition, chosen, self._expression()))
        self._depth -= 1
        return condition

    def _chain(self, mark: str, operand: Any) -> Node:
        """The operands of a logical operator as one call, since a chain doesn't count as nesting."""
        operands = [operand()]
        while self._take(mark):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Call(mark, tuple(operands))

    def _relation(self) -> Node:
        left, many = self._sum(), 0
        while self._tokens[self._at][1] in _RELATIONS and self._tokens[self._at][0] in ("mark", "name"):
            operator = self._tokens[self._at][1]
            self._at += 1
            many = self._longer(many)
            left = Call(operator, (left, self._sum()))
        return left

    def _longer(self, many: int) -> int:
        """The length of a chain plus one. Raises `CelSyntaxError` where it is too long."""
        if many >= _LONGEST_CHAIN:
            raise self._error(f"more than {_LONGEST_CHAIN} operators in a row", self._tokens[self._at][2])
        return many + 1

    def _sum(self) -> Node:
        left, many = self._product(), 0
        while self._is("+") or self._is("-"):
            operator = self._tokens[self._at][1]
            self._at += 1
            many = self._longer(many)
            left = Call(f"_{operator}_", (left, self._product()))
        return left

    def _product(self) -> Node:
        left, many = self._unary(), 0
        while self._is("*") or self._is("/") or self._is("%"):
            operator = self._tokens[self._at][1]
            self._at += 1
            many = self._longer(many)
            left = Call(f"_{operator}_", (left, self._unary()))
        return left

    def _unary(self) -> Node:
        marks: list[str] = []
        while self._is("!") or self._is("-"):
            marks.append(self._tokens[self._at][1])
            self._at += 1
            self._longer(len(marks))
        kind, text, position = self._tokens[self._at]
        if marks and marks[-1] == "-" and kind in ("int", "float") and not text.endswith(("u", "U")):
            marks.pop()
            self._at += 1
            node = self._members(self._number(kind, "-" + text, position))
        else:
            node = self._members(self._primary())
        for mark in reversed(marks):
            node = Call("!_" if mark == "!" else "-_", (node,))
        return node

    def _members(self, node: Node) -> Node:
        many = 0
        while True:
            if self._take("."):
                optional = self._take("?")
                kind, name, position = self._tokens[self._at]
                if kind != "name":
                    raise self._unexpected()
                self._at += 1
                if not optional and self._take("("):
                    node = self._method(node, name, self._arguments(")"), position)
                else:
                    node = Select(node, name.strip("`"), optional)
            elif self._take("["):
                optional = self._take("?")
                index = self._expression()
                self._expect("]")
                node = Index(node, index, optional)
            else:
                return node
            many = self._longer(many)

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._expect(",")
            found.append(self._expression())
        return found

    def _method(self, target: Node, name: str, args: list[Node], position: int) -> Node:
        if name == "bind" and target == Ident("cel") and len(args) == 3:
            return Macro(name, args[1], self._names(args[:1], position), (args[2],))
        if name in ("optMap", "optFlatMap") and len(args) == 2:
            return Macro(name, target, self._names(args[:1], position), (args[1],))
        if name in _LOOPS:
            least, most = _LOOPS[name]
            for variables in (2, 1) if name in _TWO_VARIABLES else (1,):
                rest = args[variables:]
                idents = args[:variables] and all(isinstance(arg, Ident) for arg in args[:variables])
                if idents and least <= len(rest) <= most:
                    return Macro(name, target, self._names(args[:variables], position), tuple(rest))
            if args and not isinstance(args[0], Ident) and least < len(args) <= most + 1:
                raise self._error("argument must be a simple name", position)
        return Call(name, tuple(args), target)

    def _names(self, args: list[Node], position: int) -> tuple[str, ...]:
        names = tuple(arg.name for arg in args if isinstance(arg, Ident))
        if len(names) != len(args):
            raise self._error("argument must be a simple name", position)
        return names

    def _primary(self) -> Node:
        kind, text, position = self._tokens[self._at]
        self._at += 1
        match kind:
            case "int" | "float":
                return self._number(kind, text, position)
            case "text":
                return Literal(self._string(text, position))
            case "name":
                return self._name(text, position)
            case "mark" if text == "(":
                node = self._expression()
                self._expect(")")
                return node
            case "mark" if text == "[":
                return self._list()
            case "mark" if text == "{":
                return self._map()
            case "mark" if text == ".":
                kind, text, position = self._tokens[self._at]
                if kind == "name":
                    self._at += 1
                    return self._name(text, position)
            case _:
                pass
        raise self._error(f"mismatched input '{text}'", position)

    def _name(self, text: str, position: int) -> Node:
        if text in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[text])
        if text in _RESERVED or text == "in" or text.startswith("`"):
            raise self._error(f"reserved identifier: {text}", position)
        if not self._take("("):
            return Ident(text)
        args = self._arguments(")")
        if text == "has":
            if len(args) == 1 and isinstance(args[0], Select) and not args[0].optional:
                return Select(args[0].operand, args[0].field, test=True)
            raise self._error("invalid argument to has() macro", position)
        return Call(text, tuple(args))

    def _list(self) -> Node:
        items: list[Node] = []
        optional: list[bool] = []
        while not self._take("]"):
            if items:
                self._expect(",")
                if self._take("]"):
                    break
            optional.append(self._take("?"))
            items.append(self._expression())
        return ListOf(tuple(items), tuple(optional))

    def _map(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: list[bool] = []
        while not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            optional.append(self._take("?"))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
        return MapOf(tuple(entries), tuple(optional))

    def _number(self, kind: str, text: str, position: int) -> Literal:
        if kind == "float":
            return Literal(float(text))
        unsigned = text[-1] in "uU"
        digits = text.rstrip("uU")
        value = int(digits, 16 if "x" in digits.lower() else 10) if len(digits) < 40 else 2**64
        if unsigned and value < 2**64:
            return Literal(UInt(value))
        if unsigned or not -(2**63) <= value < 2**63:
            raise self._error(f"invalid {'uint' if unsigned else 'int'} literal", position)
        return Literal(value)

    def _string(self, text: str, position: int) -> str | bytes:
        prefix = text[: len(text) - len(text.lstrip("rRbB"))].lower() if text[0] in "rRbB" else ""
        body = text[len(prefix) :]
        quote = body[:3] if body[:3] in ("'''", '"""') and len(body) >= 6 else body[0]
        inside = body[len(quote) : -len(quote)]
        if "b" in prefix:
            return inside.encode() if "r" in prefix else self._escaped_bytes(inside, position)
        return inside if "r" in prefix else _ESCAPE.sub(lambda match: self._escape(match, position), inside)

    def _escape(self, match: re.Match[str], position: int) -> str:
        code = match[0]
        if code[1] in _SIMPLE:
            return _SIMPLE[code[1]]
        try:
            digits, base = (code[2:], 16) if code[1] in "xXuU" else (code[1:], 8)
            number = int(digits, base)
            if 0xD800 <= number < 0xE000:
                raise ValueError(code)
            return chr(number)
        except (ValueError, OverflowError):
            raise self._error(f"invalid escape sequence {code}", position) from None

    def _escaped_bytes(self, text: str, position: int) -> bytes:
        made, last = b"", 0
        for match in _ESCAPE.finditer(text):
            made += text[last : match.start()].encode()
            decoded = self._escape(match, position)
            made += bytes((ord(decoded),)) if match[0][1] in "xX01234567" and ord(decoded) < 256 else decoded.encode()
            last = match.end()
        return made + text[last:].encode()


_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "?": "?",
    '"': '"',
    "'": "'",
    "`": "`",
}
_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|(?s:.))")
