"""Equivalence classes: pods that are equal in everything that filters, scores or quotas read.

A gang is placed class by class. Properties without effect on placement (names, indexes, labels) aren't part of the
class; labels matter to inter-pod terms alone, which are matched pod by pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from vcbatch.api import names
from vcbatch.api.pod import Container, Pod, PodSpec, Toleration
from vcbatch.scheduler.model.pod_requests import held_text, pod_limits, pod_request
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, PODS, Dimensions, Vector
from vcbatch.scheduler.model.selectors import NodeAffinity
from vcbatch.scheduler.model.terms import coupled, inter_pod_of, own_labels

NOTED = frozenset(
    {
        names.GPU_NOT_TYPE,
        names.GPU_USE_TYPE,
        names.VGPU_MODE,
        names.VGPU_NOT_UUID,
        names.VGPU_PODGROUP_POLICY,
        names.VGPU_USE_UUID,
        names.NPU_MODE,
        names.NUMA_TOPOLOGY_POLICY,
        names.RESOURCE_STRATEGY_SCORING_TYPE,
        names.RESOURCE_STRATEGY_WEIGHT,
        names.PREEMPTABLE,
        names.REVOCABLE_ZONE,
    }
)
"""Pod annotations by which otherwise equal pods choose different nodes."""
_NOTED_FOR_CHIPS = tuple(name.partition("{")[0] for name in (names.NPU_USE_UUID, names.NPU_NOT_UUID))
"""The prefixes of further such annotations, which end with a chip model."""
_CHIPS_PREFIX = names.NPU_REGISTER.partition("/")[0]


class HostPort(NamedTuple):
    """A host port; an empty or all-zero address conflicts with every address."""

    address: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both can't be on one node."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address == other.address or "0.0.0.0" in (self.address, other.address)  # noqa: S104 - compared


@dataclass(frozen=True, eq=False)
class Profile:
    """The part of a class that depends on properties of a node, not on the pods on it. Classes share profiles: filters
    and preferences are computed once per profile and kept until a node changes. `images` is empty if no container names
    an image; `claims` are those that the pod mounts, as `namespace/name`. `queue` is empty unless some plugin uses it
    (`Plugin.BY_QUEUE`)."""

    node_affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    images: tuple[str, ...]
    claims: tuple[str, ...] = ()
    queue: str = ""


class TaskClass:
    """One equivalence class. Vectors are padded in place when a resource name is added.

    Attributes:
        id: number of the class; never reused.
        request: the resources that a pod uses of a node, shape [R], `pods` included; `amounts` are the same as plain
            numbers, which are faster when a gang's few resources are read one by one.
        needed: the columns in which a node is compared: cpu, memory, pods and every requested scalar, shape [K].
        need: `request` in these columns, shape [K, 1]; `needs_all` if none of it is zero.
        nonzero: cpu and memory with the defaults of the least-allocated score, shape [2].
        limits: the limits of cpu and memory of its containers, those without a limit counting with their requests,
            shape [2].
        placed, promised: what a placement adds to the node table's `load` below and from `nonzero`, shape [R + 2, 1].
        best_effort: requests nothing but a pod slot.
        profile: its requirements on properties of nodes.
        unsupported: constraints that this scheduler doesn't support, in words; such pods are never placed.
        inter_pod: its terms about other pods; without any, placing one pod doesn't change where others may be placed.
        notes: the pod annotations that affect the choice of nodes (`NOTED`), by name.
    """

    __slots__ = (
        "amounts",
        "best_effort",
        "id",
        "inter_pod",
        "limits",
        "need",
        "needed",
        "needs_all",
        "nonzero",
        "notes",
        "placed",
        "ports",
        "profile",
        "promised",
        "request",
        "spec",
        "unsupported",
    )

    def __init__(self, *, number: int, request: Vector, nonzero: Vector, profile: Profile, pod: Pod) -> None:
        spec = pod.spec
        self.spec = spec
        """The spec of the first pod of the class."""
        self.id = number
        self.nonzero = nonzero
        self.limits: Vector = np.zeros(2)
        self.resize(request)
        positive = request >= EPS
        needed = positive.copy()
        needed[[CPU, MEMORY, PODS]] = True
        self.needed = np.flatnonzero(needed)
        self.need = request[self.needed][:, None]
        self.needs_all = bool(self.need.all())
        positive[PODS] = False
        self.best_effort = not bool(positive.any())
        self.profile = profile
        self.notes: Mapping[str, str] = {}
        self.ports = host_ports(spec)
        self.inter_pod = inter_pod_of(spec, pod.metadata.namespace, pod.metadata.labels or {})
        self.unsupported: tuple[str, ...] = ()

    @property
    def claiming(self) -> bool:
        """Whether its pods mount volume claims or have device claims."""
        return bool(self.profile.claims or self.spec.resource_claims)

    def resize(self, request: Vector) -> None:
        """Set the request to a vector of another length."""
        self.request = request
        self.amounts: list[float] = request.tolist()
        self.placed = np.concatenate([request, self.nonzero])[:, None]
        self.promised = np.concatenate([self.nonzero, request])[:, None]


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of the pod: of its containers, and of init containers that keep running."""
    holders = spec.side_by_side if spec.init_containers else spec.containers
    if not any(c.ports for c in holders):
        return ()
    return tuple(
        HostPort(p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port)  # noqa: S104 - compared, never bound
        for c in holders
        for p in c.ports or ()
        if p.host_port > 0
    )


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The claims that a pod mounts, as `namespace/name`; ephemeral ones are named after the pod."""
    found: set[str] = set()
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.add(str(volume.persistent_volume_claim.get("claimName", "")))
        elif volume.ephemeral is not None:
            found.add(f"{pod.metadata.name}-{volume.name}")
    return tuple(f"{pod.metadata.namespace}/{name}" for name in sorted(found))


def _notes(annotations: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The annotations that are part of the class, in the order of their names."""
    if annotations is None:
        return ()
    # Called for every pod: one search in all names takes half the time of a search for each.
    if NOTED.isdisjoint(annotations) and _CHIPS_PREFIX not in "".join(annotations):
        return ()
    noted = sorted(name for name in annotations if name in NOTED or name.startswith(_NOTED_FOR_CHIPS))
    found = ((name, annotations[name]) for name in noted)
    return tuple((name, value) for name, value in found if name != names.PREEMPTABLE or value == "true")


