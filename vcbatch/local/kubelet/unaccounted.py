"""Pods that are recorded on this machine, but whose objects the database has lost.

It isn't known whether they were deleted, so they aren't ended: they stay as they are until a user ends them. Their list
is stored in the kubelet's root, for commands that report them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vcbatch.local.files import replace_file
from vcbatch.local.kubelet import proctree
from vcbatch.local.kubelet.records import PodRecord, pod_records
from vcbatch.local.kubelet.supervisor import reserved
from vcbatch.local.kubelet.supervisor.main import boot_id

_FILE = "unaccounted.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaccountedPod:
    """Name and namespace are empty where the record lacks them."""

    uid: str
    namespace: str = ""
    name: str = ""
    address: str = ""
    group: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.name else f"uid {self.uid}"


def find(root: Path, *, known: Container[str], lost: Sequence[Container[int]]) -> Sequence[UnaccountedPod]:
    """The recorded pods that are not `known` by their UID and that an API server with all its objects might know: those
    with a `lost` resourceVersion."""
    found: list[UnaccountedPod] = []
    for record in pod_records(root) if lost else ():
        uid = record.path.name
        if uid in known:
            continue
        facts = record.read_facts()
        if facts is None:
            found.append(UnaccountedPod(uid=uid))
        elif any(facts.version in versions for versions in lost):
            found.append(
                UnaccountedPod(
                    uid=uid, namespace=facts.namespace, name=facts.name, address=facts.address, group=facts.group
                )
            )
    return found


def write(root: Path, pods: Collection[UnaccountedPod]) -> None:
    """Store the list for commands. Raises `OSError`."""
    if pods:
        replace_file(root / _FILE, json.dumps([asdict(pod) for pod in pods]).encode())
    else:
        (root / _FILE).unlink(missing_ok=True)


def read(root: Path) -> Sequence[UnaccountedPod]:
    """The stored list."""
    try:
        return [UnaccountedPod(**entry) for entry in json.loads((root / _FILE).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def running(root: Path, pods: Iterable[UnaccountedPod]) -> Sequence[UnaccountedPod]:
    """Those with a running container."""
    return [pod for pod in pods if _runs(PodRecord(root / "pods" / pod.uid))]


def _runs(record: PodRecord) -> bool:
    for container in record.containers():
        for run in record.runs(container):
            with contextlib.suppress(OSError):
                reference = reserved.read(str(run.path / reserved.REFERENCE)) or {}
                if (
                    "pid" in reference
                    and reference["boot_id"] == boot_id()
                    and proctree.is_alive(reference["pid"], reference["start_time"])
                ):
                    return True
    return False
