"""Selectors of labels and of nodes, and tolerations, operator by operator (Kubernetes core/v1)."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api.node import Taint
from vcbatch.api.pod import Toleration
from vcbatch.scheduler.model.selectors import LabelSelector, NodeAffinity, Requirement, tolerates

Json = dict[str, Any]
LABELS = {"zone": "a", "cores": "16", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("zone", "In", ("b", "a"), True),
        ("zone", "In", ("b",), False),
        ("none", "In", ("",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("b", "a"), False),
        ("none", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("none", "Exists", (), False),
        ("empty", "DoesNotExist", (), False),
        ("none", "DoesNotExist", (), True),
        ("cores", "Gt", ("15",), True),
        ("cores", "Gt", ("16",), False),
        ("cores", "Gt", ("9",), True),  # by number, not by letter
        ("cores", "Lt", ("17",), True),
        ("cores", "Lt", ("16",), False),
        ("cores", "Lt", ("9",), False),
        ("none", "Lt", ("9",), False),
        ("zone", "Gt", ("1",), False),
        ("cores", "Gt", ("many",), False),
        ("cores", "Gt", (), False),
        ("cores", "Has", ("16",), False),
    ],
)
def test_requirements(key: str, operator: str, values: tuple[str, ...], matches: bool) -> None:
    assert Requirement(key, operator, values).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"zone": "a", "cores": "16"}}, True),
        ({"matchLabels": {"zone": "a", "cores": "8"}}, False),
        ({"matchLabels": {"zone": "a"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, True),
    ],
)
def test_all_that_a_label_selector_says_has_to_hold_and_an_absent_one_selects_nothing(
    selector: Json | None, matches: bool
) -> None:
    assert LabelSelector.parse(selector).matches(LABELS) is matches


def expression(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def required(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("selector", "affinity", "admits"),
    [
        (None, None, True),
        ({"zone": "a"}, None, True),
        ({"zone": "a", "cores": "8"}, None, False),
        ({"zone": "b"}, required({"matchExpressions": [expression("zone", "a")]}), False),  # both have to hold
        ({"zone": "a"}, required({"matchExpressions": [expression("zone", "b")]}), False),
        # One of the terms, all of each.
        (
            None,
            required(
                {"matchExpressions": [expression("zone", "b")]}, {"matchExpressions": [expression("cores", "16")]}
            ),
            True,
        ),
        (None, required({"matchExpressions": [expression("zone", "b"), expression("cores", "16")]}), False),
        (None, required(), False),
        (None, required({}), False),  # an empty term matches no node
        (None, required({"matchFields": [expression("metadata.name", "n")]}), True),
        (None, required({"matchFields": [expression("metadata.name", "m")]}), False),
        (None, required({"matchFields": [expression("metadata.uid", "n")]}), False),
        (
            None,
            required(
                {"matchFields": [expression("metadata.name", "n")], "matchExpressions": [expression("zone", "b")]}
            ),
            False,
        ),
    ],
)
def test_which_nodes_a_pod_may_run_on(selector: dict[str, str] | None, affinity: Json | None, admits: bool) -> None:
    found = NodeAffinity.parse(selector, affinity)
    assert found.admits("n", LABELS) is admits
    assert found.restricts is (selector is not None or affinity is not None)


def test_which_nodes_a_pod_prefers() -> None:
    """The weights of the terms that match add up; here an empty term matches all nodes."""
    preferred = [
        (1, {"matchExpressions": [expression("zone", "a")]}),
        (2, {"matchExpressions": [expression("zone", "b")]}),
        (4, {"matchExpressions": [expression("zone", "a"), expression("cores", "8")]}),
        (8, {}),
        (16, {"matchFields": [expression("metadata.name", "n")]}),
    ]
    terms = [{"weight": weight, "preference": term} for weight, term in preferred]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    found = NodeAffinity.parse(None, affinity)
    assert found.preference("n", LABELS) == 1 + 8 + 16
    assert found.admits("n", {})
    assert not found.restricts


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "value": "a100", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "a100"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "h100"}, False),
        ({"key": "gpu", "operator": "Equal"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "cpu", "operator": "Equal", "value": "a100"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Equal", "value": "a100"}, False),  # without a key only Exists makes sense
    ],
)
def test_which_taints_are_tolerated(toleration: Json, tolerated: bool) -> None:
    taint = Taint(key="gpu", value="a100", effect="NoSchedule")
    assert tolerates([Toleration(**toleration)], taint) is tolerated
    others = [Toleration(key="x", operator="Exists"), Toleration(**toleration)]
    assert tolerates(others, taint) is tolerated


def test_nothing_is_tolerated_without_tolerations() -> None:
    assert not tolerates([], Taint(key="gpu", value="", effect="NoSchedule"))


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [
        ("Lt", "96", True),
        ("Lt", "95", False),
        ("Lt", "100", True),
        ("Gt", "94", True),
        ("Gt", "95", False),
        ("Gt", "9", True),
        ("Gt", "many", False),
    ],
)
def test_a_taint_s_number_is_compared_with_the_toleration_s(operator: str, value: str, tolerated: bool) -> None:
    toleration = Toleration(key="sla", operator=operator, value=value)
    assert tolerates([toleration], Taint(key="sla", value="95", effect="NoSchedule")) is tolerated
    assert not tolerates([toleration], Taint(key="sla", value="best", effect="NoSchedule"))