class ClassTable:
    """Interns pods into classes. There are two levels of keys: first the pod's raw fields, which are cheap and usually
    known, then their meaning."""

    __slots__ = ("_by_text", "_next_id", "_profiles", "by_queue", "classes", "dims")

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.classes: list[TaskClass] = []
        self.by_queue = False
        """Whether pods of different queues belong to different classes."""
        self._by_text: dict[tuple[object, ...], TaskClass] = {}
        self._profiles: dict[object, Profile] = {}
        self._next_id = 0

    def of(self, pod: Pod, queue: str = "") -> TaskClass:
        """The pod's class, created for the first pod of its kind. `queue` is its gang's, empty if it has none."""
        spec = pod.spec
        claims = claims_of(pod) if spec.volumes else ()
        text = (*_text(pod), claims) if claims else _text(pod)
        notes = _notes(pod.metadata.annotations)
        if notes:
            text = (*text, notes)
        if self.by_queue and queue:
            text = (*text, queue)
        known = self._by_text.get(text)
        if known is None:
            known = self._make(pod, claims)
            known.notes = dict(notes)
            if self.by_queue and queue:
                known.profile = self._profiles.setdefault((queue, known.profile), replace(known.profile, queue=queue))
            self._by_text[text] = known
        return known

    def _make(self, pod: Pod, claims: tuple[str, ...]) -> TaskClass:
        spec = pod.spec
        request, nonzero = pod_request(pod, self.dims)
        made = TaskClass(
            number=self._next_id,
            request=request,
            nonzero=nonzero,
            profile=self._profile(spec, claims),
            pod=pod,
        )
        made.limits = pod_limits(pod, self.dims)
        self._next_id += 1
        self.classes.append(made)
        return made

    def _profile(self, spec: PodSpec, claims: tuple[str, ...]) -> Profile:
        tolerations = spec.tolerations or ()
        images = tuple(c.image for c in spec.containers)
        key = (
            NodeAffinity.parse(spec.node_selector, spec.affinity),
            tuple((t.key, t.operator, t.value, t.effect) for t in tolerations),
            images if any(images) else (),
            claims,
        )
        known = self._profiles.get(key)
        if known is None:
            known = self._profiles[key] = Profile(key[0], tuple(tolerations), key[2], claims)
        return known

    @property
    def claiming(self) -> bool:
        """Whether pods of some class mount claims."""
        return any(profile.claims for profile in self._profiles.values())

    def read_again(self) -> None:
        """Create new classes for pods from now on, because their requests are read differently."""
        self._by_text.clear()

    def pad(self) -> None:
        """Extend every vector to the present number of resource names."""
        for cls in self.classes:
            cls.resize(self.dims.padded(cls.request))

    def keep_only(self, used: set[TaskClass]) -> None:
        """Remove the classes that no pod has any more."""
        self.classes = [c for c in self.classes if c in used]
        self._by_text = {k: c for k, c in self._by_text.items() if c in used}
        profiles = {id(c.profile) for c in self.classes}
        self._profiles = {k: p for k, p in self._profiles.items() if id(p) in profiles}


def _text(pod: Pod) -> tuple[object, ...]:
    """A key that differs wherever the class could."""
    spec = pod.spec
    containers = tuple(map(_container_text, spec.containers))
    plain = not (
        spec.affinity
        or spec.topology_spread_constraints
        or spec.init_containers
        or spec.overhead
        or spec.resources
        or spec.resource_claims
    )
    held = held_text(pod)
    selector = tuple(spec.node_selector.items()) if spec.node_selector else ()
    tolerations = tuple((t.key, t.operator, t.value, t.effect) for t in spec.tolerations) if spec.tolerations else ()
    if plain:
        return (containers, selector, tolerations, held) if held else (containers, selector, tolerations)
    return (
        containers,
        selector,
        tolerations,
        tuple((*_container_text(c), c.restart_policy) for c in spec.init_containers or ()),
        tuple((spec.overhead or {}).items()),
        _container_text(Container(resources=spec.resources)),
        bool(spec.resource_claims),
        (pod.metadata.namespace, own_labels(spec, pod.metadata.labels or {})) if coupled(spec) else "",
        msgspec.json.encode((spec.affinity, spec.topology_spread_constraints)),
        held,
    )


def _container_text(container: Container) -> tuple[object, ...]:
    resources = container.resources
    if resources is None:
        requests: object = None
        limits: object = None
    else:
        requests = tuple(resources.requests.items()) if resources.requests else None
        limits = tuple(resources.limits.items()) if resources.limits else None
    ports = container.ports
    if ports:
        return (requests, limits, container.image, *((p.host_ip, p.protocol, p.host_port) for p in ports))
    return (requests, limits, container.image)
