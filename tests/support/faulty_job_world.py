"""The simulation of `job_world` with fault injection: stale snapshots, crashes between two writes, lost events,
statuses that other clients write, name conflicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tests.support.job_world import Json, World
from vcbatch.api import names
from vcbatch.api.pod import Pod
from vcbatch.api.resources import JOBS, PODGROUPS, PODS, Resource
from vcbatch.api.timestamps import format_time
from vcbatch.core.job import JobView, decide
from vcbatch.core.machine import Create, Decision, Ensure, WriteStatus


class Refused(Exception):
    """The server rejects the write: a conflict, or a name that another owner's object has."""


@dataclass
class FaultyWorld(World):
    """`departed` are the pods that were removed since the last reconcile that was executed completely; a crash of the
    controller loses them."""

    departed: list[Pod] = field(default_factory=list[Pod])
    late: JobView | None = None
    """A snapshot that was taken and not acted on yet. Writes of the controller discard it, since later snapshots
    contain them."""

    # Controller

    def view(self, name: str = "j") -> JobView:
        return replace(super().view(name), departed=tuple(self.departed))

    def reconcile(self, name: str = "j", *, writes: int | None = None) -> Decision:
        return self.act_on(self.view(name), writes=writes)

    def act_on(self, view: JobView, *, writes: int | None = None) -> Decision:
        """Decide on this snapshot and execute the first `writes` writes, as far as the server accepts them."""
        decision = decide(view, now=self.now)
        self.late = None
        for number, write in enumerate(self.writes_of(decision)):
            if number == writes:
                self.departed.clear()
                return decision
            try:
                write()
            except Refused:
                return decision
        self.departed = [pod for pod in self.departed if pod not in view.departed]
        return decision

    # API server

    def remove(self, resource: Resource, name: str) -> None:
        gone = self.objects.get((resource, name))
        if gone is not None and resource is PODS:
            self.departed.append(msgspec.convert(gone, Pod))
        super().remove(resource, name)

    def _write_status(self, write: WriteStatus) -> None:
        stored = self.objects.get((write.ref.resource, write.ref.name))
        if stored is None or stored["metadata"]["uid"] != write.ref.uid:
            raise Refused
        if stored["metadata"]["resourceVersion"] != write.resource_version:
            raise Refused
        super()._write_status(write)

    def _ensure(self, ensure: Ensure) -> None:
        self._check_owner(ensure.resource, ensure.body)
        super()._ensure(ensure)

    def _create(self, create: Create) -> None:
        self._check_owner(create.resource, create.body)
        super()._create(create)

    def _check_owner(self, resource: Resource, body: Json) -> None:
        """An object whose owner is deleted is collected at once; one whose name is taken isn't created."""
        (owner,) = (owner["uid"] for owner in body["metadata"]["ownerReferences"])
        stored = self.objects.get((resource, body["metadata"]["name"]))
        job = self.objects.get((JOBS, "j"))
        if job is None or job["metadata"]["uid"] != owner:
            raise Refused
        if stored is not None and owner not in {
            other["uid"] for other in stored["metadata"].get("ownerReferences", ())
        }:
            raise Refused

    # Users and infrastructure

    def schedule(self) -> None:
        """As in `World`; a waiting gang is also admitted once `lets_in` is set."""
        for group in self.all(PODGROUPS):
            if self.lets_in and group.get("status", {}).get("phase") == "Pending":
                group["status"]["phase"] = "Inqueue"
        super().schedule()

    def running_pods(self) -> list[str]:
        """The running pods that aren't being deleted."""
        return sorted(
            name
            for name, pod in self.pods().items()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        )

    def lose_node(self, pods: Iterable[str]) -> None:
        """The node of these pods is lost: a controller fails the pods and deletes those that can't be reached."""
        for name in pods:
            self.end_pod(name, 137)
            pod = self.objects[PODS, name]
            pod["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
            ]
            self.remove(PODS, name)

    def write_over(self, **status: Any) -> None:
        """Another client writes the job's status."""
        self.change(JOBS, "j", lambda job: job.setdefault("status", {}).update(status))

    def write_phase(self, phase: str) -> None:
        state = self.job().get("status", {}).get("state", {})
        self.write_over(state={**state, "phase": phase, "lastTransitionTime": format_time(self.now)})

    def group(self) -> str | None:
        """The name of the job's PodGroup; None where it doesn't exist."""
        wanted = names.pod_group_name("j", self.job()["metadata"]["uid"])
        return wanted if (PODGROUPS, wanted) in self.objects else None

    def replace_job(self, *, lingering: bool) -> None:
        """Delete the job and create it again from its manifest. With `lingering` its pods are deleted later."""
        job = self.job()
        before = {name: pod for name, pod in self.pods().items() if lingering}
        self.remove(JOBS, "j")
        self.objects = {key: stored for key, stored in self.objects.items() if key[0] is not PODS}
        for name, pod in before.items():
            pod["metadata"].setdefault("deletionTimestamp", format_time(self.now))
            self.objects[PODS, name] = pod
        self.departed.clear()
        self.put(JOBS, {key: job[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": _written(job)})


def _written(job: Json) -> Json:
    return {key: value for key, value in job["metadata"].items() if key in ("name", "namespace", "annotations")}
