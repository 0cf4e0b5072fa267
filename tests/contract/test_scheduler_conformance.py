"""Volcano's own unit-test cases: one session on given objects, and who is bound where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import DATA
from tests.oracle.worlds import outcome
from vcbatch.scheduler import PolicyError
from vcbatch.scheduler.simulation import Case, WorldError

Json = dict[str, Any]

DIFFERENCES = Path(__file__).with_name("scheduler_differences.yaml")


def _cases() -> Iterator[Any]:
    if DATA is None:
        yield pytest.param({}, marks=pytest.mark.skip(reason="no conformance data beside this checkout"))
        return
    for path in sorted((DATA / "scheduler").glob("*.yaml")):
        for case in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if case and _in_scope(case):
                yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def _in_scope(case: Json) -> bool:
    """Whether the scheduler takes the case's policy, and reads all its objects."""
    try:
        Case.read(case)
    except (PolicyError, WorldError):
        return False
    return True


def _known() -> frozenset[str]:
    """The names of the cases that come out otherwise on purpose."""
    entries = yaml.safe_load(DIFFERENCES.read_text())
    return frozenset(name for entry in entries for name in entry.get("cases", ()))


@pytest.mark.parametrize("case", list(_cases()))
def test_decides_as_volcano_does(case: Json) -> None:
    if case.get("name") in _known():
        with pytest.raises(AssertionError):
            _compare(case)
    else:
        _compare(case)


def _compare(case: Json) -> None:
    found = outcome(case)
    want = case["want"]
    if "binds" in want:
        assert found.binds == want["binds"]
    if "bindCount" in want:
        assert len(found.binds) == want["bindCount"]
    assert sorted(found.evicted) == sorted(want.get("evicted") or ())
    for gang, nodes in (want.get("pipelinedOnlyTo") or {}).items():
        places = {node for pod, node in found.pipelined.items() if found.gangs[pod] == gang}
        assert places and places <= set(nodes)
    for key, phase in (want.get("podGroupPhase") or {}).items():
        assert found.phases[key] == phase
    for key, counts in (want.get("taskStatusCounts") or {}).items():
        assert found.counts[key] == counts
