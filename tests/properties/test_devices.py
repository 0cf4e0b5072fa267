"""Devices by claim against a reading of what was written that knows nothing of the scheduler: every device, capacity
and counter of a small world is looked at anew, and every way to serve a claim is tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_device_counters import counters
from tests.unit.scheduler.index.dra.test_device_shares import Shares
from tests.unit.scheduler.index.dra.test_device_taints import Tainted
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER
from vcbatch.api.dra import ResourceSlice
from vcbatch.api.names import extended_claim_name
from vcbatch.api.quantity import of_value
from vcbatch.scheduler.index.dra.inventory import Inventory
from vcbatch.scheduler.index.dra.ledger import DeviceLedger
from vcbatch.scheduler.index.node_labels import NodeLabels

NODES = ("a", "b")
RESOURCE = "example.com/device"


class Made(NamedTuple):
    """A device: `room` is the capacity that its shares take of in steps of `step`, None where it isn't shared. Those
    that draw on the node's counter at the same time have a group in common, or have none each. `taint` is the effect of
    the taint that it has, empty without one; `ruled` where a rule put it there on both nodes."""

    name: str
    draws: int
    groups: frozenset[str]
    room: int | None
    step: int
    taint: str = ""
    ruled: bool = False

    def keeps(self, asked: Asked) -> bool:
        """Whether its taint keeps the request from it."""
        return self.taint in ("NoSchedule", "NoExecute") and asked.bears not in ("all", self.taint)

    def takes(self, wanted: int | None) -> int | None:
        """What a share takes; None where there is no such one."""
        if wanted is None:
            return self.step
        amount = next(n for n in range(self.step, 99, self.step) if n >= wanted)
        return amount if self.room is not None and amount <= self.room else None


class Given(NamedTuple):
    node: str
    device: str
    share: int | None


class Asked(NamedTuple):
    """A request for so many devices that have `units` of capacity; `bears` is the effect of the taints that it
    tolerates, `all` for every effect, empty for none."""

    devices: int
    units: int | None
    bears: str = ""


class Wanted(NamedTuple):
    """A gang of so many pods, each with a claim of these requests; where they are `extended`, with a container for each
    instead that asks for so many as an extended resource."""

    pods: int
    requests: tuple[Asked, ...]
    extended: bool = False


class World:
    def __init__(self, slices: int, devices: Sequence[Made]) -> None:
        self.slices, self.devices = slices, {made.name: made for made in devices}

    def sound(self, given_: Iterable[Given]) -> bool:
        """Whether no more is given away than there is."""
        of: dict[tuple[str, str], list[int | None]] = {}
        for one in given_:
            of.setdefault((one.node, one.device), []).append(one.share)
        drawn: dict[str, int] = dict.fromkeys(NODES, 0)
        groups: dict[str, list[frozenset[str]]] = {node: [] for node in NODES}
        for (node, name), shares in of.items():
            made = self.devices[name]
            drawn[node] += made.draws
            groups[node] += [made.groups] if made.draws else []
            amounts = [share for share in shares if share is not None]
            if len(amounts) != len(shares) and len(shares) > 1:
                return False
            if made.room is not None and sum(amounts) > made.room:
                return False
        together = all(not any(of) or (of[0].intersection(*of[1:])) for of in groups.values())
        return together and all(amount <= self.slices for amount in drawn.values())

    def ways(self, wanted: Wanted) -> Iterator[list[Given]]:
        """Every way to serve one claim of these."""
        for node in NODES:
            for parts in product(*(list(self._ways(node, asked)) for asked in wanted.requests)):
                yield [one for part in parts for one in part]

    def _ways(self, node: str, asked: Asked) -> Iterator[list[Given]]:
        borne = [made for made in self.devices.values() if not made.keeps(asked)]
        for chosen in combinations(borne, asked.devices):
            if all(m.takes(asked.units) is not None or (m.room is None and asked.units is None) for m in chosen):
                yield [Given(node, m.name, m.takes(asked.units) if m.room is not None else None) for m in chosen]

    def slice_of(self, node: str) -> Iterator[tuple[str, Json]]:
        yield f"{node}-counters", {"sharedCounters": [{"name": "s", "counters": counters({"n": str(self.slices)})}]}
        yield f"{node}-devices", {"devices": [_listed(made) for made in self.devices.values()]}


def _listed(made: Made) -> Json:
    out: Json = {"name": made.name}
    if made.taint and not made.ruled:
        out["taints"] = [{"key": "k", "effect": made.taint}]
    if made.draws:
        takes = {"counterSet": "s", "counters": counters({"n": str(made.draws)})}
        out["consumesCounters"] = [{**takes, "compatibilityGroups": sorted(made.groups)}]
    if made.room is not None:
        span = {"min": str(made.step), "step": str(made.step)}
        policy = {"default": str(made.step), "validRange": span}
        out["allowMultipleAllocations"] = True
        out["capacity"] = {"units": {"value": str(made.room), "requestPolicy": policy}}
    return out


@st.composite
def worlds(draw: st.DrawFn) -> World:
    devices: list[Made] = []
    for nth in range(draw(st.integers(1, 4))):
        step = draw(st.integers(1, 3))
        room = draw(st.none() | st.integers(step, 9))
        groups = draw(st.just(frozenset[str]()) | st.frozensets(st.sampled_from("xyz"), max_size=2))
        taint = draw(st.sampled_from(["", "", "NoSchedule", "NoExecute", "None"]))
        devices.append(Made(f"d{nth}", draw(st.integers(0, 4)), groups, room, step, taint, draw(st.booleans())))
    return World(draw(st.integers(1, 8)), devices)


tolerations = st.sampled_from(["", "", "all", "NoSchedule", "NoExecute"])
requests = st.builds(Asked, st.integers(1, 2), st.none() | st.integers(1, 9), tolerations)
plain = st.builds(Asked, st.integers(1, 2), st.none(), st.just(""))
gangs = st.one_of(
    st.builds(Wanted, st.integers(1, 3), st.lists(requests, min_size=1, max_size=2).map(tuple), st.just(False)),
    st.builds(Wanted, st.integers(1, 3), st.lists(plain, min_size=1, max_size=2).map(tuple), st.just(True)),
)


class Cluster(Shares, Tainted):
    """With all that there may be about devices."""


def _play(world: World, wanted: Sequence[Wanted]) -> Cluster:
    cluster = Cluster()
    cluster.device_class("gpu", f"device.driver == '{DRIVER}'", extendedResourceName=RESOURCE)
    for node in NODES:
        for name, spec in world.slice_of(node):
            cluster.slice(name, node, nodeName=node, **spec)
    for made in world.devices.values():
        if made.taint and made.ruled:
            cluster.rule(made.name, {"device": made.name}, key="k", effect=made.taint)
    for nth, gang in enumerate(wanted):
        cluster.gang(f"g{nth}", 0, minimum=gang.pods)
        for pod in range(gang.pods):
            if gang.extended:
                containers = [_container(at, asked.devices) for at, asked in enumerate(gang.requests)]
                cluster.pod(f"g{nth}", pod, containers=containers)
                continue
            cluster.claim(f"g{nth}-{pod}", *(_request(asked) for asked in gang.requests))
            claims = [{"name": "c", "resourceClaimName": f"g{nth}-{pod}"}]
            cluster.pod(f"g{nth}", pod, cpu="100m", resourceClaims=claims)
    return cluster


def _container(at: int, devices: int) -> Json:
    return {"name": f"c{at}", "resources": {"requests": {"cpu": "50m", RESOURCE: str(devices)}}}


def _claim_of(gang: Wanted, nth: int, pod: int) -> str:
    name = f"g{nth}-worker-{pod}"
    return extended_claim_name(name, f"pod-{name}") if gang.extended else f"g{nth}-{pod}"


def _request(asked: Asked) -> Json:
    amounts = {} if asked.units is None else {"capacity": {"requests": {"units": str(asked.units)}}}
    effect = {} if asked.bears == "all" else {"effect": asked.bears}
    bears = {"tolerations": [{"key": "k", "operator": "Exists", **effect}]} if asked.bears else {}
    return {"count": asked.devices, **amounts, **bears}


def _results(cluster: Shares, claim: str) -> list[Given]:
    def read(result: Any) -> Given:
        share = int(result["consumedCapacity"]["units"]) if "shareID" in result else None
        return Given(result["pool"], result["device"], share)

    return [read(result) for result in cluster.results(claim)]


def _check(world: World, cluster: Shares, wanted: Sequence[Wanted]) -> None:
    given_ = [one for claim in cluster.claims for one in _results(cluster, claim)]
    assert world.sound(given_)
    for nth, gang in enumerate(wanted):
        placed = cluster.placed(f"g{nth}")
        assert len(placed) in (0, gang.pods)
        for pod in range(gang.pods):
            claim = _claim_of(gang, nth, pod)
            got = _results(cluster, claim) if claim in cluster.claims else []
            if not placed:
                assert not got
            else:
                node = placed[f"g{nth}-worker-{pod}"]
                assert {one.node for one in got} == {node}
                assert got in world.ways(gang)
        if not placed and f"g{nth}" in cluster.groups:
            assert not _fits(world, gang, given_, gang.pods), "it would fit"


def _fits(world: World, gang: Wanted, given_: Sequence[Given], pods: int) -> bool:
    """Whether so many pods of the gang would find devices besides what is given away."""
    if not pods:
        return True
    ways = ([*given_, *way] for way in world.ways(gang))
    return any(_fits(world, gang, after, pods - 1) for after in ways if world.sound(after))


@given(world=worlds(), wanted=st.lists(gangs, min_size=1, max_size=6), drops=st.lists(st.integers(0, 5), max_size=3))
@settings(max_examples=examples(150))
def test_what_is_given_away_is_there_and_who_would_fit_does_not_wait(
    world: World, wanted: list[Wanted], drops: list[int]
) -> None:
    cluster = _play(world, wanted)
    cluster.cycle()
    _check(world, cluster, wanted)
    for nth in drops:
        if f"g{nth}" in cluster.groups:
            cluster.delete_gang(f"g{nth}")
            for claim in [name for name in cluster.claims if name.startswith(f"g{nth}-")]:
                cluster.drop(claim)
                del cluster.claims[claim]
        cluster.cycle()
        _check(world, cluster, wanted)


@given(
    world=worlds(),
    takes=st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 3), st.integers(0, 4)), max_size=12),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=examples(100))
def test_giving_back_undoes_taking_in_any_order(world: World, takes: list[tuple[str, int, int]], order: Any) -> None:
    def made(name: str, node: str, spec: Json) -> ResourceSlice:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
        raw = {"metadata": {"name": name}, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **spec}}
        return msgspec.convert(raw, ResourceSlice)

    slices = [made(name, node, spec) for node in NODES for name, spec in world.slice_of(node)]
    inventory = Inventory(slices, NodeLabels([]))
    ledger = DeviceLedger(inventory)
    devices = {node: inventory.on(node, 0) for node in NODES}

    def books() -> list[Any]:
        states = [(device.id, ledger.state(device)) for listed in devices.values() for device in listed]
        sets = {counter_set for listed in devices.values() for device in listed for counter_set, _ in device.groups}
        together = [(one, set(ledger.together(one))) for one in sorted(sets)]
        return [states, together, [(counter, ledger.left(counter)) for counter in sorted(inventory.counters)]]

    before = books()
    taken: list[tuple[Any, Any]] = []
    for node, nth, amount in takes:
        device = devices[node][nth % len(devices[node])]
        share = {f"{DRIVER}/units": of_value(amount)} if device.shared else None
        free, states = ledger.free(device, share), books()
        assert books() == states, "asking takes nothing"
        if free:
            ledger.take(device.id, share)
            taken.append((device.id, share))
    order.shuffle(taken)
    for device, share in taken:
        ledger.give_back(device, share)
    assert books() == before
