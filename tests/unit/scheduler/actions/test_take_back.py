"""No gang of another queue goes that could at once have the place back."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import parse_policy

POLICY = """
actions: "allocate, gangreclaim"
tiers:
- plugins: [{name: gang}, {name: capacity}, {name: predicates}]
"""


@pytest.mark.parametrize(
    ("borrower", "lender", "gone"),
    [
        pytest.param("512Mi", "4", [], id="each would hold too much memory and lack cpu"),
        pytest.param(
            "1Gi", "4", ["old-0-worker-0"], id="the one that gets the place then holds no more than it deserves"
        ),
        pytest.param("512Mi", "3", ["old-0-worker-0"], id="the one that loses it then lacks nothing"),
    ],
)
def test_a_queue_takes_nothing_that_the_other_could_have_back(borrower: str, lender: str, gone: list[str]) -> None:
    """The lender holds 4 cores and 2Gi of memory, of which it deserves 1Gi; the other one wants half of that."""
    made = Cluster(parse_policy(POLICY))
    made.node("n", cpu="4")
    made.queue("lender", deserved={"cpu": lender, "memory": "1Gi"})
    made.queue("default", event="MODIFIED", deserved={"cpu": "4", "memory": borrower})
    for index in range(2):
        made.gang(f"old-{index}", 1, queue="lender", cpu="2")
    made.cycle()
    for index in range(2):
        made.run(f"old-{index}")
    made.gang("new", 1, cpu="2")
    assert [eviction.name for eviction in made.cycle().evictions] == gone
