"""Label and field selectors: the grammars and errors of k8s.io/apimachinery `pkg/labels` and `pkg/fields`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.name_rules import label_value, qualified_name
from vcbatch.local.apiserver.apierrors import StatusError, bad_request

Json = dict[str, Any]

_SYMBOLS = "()!=<>,"
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}
_SELECTOR_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label. `operator` is in, notin, exists, absent, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                if value is None or not value.lstrip("-").isdigit():
                    return False
                return int(value) > self.bound if self.operator == "gt" else int(value) < self.bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        present = labels or {}
        return all(requirement.matches(present) for requirement in self.requirements)


def _tokens(text: str) -> list[str]:
    """Symbols and identifiers; runs of `=`, `!`, `<` and `>` are split into the longest known operators."""
    tokens: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char in " \t\r\n":
            position += 1
        elif text[position : position + 2] in ("==", "!="):
            tokens.append(text[position : position + 2])
            position += 2
        elif char in _SYMBOLS:
            tokens.append(char)
            position += 1
        else:
            start = position
            while position < len(text) and text[position] not in _SYMBOLS and text[position] not in " \t\r\n":
                position += 1
            tokens.append(text[start:position])
    return tokens


class _LabelParser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        part = self._peek()
        self._position += 1
        return part

    @staticmethod
    def _identifier(part: str) -> bool:
        return bool(part) and part[0] not in _SYMBOLS

    def parse(self) -> LabelSelector:
        found: list[Requirement] = []
        while True:
            part = self._peek()
            if not part:
                return LabelSelector(tuple(found))
            if not self._identifier(part) and part != "!":
                raise bad_request(f"found '{part}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise bad_request(f"unable to parse requirement: {error}") from None
            part = self._take()
            if not part:
                return LabelSelector(tuple(found))
            if part != ",":
                raise bad_request(f"found '{part}', expected: ',' or 'end of string'")
            part = self._peek()
            if not self._identifier(part) and part != "!":
                raise bad_request(f"found '{part}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        part = self._take()
        absent = part == "!"
        key = self._take() if absent else part
        if not self._identifier(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if errors := qualified_name(key):
            raise ValueError(f'<nil>: Invalid value: "{key}": {"; ".join(errors)}')
        if absent:
            return Requirement(key, "absent")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        word = self._take()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise ValueError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if word in ("in", "notin") else [self._exact_value()]
        for index, value in enumerate(sorted(set(values))):
            if errors := label_value(value):
                raise ValueError(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(errors)}')
        if operator in ("gt", "lt"):
            if not values[0].lstrip("-").isdigit():
                raise ValueError(
                    f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
                )
            return Requirement(key, operator, bound=int(values[0]))
        return Requirement(key, operator, frozenset(values))

    def _exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        part = self._take()
        if not self._identifier(part):
            raise ValueError(f"found '{part}', expected: identifier")
        return part

    def _values(self) -> list[str]:
        part = self._take()
        if part != "(":
            raise ValueError(f"found '{part}' expected: '('")
        values: list[str] = []
        wants_value = True
        while True:
            part = self._take()
            if part == ")":
                if wants_value:
                    values.append("")
                return values
            if part == ",":
                if wants_value:
                    values.append("")
                wants_value = True
            elif self._identifier(part) and wants_value:
                values.append(part)
                wants_value = False
            elif not wants_value:
                raise ValueError(f"found '{part}', expected: ',' or ')'")
            else:
                raise ValueError(f"found '{part}', expected: ',', or identifier")


def parse_labels(text: str) -> LabelSelector | None:
    """The selector, or None where `text` selects everything. Raises `StatusError` 400 with Kubernetes' message."""
    if len(text) > _SELECTOR_LIMIT:
        raise bad_request(f"labelSelector is longer than {_SELECTOR_LIMIT} characters")
    selector = _LabelParser(text).parse() if text.strip() else None
    return selector if selector and selector.requirements else None


@dataclass(frozen=True, slots=True)
class FieldTerm:
    path: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True)
class FieldSelector:
    terms: tuple[FieldTerm, ...]

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Whether the selector matches. `value_of` returns the string at a dotted path, "" where there is none."""
        return all((value_of(term.path) == term.value) is term.equal for term in self.terms)

    @property
    def name(self) -> str | None:
        """The only `metadata.name` that can match, if the selector names one: then no scan is needed."""
        for term in self.terms:
            if term.path == "metadata.name" and term.equal:
                return term.value
        return None


def _split_terms(text: str) -> list[str]:
    terms: list[str] = []
    current: list[str] = []
    escaped = False
    for char in text:
        if char == "," and not escaped:
            terms.append("".join(current))
            current = []
            continue
        escaped = char == "\\" and not escaped
        current.append(char)
    terms.append("".join(current))
    return terms


def _unescape(value: str) -> str:
    out: list[str] = []
    escaped = False
    for char in value:
        if escaped:
            if char not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out.append(char)
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(out)


def parse_fields(text: str, *, known: Sequence[str], named: bool) -> FieldSelector | None:
    """The selector, or None for everything. `known` are the selectable paths besides name and namespace; `named`
    whether the kind has field labels of its own, which changes the error message."""
    if len(text) > _SELECTOR_LIMIT:
        raise bad_request(f"fieldSelector is longer than {_SELECTOR_LIMIT} characters")
    terms: list[FieldTerm] = []
    for term in _split_terms(text):
        if not term:
            continue
        for operator in ("!=", "==", "="):
            path, found, value = term.partition(operator)
            if found:
                terms.append(FieldTerm(path, _unescape(value), operator != "!="))
                break
        else:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    # An empty term selects everything.
    terms = [term for term in terms if term.path or term.value]
    for term in terms:
        if term.path not in ("metadata.name", "metadata.namespace") and term.path not in known:
            raise _unknown_field(term.path, named)
    return FieldSelector(tuple(terms)) if terms else None


def _unknown_field(path: str, named: bool) -> StatusError:
    if named:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def value_at(obj: Json, path: str) -> str:
    """The value at a dotted path as a selector compares it: "" for none, true/false for booleans."""
    node: Any = obj
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if node is None:
        return ""
    if isinstance(node, bool):
        return "true" if node else "false"
    return str(node)
