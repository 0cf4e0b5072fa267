"""HyperNodes: their patterns, and how much work they may be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vcbatch.api.hypernode import HyperNode
from vcbatch.api.validate.hypernode import MOST_PATTERN_COST, hypernode_errors


def texts(patterns: Sequence[str]) -> list[str]:
    """The errors of a HyperNode with these patterns."""
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return [str(error) for error in hypernode_errors(HyperNode.parse({"spec": {"tier": 1, "members": members}}))]


def test_a_thousand_racks_may_have_a_pattern_each() -> None:
    assert texts([f"^rack-{number}-node-[0-9]+$" for number in range(1000)]) == []
    assert texts(["^a$"] * 20_000) == []


@pytest.mark.parametrize("pattern", ["^n{}$", r"\pL{{20}}{}", r"\pL{{99}}{}"])
def test_the_work_of_all_different_patterns_is_bounded(pattern: str) -> None:
    many = [pattern.format(number) for number in range(MOST_PATTERN_COST // 100 + 2)]
    *_, last = texts(many)
    assert "spec.members: Too many: the different patterns of the first" in last


def test_each_fault_is_told_and_a_repeated_one_at_each_member() -> None:
    said = texts(["a(", "ok", "a(", r"\C"])
    assert [text.partition("]")[0] for text in said] == ["spec.members[0", "spec.members[2", "spec.members[3"]
