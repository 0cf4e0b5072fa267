"""Sub-gangs: the sub-groups of a PodGroup (`spec.subGroupPolicy`).

A rule selects pods by their labels and splits them by the values of some labels; each tuple of values is one sub-gang,
of which `size` members are placed at once or none, and the rule needs `least` complete sub-gangs. The partitions of a
job's task are such sub-gangs. Pods that no rule selects belong to the gang alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.scheduler.model.network_topology import NetworkTopology
from vcbatch.scheduler.model.selectors import LabelSelector

SubKey = tuple[int, tuple[str, ...]]
"""A sub-gang: the position of its rule, and the values of the rule's labels."""


@dataclass(frozen=True, slots=True)
class SubGangRule:
    """One entry of `spec.subGroupPolicy`."""

    name: str
    selector: LabelSelector
    keys: tuple[str, ...]
    size: int
    least: int
    topology: NetworkTopology | None = None


def rules_of(policies: Sequence[Mapping[str, Any]] | None) -> tuple[SubGangRule, ...]:
    """The rules as written. One without a selector selects all pods that have its labels; a sub-gang without a size has
    one member; a rule without `minSubGroups` needs none."""
    return tuple(
        SubGangRule(
            name=str(given.get("name") or ""),
            selector=LabelSelector.parse(given.get("labelSelector") or {}),
            keys=tuple(given.get("matchLabelKeys") or ()),
            size=max(int(given.get("subGroupSize") or 1), 1),
            least=max(int(given.get("minSubGroups") or 0), 0),
            topology=NetworkTopology.read(given.get("networkTopology")),
        )
        for given in policies or ()
    )


def sub_of(rules: Sequence[SubGangRule], labels: Mapping[str, str]) -> SubKey | None:
    """The sub-gang of a pod with these labels: that of the first rule that selects it and whose labels it has."""
    for position, rule in enumerate(rules):
        if rule.selector.matches(labels) and all(key in labels for key in rule.keys):
            return position, tuple(labels[key] for key in rule.keys)
    return None
