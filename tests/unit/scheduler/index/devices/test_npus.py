"""Ascend NPUs: parts by template, chips of one network, what device plugins are told, and that no chip is given away
twice."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cards import Cards
from tests.unit.scheduler.cluster import Json
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS

_310, _910 = "huawei.com/Ascend310P", "huawei.com/Ascend910B3"
_CONFIG = """
vnpus:
- chipName: 910B3
  commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B3
  resourceMemoryName: huawei.com/Ascend910B3-memory
  memoryAllocatable: 65536
  memoryCapacity: 65536
  aiCore: 20
  aiCPU: 7
  templates:
  - {name: vir10_3c_32g, memory: 32768, aiCore: 10, aiCPU: 3}
  - {name: vir05_1c_16g, memory: 16384, aiCore: 5, aiCPU: 1}
"""


def _chip(uuid: str, *, memory: int = 21527, count: int = 7, **more: object) -> Json:
    return {"id": uuid, "devmem": memory, "count": count, "devcore": 8, "health": True, **more}


def _big(uuid: str, network: int | None = None) -> Json:
    more: Json = {} if network is None else {"custominfo": {"NetworkID": network}}
    return _chip(uuid, memory=65536, count=4, **more)


def _cluster(**arguments: object) -> Cards:
    return Cards(AscendHAMiVNPUEnable=True, **arguments)


def _uuids(cluster: Cards, pod: str, word: str = "Ascend310P") -> list[str]:
    return [part["UUID"] for part in json.loads(cluster.notes[pod][f"huawei.com/{word}"])]


def _reasons(cluster: Cards, gang: str) -> str:
    reported = cluster.scheduler.explain("ns", gang)
    return " ".join((reported.nodes if reported is not None else None) or ())


def test_a_pod_is_told_the_chip_and_the_template_of_its_part() -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", 1, {_310: 1, f"{_310}-memory": 4096})
    cluster.cycle()
    seconds = str(int(cluster.now.timestamp()))
    assert cluster.notes["g-worker-0"] == {
        "hami.io/Ascend310P-devices-to-allocate": "x,Ascend310P,6144,0:;",
        "hami.io/Ascend310P-devices-allocated": "x,Ascend310P,6144,0:;",
        "huawei.com/Ascend310P": '[{"UUID":"x","temp":"vir02"}]',
        "predicate-time": seconds,
        "hami.io/vgpu-node": "a",
        "hami.io/vgpu-time": seconds,
        "hami.io/bind-time": seconds,
        "hami.io/bind-phase": "allocating",
    }


@pytest.mark.parametrize(
    ("limits", "fitting", "held"),
    [
        ({_310: 1, f"{_310}-memory": 1}, 7, 3072),
        ({_310: 1, f"{_310}-memory": 3073}, 3, 6144),
        ({_310: 1, f"{_310}-memory": 12288}, 1, 12288),
        ({_310: 1, f"{_310}-memory": 12289}, 1, 21527),
        ({_310: 1, f"{_310}-memory": 24576}, 1, 21527),
        ({_310: 1}, 1, 21527),
    ],
)
def test_a_part_is_of_the_smallest_template_that_does(limits: Json, fitting: int, held: int) -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", fitting, limits)
    assert len(cluster.cycle().binds) == fitting
    assert f"x,Ascend310P,{held},0:" in cluster.notes["g-worker-0"]["hami.io/Ascend310P-devices-allocated"]
    cluster.sharers("more", 1, limits)
    assert not cluster.cycle().binds


def test_ai_cores_are_counted_even_where_memory_is_left() -> None:
    cluster = _cluster()
    cluster.config(_CONFIG)
    cluster.npus("a", [_chip("x", memory=4 * 65536, count=9)], word="Ascend910B3")
    cluster.sharers("g", 2, {_910: 1, f"{_910}-memory": 32768})
    cluster.sharers("h", 1, {_910: 1, f"{_910}-memory": 32768})
    assert len(cluster.cycle().binds) == 2, "each takes 10 of its 20 AI cores"


@pytest.mark.parametrize(
    ("limits", "notes", "words"),
    [
        ({_310: 1, f"{_310}-memory": 24577}, {}, "is more than a chip has (24576)"),
        ({_310: 2, f"{_310}-memory": 3072}, {}, "several huawei.com/Ascend310P are given whole only"),
        ({_310: 1}, {"huawei.com/vnpu-mode": "hami-core"}, "only parts by template are"),
    ],
)
def test_what_no_chip_can_give_is_named(limits: Json, notes: dict[str, str], words: str) -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x"), _chip("y")])
    cluster.sharers("g", 1, limits, **notes)
    assert not cluster.cycle().binds
    assert words in _reasons(cluster, "g")


def test_containers_of_a_pod_get_chips_of_their_own() -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", 1, {_310: 1, f"{_310}-memory": 3072}, {f"{_310}-memory": 3072})
    assert not cluster.cycle().binds
    cluster.npus("b", [_chip("y"), _chip("z")])
    cluster.cycle()
    assert sorted(_uuids(cluster, "g-worker-0")) == ["y", "z"]
    assert cluster.notes["g-worker-0"]["hami.io/Ascend310P-devices-allocated"].count(";") == 2


def test_a_side_car_gets_a_chip_of_its_own() -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", 1, {_310: 1, f"{_310}-memory": 3072}, sidecar={f"{_310}-memory": 3072})
    assert not cluster.cycle().binds
    cluster.npus("b", [_chip("y"), _chip("z")])
    cluster.cycle()
    assert sorted(_uuids(cluster, "g-worker-0")) == ["y", "z"]


@pytest.mark.parametrize(
    ("notes", "uuid"),
    [({"hami.io/use-Ascend310P-uuid": "x"}, "x"), ({"hami.io/no-use-Ascend310P-uuid": "x,z"}, "y")],
)
def test_a_pod_says_which_chips_it_wants(notes: dict[str, str], uuid: str) -> None:
    cluster = _cluster()
    cluster.npus("a", [_chip("x"), _chip("y"), _chip("z", health=False)])
    cluster.sharers("plain", 1, {_310: 1, f"{_310}-memory": 3072})
    cluster.sharers("g", 1, {_310: 1, f"{_310}-memory": 3072}, **notes)
    cluster.cycle()
    assert _uuids(cluster, "g-worker-0") == [uuid]


def test_chips_of_a_pod_are_of_one_network_where_one_has_enough() -> None:
    cluster = _cluster(SchedulePolicy="binpack", ScheduleWeight=1)
    cluster.config(_CONFIG)
    cluster.npus("apart", [_big(f"a{i}", network=i) for i in range(3)], word="Ascend910B3")
    cluster.npus("near", [_big(f"n{i}", network=i // 2) for i in range(4)], word="Ascend910B3")
    cluster.sharers("g", 1, {_910: 2})
    cluster.cycle()
    assert sorted(_uuids(cluster, "g-worker-0", "Ascend910B3")) == ["n0", "n1"], "rather than one network each"
    cluster.sharers("h", 1, {_910: 1}, **{"hami.io/use-Ascend910B3-uuid": "n2"})
    cluster.cycle()
    cluster.sharers("k", 1, {_910: 2})
    cluster.cycle()
    assert cluster.placed("k") == {"k-worker-0": "apart"}, "only one is left on the other"


@pytest.mark.parametrize(("policy", "node"), [("binpack", "a"), ("spread", "b")])
def test_nodes_are_rated_by_the_chips_that_a_pod_would_get(policy: str, node: str) -> None:
    cluster = _cluster(SchedulePolicy=policy, ScheduleWeight=10)
    for name in ("a", "b"):
        cluster.npus(name, [_chip(f"{name}-0")])
    cluster.sharers("first", 1, {_310: 1, f"{_310}-memory": 6144})
    cluster.cycle()
    assert cluster.placed("first") == {"first-worker-0": "a"}
    cluster.sharers("g", 1, {_310: 1, f"{_310}-memory": 3072})
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": node}


def test_models_of_chips_and_gpus_are_shared_side_by_side() -> None:
    cluster = _cluster(VGPUEnable=True)
    cluster.config(_CONFIG)
    cluster.npus("npu", [_big("x")], word="Ascend910B3")
    cluster.vgpus("gpu", "y,10,16000,NVIDIA-V100,true,")
    cluster.sharers("g", 1, {_910: 1, f"{_910}-memory": 16384})
    cluster.sharers("h", 1, {"vgpu_number": 1, "vgpu_memory": 1000})
    cluster.cycle()
    assert (cluster.placed("g"), cluster.placed("h")) == ({"g-worker-0": "npu"}, {"h-worker-0": "gpu"})
    assert "volcano.sh/vgpu-ids-new" not in cluster.notes["g-worker-0"]


def test_a_chip_model_that_the_config_map_names_later_is_known_from_then_on() -> None:
    cluster = _cluster()
    cluster.npus("a", [_big("x")], word="Ascend910B3")
    cluster.sharers("g", 1, {_910: 1, f"{_910}-memory": 16384})
    assert not cluster.cycle().binds, "no node offers such memory"
    cluster.config(_CONFIG)
    assert len(cluster.cycle().binds) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vnpus: [", "can't be read"),
        ("vnpus: [{commonWord: Ascend310P}]", "vnpus[0].resourceName: want a name, got None"),
        (_CONFIG + _CONFIG.partition("vnpus:")[2], "commonWord Ascend910B3 is given twice"),
        (_CONFIG.replace("65536", "much"), "vnpus[0].memoryAllocatable: want a whole number"),
    ],
)
def test_a_configuration_that_is_not_understood_keeps_pods_waiting_and_is_named(text: str, words: str) -> None:
    cluster = _cluster()
    cluster.config(text)
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", 1, {_310: 1})
    assert not cluster.cycle().binds
    assert words in _reasons(cluster, "g")


def test_the_list_of_chips_may_stand_below_configs() -> None:
    cluster = _cluster()
    chip = {
        "commonWord": "My", "resourceName": "my.io/npu", "resourceMemoryName": "my.io/mem", "memoryAllocatable": 5
    }  # fmt: skip
    cluster.config(json.dumps({"vnpus": {"hamiVnpuCore": False, "configs": [chip]}}))
    cluster.npus("a", [_chip("x", memory=5)], word="My", resource="my.io/npu")
    cluster.sharers("g", 1, {"my.io/npu": 1})
    cluster.cycle()
    assert _uuids(cluster, "g-worker-0", "My") == ["x"]


@pytest.mark.parametrize("register", ["{}", "[", '[{"devmem": 5}]', '[{"id": "x", "devmem": "much"}]'])
def test_a_register_that_is_none_leaves_the_node_without_chips_until_it_is_one(register: str) -> None:
    cluster = _cluster()
    cluster.npus("a", register)
    cluster.sharers("g", 1, {_310: 1})
    assert not cluster.cycle().binds
    cluster.npus("a", [_chip("x")], offered=0, event="MODIFIED")
    assert not cluster.cycle().binds, "its device plugin is away"
    cluster.npus("a", [_chip("x")], event="MODIFIED")
    assert len(cluster.cycle().binds) == 1


def test_the_node_is_locked_by_the_name_of_the_chip() -> None:
    cluster = _cluster(NodeLockEnable=True)
    cluster.npus("a", [_chip("x")])
    cluster.sharers("g", 1, {_310: 1})
    assert [bind.lock for bind in cluster.cycle().binds] == ["Ascend310P"]


# Any history

_MEMORY = ("1", "6000", "12288", "20000", "")
_DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["gang", "delete", "ending", "node", "refuse", "cycle"]), st.integers(0, 4), st.integers(1, 3)
    ),
    max_size=25,
)
_CORES = {3072: 1, 6144: 2, 12288: 4, 21527: 8}


@given(deeds=_DEEDS, policy=st.sampled_from(["", "binpack", "spread"]))
@settings(max_examples=100)
def test_no_chip_is_given_away_twice_none_is_passed_over_and_usage_equals_that_of_a_new_scheduler(
    deeds: list[tuple[str, int, int]], policy: str
) -> None:
    cluster = _cluster(SchedulePolicy=policy, ScheduleWeight=1)
    for name in "ab":
        cluster.npus(name, [_chip(f"{name}{i}", count=5) for i in range(2)])
    alive: list[tuple[str, int]] = []
    for number, (deed, which, size) in enumerate(deeds):
        match deed:
            case "gang":
                memory = _MEMORY[which]
                limit: Json = {_310: 1, **({f"{_310}-memory": memory} if memory else {})}
                cluster.sharers(f"g{number}", size, limit)
                alive.append((f"g{number}", which))
            case "delete" if alive:
                cluster.delete_gang(alive.pop(which % len(alive))[0])
            case "ending" if alive:
                for pod in list(cluster.placed(alive[which % len(alive)][0])):
                    cluster.change(pod, phase="Running", deleting=True)
            case "node":
                name = "ab"[which % 2]
                cluster.npus(name, [_chip(f"{name}{i}", count=5) for i in range(2)], event="MODIFIED")
            case "refuse":
                for bind in cluster.scheduler.cycle(cluster.now).binds:
                    cluster.scheduler.bind_failed(bind.uid, "no")
            case _:
                cluster.cycle()
        _within(_reported(cluster))
    cluster.cycle()
    reported = _reported(cluster)
    _within(reported)
    assert cluster.usage.table.totals() == _anew(cluster)
    if not any(pod["metadata"].get("deletionTimestamp") for pod in cluster.pods.values()):
        for gang, which in alive:
            if not cluster.placed(gang) and f"{gang}-worker-1" not in cluster.pods:
                assert not _fits(reported, which), f"{gang} waits, and a chip has room for it"


def _reported(cluster: Cards) -> dict[str, Counter[str]]:
    """What pods hold of each chip by what they were told, whatever the scheduler's books say."""
    found = {f"{name}{i}": Counter[str]() for name in "ab" for i in range(2)}
    for pod in cluster.pods.values():
        text = pod["metadata"]["annotations"].get("hami.io/Ascend310P-devices-allocated", "")
        for record in filter(None, text.replace(";", "").split(":")):
            uuid, _, memory, _ = record.split(",")
            found[uuid].update({"memory": int(memory), "cores": _CORES[int(memory)], "users": 1})
    return found


def _within(reported: dict[str, Counter[str]]) -> None:
    for uuid, held in reported.items():
        assert held["memory"] <= 21527, uuid
        assert held["cores"] <= 8, uuid
        assert held["users"] <= 5, uuid


def _fits(reported: dict[str, Counter[str]], which: int) -> bool:
    asked = int(_MEMORY[which] or 24576)
    memory = next(size for size in (3072, 6144, 12288, 21527) if asked <= size or size == 21527)
    return any(
        held["memory"] + memory <= 21527 and held["cores"] + _CORES[memory] <= 8 and held["users"] < 5
        for held in reported.values()
    )


def _anew(cluster: Cards) -> object:
    """The usage that a scheduler counts which starts now and knows what pods and nodes say."""
    fresh = _cluster()
    for name in "ab":
        fresh.npus(name, [_chip(f"{name}{i}", count=5) for i in range(2)])
    for raw in cluster.pods.values():
        if raw["spec"].get("nodeName"):
            fresh.scheduler.apply(PODS, "ADDED", msgspec.convert(raw, Pod))
    fresh.scheduler.cycle(fresh.now)
    return fresh.usage.table.totals()
