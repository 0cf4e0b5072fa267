"""The world of `job_world` with what goes wrong in a real one: pictures that are late, deaths between two writes,
events that get lost, statuses that others write, names that are taken."""

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
    """The server doesn't do it: a conflict, or a name that somebody else has."""


@dataclass
class FaultyWorld(World):
    """`departed` are the pods that went since the last look that was carried out whole; a controller that dies forgets
    them."""

    departed: list[Pod] = field(default_factory=list[Pod])
    late: JobView | None = None
    """A picture that was taken and not acted on yet. Writes of ours make it void: they enter every later picture."""

    # The controller

    def view(self, name: str = "j") -> JobView:
        return replace(super().view(name), departed=tuple(self.departed))

    def reconcile(self, name: str = "j", *, writes: int | None = None) -> Decision:
        return self.act_on(self.view(name), writes=writes)

    def act_on(self, view: JobView, *, writes: int | None = None) -> Decision:
        """Decide on this picture and carry out the first `writes` writes, as far as the server lets us."""
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

    # The API server

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
        """What has an owner that is no more is collected at once; what has another's name isn't made."""
        (owner,) = (owner["uid"] for owner in body["metadata"]["ownerReferences"])
        stored = self.objects.get((resource, body["metadata"]["name"]))
        job = self.objects.get((JOBS, "j"))
        if job is None or job["metadata"]["uid"] != owner:
            raise Refused
        if stored is not None and owner not in {
            other["uid"] for other in stored["metadata"].get("ownerReferences", ())
        }:
            raise Refused

    # People and the infrastructure

    def schedule(self) -> None:
        """As in `World`, and a gang that waited is let in once there is room."""
        for group in self.all(PODGROUPS):
            if self.lets_in and group.get("status", {}).get("phase") == "Pending":
                group["status"]["phase"] = "Inqueue"
        super().schedule()

    def running_pods(self) -> list[str]:
        """Those that could end now."""
        return sorted(
            name
            for name, pod in self.pods().items()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        )

    def lose_node(self, pods: Iterable[str]) -> None:
        """The node of these pods is gone: some controller fails and deletes what can't be reached any more."""
        for name in pods:
            self.end_pod(name, 137)
            pod = self.objects[PODS, name]
            pod["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
            ]
            self.remove(PODS, name)

    def write_over(self, **status: Any) -> None:
        """Somebody else writes into the job's status."""
        self.change(JOBS, "j", lambda job: job.setdefault("status", {}).update(status))

    def write_phase(self, phase: str) -> None:
        state = self.job().get("status", {}).get("state", {})
        self.write_over(state={**state, "phase": phase, "lastTransitionTime": format_time(self.now)})

    def group(self) -> str | None:
        """The name of the job's PodGroup, where there is one."""
        wanted = names.pod_group_name("j", self.job()["metadata"]["uid"])
        return wanted if (PODGROUPS, wanted) in self.objects else None

    def replace_job(self, *, lingering: bool) -> None:
        """Delete the job and make it again as it was written. Its pods may take their time to go."""
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
