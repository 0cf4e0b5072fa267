"""Label selectors, node selectors and tolerations, parsed once and matched often (Kubernetes core/v1 semantics)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.node import Taint
from vcbatch.api.pod import Toleration

Labels = Mapping[str, str]
Json = Mapping[str, Any]

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY_TAINT = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
UNREACHABLE_TAINT = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")
TEMPORARY_TAINTS = frozenset(
    {
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/unregistered",
        "karpenter.sh/disrupted",
        "node.cilium.io/agent-not-ready",
    }
)
"""Keys of taints that stand for a state of the node and are removed with it: those of Kubernetes
(kubernetes.io/docs/reference/labels-annotations-taints), cluster-autoscaler, Karpenter and Cilium."""
STARTING_TAINTS = frozenset({"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"})
"""Keys of taints of nodes that are being added: their labels and resources aren't final."""
HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
NAME_FIELD = "metadata.name"


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values`; an unknown operator matches nothing, as an invalid selector does."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: Labels) -> bool:
        """Whether the labels match. `Gt` and `Lt` compare integers; anything else doesn't match."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
            case _:
                return False

    def _compares(self, value: str) -> bool:
        try:
            left, right = int(value), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return left > right if self.operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must match. `nothing` is the absent selector: it selects no object, while an empty one selects
    all."""

    requirements: tuple[Requirement, ...]
    nothing: bool = False

    @staticmethod
    def parse(given: Mapping[str, Any] | None) -> LabelSelector:
        """From a `metav1.LabelSelector`."""
        if given is None:
            return LabelSelector((), nothing=True)
        labels: Mapping[str, str] = given.get("matchLabels") or {}
        parts = [Requirement(k, "In", (v,)) for k, v in sorted(labels.items())]
        parts += [_requirement(e) for e in given.get("matchExpressions") or ()]
        return LabelSelector(tuple(parts))

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        return not self.nothing and all(r.matches(labels) for r in self.requirements)


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    return Requirement(
        str(expression.get("key", "")), str(expression.get("operator", "")), tuple(expression.get("values") or ())
    )


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: label expressions and field expressions, all of which must match."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether the node matches. A term without any expression matches no node (Kubernetes: a null or empty
        term)."""
        if not self.labels and not self.fields:
            return False
        return all(r.matches(labels) for r in self.labels) and all(
            r.key == NAME_FIELD and r.matches({NAME_FIELD: name}) for r in self.fields
        )


def _term(given: Mapping[str, Any]) -> NodeTerm:
    return NodeTerm(
        tuple(_requirement(e) for e in given.get("matchExpressions") or ()),
        tuple(_requirement(e) for e in given.get("matchFields") or ()),
    )


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """The node requirements of a pod: all pairs of `selector`, one of the `required` terms (None: no requirement), and
    weighted preferred terms."""

    selector: tuple[tuple[str, str], ...]
    required: tuple[NodeTerm, ...] | None
    preferred: tuple[tuple[int, NodeTerm], ...]

    @staticmethod
    def parse(selector: Mapping[str, str] | None, affinity: Mapping[str, Any] | None) -> NodeAffinity:
        """From `nodeSelector` and `affinity` of a pod; None where it has none."""
        node: Json = (affinity or {}).get("nodeAffinity") or {}
        hard: Json | None = node.get("requiredDuringSchedulingIgnoredDuringExecution")
        soft: Sequence[Json] = node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        return NodeAffinity(
            tuple(sorted((selector or {}).items())),
            None if hard is None else tuple(_term(t) for t in hard.get("nodeSelectorTerms") or ()),
            tuple((int(p.get("weight", 0)), _term(p.get("preference") or {})) for p in soft),
        )

    @property
    def restricts(self) -> bool:
        """Whether it can exclude any node."""
        return bool(self.selector) or self.required is not None

    def admits(self, name: str, labels: Labels) -> bool:
        """Whether the pod may run on the node of this name and labels."""
        for key, value in self.selector:
            if labels.get(key) != value:
                return False
        return self.required is None or any(t.matches(name, labels) for t in self.required)

    def preference(self, name: str, labels: Labels) -> int:
        """The sum of the weights of the matching preferred terms; here an empty term matches all nodes."""
        return sum(w for w, t in self.preferred if (not t.labels and not t.fields) or t.matches(name, labels))


def tolerates(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    for t in tolerations:
        if t.effect and t.effect != taint.effect:
            continue
        if t.key and t.key != taint.key:
            continue
        if t.operator == "Exists" or (t.operator in ("", "Equal") and t.key and t.value == taint.value):
            return True
        if t.operator in ("Lt", "Gt") and _numeric(t, taint):
            return True
    return False


def _numeric(toleration: Toleration, taint: Taint) -> bool:
    """The numeric operators: the taint's value below (Lt) or above (Gt) the toleration's."""
    try:
        left, right = int(taint.value), int(toleration.value)
    except ValueError:
        return False
    return left < right if toleration.operator == "Lt" else left > right
