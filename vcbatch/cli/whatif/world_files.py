"""A cluster state from files: objects as printed by `kubectl get -o yaml`, completed by those that every cluster has.

On a cluster the controllers create the initial queues, and a PodGroup for pods without one; the same functions create
them here, so that files with only nodes and pods work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod_usage import add, pod_usage, wire
from vcbatch.api.quantity import Quantity
from vcbatch.api.resources import JOBS, PODS
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.files.job_files import members_of
from vcbatch.cli.files.source import Origin
from vcbatch.cli.whatif.without import gangs_of, group_of, job_of, remove_gang
from vcbatch.core.machine import ObjectRef
from vcbatch.core.podgroup import GroupView, decide
from vcbatch.core.queue import bootstrap
from vcbatch.scheduler.simulation.world import BY_KIND, WorldError

Json = Mapping[str, Any]
Lists = dict[str, list[Json]]
"""Objects by the key of their kind in a file of a cluster state: `nodes`, `podGroups`, …"""

_PODS, _GROUPS, _QUEUES = "pods", "podGroups", "queues"
_QUOTAS, _BUDGETS = "resourceQuotas", "podDisruptionBudgets"
_READY = [{"type": "Ready", "status": "True"}]
_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class Collected:
    """The objects of the files read so far. A later object replaces an earlier one of the same kind and name."""

    objects: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    ignored: Counter[str] = field(default_factory=Counter[str])
    """Kinds that the scheduler doesn't read, with their versions and the number of objects."""
    jobs: dict[str, tuple[Origin, Json]] = field(default_factory=dict[str, tuple[Origin, Json]])
    """`namespace/name` -> the job and its position; its PodGroup and pods are created where the files lack them."""
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict[tuple[str, str], Origin])
    """The positions of objects, by the key of their kind and the name as in `objects`."""

    @staticmethod
    def of(lists: Mapping[str, Sequence[Json]]) -> Collected:
        """A collection of these objects."""
        return Collected(
            {
                key: {f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": obj for obj in objects}
                for key, objects in lists.items()
            }
        )

    def add(self, document: Json, *, source: Origin) -> None:
        """Add one object. Raises `CliError` where the document isn't one."""
        kind, version = document.get("kind"), document.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            keys = ", ".join(sorted(map(str, document))[:8])
            raise CliError(
                f"{source}: not a Kubernetes object (`apiVersion` and `kind`) or a recorded case; found keys: {keys}"
            )
        group = version.rpartition("/")[0]
        read = BY_KIND.get((group, kind))
        if (group, kind) == (JOBS.group, JOBS.kind):
            self._add_job(document, source)
            return
        if read is None:
            self.ignored[f"{kind} of {version}"] += 1
            return
        meta = document.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(cast("Json", meta).get("name"), str):
            raise CliError(f"{source}: {kind}: metadata.name is required")
        known = dict(cast("Json", meta))
        if read.resource.namespaced and not known.get("namespace"):
            known["namespace"] = "default"
        name = f"{known.get('namespace', '')}/{known['name']}"
        if (read.key, name) in self.origins:
            _again(kind, name, source, self.origins[read.key, name])
        self.objects.setdefault(read.key, {})[name] = {**document, "metadata": known}
        self.origins[read.key, name] = source

    def placed(self, error: WorldError) -> str:
        """The error of one of these objects, with its position as far as that is known."""
        names = list(self.objects.get(error.key, ()))
        origin = self.origins.get((error.key, names[error.index])) if 0 <= error.index < len(names) else None
        return str(error) if origin is None else f"{origin.place(error.field)}: {error}"

    def misfit(self) -> str:
        """The first field of an object with a wrong type, with its position; "" where there is none."""
        from vcbatch.cli.files.misfits import misfit

        given = [(JOBS, source, job) for source, job in self.jobs.values()]
        for key, found in self.objects.items():
            resource = next(read.resource for read in BY_KIND.values() if read.key == key)
            for name, obj in found.items():
                if (key, name) in self.origins:
                    given.append((resource, self.origins[key, name], obj))
        for resource, source, obj in given:
            wrong = misfit(resource, obj)
            if wrong is not None:
                return f"{source.place(wrong[0])}: {resource.kind}: {wrong[1]}"
        return ""

    def _add_job(self, document: Json, source: Origin) -> None:
        meta = document.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(cast("Json", meta).get("name"), str):
            raise CliError(f"{source}: Job: metadata.name is required")
        known = cast("Json", meta)
        name = f"{known.get('namespace') or 'default'}/{known['name']}"
        if name in self.jobs:
            _again("Job", name, source, self.jobs[name][0])
        self.jobs[name] = (source, document)

    def lists(self) -> Lists:
        """All objects, by kind. A job from a file replaces the PodGroups and pods of a job of its name that aren't from
        a file. Raises `CliError` for an invalid job."""
        classes = list(self.objects.get("priorityClasses", {}).values())
        values = {str(c["metadata"]["name"]): c.get("value", 0) for c in classes}
        # Other types are rejected when the cluster state is decoded.
        values = {name: value for name, value in values.items() if isinstance(value, int)}
        created: list[tuple[Json, list[Json]]] = []
        for name, (source, job) in self.jobs.items():
            for gang in gangs_of(self.objects, name):
                if (_GROUPS, gang) not in self.origins:
                    owner = job_of(self.objects[_GROUPS][gang])
                    job = {**job, "metadata": {"uid": owner.get("uid"), **job["metadata"]}}
                    remove_gang(self.objects, gang)
            created.append(members_of(job, values, source=source))
        lists = {key: list(found.values()) for key, found in self.objects.items()}
        pods = lists.setdefault(_PODS, [])
        whole = {(pod["metadata"]["namespace"], group_of(pod)) for pod in pods}
        for group, members in created:
            meta = group["metadata"]
            given = self.objects.get(_GROUPS, {}).get(f"{meta['namespace']}/{meta['name']}")
            if given is None:
                lists.setdefault(_GROUPS, []).append(group)
            if given is None or (_unserved(given) and (meta["namespace"], meta["name"]) not in whole):
                pods.extend(members)
        written = {name for key, name in self.origins if key == _PODS} | {_key(p) for _, of in created for p in of}
        lists[_PODS] = [prioritised(pod, classes) if _key(pod) in written else pod for pod in pods]
        return lists

    def say_ignored(self) -> None:
        """Report the kinds that the scheduler doesn't read."""
        if self.ignored:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.ignored.items()))
            note(f"ignored: {kinds} (not used by the scheduler)")


