"""Expressions as match conditions have them: values, and what can't be evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.local.apiserver import expressions

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a.b/c": "x"}},
    "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "env": [{"name": "E"}]}, {"name": "d"}]},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.spec.?schedulerName.orValue('') == 'volcano'", True),
        ("object.spec.?nodeName.orValue('none')", "none"),
        ("object.?status.phase.orValue('unknown')", "unknown"),
        ("object.?metadata.labels.hasValue()", True),
        ("object.metadata.?labels[?'a.b/c'].orValue('')", "x"),
        ("object.metadata.?labels['none'].orValue('none')", "none"),
        ("object.spec.containers[?1].name.orValue('')", "d"),
        ("object.spec.containers[?7].name.orValue('no container')", "no container"),
        ("object.spec.containers.all(c, c.?name.hasValue())", True),
        ("'.?not a selection' == '.?not a selection'", True),
        ("'a.b/c' in object.metadata.?labels.orValue({})", True),
        ("object.spec.containers.map(c, size(c.?env.orValue([])))", [1, 0]),
        ("has(object.spec.nodeName) || oldObject == null", True),
        ("object.metadata.name + object.spec.schedulerName", "pvolcano"),
    ],
)
def test_expressions_give_what_they_give_in_kubernetes(expression: str, value: Any) -> None:
    variables = {"object": POD, "oldObject": None, "request": {}}

    assert expressions.error(expression, variables) == ""
    assert expressions.run(expression, variables) == value


@pytest.mark.parametrize("expression", ["object.none", "object.spec.none.more", "1 / 0 == object.n", "object.spec + 1"])
def test_what_cannot_be_evaluated_is_told_and_not_raised(expression: str) -> None:
    outcome = expressions.run(expression, {"object": POD})

    assert isinstance(outcome, expressions.Trouble)
    assert outcome.text


@pytest.mark.parametrize("expression", ["object.", "params.x == 1", "frobnicate(object)"])
def test_what_cannot_work_is_refused_beforehand(expression: str) -> None:
    assert expressions.error(expression, {"object"}).startswith("compilation failed: ")
