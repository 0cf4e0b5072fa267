"""What admission fills in. Pure functions of plain JSON that give a new object and leave the given one alone.

The values are those of Volcano's mutating webhooks. Unlike those, which send whole lists back through compiled types,
only what is missing is set, so that fields unknown to this version are never lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from vcbatch.api import names
from vcbatch.api.model import Json
from vcbatch.api.names import Plugin
from vcbatch.api.queue import DEFAULT, ROOT

DEFAULT_MAX_RETRY = 3

_NEEDS_HOSTS = (Plugin.TENSORFLOW, Plugin.MPI, Plugin.PYTORCH, Plugin.RAY)


def default_job(job: Mapping[str, Any], *, scheduler_name: str = names.DEFAULT_SCHEDULER) -> Json:
    """The job as `/jobs/mutate` of Volcano leaves it: queue, scheduler, restart budgets, task names and minimums, the
    job's minimum as the sum of its tasks', and the plugins that its frameworks need."""
    spec: Json = dict(job.get("spec") or {})
    spec["queue"] = spec.get("queue") or DEFAULT
    spec["schedulerName"] = spec.get("schedulerName") or scheduler_name
    spec["maxRetry"] = spec.get("maxRetry") or DEFAULT_MAX_RETRY
    tasks = spec.get("tasks")
    if isinstance(tasks, list):
        spec["tasks"] = [_default_task(index, task) for index, task in enumerate(cast("list[Any]", tasks))]
    if not spec.get("minAvailable"):
        spec["minAvailable"] = _sum_of_minimums(spec.get("tasks"))
    plugins = spec.get("plugins")
    if isinstance(plugins, dict) and plugins:
        spec["plugins"] = _complete_plugins(cast(Json, plugins))
    return {**job, "spec": spec}


def _default_task(index: int, task: Any) -> Any:
    if not isinstance(task, dict):
        return task
    filled: Json = dict(cast(Json, task))
    filled["name"] = filled.get("name") or names.default_task_name(index)
    filled["maxRetry"] = filled.get("maxRetry") or DEFAULT_MAX_RETRY
    if filled.get("minAvailable") is None:
        filled["minAvailable"] = _task_minimum(filled)
    template: Any = filled.get("template")
    if isinstance(template, dict):
        filled["template"] = _default_template(cast(Json, template))
    return filled


def _task_minimum(task: Json) -> int:
    partitions: Json = task.get("partitionPolicy") or {}
    minimum = partitions.get("minPartitions") or 0
    if minimum > 0:
        return minimum * (partitions.get("partitionSize") or 0)
    return task.get("replicas") or 0


def _default_template(template: Json) -> Json:
    spec: Json = template.get("spec") or {}
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        return {**template, "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return template


def _sum_of_minimums(tasks: Any) -> int:
    if not isinstance(tasks, list):
        return 0
    return sum(cast(Json, task)["minAvailable"] for task in cast("list[Any]", tasks) if isinstance(task, dict))


def _complete_plugins(plugins: Json) -> Json:
    """Distributed frameworks find each other by host names, and mpi logs in by ssh."""
    complete = dict(plugins)
    if any(plugin in plugins for plugin in _NEEDS_HOSTS):
        complete.setdefault(Plugin.SVC.value, [])
    if Plugin.MPI in plugins:
        complete.setdefault(Plugin.SSH.value, [])
    return complete


def default_queue(queue: Mapping[str, Any]) -> Json:
    """The queue as `/queues/mutate` leaves it: weight 1, reclaimable, and its hierarchy path starting at the root."""
    spec: Json = dict(queue.get("spec") or {})
    spec["weight"] = spec.get("weight") or 1
    if spec.get("reclaimable") is None:
        spec["reclaimable"] = True
    filled: Json = {**queue, "spec": spec}
    metadata: Json = queue.get("metadata") or {}
    annotations: Json = metadata.get("annotations") or {}
    path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS)
    if path and weights and not path.startswith(ROOT):
        rooted = {**annotations, names.HIERARCHY: f"{ROOT}/{path}", names.HIERARCHY_WEIGHTS: f"1/{weights}"}
        filled["metadata"] = {**metadata, "annotations": rooted}
    return filled


def default_podgroup(podgroup: Mapping[str, Any], *, namespace_annotations: Mapping[str, str]) -> Json:
    """The PodGroup as `/podgroups/mutate` leaves it: one in the default queue goes to its namespace's."""
    spec: Json = podgroup.get("spec") or {}
    wanted = namespace_annotations.get(names.SCHEDULING_QUEUE_NAME)
    if wanted and spec.get("queue") == DEFAULT:
        return {**podgroup, "spec": {**spec, "queue": wanted}}
    return dict(podgroup)


def json_patch(before: Any, after: Any) -> list[Json]:
    """The RFC 6902 operations that turn `before` into `after`, touching nothing else. Lists of the same length are
    compared entry by entry, others are replaced."""
    patch: list[Json] = []
    _compare(before, after, "", patch)
    return patch


def _compare(before: Any, after: Any, path: str, patch: list[Json]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(cast(Json, before), cast(Json, after), path, patch)
        return
    if isinstance(before, list) and isinstance(after, list):
        old, new = cast("Sequence[Any]", before), cast("Sequence[Any]", after)
        if len(old) == len(new):
            for index, (mine, theirs) in enumerate(zip(old, new, strict=True)):
                _compare(mine, theirs, f"{path}/{index}", patch)
            return
    if not _same(before, after):
        patch.append({"op": "replace", "path": path, "value": after})


def _compare_objects(before: Json, after: Json, path: str, patch: list[Json]) -> None:
    patch.extend({"op": "remove", "path": f"{path}/{_escape(key)}"} for key in before if key not in after)
    for key, value in after.items():
        if key in before:
            _compare(before[key], value, f"{path}/{_escape(key)}", patch)
        else:
            patch.append({"op": "add", "path": f"{path}/{_escape(key)}", "value": value})


def _same(before: Any, after: Any) -> bool:
    # True == 1 in Python, and not in JSON.
    return before == after and isinstance(before, bool) == isinstance(after, bool)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
