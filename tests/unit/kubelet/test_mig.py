"""MIG devices and several GPUs, as a stand-in for nvidia-smi lists them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vcbatch.local.kubelet.devices import DeviceTable, find_gpus, gpu_environment, parse_gpus, with_mig_devices

QUERY = """\
0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, Enabled
1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559, Disabled
2, GPU-cccc, NVIDIA H100 80GB HBM3, 81559, Enabled
3, GPU-dddd, NVIDIA H100 80GB HBM3, 81559, [N/A]
"""
LISTING = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa)
  MIG 3g.40gb     Device  0: (UUID: MIG-a3)
  MIG 1g.10gb+me  Device  1: (UUID: MIG-a1)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-bbbb)
GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-cccc)
GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-dddd)
"""
FAKE = """\
#!/bin/sh
case "$1" in
-L) {listing}
;;
*mig.mode.current*) {query}
;;
*) {old}
;;
esac
"""


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, *, query: str, listing: str, old: str = "exit 9") -> None:
    program = folder / "nvidia-smi"
    program.write_text(FAKE.format(query=query, listing=listing, old=old))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def printing(text: str) -> str:
    return f"cat <<'END'\n{text}END"


def test_a_partitioned_gpu_is_replaced_by_its_devices_and_not_counted_without_any() -> None:
    found = with_mig_devices(parse_gpus(QUERY), LISTING)
    assert [gpu.uuid for gpu in found] == ["MIG-a3", "MIG-a1", "GPU-bbbb", "GPU-dddd"]
    assert [(gpu.name, gpu.memory_mib) for gpu in found[:2]] == [
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 40960),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 10240),
    ]


@pytest.mark.parametrize(
    ("visible", "want"),
    [
        (None, ["MIG-a3", "MIG-a1", "GPU-bbbb", "GPU-dddd"]),
        ("MIG-a1,GPU-dddd", ["MIG-a1", "GPU-dddd"]),
        ("0", ["MIG-a3", "MIG-a1"]),
        ("GPU-aaaa,1", ["MIG-a3", "MIG-a1", "GPU-bbbb"]),
        ("3,MIG-a3,3,MIG-a3", ["GPU-dddd", "MIG-a3"]),
        ("2,1", []),
        ("", []),
    ],
)
async def test_what_up_may_see_is_what_it_allocates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, want: list[str]
) -> None:
    nvidia_smi(tmp_path, monkeypatch, query=printing(QUERY), listing=printing(LISTING))
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.uuid for gpu in await find_gpus()] == want


async def test_a_driver_without_mig_is_asked_the_older_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "0, GPU-aaaa, Tesla P100, 16280\n1, GPU-bbbb, Tesla P100, 16280\n"
    nvidia_smi(tmp_path, monkeypatch, query="exit 2", listing="exit 2", old=printing(old))
    assert [gpu.uuid for gpu in await find_gpus()] == ["GPU-aaaa", "GPU-bbbb"]


async def test_where_it_fails_there_are_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, query="exit 9", listing=printing(LISTING))
    assert await find_gpus() == []


async def test_a_process_with_several_devices_sees_all_of_them_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(tmp_path, monkeypatch, query=printing(QUERY), listing=printing(LISTING))
    table = DeviceTable(cpus=[0], gpus=await find_gpus())
    seen: list[str] = []
    for uid, count in (("a", 3), ("b", 1)):
        resources = {"limits": {"nvidia.com/gpu": str(count)}}
        pod = {"metadata": {"uid": uid}, "spec": {"containers": [{"name": "main", "resources": resources}]}}
        seen.append(gpu_environment(table, table.allot(pod).gpus["main"])["CUDA_VISIBLE_DEVICES"])
    assert seen == ["MIG-a3,MIG-a1,GPU-bbbb", "GPU-dddd"]