def _again(kind: str, name: str, source: Origin, before: Origin) -> None:
    note(f"{source}: {kind} {name.removeprefix('/')} replaces the one in {before}")


def completed(lists: Lists, *, scheduler_names: Sequence[str], now: datetime) -> Lists:
    """The objects with the queues that every cluster has, a PodGroup for each set of pods without one, and the status
    of quotas and disruption budgets that have none."""
    existing = {str(queue["metadata"]["name"]) for queue in lists.get(_QUEUES, ())}
    queues = [cast("Json", create.body) for create in bootstrap(existing).creates]
    pods, groups = _grouped(lists.get(_PODS, ()), scheduler_names, now)
    waiting = {_key(group) for group in (*lists.get(_GROUPS, ()), *groups) if _unserved(group)}
    return {
        **lists,
        _QUEUES: [*lists.get(_QUEUES, ()), *queues],
        _GROUPS: [*lists.get(_GROUPS, ()), *groups],
        _PODS: pods,
        **({_QUOTAS: [_counted(quota, pods, waiting) for quota in lists[_QUOTAS]]} if _QUOTAS in lists else {}),
        **({_BUDGETS: [_measured(budget, pods) for budget in lists[_BUDGETS]]} if _BUDGETS in lists else {}),
    }


def _measured(budget: Json, pods: Sequence[Json]) -> Json:
    """The PodDisruptionBudget with its status. Running pods without conditions count as ready."""
    if budget.get("status"):
        return budget
    from vcbatch.local.apiserver.kinds.disruption import measure

    try:
        there = [
            {**pod, "status": {"conditions": _READY, **pod["status"]}}
            for pod in pods
            if pod["metadata"]["namespace"] == budget["metadata"]["namespace"]
            and pod.get("status", {}).get("phase") == "Running"
        ]
        allowed = measure(dict(budget), there).allowed
    except (KeyError, TypeError, AttributeError, ValueError):
        return budget  # of a wrong type, which decoding reports
    return {**budget, "status": {"disruptionsAllowed": allowed}}


