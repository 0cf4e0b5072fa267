"""Random worlds as Volcano decided them: what all its runs agree on must come out the same, save known differences.

Every world counts whose policy the scheduler supports. A difference that isn't listed fails, and so does a listed one
that is gone, so that the list stays true.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import DATA
from tests.oracle.worlds import run
from vcbatch.scheduler import Policy, PolicyError

Json = dict[str, Any]

SORTED = 100
"""How many worlds of a policy the list below was made from; of a larger set, a small share may differ unsorted."""
UNSORTED_SHARE = 0.05

DIFFERENCES = Path(__file__).with_name("scheduler_differences.yaml")


def _files() -> Iterator[Any]:
    if DATA is None:
        yield pytest.param("", marks=pytest.mark.skip(reason="no conformance data beside this checkout"))
        return
    for path in sorted((DATA / "worlds").glob("*.jsonl")):
        with path.open() as lines:
            first = json.loads(next(lines))
        try:
            Policy.parse(first["policy"])
        except PolicyError as error:
            yield pytest.param(path.stem, marks=pytest.mark.skip(reason=str(error)))
        else:
            yield pytest.param(path.stem)


@cache
def _known() -> dict[str, str]:
    entries = yaml.safe_load(DIFFERENCES.read_text())
    return {world: entry["name"] for entry in entries for world in entry["worlds"]}


@pytest.mark.parametrize("name", list(_files()))
def test_decides_as_volcano_does(name: str) -> None:
    assert DATA is not None
    differing: dict[str, list[str]] = {}
    worlds = [json.loads(line) for line in (DATA / "worlds" / f"{name}.jsonl").read_text().splitlines()]
    for world in worlds:
        found = differences(world)
        if found:
            differing[world["id"]] = found
    listed = {world for world in _known() if world.rsplit("-", 1)[0] == name}
    unlisted = {w: d for w, d in differing.items() if w not in listed}
    if len(worlds) > SORTED:
        assert len(unlisted) <= UNSORTED_SHARE * len(worlds), unlisted
    else:
        assert unlisted == {}
        assert listed - set(differing) == set(), "these agree now: take them off the list"


def differences(world: Json) -> list[str]:
    """Which of the recorded decisions come out otherwise."""
    scheduler, result = run(world, Policy.parse(world["policy"]))
    want = world["want"]
    binds = {f"{b.namespace}/{b.name}": b.node for b in result.binds}
    promised = {f"{h.namespace}/{h.name}" for h in result.held if h.promised}
    kept = {f"{h.namespace}/{h.name}" for h in result.held if not h.promised}
    out: list[str] = []
    if "bound" in want and set(want["bound"]) != set(binds):
        out.append("bound")
    if any(binds.get(pod) != node for pod, node in want.get("binds", {}).items()):
        out.append("binds")
    if "pipelined" in want and set(want["pipelined"]) != promised:
        out.append("pipelined")
    if set(want.get("allocated", ())) != kept:
        out.append("allocated")
    for key, phase in want.get("podGroupPhase", {}).items():
        # Volcano's phases were taken before the gang plugin's last word, so a gang that lost members is Pending there.
        got = scheduler.phase(*key.split("/"))
        if ("Pending" if got == "Unknown" else got) != phase:
            out.append(f"phase of {key}")
    for key, counts in want.get("taskStatusCounts", {}).items():
        if "bound" not in out and _counts(world, key, binds, promised, kept) != Counter(counts):
            out.append(f"tasks of {key}")
    return out


def _counts(world: Json, key: str, binds: Json, promised: set[str], kept: set[str]) -> Counter[str]:
    """The task states of a gang when the cycle ends, before what is only held is given back."""
    counts: Counter[str] = Counter()
    for pod in world["pods"]:
        meta = pod["metadata"]
        if f"{meta['namespace']}/{meta['annotations']['scheduling.k8s.io/group-name']}" != key:
            continue
        name = f"{meta['namespace']}/{meta['name']}"
        phase = pod["status"]["phase"]
        if name in binds:
            counts["Binding"] += 1
        elif name in promised:
            counts["Pipelined"] += 1
        elif name in kept:
            counts["Allocated"] += 1
        elif meta.get("deletionTimestamp") and phase in ("Pending", "Running"):
            counts["Releasing"] += 1
        elif phase == "Pending" and pod["spec"].get("nodeName"):
            counts["Bound"] += 1
        else:
            counts[phase] += 1
    return counts
