"""Random worlds as Volcano decided them: what all its runs agree on must come out the same, save known differences.

Every world counts whose policy the scheduler supports. A difference that isn't listed fails, and so does a listed one
that is gone, so that the list stays true.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import DATA
from tests.oracle.worlds import outcome
from vcbatch.scheduler import PolicyError, parse_policy

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
            parse_policy(first["policy"])
        except PolicyError as error:
            yield pytest.param(path.stem, marks=pytest.mark.skip(reason=str(error)))
        else:
            yield pytest.param(path.stem)


@cache
def _known() -> dict[str, str]:
    entries = yaml.safe_load(DIFFERENCES.read_text())
    return {world: entry["name"] for entry in entries for world in entry.get("worlds", ())}


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
    found = outcome(world)
    want = world["want"]
    out: list[str] = []
    if "bound" in want and set(want["bound"]) != set(found.binds):
        out.append("bound")
    if any(found.binds.get(pod) != node for pod, node in want.get("binds", {}).items()):
        out.append("binds")
    if "evicted" in want and set(want["evicted"]) != set(found.evicted):
        out.append("evicted")
    if "pipelined" in want and set(want["pipelined"]) != set(found.pipelined):
        out.append("pipelined")
    # Where nothing of what is promised was stable, neither is what is held besides.
    if ("allocated" in want or "pipelined" in want) and set(want.get("allocated", ())) != set(found.allocated):
        out.append("allocated")
    for key, phase in want.get("podGroupPhase", {}).items():
        if found.recorded_phases[key] != phase:
            out.append(f"phase of {key}")
    for key, counts in want.get("taskStatusCounts", {}).items():
        if "bound" not in out and found.counts[key] != counts:
            out.append(f"tasks of {key}")
    return out
