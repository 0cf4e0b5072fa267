"""Writes the results of a scheduling cycle other than binds: statuses, conditions, evictions, events.

Outside the cycle and only where something changed. Of several writes for one object the last one counts, and they are
made one after the other. Writes that no other program acts on (a PodGroup's pods by phase, that it is placed, a queue's
allocated resources) wait a moment for the next change, since a gang's pods start and end together.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from vcbatch.api.pod import Pod
from vcbatch.api.podgroup import PodGroupPhase
from vcbatch.api.reasons import PodConditionType, PodGroupConditionType, PodReason
from vcbatch.api.resources import NODESHARDS, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import PodGroupStatusView, PodGroupView, QueueView
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Emit, EventType, ref_of
from vcbatch.interfaces.api import Api, ApiError, Json, PatchKind
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.pacing.pace import Pace
from vcbatch.runtime.pacing.workqueue import WorkQueue
from vcbatch.scheduler import CycleResult
from vcbatch.scheduler.model.result import (
    EventRecord,
    Eviction,
    GateRemoval,
    NodeShardUpdate,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueStatusUpdate,
)

log = logging.getLogger(__name__)

Write = Callable[[], Awaitable[None]]
Key = tuple[str, str]
"""The kind of write, and the UID of its object."""

# Longer than the scheduler's interval between two counts of one object, so that the second replaces the first.
_SETTLE_SECONDS = 1.2
_LONGEST_SETTLE_SECONDS = 5.0
# Delay of the update that a gang starts, once its pods are bound: usually they run by then, which is written at once.
_START_SECONDS = 5.0
_COUNTED = ("podgroup", "queue")
_DECIDED_AGAIN = "podgroup"  # a failed write is part of the next cycle's snapshot


class SchedulerWrites:
    """Writes results of cycles in the background. `podgroup_failed(uid)` is called where a PodGroup's status was not
    stored, so that it is decided again."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        meter: Meter,
        report: Callable[[Emit], None],
        pods: Cache[Pod],
        podgroups: Cache[PodGroupView],
        queues: Cache[QueueView],
        podgroup_failed: Callable[[str], None],
        shard_failed: Callable[[str], None],
        eviction_failed: Callable[[str, str], None],
        gate_removal_failed: Callable[[str], None],
        concurrency: int = 16,
    ) -> None:
        self._api = api
        self._clock = clock
        self._meter = meter
        self._report = report
        self._pods = pods
        self._podgroups = podgroups
        self._queues = queues
        self._podgroup_failed = podgroup_failed
        self._shard_failed = shard_failed
        self._eviction_failed = eviction_failed
        self._gate_removal_failed = gate_removal_failed
        self._concurrency = concurrency
        self._pending: dict[Key, Write] = {}
        self._queue: WorkQueue[Key] = WorkQueue(clock=clock, random=random)
        self._pace: Pace[Key] = Pace(first=_SETTLE_SECONDS, limit=_LONGEST_SETTLE_SECONDS)

    def submit(self, result: CycleResult) -> None:
        for eviction in result.evictions:
            self._put("evict", eviction.uid, self._evict, eviction)
        for removal in result.gate_removals:
            self._put("gate", removal.uid, self._open_gate, removal)
        for podgroup in result.podgroup_updates:
            self._put("podgroup", podgroup.uid, self._update_podgroup, podgroup, settle=self._settle(podgroup))
        for condition in result.pod_conditions:
            self._put("condition", condition.uid, self._set_condition, condition)
        for queue in result.queue_statuses:
            self._put("queue", queue.uid, self._update_queue, queue, settle=_SETTLE_SECONDS)
        if result.node_shard is not None:
            self._put("node-shard", result.node_shard.uid, self._update_shard, result.node_shard)
        for event in result.events:
            self._report(_emit(event))

    def _put(
        self, kind: str, uid: str, act: Callable[[Any], Awaitable[None]], what: object, *, settle: float = 0.0
    ) -> None:
        """Queue a write. `settle`: seconds in which a newer one may replace it."""
        key = (kind, uid)
        held = key in self._pending
        self._pending[key] = lambda: act(what)
        if not settle:
            self._queue.add(key)
        elif not held:
            self._queue.add_after(key, max(self._pace.wait(key, now=self._clock.monotonic()), settle))

    def _settle(self, update: PodGroupUpdate) -> float:
        """Seconds that the update may wait: 0, unless the only news is that the gang is placed, or how many of its pods
        are in which phase."""
        held = self._podgroups.get(update.uid)
        if held is None:
            return 0.0
        noted = held.metadata.annotations or {}
        reported = _troubles(held.status.conditions)
        if any(noted.get(key) != value for key, value in (update.annotations or {}).items()) or any(
            trouble not in reported for trouble in _troubles(update.status.get("conditions"))
        ):
            return 0.0
        before, after = held.status.phase, update.status.get("phase")
        begun = sum(update.status.get(key, 0) for key in ("running", "succeeded", "failed"))
        if before == PodGroupPhase.INQUEUE and after in (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING):
            return _START_SECONDS if begun < held.spec.min_member else 0.0
        return _SETTLE_SECONDS if before == after else 0.0

    async def run(self) -> None:
        """Write until cancelled."""
        await self._queue.run(self._serve, workers=self._concurrency)

    async def _serve(self, key: Key) -> bool:
        write = self._pending.pop(key, None)
        if write is None:
            return True  # written together with an urgent one
        if key[0] in _COUNTED:
            self._pace.acted(key, now=self._clock.monotonic())
        try:
            await write()
        except ApiError as error:
            self._meter.count("scheduler_writes_failed", kind=key[0])
            level = logging.DEBUG if error.not_found or error.conflict else logging.WARNING
            log.log(level, "a write of the scheduler failed: %s", error.message, extra={"uid": key[1]})
            if (error.transient or error.conflict) and key[0] != _DECIDED_AGAIN:
                self._pending.setdefault(key, write)  # unless a newer one has come
                return False
        except Exception:  # an object that can't be written must not block the others
            log.exception("a write of the scheduler failed", extra={"uid": key[1]})
        return True

    async def _update_podgroup(self, update: PodGroupUpdate) -> None:
        # The kind has no status subresource, and the status is replaced: fields that it lacks are removed by a null.
        status = {key: None for key in _STATUS_KEYS if key not in update.status} | dict(update.status)
        meta: Json = {"uid": update.uid, "resourceVersion": update.resource_version}
        if update.annotations:
            meta["annotations"] = dict(update.annotations)
        patch: Json = {"metadata": meta, "status": status}
        try:
            answer = await self._api.patch(PODGROUPS, update.name, patch, namespace=update.namespace)
        except Exception:
            self._podgroup_failed(update.uid)
            raise
        self._podgroups.put(msgspec.convert(answer, PodGroupView))

    async def _set_condition(self, update: PodConditionUpdate) -> None:
        pod = self._pods.get(update.uid)
        if pod is None or pod.spec.node_name or pod.metadata.deletion_timestamp:
            return  # it has no content any more
        condition: Json = {
            "type": PodConditionType.POD_SCHEDULED.value,
            "status": "False",
            "reason": update.reason,
            "message": update.message,
        }
        node = update.nominated
        said: Json = {} if node is None else {"nominatedNodeName": node or None}
        await self._patch_conditions(update.namespace, update.name, update.uid, [condition], said)

    async def _evict(self, eviction: Eviction) -> None:
        """Write the reason to the pod, then delete it: a controller that sees the deletion finds the reason there."""
        conditions: list[Json] = [
            {
                "type": PodConditionType.READY.value,
                "status": "False",
                "reason": PodReason.EVICT.value,
                "message": eviction.message,
            },
            {
                "type": PodConditionType.DISRUPTION_TARGET.value,
                "status": "True",
                "reason": PodReason.PREEMPTION_BY_SCHEDULER.value,
                "message": eviction.message,
            },
        ]
        try:
            await self._patch_conditions(eviction.namespace, eviction.name, eviction.uid, conditions)
            await self._api.delete(PODS, eviction.name, namespace=eviction.namespace, uid=eviction.uid)
        except ApiError as error:
            if error.not_found or error.conflict:
                return  # the pod was deleted
            if not error.transient:
                self._eviction_failed(eviction.uid, error.message)
            raise

    async def _open_gate(self, removal: GateRemoval) -> None:
        """Remove the scheduling gate, which is the pod's only one; gates can't be added to a pod."""
        patch: Json = {"metadata": {"uid": removal.uid}, "spec": {"schedulingGates": None}}
        try:
            answer = await self._api.patch(PODS, removal.name, patch, namespace=removal.namespace)
        except ApiError as error:
            if error.not_found or error.conflict:
                return  # the pod was deleted
            if not error.transient:
                self._gate_removal_failed(removal.uid)
            raise
        self._pods.put(msgspec.convert(answer, Pod))

    async def _patch_conditions(
        self, namespace: str, name: str, uid: str, conditions: list[Json], said: Json | None = None
    ) -> None:
        pod = self._pods.get(uid)
        before: Mapping[str, str] = (
            {held.type: held.status for held in pod.status.conditions or ()} if pod is not None else {}
        )
        now = format_time(self._clock.now())
        for condition in conditions:
            if before.get(condition["type"]) != condition["status"]:
                condition["lastTransitionTime"] = now
        patch: Json = {"metadata": {"uid": uid}, "status": {**(said or {}), "conditions": conditions}}
        answer = await self._api.patch(
            PODS, name, patch, namespace=namespace, subresource="status", kind=PatchKind.STRATEGIC
        )
        self._pods.put(msgspec.convert(answer, Pod))

    async def _update_shard(self, update: NodeShardUpdate) -> None:
        patch: Json = {"metadata": {"uid": update.uid}, "status": dict(update.status)}
        try:
            await self._api.patch(NODESHARDS, update.name, patch, subresource="status")
        except ApiError as error:
            if not error.transient:
                self._shard_failed(update.uid)
            raise

    async def _update_queue(self, update: QueueStatusUpdate) -> None:
        queue = self._queues.get(update.uid)
        if queue is None:
            return  # the queue was deleted
        held = queue.status.allocated or {}
        allocated: Json = {key: None for key in held if key not in update.allocated} | dict(update.allocated)
        patch: Json = {"metadata": {"uid": update.uid}, "status": {"allocated": allocated}}
        answer = await self._api.patch(QUEUES, update.name, patch, subresource="status")
        self._queues.put(msgspec.convert(answer, QueueView))


_STATUS_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(PodGroupStatusView))


def _troubles(conditions: Sequence[Json] | None) -> list[Json]:
    """The conditions with the reasons why a gang doesn't start."""
    return [
        condition
        for condition in conditions or ()
        if condition.get("status") == "True" and condition.get("type") != PodGroupConditionType.SCHEDULED
    ]


def _emit(event: EventRecord) -> Emit:
    ref = ref_of(event.resource, event)
    return Emit(ref=ref, type=EventType(event.type), reason=event.reason, message=event.message)
