"""A world out of files: objects as `kubectl get -o yaml` gives them, completed by what every cluster has.

On a cluster the controllers make the first queues, and a PodGroup for pods that come without one; here they are made
by the same functions, so that a world of nothing but nodes and pods works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from vcbatch.api.names import GROUP_NAME
from vcbatch.api.resources import JOBS, PODS
from vcbatch.cli.job_files import members_of
from vcbatch.cli.origin import Origin
from vcbatch.cli.output import CliError, note
from vcbatch.core.machine import ObjectRef
from vcbatch.core.podgroup import GroupView, decide
from vcbatch.core.queue import bootstrap
from vcbatch.scheduler.simulation.world import BY_KEY, BY_KIND, WorldError

Json = Mapping[str, Any]
Lists = dict[str, list[Json]]
"""Objects by the key of their kind in a world file: `nodes`, `podGroups`, …"""

_PODS, _GROUPS, _QUEUES = "pods", "podGroups", "queues"
_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class Collected:
    """Objects of files so far. A later object takes the place of an earlier one of the same kind and name."""

    objects: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    ignored: Counter[str] = field(default_factory=Counter[str])
    """Kinds that the scheduler doesn't read, and how often they came."""
    jobs: dict[str, tuple[Origin, Json]] = field(default_factory=dict[str, tuple[Origin, Json]])
    """By `namespace/name`: the job and where it is written; its PodGroup and pods are made where they aren't there."""
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict[tuple[str, str], Origin])
    """Where objects are written, by key of their kind and name as in `objects`."""

    @staticmethod
    def of(lists: Mapping[str, Sequence[Json]]) -> Collected:
        """These objects."""
        return Collected(
            {
                key: {f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": obj for obj in objects}
                for key, objects in lists.items()
            }
        )

    def add(self, document: Json, *, source: Origin) -> None:
        """Take one object in. Raises `CliError` where it isn't one."""
        kind, version = document.get("kind"), document.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            keys = ", ".join(sorted(map(str, document))[:8])
            raise CliError(
                f"{source}: neither a Kubernetes object (`apiVersion` and `kind`) nor a recorded case, "
                f"but something with: {keys}"
            )
        group = version.rpartition("/")[0]
        read = BY_KIND.get((group, kind))
        if (group, kind) == (JOBS.group, JOBS.kind):
            self._add_job(document, source)
            return
        if read is None:
            self.ignored[kind] += 1
            return
        meta = document.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(cast("Json", meta).get("name"), str):
            raise CliError(f"{source}: a {kind} without metadata.name")
        known = dict(cast("Json", meta))
        if read.resource.namespaced and not known.get("namespace"):
            known["namespace"] = "default"
        name = f"{known.get('namespace', '')}/{known['name']}"
        self.objects.setdefault(read.key, {})[name] = {**document, "metadata": known}
        self.origins[read.key, name] = source

    def placed(self, error: WorldError) -> str:
        """What is wrong with one of these objects, with the place where it is written, as far as that is known."""
        names = list(self.objects.get(error.key, ()))
        origin = self.origins.get((error.key, names[error.index])) if 0 <= error.index < len(names) else None
        return str(error) if origin is None else f"{origin.place(error.field)}: {error}"

    def _add_job(self, document: Json, source: Origin) -> None:
        meta = document.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(cast("Json", meta).get("name"), str):
            raise CliError(f"{source}: a Job without metadata.name")
        known = cast("Json", meta)
        self.jobs[f"{known.get('namespace') or 'default'}/{known['name']}"] = (source, document)

    def remove(self, what: str) -> None:
        """Take `kind/name` or `kind/namespace/name` out. Raises `CliError` where there is no such object."""
        kind, _, name = what.partition("/")
        wanted = kind.lower()
        for key, found in self.objects.items():
            of = BY_KEY[key].resource
            if wanted not in (of.kind.lower(), of.plural):
                continue
            full = name if "/" in name or not of.namespaced else f"default/{name}"
            full = full if "/" in full else f"/{full}"
            if full in found:
                del found[full]
                if key == _GROUPS:
                    self._remove_members(full)
                return
        raise CliError(
            f"--without {what}: there is no such object", hint="Write it as KIND/NAME or KIND/NAMESPACE/NAME."
        )

    def _remove_members(self, group: str) -> None:
        pods = self.objects.get(_PODS, {})
        namespace, _, name = group.partition("/")
        for key in [k for k, pod in pods.items() if k.startswith(f"{namespace}/") and _group(pod) == name]:
            del pods[key]

    def lists(self) -> Lists:
        """Everything, by kind. Raises `CliError` for a job that can't be one."""
        lists = {key: list(found.values()) for key, found in self.objects.items()}
        values = {str(c["metadata"]["name"]): c.get("value", 0) for c in lists.get("priorityClasses", ())}
        # One of another type is refused when the world is read.
        classes = {name: value for name, value in values.items() if isinstance(value, int)}
        for source, job in self.jobs.values():
            group, pods = members_of(job, classes, source=source)
            if f"{group['metadata']['namespace']}/{group['metadata']['name']}" not in self.objects.get(_GROUPS, {}):
                lists.setdefault(_GROUPS, []).append(group)
                lists.setdefault(_PODS, []).extend(_prioritised(pod, classes) for pod in pods)
        return lists

    def say_ignored(self) -> None:
        """Tell which kinds were of no use."""
        if self.ignored:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.ignored.items()))
            note(f"ignored: {kinds} (the scheduler doesn't read these kinds)")


