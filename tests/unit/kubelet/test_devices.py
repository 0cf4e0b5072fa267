"""GPUs are exclusive, processors go to who shares them least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.local.kubelet.devices import (
    DevicesUnavailableError,
    DeviceTable,
    Gpu,
    gpu_environment,
    parse_gpus,
    visible_gpus,
)

GPUS = [Gpu(index=i, uuid=f"GPU-{i}", name="NVIDIA H200", memory_mib=143771) for i in range(4)]


def pod(uid: str, *, gpus: int = 0, cpu: str = "0") -> dict:
    resources = {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}
    return {"metadata": {"uid": uid}, "spec": {"containers": [{"name": "main", "resources": resources}]}}


def test_nvidia_smis_answer_is_read_and_junk_is_not() -> None:
    text = "1, GPU-b, NVIDIA H200, 143771\n0, GPU-a, NVIDIA H200, 143771\nNo devices were found\n, , ,\n"
    assert [(g.index, g.uuid, g.memory_mib) for g in parse_gpus(text)] == [(0, "GPU-a", 143771), (1, "GPU-b", 143771)]


@pytest.mark.parametrize(
    ("visible", "want"), [(None, [0, 1, 2, 3]), ("", []), ("2,0", [2, 0]), ("GPU-1", [1]), ("1,-1,2", [1]), ("9", [])]
)
def test_an_outer_cuda_visible_devices_is_respected(visible: str | None, want: list[int]) -> None:
    assert [gpu.index for gpu in visible_gpus(GPUS, visible)] == want


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=20))
def test_no_gpu_is_ever_given_twice(asked: list[tuple[int, bool]]) -> None:
    table = DeviceTable(cpus=[0, 1], gpus=GPUS)
    held: dict[str, list[str]] = {}
    for number, (count, leave) in enumerate(asked):
        uid = str(number)
        free = len(GPUS) - sum(map(len, held.values()))
        if count > free:
            with pytest.raises(DevicesUnavailableError, match=f"Requested: {count}, Available: {free}"):
                table.allot(pod(uid, gpus=count))
            continue
        held[uid] = list(table.allot(pod(uid, gpus=count)).gpus.get("main", ()))
        assert len(held[uid]) == count
        everything = [uuid for uuids in held.values() for uuid in uuids]
        assert len(everything) == len(set(everything))
        if leave:
            table.release(uid)
            del held[uid]


def test_a_container_sees_its_gpus_and_one_without_sees_none() -> None:
    table = DeviceTable(cpus=[0], gpus=GPUS)
    assert gpu_environment(table, ["GPU-1", "GPU-2"])["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert gpu_environment(table, [])["CUDA_VISIBLE_DEVICES"] == ""
    assert gpu_environment(DeviceTable(cpus=[0], gpus=[]), []) == {}


def test_what_a_pod_had_it_still_has_after_a_restart() -> None:
    before = DeviceTable(cpus=[0, 1], gpus=GPUS)
    first = before.allot(pod("a", gpus=2, cpu="1"))
    after = DeviceTable(cpus=[0, 1], gpus=GPUS)
    after.restore("a", first)
    assert after.allot(pod("a", gpus=2, cpu="1")) == first
    second = after.allot(pod("b", gpus=2, cpu="1"))
    assert not set(second.gpus["main"]) & set(first.gpus["main"])
    assert set(second.cpus["main"]) != set(first.cpus["main"])


@pytest.mark.parametrize(("cpu", "count"), [("1", 1), ("2", 2), ("500m", 0), ("1500m", 0), ("4", 0), ("9", 0)])
def test_only_whole_processors_below_all_are_pinned(cpu: str, count: int) -> None:
    allotment = DeviceTable(cpus=[0, 1, 2, 3], gpus=[]).allot(pod("a", cpu=cpu))
    assert len(allotment.cpus.get("main", ())) == count
