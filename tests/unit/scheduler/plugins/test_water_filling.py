"""A worked example of the shares of queues, round by round."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.oracle.shares import Claimant, rounds
from vcbatch.scheduler.plugins.proportion import real_capability, water_fill

GI = 1024.0**3
CPU, MEMORY = 100_000, 400


def vector(cpu: float, memory: float) -> np.ndarray:
    """Thousandths of cpus and Gi of memory; no pods."""
    return np.array([cpu, memory * GI, 0.0])


def amounts(cpu: float, memory: float) -> dict[str, float]:
    return {"cpu": float(cpu), "memory": memory * GI}


WEIGHTS = (1.0, 2.0, 3.0)
REQUESTS = ((10_000, 40), (80_000, 100), (90_000, 300))
GUARANTEES = ((0, 0), (30_000, 0), (0, 0))
MOST = ((70_000, 400), (100_000, 400), (40_000, 400))
"""The third can have no more than 40 cpus."""
ROUNDS = (
    (((10_000, 40), (33_333.3, 100), (40_000, 200)), (16_666.7, 60)),
    (((10_000, 40), (40_000, 100), (40_000, 236)), (10_000, 24)),
    (((10_000, 40), (44_000, 100), (40_000, 250.4)), (6_000, 9.6)),
)
"""After each of the first rounds what the queues deserve, and what is left. The second and the third are not met while
they want more of one resource, so of the other they go on to be offered a part that they can't take."""
END = ((10_000, 40), (50_000, 100), (40_000, 260))


def claimants() -> list[Claimant]:
    given = zip(WEIGHTS, REQUESTS, MOST, GUARANTEES, strict=True)
    return [Claimant(w, amounts(*request), amounts(*most), amounts(*least)) for w, request, most, least in given]


@pytest.mark.parametrize("queue", range(3))
def test_the_most_that_a_queue_can_have(queue: int) -> None:
    """What the guarantees of the others leave, and no more than its own capability where that names the resource."""
    guarantees = np.array([vector(*one) for one in GUARANTEES])
    capped = queue == 2
    most = real_capability(
        total=vector(CPU, MEMORY),
        guarantees=guarantees.sum(axis=0),
        guarantee=guarantees[queue],
        capability=vector(40_000, 0) if capped else None,
        named=np.array([1.0, 0.0, 0.0]) if capped else None,
    )
    assert most.tolist() == vector(*MOST[queue]).tolist()


def test_a_capability_of_no_cpu_and_no_memory_is_none() -> None:
    nothing = real_capability(
        total=vector(CPU, MEMORY),
        guarantees=vector(0, 0),
        guarantee=None,
        capability=vector(0, 0),
        named=np.array([1.0, 1.0, 0.0]),
    )
    assert nothing.tolist() == vector(CPU, MEMORY).tolist()


def test_what_each_round_gives() -> None:
    found = list(rounds(amounts(CPU, MEMORY), claimants()))
    for (deserved, remaining), one in zip(ROUNDS, found, strict=False):
        for wanted, has in zip(deserved, one.deserved, strict=True):
            assert has == pytest.approx(amounts(*wanted), rel=1e-5)
        assert one.remaining == pytest.approx(amounts(*remaining), rel=1e-5)
    later = [one.remaining for one in found[1:]]
    for before, after in pairwise(later[:-1]):
        assert after["cpu"] == pytest.approx(0.6 * before["cpu"], rel=1e-3), "the third can't take its 3 parts of 5"
        assert after["memory"] == pytest.approx(0.4 * before["memory"], rel=1e-3), "nor the second its 2"
    assert all(amount < 0.1 for amount in found[-1].remaining.values()), "less than the smallest amount is left"


def test_what_queues_deserve_in_the_end() -> None:
    deserved = water_fill(
        total=vector(CPU, MEMORY),
        weights=np.array(WEIGHTS),
        request=np.array([vector(*one) for one in REQUESTS]),
        most=np.array([vector(*one) for one in MOST]),
        guarantee=np.array([vector(*one) for one in GUARANTEES]),
    )
    np.testing.assert_allclose(deserved, np.array([vector(*one) for one in END]), rtol=1e-6)
    np.testing.assert_allclose(deserved.sum(axis=0), vector(CPU, MEMORY), rtol=1e-6)