def _counted(quota: Json, pods: Sequence[Json], waiting: Collection[str]) -> Json:
    """The quota with its status: the usage of pods, without those of gangs that aren't admitted, whose pods don't exist
    yet on a cluster."""
    spec, status = quota.get("spec"), quota.get("status")
    hard = cast("Json", spec).get("hard") if isinstance(spec, Mapping) else None
    if status or not isinstance(hard, Mapping):
        return quota
    used: dict[str, Quantity] = {}
    for pod in pods:
        place = cast("Json", pod.get("spec") or {})
        try:
            over = (pod.get("status") or {}).get("phase") in _OVER
            namespace = pod["metadata"]["namespace"]
            exists = place.get("nodeName") or f"{namespace}/{group_of(pod)}" not in waiting
            if namespace == quota["metadata"]["namespace"] and exists and not over:
                add(used, pod_usage(dict(place)), times=1)
        except (KeyError, TypeError, AttributeError, ValueError):
            continue  # of a wrong type, which decoding reports
    return {**quota, "status": {"hard": hard, "used": {key: text for key, text in wire(used).items() if key in hard}}}


def _grouped(pods: Iterable[Json], names: Sequence[str], now: datetime) -> tuple[list[Json], list[Json]]:
    done: list[Json] = []
    groups: dict[str, Json] = {}
    for pod in pods:
        spec, status = pod.get("spec"), pod.get("status") or {}
        ours = isinstance(spec, Mapping) and cast("Json", spec).get("schedulerName", names[0]) in names
        if not ours or group_of(pod) or cast("Json", status).get("phase") in _OVER:
            done.append(pod)
            continue
        meta = {"uid": f"{pod['metadata']['namespace']}-{pod['metadata']['name']}", **pod["metadata"]}
        sample = {**pod, "metadata": meta}
        ref = ObjectRef(resource=PODS, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
        try:
            decision = decide(GroupView(waiting=[ref], members=1, sample=sample), now=now)
        except (KeyError, TypeError, AttributeError, ValueError):
            done.append(pod)  # of a wrong type, which decoding reports
            continue
        group = decision.ensures[0].body
        created = groups.setdefault(f"{meta['namespace']}/{group['metadata']['name']}", group)
        notes = {**(meta.get("annotations") or {}), GROUP_NAME: created["metadata"]["name"]}
        done.append({**sample, "metadata": {**meta, "annotations": notes}})
    return done, list(groups.values())


def _unserved(group: Json) -> bool:
    """Whether the gang isn't admitted yet, so that its job has created no pods."""
    return (group.get("status") or {}).get("phase") in (None, "", "Pending")


def _key(obj: Json) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def prioritised(pod: Json, classes: Sequence[Json]) -> Json:
    """The pod with the priority that the API server sets: that of its PriorityClass, or of the default class where it
    has none; of several defaults the lowest."""
    spec = pod.get("spec")
    if not isinstance(spec, Mapping) or "priority" in spec:
        return pod
    known = cast("Json", spec)
    named = known.get("priorityClassName")
    found = [c for c in classes if (c["metadata"]["name"] == named if named else c.get("globalDefault") is True)]
    values = [c for c in found if isinstance(c.get("value"), int)]
    if not values:
        return pod
    chosen = min(values, key=lambda c: cast("int", c["value"]))
    given = {"priority": chosen["value"], "preemptionPolicy": chosen.get("preemptionPolicy") or "PreemptLowerPriority"}
    return {**pod, "spec": {**given, **known}}
