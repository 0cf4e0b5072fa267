"""The kubelet's records on disk about each pod, so that another kubelet can take the pod over.

`ROOT/pods/UID/pod.json` has the pod's identity and its resources; `ROOT/pods/UID/containers/NAME/N/` is the record of a
container's N-th run (see `ProcessSpec.record`), with our `run.json` in it. Everything is written before it takes
effect, so that after a crash at any point nothing runs that isn't recorded.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vcbatch.local.files import replace_file
from vcbatch.local.kubelet.devices import Allotment
from vcbatch.local.kubelet.links import Link
from vcbatch.local.kubelet.supervisor import reserved
from vcbatch.local.kubelet.supervisor.logfile import lost_entry

Json = dict[str, Any]

OLDEST_VERSION = 2
"""The resourceVersion of the first object in any database, and of pods whose records have none."""

KEPT_RUNS = 2  # the current run and the one before it, for `kubectl logs --previous`


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """The resources of a pod on this node."""

    namespace: str
    name: str
    uid: str
    start_time: datetime
    version: int = OLDEST_VERSION
    """The pod's resourceVersion at the time of the record: the database had it then."""
    address: str = ""
    group: str = ""
    allotment: Allotment = field(default_factory=lambda: Allotment(cpus={}, gpus={}))
    links: Sequence[Link] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a container as it was recorded before it started."""

    number: int
    path: Path
    started_at: datetime
    restarts: int
    crashes: int


class PodRecord:
    """The directory of one pod."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def hosts_file(self) -> Path:
        return self.path / "hosts"

    def create(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write_facts(self, facts: PodFacts) -> None:
        document = {
            "namespace": facts.namespace,
            "name": facts.name,
            "uid": facts.uid,
            "start_time": facts.start_time.timestamp(),
            "version": facts.version,
            "address": facts.address,
            "group": facts.group,
            "cpus": {name: list(cpus) for name, cpus in facts.allotment.cpus.items()},
            "gpus": {name: list(gpus) for name, gpus in facts.allotment.gpus.items()},
            "links": [{"path": link.path, "target": link.target} for link in facts.links],
        }
        replace_file(self.path / "pod.json", json.dumps(document).encode(), durable=False)

    def read_facts(self) -> PodFacts | None:
        document = _read(self.path / "pod.json")
        if document is None:
            return None
        return PodFacts(
            namespace=document["namespace"],
            name=document["name"],
            uid=document["uid"],
            start_time=datetime.fromtimestamp(document["start_time"], UTC),
            version=document.get("version", OLDEST_VERSION),
            address=document["address"],
            group=document["group"],
            allotment=Allotment(cpus=document["cpus"], gpus=document["gpus"]),
            links=[Link(path=link["path"], target=link["target"]) for link in document["links"]],
        )

    def container(self, name: str) -> Path:
        return self.path / "containers" / name

    def new_run(self, container: str, *, started_at: datetime, restarts: int, crashes: int) -> Run:
        """Create the directory of the container's next run; runs before the last one are removed. Raises `OSError`, and
        there is no new run then."""
        runs = self._runs(container)
        number = runs[-1] + 1 if runs else 0
        for old in runs[: max(0, len(runs) - KEPT_RUNS + 1)]:
            shutil.rmtree(self.container(container) / str(old), ignore_errors=True)
        path = self.container(container) / str(number)
        try:
            path.mkdir(mode=0o700, parents=True)
            (path / "termination-log").touch(mode=0o666)
            (path / "termination-log").chmod(0o666)
            (path / "log").touch(mode=0o600)
            run = Run(number=number, path=path, started_at=started_at, restarts=restarts, crashes=crashes)
            document = {"started_at": started_at.timestamp(), "restarts": restarts, "crashes": crashes}
            replace_file(path / "run.json", json.dumps(document).encode(), durable=False)
        except OSError:
            self.forget_run(path)
            raise
        return run

    def forget_run(self, path: Path) -> None:
        """Remove the directory of a run that never started: it would count as the latest, and replace a real one."""
        shutil.rmtree(path, ignore_errors=True)

    def runs(self, container: str) -> list[Run]:
        """The kept runs of a container, oldest first."""
        found: list[Run] = []
        for number in self._runs(container):
            path = self.container(container) / str(number)
            document = _read(path / "run.json")
            if document is not None:
                started_at = datetime.fromtimestamp(document["started_at"], UTC)
                found.append(
                    Run(
                        number=number,
                        path=path,
                        started_at=started_at,
                        restarts=document["restarts"],
                        crashes=document["crashes"],
                    )
                )
        return found

    def containers(self) -> list[str]:
        with contextlib.suppress(OSError):
            return sorted(path.name for path in (self.path / "containers").iterdir())
        return []

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _runs(self, container: str) -> list[int]:
        with contextlib.suppress(OSError):
            names = [path.name for path in self.container(container).iterdir()]
            return sorted(int(name) for name in names if name.isdigit())
        return []


def pod_records(root: Path) -> Iterator[PodRecord]:
    """Every pod that has a directory below the kubelet's root."""
    with contextlib.suppress(OSError):
        for path in sorted((root / "pods").iterdir()):
            yield PodRecord(path)


def newest_version(root: Path) -> int:
    """The newest resourceVersion of a recorded pod; 0 without any."""
    facts = (record.read_facts() for record in pod_records(root))
    return max((found.version for found in facts if found is not None), default=0)


def mark_out_of_memory(record: Path) -> None:
    """Record, before it is killed, that a container's run ends because of its memory limit."""
    with contextlib.suppress(OSError):  # it is killed whether or not that can be written
        _put(record / reserved.OOM, {})


def was_out_of_memory(record: Path) -> bool:
    with contextlib.suppress(OSError):
        return reserved.read(str(record / reserved.OOM)) is not None
    return False


def write_start_failure(record: Path, *, exit_code: int, message: str, finished_at: float) -> None:
    """Record the exit of a run whose command never started, unless an exit is recorded already. Raises `OSError`."""
    path = record / reserved.EXIT
    if reserved.read(str(path)) is None:
        _put(path, {"exit_code": exit_code, "error": message, "finished_at": finished_at})


def output_lost_at_the_end(record: Path) -> bytes | None:
    """The log line about output that is missing at the end of the log, where the disk was too full to write it
    there."""
    with contextlib.suppress(OSError):
        document = reserved.read(str(record / reserved.EXIT))
        if document is not None and "log_lost" in document:
            ended = datetime.fromtimestamp(document["finished_at"], UTC)
            stamp = f"{ended:%Y-%m-%dT%H:%M:%S.%f}000Z".encode()
            return lost_entry(stamp, document["log_lost"]).removesuffix(b"\n")
    return None


def _put(path: Path, document: Json) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        reserved.put(descriptor, document, sync=False)
    finally:
        os.close(descriptor)


def _read(path: Path) -> Json | None:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
