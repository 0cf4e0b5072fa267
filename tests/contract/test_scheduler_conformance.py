"""Volcano's own unit-test cases: one session on given objects, and who is bound where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.conformance import DATA
from tests.oracle.worlds import case_policy, run
from vcbatch.scheduler import PolicyError

Json = dict[str, Any]

OUT_OF_SCOPE = ("hyperNodes", "shardingMode", "nodesInShard", "resourceSlices", "resourceClaims", "resourceQuotas")
"""Objects of features that the scheduler doesn't have; cases with them use plugins that it refuses, or need them."""


def _cases() -> Iterator[Any]:
    if DATA is None:
        yield pytest.param({}, marks=pytest.mark.skip(reason="no conformance data beside this checkout"))
        return
    for path in sorted((DATA / "scheduler").glob("*.yaml")):
        for case in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if case and _in_scope(case):
                yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def _in_scope(case: Json) -> bool:
    if any(key in case for key in OUT_OF_SCOPE):
        return False
    try:
        case_policy(case)
    except PolicyError:
        return False
    return True


@pytest.mark.parametrize("case", list(_cases()))
def test_decides_as_volcano_does(case: Json) -> None:
    scheduler, result = run(case, case_policy(case))
    want = case["want"]
    binds = {f"{b.namespace}/{b.name}": b.node for b in result.binds}
    if "binds" in want:
        assert binds == want["binds"]
    if "bindCount" in want:
        assert len(binds) == want["bindCount"]
    assert not want.get("evicted")
    for key, phase in (want.get("podGroupPhase") or {}).items():
        namespace, name = key.split("/")
        assert scheduler.phase(namespace, name) == phase
