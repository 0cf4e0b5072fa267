"""The hosts files of a node: current for every pod that is there, whatever happens to the others."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background
from vcbatch.local.kubelet import hosts as hosts_
from vcbatch.local.kubelet.hosts import HostsFiles
from vcbatch.local.kubelet.names import Addresses

PODS = 6


def pod(index: int) -> dict[str, Any]:
    return {
        "metadata": {"uid": f"uid-{index}", "name": f"pod-{index}", "namespace": "default"},
        "spec": {"hostname": f"host-{index}", "subdomain": "job", "containers": [{"name": "main"}]},
    }


class Node:
    """A node whose pods have directories, as the kubelet makes and removes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        clock = VirtualClock()
        self.files = HostsFiles(addresses=Addresses(shared=None), clock=clock, mapped=False)
        self.failures: list[str] = []
        health = Health(clock, on_failure=self.failures.append)
        self.background = Background(clock=clock, random=SeededRandom(1), health=health)
        self.background.keep("hosts files", self.files.run)

    def path(self, index: int) -> Path:
        return self.root / f"uid-{index}" / "hosts"

    def join(self, index: int) -> None:
        self.path(index).parent.mkdir()
        self.files.join(pod(index), self.path(index))

    def remove(self, index: int) -> None:
        self.files.leave(f"uid-{index}")
        shutil.rmtree(self.path(index).parent)

    def knows(self, index: int, other: int) -> bool:
        return f"host-{other}.job" in self.path(index).read_text()


def on_node(tmp_path: Path, check: Callable[[Node], Any]) -> None:
    async def main() -> None:
        node = Node(tmp_path)
        try:
            await check(node)
        finally:
            await node.background.close()

    run(main())


@pytest.mark.parametrize("steps", range(2 * PODS))
def test_a_pod_that_goes_while_files_are_written_stops_no_update(tmp_path: Path, steps: int) -> None:
    async def check(node: Node) -> None:
        for index in range(PODS):
            node.join(index)
        await asyncio.sleep(0.02)  # the settling time of the writer is over: it begins to write
        for _ in range(steps):
            await asyncio.sleep(0)
        for index in range(1, PODS, 2):
            node.remove(index)
        await asyncio.sleep(1)
        node.join(PODS)
        await asyncio.sleep(1)

        assert all(node.knows(index, PODS) for index in range(0, PODS, 2))
        assert not node.knows(0, 1)
        assert node.failures == [], "the race is expected, and no failure of the task"

    on_node(tmp_path, check)


def test_a_file_that_cannot_be_written_holds_up_no_other_and_is_written_later(tmp_path: Path) -> None:
    async def check(node: Node) -> None:
        for index in range(3):
            node.join(index)
        await asyncio.sleep(1)
        moved = tmp_path / "moved"
        node.path(0).parent.rename(moved)
        node.join(3)
        await asyncio.sleep(1)
        assert node.knows(1, 3)
        assert node.knows(2, 3)

        moved.rename(node.path(0).parent)
        await asyncio.sleep(60)
        assert node.knows(0, 3)

    on_node(tmp_path, check)


def test_a_pod_whose_first_file_cannot_be_written_can_join_again(tmp_path: Path) -> None:
    async def check(node: Node) -> None:
        with pytest.raises(OSError, match="No such file"):
            node.files.join(pod(0), node.path(0))
        node.join(0)
        assert node.knows(0, 0)

    on_node(tmp_path, check)


def test_the_writer_brings_files_up_to_date_after_it_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(node: Node) -> None:
        node.join(0)
        await asyncio.sleep(1)
        broken = [True]
        compose = hosts_.common_lines

        def fail_once(**given: Any) -> list[str]:
            if broken:
                broken.pop()
                raise RuntimeError("a defect")
            return compose(**given)

        node.join(1)
        monkeypatch.setattr(hosts_, "common_lines", fail_once)
        await asyncio.sleep(0.1)
        assert not broken
        assert node.background.health.errors() == {"hosts files": "RuntimeError: a defect"}
        assert node.failures == ["hosts files"]

        await asyncio.sleep(10)
        assert node.knows(0, 1)
        assert node.background.health.errors() == {}

    on_node(tmp_path, check)
