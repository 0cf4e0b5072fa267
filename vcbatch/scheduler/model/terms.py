"""Inter-pod terms of a pod: pod affinity and anti-affinity, and topology spread constraints (core/v1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vcbatch.api.names import NAMESPACE_LABEL
from vcbatch.api.pod import PodSpec
from vcbatch.scheduler.model.selectors import Json, Labels, LabelSelector, Requirement

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OWN_VALUES = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Selects pods by the selector in these namespaces (None: all) and in those whose labels `by_label` matches,
    counted per value of the node label `topology_key`."""

    namespaces: frozenset[str] | None
    selector: LabelSelector
    topology_key: str
    by_label: LabelSelector | None = None

    def matches(self, namespace: str, labels: Labels, known: Mapping[str, Labels]) -> bool:
        """Whether a pod in that namespace with those labels is selected; `known` has the labels of namespaces."""
        return self._within(namespace, known) and self.selector.matches(labels)

    def _within(self, namespace: str, known: Mapping[str, Labels]) -> bool:
        if self.namespaces is None or namespace in self.namespaces:
            return True
        # Every namespace has its name as a label, also before it is observed.
        return self.by_label is not None and self.by_label.matches(
            {NAMESPACE_LABEL: namespace, **known.get(namespace, {})}
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """One topology spread constraint (core/v1 TopologySpreadConstraint)."""

    term: PodTerm
    max_skew: int
    hard: bool
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


@dataclass(frozen=True, slots=True)
class InterPod:
    """All inter-pod terms of a pod. `preferred` has negative weights for anti-affinity."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred: tuple[tuple[int, PodTerm], ...] = ()
    spreads: tuple[Spread, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred or self.spreads)


NO_INTER_POD = InterPod()


def inter_pod_of(spec: PodSpec, namespace: str, labels: Labels) -> InterPod:
    """The inter-pod terms of a pod with that spec, in that namespace and with those labels."""
    if not coupled(spec):
        return NO_INTER_POD
    affinity = spec.affinity or {}
    near: Json = affinity.get("podAffinity") or {}
    far: Json = affinity.get("podAntiAffinity") or {}
    soft: list[tuple[int, PodTerm]] = []
    for sign, side in ((1, near), (-1, far)):
        for entry in side.get(_PREFERRED) or ():
            term = _pod_term(entry.get("podAffinityTerm") or {}, namespace, labels)
            soft.append((sign * int(entry.get("weight", 0)), term))
    return InterPod(
        affinity=tuple(_pod_term(t, namespace, labels) for t in near.get(_REQUIRED) or ()),
        anti_affinity=tuple(_pod_term(t, namespace, labels) for t in far.get(_REQUIRED) or ()),
        preferred=tuple(soft),
        spreads=tuple(_spread(c, namespace, labels) for c in spec.topology_spread_constraints or ()),
    )


def coupled(spec: PodSpec) -> bool:
    """Whether the pod has any inter-pod terms."""
    affinity = spec.affinity
    return bool(spec.topology_spread_constraints) or bool(
        affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity"))
    )


def own_labels(spec: PodSpec, labels: Labels) -> tuple[tuple[str, str | None], ...]:
    """The pod's labels whose values its terms compare with those of other pods."""
    affinity = spec.affinity or {}
    terms: list[Json] = list(spec.topology_spread_constraints or ())
    for side in ("podAffinity", "podAntiAffinity"):
        rules: Json = affinity.get(side) or {}
        terms += rules.get(_REQUIRED) or ()
        terms += [entry.get("podAffinityTerm") or {} for entry in rules.get(_PREFERRED) or ()]
    keys = {key for term in terms for name, _ in _OWN_VALUES for key in term.get(name) or ()}
    return tuple((key, labels.get(key)) for key in sorted(keys))


def _pod_term(given: Json, namespace: str, labels: Labels) -> PodTerm:
    """The term. Without namespaces it applies to the pod's own; an empty namespace selector selects all."""
    names: Sequence[str] = given.get("namespaces") or ()
    selector, key = _with_own_values(given, labels), str(given.get("topologyKey", ""))
    if given.get("namespaceSelector") is None:
        return PodTerm(frozenset(names) if names else frozenset({namespace}), selector, key)
    by_label = LabelSelector.parse(given["namespaceSelector"])
    if not by_label.requirements:
        return PodTerm(None, selector, key)
    return PodTerm(frozenset(names), selector, key, by_label)


def _with_own_values(given: Json, labels: Labels) -> LabelSelector:
    """The selector of a term, with the pod's own values of the labels that the term names: other pods must have the
    same, or for `mismatchLabelKeys` other values. Newer API servers write these into the selector themselves, which
    changes nothing. A label that the pod lacks is left out, and a selector that selects nothing is unchanged."""
    selector = LabelSelector.parse(given.get("labelSelector"))
    if selector.nothing:
        return selector
    own = [
        Requirement(key, operator, (labels[key],))
        for names, operator in _OWN_VALUES
        for key in given.get(names) or ()
        if key in labels
    ]
    return LabelSelector((*selector.requirements, *own)) if own else selector


def _spread(given: Json, namespace: str, labels: Labels) -> Spread:
    return Spread(
        term=PodTerm(frozenset({namespace}), _with_own_values(given, labels), str(given.get("topologyKey", ""))),
        max_skew=int(given.get("maxSkew", 1)),
        hard=given.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
        min_domains=int(given.get("minDomains") or 1),
        honor_affinity=given.get("nodeAffinityPolicy", "Honor") == "Honor",
        honor_taints=given.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )
