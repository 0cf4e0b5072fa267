"""Volcano's own test of its shuffle action, which brings a plugin that names pods of low priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from tests.conformance import DATA
from tests.oracle.worlds import run
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.model.objects import Task


class Fake(Plugin):
    def unwanted(self, running: Sequence[Task]) -> Sequence[Task]:
        return [task for task in running if task.priority < 100]


def _cases() -> list[dict[str, Any]]:
    if DATA is None:
        return []
    return list(yaml.load_all((DATA / "scheduler" / "shuffle.yaml").read_text(), Loader=yaml.CSafeLoader))


@pytest.mark.skipif(DATA is None, reason="no conformance data beside this checkout")
def test_evicts_as_volcano_does() -> None:
    cases = _cases()
    assert cases
    for case in cases:
        tiers = [{"plugins": [{"name": p["name"]} for p in tier["plugins"]]} for tier in case["tiers"]]
        document = {"actions": ", ".join(case["actions"]), "tiers": tiers}
        _, result = run(case, build_policy(document, plugins={"fake": Fake}))
        assert sorted(f"{e.namespace}/{e.name}" for e in result.evictions) == case["want"]["evicted"]
        assert not result.binds
