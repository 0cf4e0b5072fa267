"""Plugins beyond the default policy's on random worlds: the arrays decide as the slow oracle does."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.oracle.device_strategies import carded
from tests.oracle.more_strategies import grouped, measured, networked
from tests.oracle.near_strategies import related
from tests.oracle.numa_strategies import aligned
from tests.oracle.plugins import FullOracle
from tests.oracle.worlds import first_pass, run
from tests.support.examples import examples

Json = dict[str, Any]
WORLDS = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))


def _agree(world: Json, document: Json) -> None:
    _, result = run(world, first_pass(document))
    actions = [a.strip() for a in document["actions"].split(",")]
    options = [
        (p["name"], {**(p.get("arguments") or {}), "enableHierarchy": p.get("enableHierarchy", False)})
        for tier in document["tiers"]
        for p in tier["plugins"]
    ]
    oracle = FullOracle(world, actions, options).run()
    assert {f"{b.namespace}/{b.name}": b.node for b in result.binds} == oracle.binds
    assert {f"{h.namespace}/{h.name}": h.node for h in result.held} == oracle.held


@WORLDS
@given(grouped())
def test_nodegroup(case: tuple[Json, Json]) -> None:
    _agree(*case)


@WORLDS
@given(measured())
def test_usage(case: tuple[Json, Json]) -> None:
    _agree(*case)


@settings(WORLDS, max_examples=examples(300))
@given(related())
def test_inter_pod_affinity(case: tuple[Json, Json]) -> None:
    _agree(*case)


@WORLDS
@given(networked())
def test_network_topology_aware(case: tuple[Json, Json]) -> None:
    _agree(*case)


@settings(WORLDS, max_examples=examples(500))
@given(carded())
def test_deviceshare(case: tuple[Json, Json]) -> None:
    _agree(*case)


@settings(WORLDS, max_examples=examples(300))
@given(aligned())
def test_numa_aware(case: tuple[Json, Json]) -> None:
    _agree(*case)
