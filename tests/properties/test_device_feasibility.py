"""A gang that claims devices is impossible if no placement on nodes with all their devices free exists, and only then.
Every placement of small gangs is tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER, Claims
from vcbatch.scheduler import WaitReason

KINDS = ("x", "y")


Wanted = tuple[int, int]
"""The devices of each kind that the claim of one pod requests."""

pods = st.lists(st.sampled_from([(1, 0), (2, 0), (0, 1), (1, 1), (0, 2)]), min_size=1, max_size=4)
nodes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=2)


def fits(gang: Sequence[Wanted], there: Sequence[tuple[int, int]]) -> bool:
    """Whether some assignment of the pods to nodes exceeds no node's devices."""
    for places in product(range(len(there)), repeat=len(gang)):
        used = [[0, 0] for _ in there]
        for pod, node in zip(gang, places, strict=True):
            for kind in range(2):
                used[node][kind] += pod[kind]
        if all(used[n][kind] <= there[n][kind] for n in range(len(there)) for kind in range(2)):
            return True
    return False


class Kinds(Claims):
    """Nodes `a` and `b`, with devices of two kinds."""

    def __init__(self, there: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        for kind in KINDS:
            self.device_class(kind, f"device.attributes['{DRIVER}'].kind == '{kind}'")
        for node, counts in zip("ab", there, strict=True):
            names = [f"{kind}-{i}" for kind, count in zip(KINDS, counts, strict=True) for i in range(count)]
            self.devices(node, *names, of={name: {"kind": {"string": name[0]}} for name in names})

    def claiming(self, gang: str, wanted: Sequence[Wanted]) -> None:
        self.gang(gang, 0, minimum=len(wanted))
        for nth, pod in enumerate(wanted):
            requests = [
                {"deviceClassName": kind, "count": count} for kind, count in zip(KINDS, pod, strict=True) if count
            ]
            self.claim(f"{gang}-{nth}", *requests)
            self.pod(gang, nth, cpu="1m", resourceClaims=[{"name": "c", "resourceClaimName": f"{gang}-{nth}"}])

    def impossible(self, gang: str) -> bool:
        reported = self.scheduler.explain("ns", gang)
        return reported is not None and reported.reason is WaitReason.IMPOSSIBLE


@given(nodes, pods)
@settings(max_examples=examples(200))
def test_impossible_gangs_are_those_without_a_placement(there: list[tuple[int, int]], wanted: list[Wanted]) -> None:
    cluster = Kinds(there)
    cluster.claiming("g", wanted)
    cluster.cycle()
    possible = fits(wanted, there)
    assert bool(cluster.placed("g")) is possible
    assert cluster.impossible("g") is not possible


@given(nodes, pods)
@settings(max_examples=examples(100))
def test_devices_of_other_pods_make_no_gang_impossible(there: list[tuple[int, int]], wanted: list[Wanted]) -> None:
    cluster = Kinds(there)
    for nth, (x, y) in enumerate(there):
        if x or y:
            cluster.claiming(f"other-{nth}", [(x, y)])
    cluster.cycle()
    cluster.claiming("g", wanted)
    cluster.cycle()
    assert cluster.impossible("g") is not fits(wanted, there)
