"""A cluster with vcbatch at work on it, for tests that harm it: its programs are started again when they end, as
Kubernetes would, and everything that happens is recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tests.cluster import invariants
from tests.cluster.components import WEBHOOKS, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.gangs import gang
from tests.cluster.history import JOBS, NODES, POD_GROUPS, PODS, Recorder
from tests.cluster.processes import wait_until

Json = dict[str, Any]
NODE_CPU, NODE_COUNT = "8", 5


class Keeper(threading.Thread):
    """Starts programs again that have ended, half a second later."""

    def __init__(self, components: Components) -> None:
        super().__init__(name="keeper", daemon=True)
        self._components = components
        self._stopping = threading.Event()
        self.restarts: list[str] = []

    def run(self) -> None:
        while not self._stopping.wait(0.5):
            for component in list(self._components.running):
                program = component.program
                if not program.running and not self._stopping.is_set():
                    self.restarts.append(program.name)
                    program.start()

    def close(self) -> None:
        self._stopping.set()
        self.join()


class World:
    """One namespace of such a cluster, from `__enter__` to `__exit__`."""

    def __init__(self, plane: ControlPlane, components: Components, namespace: str) -> None:
        self.plane = plane
        self.components = components
        self.namespace = namespace
        self.submitted: list[str] = []
        self.recorder = Recorder(plane, PODS, POD_GROUPS, JOBS, NODES)
        self._said: dict[Path, int] = {}

    def __enter__(self) -> Self:
        self.plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.plane.wait_service_accounts(self.namespace)
        # One that has just ended is started again by its keeper.
        for component in self.components.running:
            wait_until(f"{component.program.name} is ready", component.ready)
        self._said = {log: log.stat().st_size for log in self._logs()}
        self.recorder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing of it is left to the next test."""
        path = f"/api/v1/namespaces/{self.namespace}"
        self.plane.request("DELETE", path)
        wait_until(f"{self.namespace} is gone", lambda: self.plane.request("GET", path)[0] == 404, timeout=120)
        self.recorder.__exit__()

    def _logs(self) -> list[Path]:
        return [component.program.log for component in self.components.running]

    # Jobs

    @property
    def jobs(self) -> str:
        """The path of the namespace's jobs."""
        return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{self.namespace}/jobs"

    def submit(self, job: Json) -> None:
        self.plane.call("POST", self.jobs, job)
        self.submitted.append(f"{self.namespace}/{job['metadata']['name']}")

    def submit_gangs(self, count: int, *, pods: int = 4, command: str = "sleep 4", prefix: str = "gang") -> list[str]:
        """So many gangs of pods of one CPU each; with many, half of them wait for room."""
        names = [f"{prefix}-{index}" for index in range(count)]
        for name in names:
            self.submit(gang(name, pods, command=command))
        return names

    def phases(self) -> dict[str, str]:
        """Each job's phase, by what the recorder saw."""
        jobs = self.recorder.latest(JOBS)
        return {
            name: str(((jobs.get(name, {}).get("status") or {}).get("state") or {}).get("phase") or "")
            for name in self.submitted
        }

    def wait_running(self, count: int) -> None:
        """Return once so many jobs run or have run, and what there is by then was seen."""
        wait_until(
            f"{count} jobs run",
            lambda: sum(phase in ("Running", "Completing", "Completed") for phase in self.phases().values()) >= count,
        )
        self.recorder.catch_up()

    def wait_all(self, wanted: str = "Completed", *, timeout: float = 240.0) -> None:
        """Return once every submitted job has that phase, and what there is by then was seen."""
        try:
            wait_until(f"all are {wanted}", lambda: set(self.phases().values()) == {wanted}, timeout=timeout, pause=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.phases()}") from None
        self.recorder.catch_up()

    def pods(self) -> dict[str, Json]:
        """The namespace's pods that exist, by name."""
        prefix = f"{self.namespace}/"
        return {k.removeprefix(prefix): v for k, v in self.recorder.latest(PODS).items() if k.startswith(prefix)}

    def created(self, job: str = "") -> int:
        """How many pods the namespace (of one job, where it is named) has ever had."""
        prefix = f"{self.namespace}/{job}{'-' if job else ''}"
        return len({change.uid for change in self.recorder.changes(PODS) if change.name.startswith(prefix)})

    # Judgement

    def new_logs(self, folder: Path) -> list[Path]:
        """What the programs said since the beginning, as files of their own."""
        copies: list[Path] = []
        for log in self._logs():
            copy = folder / log.name
            copy.write_bytes(log.read_bytes()[self._said.get(log, 0) :])
            copies.append(copy)
        return copies

    def check(
        self,
        folder: Path,
        *,
        deleted: Iterable[str] = (),
        half_started_seconds: float = invariants.HALF_STARTED_SECONDS,
        outages: bool = False,
    ) -> None:
        """All invariants hold, nothing unexpected was raised, and no message was said over and over; after `outages`
        the logs do speak of them."""
        logs = self.new_logs(folder)
        deleted = {f"{self.namespace}/{name}" for name in deleted}
        invariants.check(
            self.recorder, jobs=self.submitted, logs=logs, deleted=deleted, half_started_seconds=half_started_seconds
        )
        for log in logs:
            outage = outages and log.name != f"vcbatch-{WEBHOOKS}.log"
            assert not outage or invariants.warnings(log), f"{log.name} says nothing of what happened"
        found = [f"{log.name}: {trace}" for log in logs for trace in invariants.tracebacks(log)]
        assert not found, "\n".join(found)
