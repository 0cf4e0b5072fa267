"""The code records values of defined metrics only, by their type and labels, and records each of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vcbatch.observe.definitions import METRICS
from vcbatch.observe.definitions.metric import Kind

ROOT = Path(__file__).parents[3]
SOURCES = [path for package in ("vcbatch", "webhooks") for path in sorted((ROOT / package).rglob("*.py"))]
TEXTS = {path: text for path in SOURCES if "meter" in (text := path.read_text(encoding="utf-8"))}
TREES = {path: ast.parse(text) for path, text in TEXTS.items() if "definitions" not in path.parts}
"""The modules that record metrics."""
KINDS = {"count": Kind.COUNTER, "gauge": Kind.GAUGE, "duration": Kind.HISTOGRAM}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a meter with the name of a metric."""

    place: str
    method: str
    name: str
    labels: frozenset[str] | None
    """None where they are passed as a mapping."""


def calls() -> Iterator[Call]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=receiver, attr=("count" | "gauge" | "duration" | "forget") as method),
                    args=[ast.Constant(value=str(name)), *_],
                    keywords=keywords,
                ) if ast.unparse(receiver).removeprefix("_").rsplit(".", 1)[-1].strip("_") == "meter":
                    given = [keyword.arg for keyword in keywords]
                    labels = None if None in given else frozenset(arg for arg in given if arg)
                    yield Call(f"{path.relative_to(ROOT)}:{node.lineno}", method, name, labels)


CALLS = list(calls())


def test_the_calls_are_found() -> None:
    assert len(CALLS) > 40


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.place} {call.name}")
def test_a_call_names_a_metric_with_its_labels(call: Call) -> None:
    metric = METRICS[call.name]
    assert metric.kind is KINDS.get(call.method, metric.kind)
    assert call.labels is None or call.labels == set(metric.labels)
    assert call.method != "forget" or metric.exact


def _pattern(node: ast.AST) -> str:
    """What a string or an f-string may be, as a regular expression; empty for other nodes."""
    match node:
        case ast.Constant(value=str(text)) if re.fullmatch(r"[a-z0-9_]+", text):
            return text
        case ast.JoinedStr(values=parts):
            texts = [part.value if isinstance(part, ast.Constant) else r"\w+" for part in parts]
            return "".join(map(str, texts)) if str(texts[0]).startswith("queue_") else ""
    return ""


def test_every_metric_is_recorded_somewhere() -> None:
    """By a call, or by a name in a table that a call takes it from."""
    patterns = {_pattern(node) for tree in TREES.values() for node in ast.walk(tree)}
    names = re.compile("|".join(sorted(patterns - {""})))
    assert [name for name in METRICS if not names.fullmatch(name)] == []
