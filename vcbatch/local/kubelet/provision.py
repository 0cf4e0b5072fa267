"""The resources of a pod on this node: an address, devices, and its volumes as directories; and their release."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vcbatch.interfaces.processes import BindMount
from vcbatch.local.kubelet import blueprint, links, volumes
from vcbatch.local.kubelet.environment import ConfigError, PodFacts
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.records import PodFacts as Given
from vcbatch.local.kubelet.records import PodRecord

Json = dict[str, Any]


class Provision:
    """The resources of one pod. Everything is recorded before it is used, so that another kubelet can release it.

    The pod object may change between two calls; its UID doesn't.
    """

    def __init__(self, node: NodeServices, record: PodRecord) -> None:
        self._node = node
        self._record = record
        self._facts: Given | None = None
        self._paths: dict[str, Path] | None = None
        self._released = False

    @property
    def exists(self) -> bool:
        """Whether resources were allocated to the pod."""
        return self._facts is not None

    @property
    def facts(self) -> Given:
        """The allocated resources. Raises `RuntimeError` before they `exist`."""
        if self._facts is None:
            raise RuntimeError("the pod has nothing on this node yet")
        return self._facts

    @property
    def address(self) -> str:
        """The pod's own address; "" before it has one."""
        return "" if self._facts is None else self._facts.address

    @property
    def has_volumes(self) -> bool:
        return self._paths is not None

    @property
    def paths(self) -> Mapping[str, Path]:
        """The paths of the pod's volumes, by name."""
        return self._paths or {}

    def restore(self, pod: Json, *, over: bool) -> bool:
        """Restore the recorded resources; a pod that is `over` uses none any more. Returns False where there is no
        record."""
        self._facts = self._record.read_facts()
        if self._facts is None:
            return False
        if self._node.kept_logs is not None:
            with contextlib.suppress(OSError):  # a kubelet that kept no logs may have written the record
                self._node.kept_logs.note_origin(self._record, pod)
        if not over:
            self._node.devices.restore(self._facts.uid, self._facts.allotment)
            self._node.hosts.join(pod, self._record.hosts_file, wanted=self._facts.address)
        return True

    def take_share(self, pod: Json) -> None:
        """Allocate the address and the devices, once per pod. Raises `DevicesUnavailableError`, and `OSError` where
        they can't be recorded: nothing is allocated then."""
        metadata = pod["metadata"]
        self._record.create()
        try:
            allotment = self._node.devices.allot(pod)
            address = self._node.hosts.join(pod, self._record.hosts_file)
            facts = Given(
                namespace=metadata["namespace"],
                name=metadata["name"],
                uid=metadata["uid"],
                start_time=self._node.clock.now(),
                version=int(metadata["resourceVersion"]),
                address=address,
                group=blueprint.group_of(pod),
                allotment=allotment,
            )
            self._record.write_facts(facts)
            if self._node.kept_logs is not None:
                self._node.kept_logs.note_origin(self._record, pod)
        except OSError:
            # Not recorded, so not allocated: another kubelet could not release it.
            self._node.hosts.leave(metadata["uid"])
            self._node.devices.release(metadata["uid"])
            raise
        self._facts = facts

    async def fetch_objects(self, pod: Json) -> blueprint.Objects:
        """The objects that the pod refers to: existing ConfigMaps and Secrets, and the paths of its claims. Raises
        `ApiError`."""
        namespace = pod["metadata"]["namespace"]
        contents: dict[tuple[str, str], Mapping[str, bytes]] = {}
        for kind, name in volumes.references(pod["spec"]):
            found = await self._node.objects.fetch(kind, namespace, name)
            if found is not None:
                contents[kind, name] = found
        claims = {
            claim: await self._node.objects.claim_path(namespace, claim)
            for claim in sorted(volumes.claim_names(pod["spec"]))
        }
        return blueprint.Objects(contents=contents, claims=claims)

    def make_volumes(self, pod: Json, objects: blueprint.Objects) -> None:
        """Create the volumes that don't exist yet. Raises `VolumeError` and `ConfigError`."""
        if self._paths is None:
            self._paths = {}
        for volume in pod["spec"].get("volumes") or ():
            if volume["name"] not in self._paths:
                self._paths[volume["name"]] = self._make_volume(pod, volume, objects)

    def refresh_volumes(self, pod: Json, objects: blueprint.Objects) -> None:
        """Rewrite the contents of projected volumes; one that can't be written now keeps its contents."""
        for volume in pod["spec"].get("volumes") or ():
            if volumes.is_projected(volume) and volume["name"] in self.paths:
                with contextlib.suppress(volumes.VolumeError, ConfigError):
                    self._make_volume(pod, volume, objects)

    def place_links(self, mounts: Sequence[BindMount]) -> None:
        """Create links for mounts where nothing can be mounted. Raises `ConfigError`."""
        present = {link.path for link in self.facts.links}
        made = links.place([m for m in mounts if m.target not in present], mode=self._node.sandbox.mode)
        if made:
            facts = replace(self.facts, links=(*self.facts.links, *made))
            try:
                self._record.write_facts(facts)
            except OSError:
                links.remove(made)
                raise
            self._facts = facts

    def release(self, uid: str) -> None:
        """Release all resources; the record itself (logs, exit codes) stays until the pod is deleted."""
        if self._released:
            return
        self._released = True
        self._node.hosts.leave(uid)
        self._node.devices.release(uid)
        if self._facts is not None:
            links.remove(self._facts.links)
        shutil.rmtree(self._record.path / "volumes", ignore_errors=True)
        shutil.rmtree(self._node.memory_directory / uid, ignore_errors=True)

    def _make_volume(self, pod: Json, volume: Json, objects: blueprint.Objects) -> Path:
        if "persistentVolumeClaim" in volume:
            return objects.claims[volume["persistentVolumeClaim"].get("claimName", "")]
        if not volumes.is_projected(volume):
            memory = self._node.memory_directory / pod["metadata"]["uid"]
            return volumes.prepare(volume, pod_directory=self._record.path, memory_directory=memory)
        path = self._record.path / "volumes" / volume["name"]
        volumes.write_files(path, volumes.project(pod, volume, self._sources(objects)))
        return path

    def _sources(self, objects: blueprint.Objects) -> volumes.Sources:
        facts = PodFacts(
            node_name=self._node.config.node_name,
            host_ip=self._node.host_ip,
            pod_ip=self.address,
            allocatable=self._node.allocatable,
        )
        return volumes.Sources(config_map=objects.config_map, secret=objects.secret, facts=facts)
