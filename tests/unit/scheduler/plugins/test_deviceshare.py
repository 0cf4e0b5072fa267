"""Shared cards: who gets which, what a node still takes, and that no card is ever given away twice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cards import Cards, card, policy
from tests.unit.scheduler.cluster import Json
from vcbatch.api.pod import Pod, PodSpec
from vcbatch.api.resources import PODS
from vcbatch.scheduler import PolicyError, Scheduler
from vcbatch.scheduler.index.devices.asks import Ask, PodAsks, Sharing, asks_of

MIG_CONFIG = """
nvidia:
  knownMigGeometries:
  - models: [A100]
    allowedGeometries:
    - group: small
      geometries:
      - {name: 1g.5gb, memory: 5000, count: 2}
      - {name: 2g.10gb, memory: 10000, count: 1}
    - group: large
      geometries:
      - {name: 7g.40gb, memory: 40000, count: 1}
"""


# Whole cards and their memory


def test_memory_is_taken_of_one_card_the_first_that_has_enough() -> None:
    cluster = Cards(GPUSharingEnable=True)
    cluster.gpus("a", number=2, memory=20)
    cluster.sharers("g", 4, {"gpu_memory": 4})
    cluster.cycle()
    assert [cluster.notes[f"g-worker-{i}"]["volcano.sh/gpu-index"] for i in range(4)] == ["0", "0", "1", "1"]
    cluster.sharers("h", 1, {"gpu_memory": 4})
    assert not cluster.cycle().binds, "two of each card's ten are left: enough in all, but not on one card"
    reported = cluster.scheduler.explain("ns", "h")
    assert reported is not None
    assert reported.nodes == {"node(s) didn't have enough free cards, or memory or cores of cards": 1}


def test_a_card_that_is_unhealthy_is_not_used() -> None:
    cluster = Cards(GPUNumberEnable=True)
    cluster.gpus("a", number=3, memory=30, unhealthy="1")
    cluster.sharers("g", 2, {"gpu_number": 1})
    cluster.cycle()
    assert {cluster.notes[f"g-worker-{i}"]["volcano.sh/gpu-index"] for i in range(2)} == {"0", "2"}
    cluster.sharers("h", 1, {"gpu_number": 1})
    assert not cluster.cycle().binds
    cluster.gpus("a", number=3, memory=30, event="MODIFIED")
    assert len(cluster.cycle().binds) == 1


def test_a_number_of_cards_is_of_cards_that_nobody_uses() -> None:
    cluster = Cards(GPUNumberEnable=True)
    cluster.gpus("a", number=5, memory=50)
    cluster.sharers("g", 3, {"gpu_number": 2})
    assert not cluster.cycle().binds
    cluster.sharers("h", 2, {"gpu_number": 2})
    cluster.cycle()
    assert sorted(cluster.notes[f"h-worker-{i}"]["volcano.sh/gpu-index"] for i in range(2)) == ["0,1", "2,3"]


def test_a_side_car_takes_memory_beside_the_containers() -> None:
    cluster = Cards(GPUSharingEnable=True)
    cluster.gpus("a", number=2, memory=12)
    cluster.sharers("g", 1, {"gpu_memory": 4}, sidecar={"gpu_memory": 4})
    assert not cluster.cycle().binds, "a pod's memory is of one card, and cards have six"
    cluster.sharers("h", 1, {"gpu_memory": 4}, sidecar={"gpu_memory": 2})
    assert len(cluster.cycle().binds) == 1


@pytest.mark.parametrize(
    ("containers", "inits", "expected"),
    [
        ([4, 1], [], 5),
        ([4], [(3, "")], 4),
        ([4], [(7, "")], 7),
        ([4], [(3, "Always")], 7),
        ([1], [(3, "Always"), (4, "")], 7),
        ([1], [(4, ""), (3, "Always")], 4),
        ([0], [(3, "Always")], 3),
    ],
)
def test_init_containers_take_cards_one_after_the_other_and_side_cars_keep_theirs(
    containers: list[int], inits: list[tuple[int, str]], expected: int
) -> None:
    def container(count: int, policy: str = "") -> Json:
        return {"resources": {"limits": {"volcano.sh/gpu-number": str(count)}}, "restartPolicy": policy or None}

    raw = {"containers": [container(n) for n in containers], "initContainers": [container(*one) for one in inits]}
    assert asks_of(msgspec.convert(raw, PodSpec), {}, Sharing.NUMBER) == PodAsks((Ask(expected, alone=True),))


# vGPUs


def test_a_side_car_gets_a_share_of_a_card() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x"))
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory": 1000}, sidecar={"vgpu_number": 1, "vgpu_memory": 500})
    cluster.cycle()
    assert cluster.notes["g-worker-0"]["volcano.sh/vgpu-ids-new"] == "x,NVIDIA,500,0:;x,NVIDIA,1000,0:"


def test_a_pod_is_told_the_cards_of_each_container() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x"), card("y"))
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory": 1000, "vgpu_cores": 30}, {"vgpu_number": 2})
    assert not cluster.cycle().binds, "the second wants two whole cards, of which one is in use by then"
    cluster.sharers("h", 1, {"vgpu_number": 1, "vgpu_memory": 1000, "vgpu_cores": 30}, {"vgpu_memory": 500})
    cluster.cycle()
    seconds = str(int(cluster.now.timestamp()))
    ids = "y,NVIDIA,1000,30:;y,NVIDIA,500,0:"
    assert cluster.notes["h-worker-0"] == {
        "volcano.sh/vgpu-ids-new": ids,
        "volcano.sh/devices-to-allocate": ids,
        "volcano.sh/vgpu-node": "a",
        "volcano.sh/vgpu-time": seconds,
        "volcano.sh/bind-time": seconds,
        "volcano.sh/bind-phase": "allocating",
    }


@pytest.mark.parametrize(
    ("limit", "fitting"),
    [
        ({"vgpu_number": 1, "vgpu_memory": 4000}, 4),
        ({"vgpu_number": 1, "vgpu_memory": 4000, "vgpu_cores": 40}, 2),
        ({"vgpu_number": 1, "vgpu_memory": 100}, 5),
        ({"vgpu_number": 1, "vgpu_memory_percentage": 30}, 3),
        ({"vgpu_number": 1}, 1),
        ({"vgpu_number": 1, "vgpu_memory": 100, "vgpu_cores": 100}, 1),
        ({"vgpu_number": 2, "vgpu_memory": 100}, 0),
    ],
)
def test_places_memory_and_cores_limit_how_many_share_acard(limit: Json, fitting: int) -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x", places=5, memory=16000))
    if fitting:
        cluster.sharers("g", fitting, limit)
        assert len(cluster.cycle().binds) == fitting
    cluster.sharers("more", 1, limit)
    assert not cluster.cycle().binds


def test_a_card_whose_cores_are_given_away_takes_nobody_who_asks_for_none() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x"))
    cluster.sharers("g", 2, {"vgpu_number": 1, "vgpu_memory": 100, "vgpu_cores": 50})
    cluster.cycle()
    cluster.sharers("h", 1, {"vgpu_number": 1, "vgpu_memory": 100})
    assert not cluster.cycle().binds


@pytest.mark.parametrize(("policy", "cards"), [("", ["y", "y"]), ("binpack", ["x", "x"]), ("spread", ["y", "z"])])
def test_the_policy_says_which_card_is_asked_first(policy: str, cards: list[str]) -> None:
    cluster = Cards(VGPUEnable=True, SchedulePolicy=policy)
    cluster.vgpus("a", card("x"), card("y"), card("z", places=1 if policy == "" else 10))
    cluster.sharers("first", 1, {"vgpu_number": 1, "vgpu_memory": 10}, **({} if policy == "" else {"use_uuid": "x"}))
    cluster.cycle()
    cluster.sharers("g", 2, {"vgpu_number": 1, "vgpu_memory": 1000})
    cluster.cycle()
    assert sorted(cluster.uuids("g-worker-0") + cluster.uuids("g-worker-1")) == cards


@pytest.mark.parametrize(("policy", "node"), [("binpack", "a"), ("spread", "b")])
def test_nodes_are_rated_by_the_cards_that_a_pod_would_get(policy: str, node: str) -> None:
    cluster = Cards(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=10)
    for name in ("a", "b"):
        cluster.vgpus(name, card(f"{name}-0"))
    cluster.sharers("first", 1, {"vgpu_number": 1, "vgpu_memory": 8000})
    cluster.cycle()
    assert cluster.placed("first") == {"first-worker-0": "a"}
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory": 1000})
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": node}


@pytest.mark.parametrize(
    ("notes", "uuid"),
    [
        ({"use_type": "a100"}, "x"),
        ({"not_type": "A100"}, "y"),
        ({"use_uuid": "x,z"}, "x"),
        ({"not_uuid": "y"}, "x"),
        ({"use_type": "H100"}, None),
        ({"mode": "mps"}, None),
    ],
)
def test_a_pod_says_which_cards_it_wants(notes: dict[str, str], uuid: str | None) -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x", kind="NVIDIA-A100"), card("y"))
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory": 10}, **notes)
    cluster.cycle()
    assert (cluster.uuids("g-worker-0") if cluster.notes else None) == (None if uuid is None else [uuid])


def test_members_of_a_gang_that_mind_each_other_get_a_card_each() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x"), card("y"))
    cluster.sharers("g", 3, {"vgpu_number": 1, "vgpu_memory": 10}, policy="spread")
    assert not cluster.cycle().binds
    cluster.sharers("h", 2, {"vgpu_number": 1, "vgpu_memory": 10}, policy="spread")
    cluster.cycle()
    assert {*cluster.uuids("h-worker-0"), *cluster.uuids("h-worker-1")} == {"x", "y"}


def test_pods_of_one_rule_never_share_a_card_and_others_do() -> None:
    cluster = Cards(VGPUEnable=True, GPUExclusiveRules=[{"tier": "gold"}])
    cluster.vgpus("a", card("x"))
    cluster.vgpus("b", card("y"))
    limit = {"vgpu_number": 1, "vgpu_memory": 10}
    for name in ("g", "h", "k"):
        cluster.sharers(name, 1, limit, labels={"tier": "gold", "of": name})
    cluster.sharers("plain", 3, limit)
    cluster.cycle()
    assert set(cluster.placed("g").values()) | set(cluster.placed("h").values()) == {"a", "b"}
    assert cluster.placed("k") == {}
    assert len(cluster.placed("plain")) == 3
    cluster.delete_gang("g")
    cluster.cycle()
    assert cluster.placed("k")


@pytest.mark.parametrize(("rules", "notes"), [([{"tier": "gold"}], {}), ([], {"policy": "spread"})])
def test_nodes_are_rated_by_no_card_on_which_the_pod_would_meet_whom_it_must_not(
    rules: list[Json], notes: dict[str, str]
) -> None:
    """The fuller card of b is no longer for the second pod, and another one there is as empty as that of a."""
    cluster = Cards(VGPUEnable=True, SchedulePolicy="binpack", ScheduleWeight=1, GPUExclusiveRules=rules)
    cluster.vgpus("a", card("x", memory=16000))
    cluster.vgpus("b", card("y", memory=16000), card("z", memory=8000))
    cluster.sharers("g", 2, {"vgpu_number": 1, "vgpu_memory": 2000}, labels={"tier": "gold"}, **notes)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b", "g-worker-1": "a"}


def test_cards_that_are_cut_give_the_smallest_part_that_does() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.config(MIG_CONFIG)
    cluster.vgpus("a", card("x", memory=40000, kind="NVIDIA-A100", mode="mig"))
    cluster.sharers("g", 3, {"vgpu_number": 1, "vgpu_memory": 4000})
    cluster.cycle()
    assert [cluster.uuids(f"g-worker-{i}")[0] for i in range(3)] == ["x[small-0]", "x[small-1]", "x[small-2]"]
    cluster.sharers("h", 1, {"vgpu_number": 1, "vgpu_memory": 4000})
    assert not cluster.cycle().binds, "the card is cut the small way, and its three parts are taken"
    cluster.delete_gang("g")
    cluster.sharers("k", 1, {"vgpu_number": 1, "vgpu_memory": 20000})
    cluster.cycle()
    assert cluster.placed("h")
    assert not cluster.placed("k"), "it would have to be cut anew"


def test_a_part_of_a_card_counts_whole_however_little_of_it_is_asked_for() -> None:
    """Of a's card 10000 + 5000 of 40000 are in use with the pod, for 6000 + 1000; of b's 11000 + 1000."""
    cluster = Cards(VGPUEnable=True, SchedulePolicy="binpack", ScheduleWeight=1)
    cluster.config(MIG_CONFIG)
    cluster.vgpus("a", card("x", memory=40000, kind="NVIDIA-A100", mode="mig"))
    cluster.vgpus("b", card("y", memory=40000))
    cluster.sharers("one", 1, {"vgpu_number": 1, "vgpu_memory": 6000}, use_uuid="x")
    cluster.sharers("other", 1, {"vgpu_number": 1, "vgpu_memory": 11000}, use_uuid="y")
    cluster.cycle()
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory": 1000})
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a"}


def test_without_geometries_a_cut_card_is_shared_like_others() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x", mode="mig"))
    cluster.sharers("g", 2, {"vgpu_number": 1, "vgpu_memory": 4000})
    cluster.cycle()
    assert cluster.uuids("g-worker-0") == ["x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("nvidia: [", "can't be read"), ("nvidia: {resourceCountName: my.io/gpu}", "only volcano.sh/vgpu-number")],
)
def test_a_configuration_that_is_not_understood_keeps_pods_waiting_and_is_named(text: str, words: str) -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.config(text)
    cluster.vgpus("a", card("x"))
    cluster.sharers("g", 1, {"vgpu_number": 1})
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.nodes is not None
    assert any(words in reason for reason in reported.nodes)


def test_a_node_whose_records_are_none_has_no_cards() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", "x,ten,16000,NVIDIA,true,")
    cluster.sharers("g", 1, {"vgpu_number": 1})
    assert not cluster.cycle().binds
    cluster.vgpus("a", card("x"), event="MODIFIED")
    assert len(cluster.cycle().binds) == 1


# Pods that end, and restarts


def test_cards_of_a_pod_that_is_ending_are_waited_for() -> None:
    cluster = Cards(GPUNumberEnable=True)
    cluster.gpus("a", number=1, memory=10)
    cluster.sharers("old", 1, {"gpu_number": 1})
    cluster.cycle()
    cluster.change("old-worker-0", phase="Running", deleting=True)
    cluster.sharers("g", 1, {"gpu_number": 1})
    cluster.sharers("h", 1, {"gpu_number": 1})
    result = cluster.cycle()
    assert not result.binds
    assert [(held.name, held.promised) for held in result.held] == [("g-worker-0", True)]
    cluster.delete("old-worker-0")
    assert [bind.name for bind in cluster.cycle().binds] == ["g-worker-0"]


def test_a_bind_that_failed_gives_its_card_back() -> None:
    cluster = Cards(GPUNumberEnable=True)
    cluster.gpus("a", number=1, memory=10)
    cluster.sharers("g", 1, {"gpu_number": 1})
    bind = cluster.scheduler.cycle(cluster.now).binds[0]
    cluster.scheduler.bind_failed(bind.uid, "no")
    assert len(cluster.scheduler.cycle(cluster.now).binds) == 1
    assert cluster.usage.table.totals() == {"a": ((0, 0, 1),)}


def test_the_node_is_locked_where_the_policy_says_so() -> None:
    cluster = Cards(VGPUEnable=True, NodeLockEnable=True)
    cluster.vgpus("a", card("x"))
    cluster.sharers("g", 1, {"vgpu_number": 1})
    cluster.gang("plain", 1)
    assert {bind.name: bind.lock for bind in cluster.cycle().binds} == {"g-worker-0": "hamivgpu", "plain-worker-0": ""}


def test_amounts_per_card_count_for_nobody_else() -> None:
    cluster = Cards(VGPUEnable=True)
    cluster.vgpus("a", card("x"))
    cluster.sharers("g", 1, {"vgpu_number": 1, "vgpu_memory_percentage": 50, "vgpu_cores": 10})
    assert len(cluster.cycle().binds) == 1, "no node offers percentages"
    cluster.scheduler.set_policy(policy())
    cluster.sharers("h", 1, {"vgpu_number": 1, "vgpu_memory_percentage": 50})
    assert not cluster.cycle().binds, "now they are resources that no node has"
    cluster.scheduler.set_policy(policy(VGPUEnable=True))
    assert len(cluster.cycle().binds) == 1
    assert cluster.usage.table.totals() == {"a": ((16000, 10, 2),)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"GPUSharingEnable": True, "GPUNumberEnable": True}, "exclude each other"),
        ({"GPUNumberEnable": True, "VGPUEnable": True}, "exclude each other"),
        ({"SchedulePolicy": "best"}, "allowed: binpack, spread, or empty"),
        ({"AscendMindClusterVNPUEnable": True}, "MindCluster's way to share NPUs isn't supported"),
        ({"GPUExclusiveRules": {"a": "b"}}, "must be a list of label maps"),
        ({"GPUExclusiveRules": [{}]}, "[0]: must be a map of labels"),
    ],
)
def test_arguments_that_can_not_be_used_are_refused(arguments: Json, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(**arguments)
    assert words in str(refused.value)


# Any history

_LIMITS = (
    {"vgpu_number": 1, "vgpu_memory": 3000},
    {"vgpu_number": 2, "vgpu_memory": 5000, "vgpu_cores": 30},
    {"vgpu_number": 1, "vgpu_memory_percentage": 50, "vgpu_cores": 60},
    {"vgpu_number": 1},
)
_DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["gang", "delete", "ending", "node", "refuse", "cycle"]), st.integers(0, 5), st.integers(1, 4)
    ),
    max_size=25,
)


@given(deeds=_DEEDS, policy=st.sampled_from(["", "binpack", "spread"]), cut=st.booleans())
@settings(max_examples=120)
def test_no_card_is_given_away_twice_and_usage_equals_that_of_a_new_scheduler(
    deeds: list[tuple[str, int, int]], policy: str, cut: bool
) -> None:
    cluster = Cards(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=1)
    if cut:
        cluster.config(MIG_CONFIG)
    kind, mode = ("NVIDIA-A100", "mig") if cut else ("NVIDIA-V100", "")
    records = {name: [card(f"{name}{i}", places=4, kind=kind, mode=mode) for i in range(3)] for name in ("a", "b")}
    for name, cards in records.items():
        cluster.vgpus(name, *cards)
    alive: list[str] = []
    for number, (deed, which, size) in enumerate(deeds):
        match deed:
            case "gang":
                cluster.sharers(f"g{number}", size, *[_LIMITS[(which + i) % 4] for i in range(1 + which % 2)])
                alive.append(f"g{number}")
            case "delete" if alive:
                cluster.delete_gang(alive.pop(which % len(alive)))
            case "ending" if alive:
                for pod in list(cluster.placed(alive[which % len(alive)])):
                    cluster.change(pod, phase="Running", deleting=True)
            case "node":
                name = "ab"[which % 2]
                cluster.vgpus(name, *records[name], event="MODIFIED")
            case "refuse":
                now = cluster.now
                for bind in cluster.scheduler.cycle(now).binds:
                    cluster.scheduler.bind_failed(bind.uid, "no")
            case _:
                cluster.cycle()
        _check(cluster, records)
    cluster.cycle()
    _check(cluster, records)
    assert cluster.usage.table.totals() == _anew(cluster, records, policy, cut)


def _check(cluster: Cards, records: dict[str, list[str]]) -> None:
    if not cluster.opened:
        return
    for name, cards in cluster.usage.table.totals().items():
        for record, (memory, cores, users) in zip(records[name], cards, strict=True):
            _, places, size, *_ = record.split(",")
            assert 0 <= memory <= int(size), record
            assert 0 <= cores <= 100, record
            assert 0 <= users <= int(places), record
    parts = [uuid for pod in cluster.placed("g") for uuid in cluster.uuids(pod) if "[" in uuid]
    assert len(parts) == len(set(parts)), "a part of a card has one holder"


def _anew(cluster: Cards, records: dict[str, list[str]], policy: str, cut: bool) -> object:
    """The usage that a scheduler counts which starts now and knows what pods and nodes say."""
    fresh = Cards(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=1)
    if cut:
        fresh.config(MIG_CONFIG)
    for name, cards in records.items():
        fresh.vgpus(name, *cards)
    for raw in cluster.pods.values():
        if raw["spec"].get("nodeName"):
            fresh.scheduler.apply(PODS, "ADDED", msgspec.convert(raw, Pod))
    assert isinstance(fresh.scheduler, Scheduler)
    fresh.scheduler.cycle(fresh.now)
    return fresh.usage.table.totals()
