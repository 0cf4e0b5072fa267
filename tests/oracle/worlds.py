"""Scheduling worlds as data: Kubernetes objects as mappings, turned into what the scheduler is told."""

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
    """Every object of a world, decoded as the runtime decodes it."""
    return list(World.read({key: world[key] or () for key in BY_KEY if key in world}).objects)


def scheduler(world: Mapping[str, Any], policy: Policy) -> Scheduler:
    """A scheduler that knows the world."""
    made = Scheduler(policy)
    for resource, obj in objects(world):
        made.apply(resource, "ADDED", obj)
    return made


def first_pass(document: Mapping[str, Any]) -> Policy:
    """The policy without the search for placements, which oracles don't know: they place one task after the other."""
    arguments = {"name": "allocate", "arguments": {"gangSearch": False}}
    return build_policy({**document, "configurations": [*document.get("configurations", ()), arguments]})


def run(world: Mapping[str, Any], policy: Policy) -> tuple[Scheduler, CycleResult]:
    made = scheduler(world, policy)
    return made, made.cycle(NOW)


def outcome(case: Mapping[str, Any]) -> Outcome:
    """What comes of a recorded case or world, as `vcbatch simulate` has it."""
    read = Case.read(case)
    return Simulation(read.world, read.policy, share=read.share).run()
