"""The PodGroup controller: creates a PodGroup for pods of our schedulers that name none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from vcbatch.api import names
from vcbatch.api.pod import TERMINAL_PHASES, Pod, PodPhase
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.reasons import SchedulingEvent
from vcbatch.api.resources import PODGROUPS, PODS, Resource
from vcbatch.api.workload import WORKLOADS, Workload
from vcbatch.core.machine import Decision, ref_of
from vcbatch.core.podgroup import GroupView, decide, generated_name, needs_sample
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, Json, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter

_GROUP = "generated group"
_REPORTED = {f"ensure {PODGROUPS.kind}": Report(SchedulingEvent.FAILED_SCHEDULING, "no PodGroup can be made for it: ")}
_MOST_REPORTED = 10
"""The number of pods of a gang that get an event."""


def follow_workloads(informers: Informers) -> dict[Resource, Cache[Workload]]:
    """The caches of the workloads whose annotations apply to the PodGroup of their pods."""
    return {resource: informers.follow(resource, Workload) for resource in WORKLOADS}


class PodGroupController:
    """Reconciles the pods of one generated group at a time, by the group's key: when a pod without a group is created
    or a pod is deleted, when the group is created or deleted, and when the workload of the pods is edited.

    The cached pod lacks fields that the group is created from, so that one pod of a new group is read from the server.
    Without `inherit_owner_annotations`, the workload's annotations have no effect.
    """

    def __init__(
        self,
        api: Api,
        pods: Cache[Pod],
        podgroups: Cache[Json],
        workloads: Mapping[Resource, Cache[Workload]],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,),
        inherit_owner_annotations: bool = True,
    ) -> None:
        self._api = api
        self._scheduler_names = frozenset(scheduler_names)
        self._pods = pods
        self._podgroups = podgroups
        self._workloads = workloads if inherit_owner_annotations else {}
        self._refusals = Refusals(PODS, pods, recorder, _REPORTED)
        self.controller = Controller(
            ControllerConfig(name="podgroup-controller", workers=4),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
            carried_out=self._carried_out,
        )
        pods.add_index(_GROUP, self._group_of)
        pods.listen(self._on_pod)
        podgroups.listen(self._on_podgroup)
        for cache in self._workloads.values():
            cache.listen(self._on_workload)

    def part(self) -> Part:
        return self.controller.part()

    # Events

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            self._refusals.forget(change.current.metadata.uid)
        keys = self._group_of(change.current)
        if change.new is None or _over(change.new) or _waits(change.new):
            self._reconcile(*keys)
        elif change.old is None:
            # Its group may have been deleted while the controllers weren't running.
            self._reconcile(*(key for key in keys if self._podgroups.by_key(key) is None))

    def _on_podgroup(self, change: Change[Json]) -> None:
        key = identity(change.current).key
        came_or_went = change.old is None or change.new is None
        if came_or_went and _owner_uid(key):
            self._reconcile(key)

    def _on_workload(self, change: Change[Workload]) -> None:
        metadata = change.current.metadata
        key = f"{metadata.namespace}/{generated_name(metadata.uid)}"
        if change.new is not None and (self._podgroups.by_key(key) is not None or self._pods.indexed(_GROUP, key)):
            self._reconcile(key)

    def _reconcile(self, *keys: str) -> None:
        for key in keys:
            self.controller.queue.add(key)

    # Decisions

    async def decide(self, key: str, now: datetime) -> Decision | None:
        """The decision about the generated group of that key (`namespace/name`)."""
        members = self._members(key)
        stored = self._podgroups.by_key(key)
        if not members and stored is None:
            return None
        group = PodGroup.parse(stored) if stored is not None else None
        view = GroupView(
            waiting=[ref_of(PODS, pod.metadata) for pod in members if _waits(pod)],
            members=len(members),
            succeeded=sum(map(_has_succeeded, self._pods.indexed(_GROUP, key))),
            workload=await self._workload(key, members),
            pod_group=group,
        )
        if needs_sample(view):
            view = replace(view, sample=await self._sample(members))
        return decide(view, now=now)

    def _carried_out(self, key: str, refused: NotAppliedError | None) -> None:
        """Emit an event on pods whose group is refused (its queue is closed, or not for their namespace): otherwise
        they would wait without a reason."""
        members = self._pods.indexed(_GROUP, key) if refused is None else self._members(key)[:_MOST_REPORTED]
        for pod in members:
            self._refusals.carried_out(pod.metadata.uid, refused)

    def _members(self, key: str) -> list[Pod]:
        """The pods of that group that haven't ended, by name."""
        found = (pod for pod in self._pods.indexed(_GROUP, key) if not _over(pod))
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def _workload(self, key: str, members: Sequence[Pod]) -> Workload | None:
        """The workload of the pods. Read from the server where it isn't cached yet: a gang must not start with
        `minMember` 1."""
        uid = _owner_uid(key)
        for cache in self._workloads.values():
            known = cache.get(uid)
            if known is not None:
                return known
        owner = members[0].metadata.controller_owner() if members else None
        for resource in self._workloads:
            if owner is None or (owner.api_version, owner.kind) != (resource.api_version, resource.kind):
                continue
            found = await get_or_none(self._api, resource, owner.name, namespace=members[0].metadata.namespace)
            return msgspec.convert(found, Workload) if found is not None and found["metadata"]["uid"] == uid else None
        return None

    async def _sample(self, members: Sequence[Pod]) -> Json | None:
        """The first of the pods that still exists, as stored on the server."""
        for pod in members:
            found = await get_or_none(self._api, PODS, pod.metadata.name, namespace=pod.metadata.namespace)
            if found is not None and found["metadata"]["uid"] == pod.metadata.uid:
                return found
        return None

    def _group_of(self, pod: Pod) -> list[str]:
        """The key of the generated group that a pod is in or will get; empty for all other pods."""
        metadata = pod.metadata
        if pod.spec.scheduler_name not in self._scheduler_names:
            return []
        owner = metadata.controller_owner()
        name = generated_name(owner.uid if owner is not None else metadata.uid)
        named = (metadata.annotations or {}).get(names.GROUP_NAME)
        return [f"{metadata.namespace}/{name}"] if named in (None, "", name) else []


def _waits(pod: Pod) -> bool:
    return not (pod.metadata.annotations or {}).get(names.GROUP_NAME)


def _over(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in TERMINAL_PHASES


def _has_succeeded(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase == PodPhase.SUCCEEDED


def _owner_uid(key: str) -> str:
    """The UID in the name of a generated group; empty for other groups."""
    _, _, name = key.partition("/")
    prefix = names.GENERATED_POD_GROUP_PREFIX
    return name.removeprefix(prefix) if name.startswith(prefix) else ""
