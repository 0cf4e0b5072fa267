"""Cluster states as data: Kubernetes objects as mappings, decoded for the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vcbatch.api.resources import Resource
from vcbatch.scheduler import CycleResult, Policy, Scheduler, build_policy
from vcbatch.scheduler.simulation import MOMENT, Case, Outcome, Simulation, World
from vcbatch.scheduler.simulation.world import BY_KEY

NOW = MOMENT


def objects(world: Mapping[str, Any]) -> list[tuple[Resource, msgspec.Struct]]:
    """All objects of a cluster state, decoded as in the runtime."""
    return list(World.read({key: world[key] or () for key in BY_KEY if key in world}).objects)


def scheduler(world: Mapping[str, Any], policy: Policy) -> Scheduler:
    """A scheduler with these objects in its snapshot."""
    made = Scheduler(policy)
    for resource, obj in objects(world):
        made.apply(resource, "ADDED", obj)
    return made


def first_pass(document: Mapping[str, Any]) -> Policy:
    """The policy without the search for gang placements, which the oracles don't implement: they place one task after
    the other."""
    arguments = {"name": "allocate", "arguments": {"gangSearch": False}}
    return build_policy({**document, "configurations": [*document.get("configurations", ()), arguments]})


def run(world: Mapping[str, Any], policy: Policy) -> tuple[Scheduler, CycleResult]:
    made = scheduler(world, policy)
    return made, made.cycle(NOW)


def outcome(case: Mapping[str, Any]) -> Outcome:
    """The outcome of a recorded case or cluster state, as `vcbatch simulate` computes it."""
    read = Case.read(case)
    return Simulation(read.world, read.policy, share=read.share).run()