def completed(lists: Lists, *, scheduler_names: Sequence[str], now: datetime) -> Lists:
    """With the queues that every cluster has, and a PodGroup for each set of pods that come without."""
    existing = {str(queue["metadata"]["name"]) for queue in lists.get(_QUEUES, ())}
    queues = [cast("Json", create.body) for create in bootstrap(existing).creates]
    pods, groups = _grouped(lists.get(_PODS, ()), scheduler_names, now)
    return {
        **lists,
        _QUEUES: [*lists.get(_QUEUES, ()), *queues],
        _GROUPS: [*lists.get(_GROUPS, ()), *groups],
        _PODS: pods,
    }


def _grouped(pods: Iterable[Json], names: Sequence[str], now: datetime) -> tuple[list[Json], list[Json]]:
    done: list[Json] = []
    groups: dict[str, Json] = {}
    for pod in pods:
        spec, status = pod.get("spec"), pod.get("status") or {}
        ours = isinstance(spec, Mapping) and cast("Json", spec).get("schedulerName", names[0]) in names
        if not ours or _group(pod) or cast("Json", status).get("phase") in _OVER:
            done.append(pod)
            continue
        meta = {"uid": f"{pod['metadata']['namespace']}-{pod['metadata']['name']}", **pod["metadata"]}
        sample = {**pod, "metadata": meta}
        ref = ObjectRef(resource=PODS, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
        try:
            decision = decide(GroupView(waiting=[ref], members=1, sample=sample), now=now)
        except (KeyError, TypeError, AttributeError, ValueError):
            done.append(pod)  # of a shape that the reading of the world names
            continue
        group = decision.ensures[0].body
        made = groups.setdefault(f"{meta['namespace']}/{group['metadata']['name']}", group)
        notes = {**(meta.get("annotations") or {}), GROUP_NAME: made["metadata"]["name"]}
        done.append({**sample, "metadata": {**meta, "annotations": notes}})
    return done, list(groups.values())


def _prioritised(pod: Json, classes: Mapping[str, int]) -> Json:
    """With the priority that the API server gives a pod of a class."""
    value = classes.get(str(pod["spec"].get("priorityClassName", "")))
    return pod if value is None else {**pod, "spec": {"priority": value, **pod["spec"]}}


def _group(pod: Json) -> str:
    notes = pod["metadata"].get("annotations")
    return str(cast("Json", notes).get(GROUP_NAME) or "") if isinstance(notes, Mapping) else ""
