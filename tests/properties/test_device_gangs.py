"""Gangs whose pods claim different devices, against every way to give them some: one that fits as a whole starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.index.dra.test_device_counters import HALF, WHOLE
from tests.unit.scheduler.index.dra.test_device_gangs import Gangs

SIZES = {"whole": 2, "half": 1}


class Part(NamedTuple):
    """A partition that the card of this number can be given as."""

    size: str
    card: int


World = Mapping[str, Sequence[Part]]
"""By node."""

parts = st.builds(Part, st.sampled_from(sorted(SIZES)), st.integers(0, 1))
worlds = st.fixed_dictionaries({}, optional={node: st.lists(parts, max_size=4) for node in ("a", "b", "c")})
classes = st.lists(st.sampled_from([*SIZES, "gpu"]), min_size=1, max_size=4)


def _play(world: World, *gangs: Sequence[str]) -> Gangs:
    cluster = Gangs()
    cluster.node("c")
    for node, listed in world.items():
        named = {
            f"{part.size}_{nth}": (f"gpu-{part.card}", WHOLE if part.size == "whole" else HALF)
            for nth, part in enumerate(listed)
        }
        cluster.cards(node, **named)
    for nth, wanted in enumerate(gangs):
        cluster.claiming(f"g{nth}", *wanted)
    cluster.cycle()
    return cluster


def _fits(world: World, wanted: Sequence[str]) -> bool:
    """Whether each pod of the gang can have a partition of its own, so that no card is given away beyond its size."""
    all_parts = [(node, nth, part) for node, listed in world.items() for nth, part in enumerate(listed)]
    ways = ([one for one in all_parts if size in ("gpu", one[2].size)] for size in wanted)
    return any(_sound(world, [(node, nth) for node, nth, _ in chosen]) for chosen in product(*ways))


def _sound(world: World, chosen: Sequence[tuple[str, int]]) -> bool:
    used: dict[tuple[str, int], int] = {}
    for node, nth in chosen:
        part = world[node][nth]
        used[node, part.card] = used.get((node, part.card), 0) + SIZES[part.size]
    return len(set(chosen)) == len(chosen) and all(amount <= SIZES["whole"] for amount in used.values())


def _chosen(cluster: Gangs, gang: str, wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    places = cluster.placed(gang)
    for nth in range(len(wanted)):
        (device,) = cluster.got(f"{gang}-{nth}")
        yield places[f"{gang}-worker-{nth}"], int(device.rpartition("-")[2])


@given(world=worlds, wanted=classes)
@settings(max_examples=examples(200))
def test_a_gang_that_fits_as_a_whole_starts(world: World, wanted: list[str]) -> None:
    cluster = _play(world, wanted)
    assert len(cluster.placed("g0")) == (len(wanted) if _fits(world, wanted) else 0)


@given(world=worlds, gangs=st.lists(classes, min_size=2, max_size=4))
@settings(max_examples=examples(100))
def test_gangs_are_given_what_there_is(world: World, gangs: list[list[str]]) -> None:
    cluster = _play(world, *gangs)
    chosen: list[tuple[str, int]] = []
    for nth, wanted in enumerate(gangs):
        if cluster.placed(f"g{nth}"):
            chosen += _chosen(cluster, f"g{nth}", wanted)
    assert _sound(world, chosen)
