"""The placement constraints of a pod's claims, evaluated node by node and volume by volume in the simplest way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tests.oracle.model import Json
from vcbatch.api.quantity import parse_quantity


class User(Protocol):
    claims: Sequence[str]


class Claims:
    """The claims, volumes and classes, and the volume that an unbound claim was assigned in this cycle: its name, or ""
    where it is to be provisioned."""

    def __init__(self, world: Json) -> None:
        self._claims = {c["metadata"]["name"]: c for c in world.get("pvcs") or ()}
        self._volumes = {v["metadata"]["name"]: v for v in world.get("pvs") or ()}
        self._classes = {c["metadata"]["name"]: c for c in world.get("storageClasses") or ()}
        self._given: dict[str, str] = {}

    def volumes(self, task: User, node: str, others: Mapping[str, Sequence[User]]) -> dict[str, str] | None:
        """The volumes that the unbound claims of a pod on this node would be assigned; None where the pod can't be
        placed there. `others` are the pods on each node."""
        found: dict[str, str] = {}
        waiting: list[str] = []
        for name in task.claims:
            users = [where for where, pods in others.items() for pod in pods if name in pod.claims and pod is not task]
            if not self._may(name, node, users):
                return None
            if not self._claims[name]["spec"].get("volumeName") and name not in self._given:
                waiting.append(name)
        for name in sorted(waiting, key=lambda name: (self._size(self._claims[name]), name)):
            free = [v for v in self._suitable(name, node) if v not in self._given.values() and v not in found.values()]
            if not free and not self._makes(name):
                return None
            found[name] = min(free, key=lambda v: (self._capacity(v), v)) if free else ""
        return found

    def give(self, volumes: Mapping[str, str]) -> None:
        self._given |= volumes

    def take_back(self, task: User, others: Mapping[str, Sequence[User]]) -> None:
        """Undo the assignments of a pod that has left its node, for claims without another user."""
        for name in task.claims:
            if not any(name in pod.claims for pods in others.values() for pod in pods):
                self._given.pop(name, None)

    def _may(self, name: str, node: str, users: Sequence[str]) -> bool:
        claim = self._claims.get(name)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return False
        modes = claim["spec"]["accessModes"]
        if "ReadWriteOncePod" in modes and users:
            return False
        bound = claim["spec"].get("volumeName")
        if bound:
            return bound in self._volumes and self._reaches(bound, node)
        if self._classes[claim["spec"]["storageClassName"]]["volumeBindingMode"] == "Immediate":
            return False
        if name not in self._given:
            return True
        if self._given[name]:
            return self._reaches(self._given[name], node)
        return "ReadWriteMany" in modes or node in users

    def _suitable(self, name: str, node: str) -> list[str]:
        claim = self._claims[name]
        return [
            volume
            for volume, given in self._volumes.items()
            if given["spec"]["storageClassName"] == claim["spec"]["storageClassName"]
            and given["status"]["phase"] == "Available"
            and set(claim["spec"]["accessModes"]) <= set(given["spec"]["accessModes"])
            and self._capacity(volume) >= self._size(claim)
            and self._reaches(volume, node)
        ]

    def _makes(self, name: str) -> bool:
        made = self._classes[self._claims[name]["spec"]["storageClassName"]]
        return made["provisioner"] != "kubernetes.io/no-provisioner"

    def _reaches(self, volume: str, node: str) -> bool:
        affinity = self._volumes[volume]["spec"].get("nodeAffinity")
        if affinity is None:
            return True
        terms = affinity["required"]["nodeSelectorTerms"]
        return any(node in wanted["values"] for term in terms for wanted in term["matchFields"])

    def _capacity(self, volume: str) -> int:
        return parse_quantity(self._volumes[volume]["spec"]["capacity"]["storage"]).value()

    @staticmethod
    def _size(claim: Json) -> int:
        return parse_quantity(claim["spec"]["resources"]["requests"]["storage"]).value()
