"""Pods of a job run in the environment of the shell that submitted it, also after a restart. Real processes."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubelet.world import LONG, World, shell, world
from vcbatch.api.names import ENVIRONMENT
from vcbatch.local.environments import Environments, SubmittedEnvironment

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")

UID = "7b1f9a52-0c6d-4b7e-9f0a-1d2c3b4a5e6f"


def stored(state: Path, **environment: Any) -> tuple[Environments, str]:
    state.chmod(0o700)
    environments = Environments.of(state)
    number = environments.write(SubmittedEnvironment(**environment), namespace="default")
    environments.claim(number, namespace="default", job=UID)
    return environments, number


def of_job(number: str, uid: str = UID, *, controller: bool = True, kind: str = "Job") -> dict[str, Any]:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": "a", "uid": uid, "controller": controller}
    return {"metadata": {"annotations": {ENVIRONMENT: number}, "ownerReferences": [owner]}}


async def test_it_replaces_or_extends_what_the_server_passes(tmp_path: Path) -> None:
    environments, whole = stored(tmp_path, variables={"PATH": "/bin:/usr/bin", "MINE": "1"}, umask=0o077)
    number = environments.write(SubmittedEnvironment(variables={"MINE": "2"}, complete=False), namespace="default")
    environments.claim(number, namespace="default", job=UID)
    settings = {"environments": environments, "environment": {"PATH": "/bin:/usr/bin", "SERVERS": "yes"}}
    script = 'echo "${SERVERS-none} $MINE $OWN $(umask) $HOSTNAME"'
    container = shell(script, env=[{"name": "OWN", "value": "$(MINE) declared"}])
    async with world(tmp_path / "w", settings=settings) as node:
        assert await node.output("a", container, **of_job(whole)) == "none 1 $(MINE) declared 0077 a\n"
        assert await node.output("b", container, **of_job(number)) == "yes 2 $(MINE) declared 0022 b\n"
        assert await node.output("c", container) == "yes  $(MINE) declared 0022 c\n"


@pytest.mark.parametrize(
    "other", [{"uid": "8c2f9a52-0c6d-4b7e-9f0a-1d2c3b4a5e6f"}, {"controller": False}, {"kind": "CronJob"}]
)
async def test_a_pod_of_anything_else_gets_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    environments, number = stored(tmp_path, variables={"PATH": "/bin:/usr/bin"})
    async with world(tmp_path / "w", settings={"environments": environments}) as node:
        await node.pod("a", "env", **of_job(number, **other))
        seen = await node.until("a", lambda o: "another job" in str(o["status"].get("containerStatuses")))
        assert seen["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"


async def test_a_container_that_the_next_kubelet_restarts_keeps_it(tmp_path: Path) -> None:
    environments, number = stored(tmp_path, variables={"PATH": "/bin:/usr/bin", "MINE": "kept"}, umask=0o027)
    again = f'echo "$MINE $(umask)"; [ -e again ] && exit 0; touch again; sleep {LONG}61'
    async with world(tmp_path / "w", settings={"environments": environments}) as node:
        await node.pod("a", again, restartPolicy="OnFailure", **of_job(number))
        await node.log_has("a", "kept 0027")
        await node.crash()
        await node.start_kubelet()
        await _kill(node, "a")
        await node.over("a")
        assert await node.logs("a") == "kept 0027\n"


async def _kill(node: World, name: str) -> None:
    worker = node.kubelet._find("default", name)
    assert worker is not None
    await node.until(name, lambda _: worker.live_run("main") is not None)
    run = worker.live_run("main")
    assert run is not None
    await run.kill()
