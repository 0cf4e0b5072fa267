"""Scheduling worlds as data: Kubernetes objects as mappings, turned into what the scheduler is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import (
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    STORAGECLASSES,
    Resource,
)
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.api.storage import Claim, PersistentVolume, StorageClass
from vcbatch.scheduler import CycleResult, Policy, Scheduler
from vcbatch.scheduler.policy import Tier
from vcbatch.scheduler.switches import Switch

NOW = datetime(2026, 6, 1, tzinfo=UTC)

KINDS: Sequence[tuple[str, Resource, type[msgspec.Struct]]] = (
    ("priorityClasses", PRIORITYCLASSES, PriorityClassView),
    ("queues", QUEUES, QueueView),
    ("nodes", NODES, Node),
    ("classes", STORAGECLASSES, StorageClass),
    ("volumes", PERSISTENTVOLUMES, PersistentVolume),
    ("claims", PERSISTENTVOLUMECLAIMS, Claim),
    ("podGroups", PODGROUPS, PodGroupView),
    ("pods", PODS, Pod),
)


def objects(world: Mapping[str, Any]) -> list[tuple[Resource, msgspec.Struct]]:
    """Every object of a world, decoded as the runtime decodes it."""
    return [
        (resource, msgspec.convert(_filled(key, raw), kind))
        for key, resource, kind in KINDS
        for raw in world.get(key) or ()
    ]


def _filled(key: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """With the UID and the scheduler's name that an API server's object always has."""
    meta = dict(raw.get("metadata") or {})
    meta.setdefault("uid", f"{key}/{meta.get('namespace', '')}/{meta.get('name', '')}")
    filled = {**raw, "metadata": meta}
    if key == "pods":
        spec = dict(raw.get("spec") or {})
        spec.setdefault("schedulerName", "volcano")
        filled["spec"] = spec
    return filled


def scheduler(world: Mapping[str, Any], policy: Policy) -> Scheduler:
    """A scheduler that knows the world."""
    made = Scheduler(policy)
    for resource, obj in objects(world):
        made.apply(resource, "ADDED", obj)
    return made


def run(world: Mapping[str, Any], policy: Policy) -> tuple[Scheduler, CycleResult]:
    made = scheduler(world, policy)
    return made, made.cycle(NOW)


def case_policy(case: Mapping[str, Any]) -> Policy:
    """The policy of a conformance case, in which a switch that isn't listed is off."""
    parsed = Policy.build(
        {
            "actions": ", ".join(case["actions"]),
            "tiers": [
                {"plugins": [{"name": p["name"], "arguments": p.get("arguments") or {}} for p in tier["plugins"]]}
                for tier in case.get("tiers") or ()
            ],
            "configurations": case.get("configurations"),
        }
    )
    tiers: list[Tier] = []
    for tier, raw in zip(parsed.tiers, case.get("tiers") or (), strict=True):
        plugins = [
            replace(option, switches={s: s in set(given.get("enabled") or ()) for s in Switch})
            for option, given in zip(tier.plugins, raw["plugins"], strict=True)
        ]
        tiers.append(replace(tier, plugins=plugins))
    return replace(parsed, tiers=tiers)
