"""The policies of the documents that evict, decided on worlds in which their text says who goes and who stays."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.plugins.test_disruption import began
from vcbatch.scheduler import CycleResult, Policy, parse_policy

DOCS = Path(__file__).parents[4] / "docs"
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _documented(page: str, naming: str) -> Policy:
    """The one whole policy of the page that names this."""
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    [text] = [block for block in blocks if block.startswith("actions:") and "\ntiers:" in block and naming in block]
    return parse_policy(text)


def _evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


def _running(cluster: Cluster, name: str, queue: str, nodes: list[str], *, cpu: str = "1", minimum: int = 1) -> None:
    cluster.gang(name, 0, minimum=minimum, queue=queue, phase="Running")
    for index, node in enumerate(nodes):
        cluster.pod(name, index, cpu=cpu, nodeName=node)
    cluster.run(name)


@pytest.mark.parametrize(("held", "victims"), [(8, 0), (9, 1), (10, 2)])
def test_ancestor_reclaim_takes_what_a_branch_holds_beyond_its_share(held: int, victims: int) -> None:
    """Branch `a` deserves 40 cpus; what it holds up to there stays, though queue `b` deserves more than it holds."""
    cluster = Cluster(_documented("queues.md", "ancestorReclaimLevel"))
    cluster.node("n", cpu=str(10 + 5 * held), pods="50")
    cluster.queue("a", deserved={"cpu": "40"})
    cluster.queue("a1", parent="a", deserved={"cpu": "10"})
    cluster.queue("a2", parent="a", deserved={"cpu": "30"})
    cluster.queue("b", deserved={"cpu": "20"})
    _running(cluster, "lender", "a1", ["n"] * held, cpu="5")
    _running(cluster, "own", "b", ["n"] * 2, cpu="5")
    cluster.gang("asking", 2, minimum=max(victims, 1), queue="b", cpu="5")
    result = cluster.cycle()
    assert len(result.evictions) == victims
    assert all(name.startswith("lender-") for name in _evicted(result))


@pytest.mark.parametrize(("held", "victims"), [(["n0", "n0", "n1"], 0), (["n0", "n0", "n0", "n1"], 1)])
def test_reclaim_by_weight_leaves_a_queue_its_share(held: list[str], victims: int) -> None:
    """Each of two queues deserves half of 6 cpus; the free ones lie on two nodes, so that a pod of 2 fits on none. The
    gang could spare all its pods but one."""
    cluster = _by_weight(held, minimum=1)
    cluster.gang("asking", 1, queue="other", cpu="2")
    result = cluster.cycle()
    assert len(result.evictions) == victims
    assert all(name.startswith("old-") for name in _evicted(result))


@pytest.mark.parametrize(
    ("minimum", "ran", "victims"),
    [
        pytest.param(3, timedelta(hours=1), 1, id="it can spare a pod"),
        pytest.param(4, timedelta(hours=1), 0, id="it needs all its pods"),
        pytest.param(3, timedelta(minutes=1), 0, id="it has just begun to run"),
    ],
)
def test_reclaim_by_weight_leaves_gangs_their_minimum_and_a_while_to_run(
    minimum: int, ran: timedelta, victims: int
) -> None:
    """Whatever the lender uses beyond its share, here a cpu."""
    cluster = _by_weight(["n0", "n0", "n0", "n1"], minimum=minimum, ran=ran)
    cluster.gang("asking", 1, queue="other", cpu="2")
    assert len(cluster.cycle().evictions) == victims


def _by_weight(held: list[str], *, minimum: int, ran: timedelta = timedelta(hours=1)) -> Cluster:
    cluster = Cluster(_documented("scheduler.md", "stale-gang"))
    cluster.node("n0", cpu="3")
    cluster.node("n1", cpu="3")
    cluster.queue("lender", weight=1)
    cluster.queue("other", weight=1)
    _running(cluster, "old", "lender", held, minimum=minimum)
    _running(cluster, "own", "other", ["n1"])
    began(cluster, *cluster.pods)
    cluster.now += ran
    return cluster
