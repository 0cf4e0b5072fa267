"""Volumes at their real paths, invisible to the machine around; and what a mode without mounts says instead."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.kubelet.world import LONG, World, shell, world
from vcbatch.api.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from vcbatch.local.kubelet import Mode

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        if made.sandbox.mode is not Mode.USERNS:
            pytest.skip("needs namespaces")
        yield made


def present(*paths: str) -> list[str]:
    """Which of the paths exist on this machine, outside of any container."""
    return [path for path in paths if os.path.lexists(path)]


def mount(name: str, path: str, **fields: object) -> dict:
    return {"name": name, "mountPath": path, **fields}


async def test_config_maps_and_secrets_are_files_with_modes(node: World) -> None:
    await node.config_map("c", **{"a.txt": "A\n", "b.txt": "B\n"})
    await node.secret("s", key="c2VjcmV0Cg==")
    volumes = [
        {"name": "all", "configMap": {"name": "c"}},
        {"name": "some", "configMap": {"name": "c", "items": [{"key": "b.txt", "path": "deep/b", "mode": 0o600}]}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "maybe", "configMap": {"name": "none", "optional": True}},
    ]
    mounts = [
        mount("all", "/etc/volcano"),
        mount("some", "/opt/vcbatch-test/some"),
        mount("secret", "/vcbatch-test-root/s"),
        mount("maybe", "/etc/maybe"),
        mount("all", "/srv/one.txt", subPath="a.txt"),
    ]
    script = (
        "cat /etc/volcano/a.txt /opt/vcbatch-test/some/deep/b /vcbatch-test-root/s/key /srv/one.txt; ls /etc/maybe;"
    )
    script += (
        "stat -L -c %a /opt/vcbatch-test/some/deep/b /vcbatch-test-root/s/key /etc/volcano/a.txt; test -e /etc/passwd"
    )
    assert (
        await node.output("a", shell(script, volumeMounts=mounts), volumes=volumes)
        == "A\nB\nsecret\nA\n600\n400\n644\n"
    )
    paths = ("/etc/volcano", "/opt/vcbatch-test", "/vcbatch-test-root", "/srv/one.txt")
    assert present(*paths) == []


async def test_a_change_of_a_config_map_reaches_the_running_container(node: World) -> None:
    await node.config_map("c", word="old")
    volumes = [{"name": "v", "configMap": {"name": "c"}}]
    script = "cat /etc/words/word; echo; until grep -q new /etc/words/word; do sleep 0.02; done; echo changed"
    await node.pod("a", shell(script, volumeMounts=[mount("v", "/etc/words")]), volumes=volumes)
    await node.log_has("a", "old")
    await node.api.patch(CONFIGMAPS, "c", {"data": {"word": "new"}}, namespace="default")
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"


async def test_an_empty_dir_is_shared_by_the_containers_and_gone_with_the_pod(node: World) -> None:
    volumes = [{"name": "d", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}]
    mounts = [mount("d", "/scratch/deep"), mount("m", "/dev/shm")]
    init = shell("echo hi > /scratch/deep/f; echo mem > /dev/shm/g", name="init", volumeMounts=mounts)
    printed = await node.output(
        "a",
        shell("cat /scratch/deep/f /dev/shm/g", volumeMounts=mounts),
        volumes=volumes,
        initContainers=[init],
    )
    assert printed == "hi\nmem\n"
    uid = (await node.over("a"))["metadata"]["uid"]
    assert not (node.root / "kubelet" / "pods" / uid / "volumes").exists()
    assert present("/dev/shm/g") == []


async def test_host_paths_and_read_only(node: World) -> None:
    (node.root / "data").mkdir()
    volumes = [
        {"name": "h", "hostPath": {"path": str(node.root / "data"), "type": "Directory"}},
        {"name": "new", "hostPath": {"path": str(node.root / "made"), "type": "DirectoryOrCreate"}},
    ]
    mounts = [mount("h", "/mnt/ro", readOnly=True), mount("h", "/mnt/rw"), mount("new", "/mnt/new")]
    script = "touch /mnt/ro/x 2>/dev/null || echo refused; touch /mnt/rw/y /mnt/new/z; ls /mnt/ro"
    assert await node.output("a", shell(script, volumeMounts=mounts), volumes=volumes) == "refused\ny\n"
    assert (node.root / "made" / "z").exists()


async def test_downward_and_projected_volumes(node: World) -> None:
    await node.config_map("c", k="v")
    items = [
        {"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu"}},
    ]
    volumes = [
        {"name": "d", "downwardAPI": {"items": items}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}, {"downwardAPI": {"items": items[:1]}}]}},
    ]
    container = shell(
        "cat /etc/d/notes; echo; cat /etc/d/cpu; echo; ls /etc/p",
        volumeMounts=[mount("d", "/etc/d"), mount("p", "/etc/p")],
        resources={"requests": {"cpu": "250m"}},
    )
    printed = await node.output("a", container, volumes=volumes, metadata={"annotations": {"b": "2", "a": 'q"'}})
    assert printed == 'a="q\\""\nb="2"\n1\nk\nnotes\n'


async def test_what_cannot_be_had_is_refused_by_name(node: World) -> None:
    volumes = [{"name": "disk", "nfs": {"server": "s", "path": "/"}}]
    await node.pod("a", shell("true", volumeMounts=[mount("disk", "/data")]), volumes=volumes)
    pod = await node.until("a", lambda o: o["status"].get("containerStatuses") is not None)
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "nfs volumes are not available in local mode" in waiting["message"]


async def test_a_claim_is_mounted_once_it_is_bound_and_read_only_where_the_pod_says_so(
    node: World, tmp_path: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    volumes = [
        {"name": "rw", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "ro", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
    ]
    mounts = [mount("rw", "/ckpt"), mount("ro", "/in")]
    script = "echo kept >/ckpt/file; cat /in/file; touch /in/no 2>/dev/null || echo refused"
    await node.pod("a", shell(script, volumeMounts=mounts), volumes=volumes)
    pod = await node.until("a", lambda o: o["status"].get("containerStatuses") is not None)
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert 'persistentvolumeclaim "data" not found' in waiting["message"]
    size = {"storage": "1Gi"}
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": size, "hostPath": {"path": str(folder)}}
    await node.api.create(PERSISTENTVOLUMES, {"metadata": {"name": "v"}, "spec": spec})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": "v"}
    await node.api.create(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "data"}, "spec": spec}, namespace="default")
    bound = {"status": {"phase": "Bound"}}
    await node.api.patch(PERSISTENTVOLUMECLAIMS, "data", bound, namespace="default", subresource="status")
    await node.over("a")
    assert await node.logs("a") == "kept\nrefused\n"
    assert (folder / "file").read_text() == "kept\n"


async def test_a_volume_whose_object_is_missing_is_waited_for(node: World) -> None:
    volumes = [{"name": "v", "configMap": {"name": "later"}}]
    await node.pod("a", shell("cat /etc/later/k", volumeMounts=[mount("v", "/etc/later")]), volumes=volumes)
    event = await node.event("a", "FailedMount")
    assert 'configmap "later" not found' in event["message"]
    await node.config_map("later", k="here")
    await node.over("a")
    assert await node.logs("a") == "here\n"


async def test_without_mounts_a_link_serves_where_one_can_be_made(tmp_path: Path) -> None:
    place = tmp_path / "mounts" / LONG
    async with world(tmp_path, mode=Mode.PLAIN) as node:
        await node.config_map("c", k="v")
        volumes = [{"name": "v", "configMap": {"name": "c"}}]
        mounts = [mount("v", str(place))]
        assert await node.output("a", shell(f"cat {place}/k", volumeMounts=mounts), volumes=volumes) == "v\n"
        assert not place.is_symlink()

        taken = [mount("v", "/etc/passwd")]
        await node.pod("b", shell("true", volumeMounts=taken), volumes=volumes)
        pod = await node.until("b", lambda o: o["status"].get("containerStatuses") is not None)
        message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
        assert message.startswith("mountPath /etc/passwd: exists on this machine, and mode plain can't mount over it")
