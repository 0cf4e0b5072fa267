"""Whatever part of a kubelet crashes: the pods run on, their ends are seen, and new pods start."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.integration.kubelet.world import World, shell, terminated
from tests.support.crashes import crash, until


async def test_pods_outlive_a_crash_of_every_task_of_the_kubelet(tmp_path: Path) -> None:
    node = World(tmp_path)
    await node.start()
    await node.pod("a", shell("echo ran >> runs; until [ -e go ]; do sleep 0.02; done; exit 3"))
    await node.phase("a", "Running")
    names = node.health.tasks()
    assert {"kubelet: hosts files", "kubelet: pods", "kubelet: heartbeat", "kubelet: events"} <= set(names)
    assert any("worker of default/a" in name for name in names)
    assert any("exit of default/a/main" in name for name in names)

    for name in names:
        await until(partial(crash, name))
    await until(lambda: bool(node.health.errors()))
    await until(lambda: not node.health.errors())

    assert await node.output("b", "cat /etc/hosts && echo up") != ""
    (tmp_path / "go").touch()
    assert terminated(await node.over("a"))["exitCode"] == 3
    assert (tmp_path / "runs").read_text() == "ran\n", "it ran once"
    await node.stop()
