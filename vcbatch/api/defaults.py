"""Defaulting at admission. Pure functions of plain JSON that return a new object and don't modify the given one.

The values are those of Volcano's mutating webhooks. Unlike those, which return whole lists through compiled types, only
missing fields are set, so that fields unknown to this version are never lost.
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
    """The job as Volcano's `/jobs/mutate` returns it: queue, scheduler, retry limits, task names and minimums, the
    job's minimum as the sum of its tasks', and the plugins that its frameworks need."""
    if not _is_object(job.get("spec")):
        return dict(job)
    spec = dict(_object(job.get("spec")))
    _fill_text(spec, "queue", DEFAULT)
    _fill_text(spec, "schedulerName", scheduler_name)
    _fill_number(spec, "maxRetry", DEFAULT_MAX_RETRY)
    tasks = spec.get("tasks")
    if isinstance(tasks, list):
        tasks = spec["tasks"] = [_default_task(index, task) for index, task in enumerate(cast("list[Any]", tasks))]
    if is_zero(spec.get("minAvailable")):
        spec["minAvailable"] = sum(_count(_object(task).get("minAvailable")) for task in _list(tasks))
    plugins = _object(spec.get("plugins"))
    if plugins:
        spec["plugins"] = _complete_plugins(plugins)
    return {**job, "spec": spec}


def _default_task(index: int, task: Any) -> Any:
    if not isinstance(task, dict):
        return task
    filled: Json = dict(cast(Json, task))
    _fill_text(filled, "name", names.default_task_name(index))
    _fill_number(filled, "maxRetry", DEFAULT_MAX_RETRY)
    if filled.get("minAvailable") is None:
        filled["minAvailable"] = default_task_minimum(filled)
    template = _object(filled.get("template"))
    pod = _object(template.get("spec"))
    if pod.get("hostNetwork") is True and _is_empty(pod.get("dnsPolicy")):
        filled["template"] = {**template, "spec": {**pod, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return filled


def default_task_minimum(task: Json) -> int:
    """The default `minAvailable` of a task: the pods of its minimum of partitions, else all replicas."""
    partitions = _object(task.get("partitionPolicy"))
    minimum = _count(partitions.get("minPartitions"))
    return minimum * _count(partitions.get("partitionSize")) if minimum > 0 else _count(task.get("replicas"))


def _complete_plugins(plugins: Json) -> Json:
    """Add the plugins that others need: distributed frameworks use host names, and mpi logs in by ssh."""
    complete = dict(plugins)
    if any(plugin in plugins for plugin in _NEEDS_HOSTS):
        complete.setdefault(Plugin.SVC.value, [])
    if Plugin.MPI in plugins:
        complete.setdefault(Plugin.SSH.value, [])
    return complete


def default_queue(queue: Mapping[str, Any]) -> Json:
    """The queue as `/queues/mutate` returns it: weight 1, reclaimable, and its hierarchy path starting at the root."""
    if not _is_object(queue.get("spec")):
        return dict(queue)
    spec = dict(_object(queue.get("spec")))
    _fill_number(spec, "weight", 1)
    if spec.get("reclaimable") is None:
        spec["reclaimable"] = True
    filled: Json = {**queue, "spec": spec}
    metadata = _object(queue.get("metadata"))
    annotations = _object(metadata.get("annotations"))
    path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS)
    if isinstance(path, str) and isinstance(weights, str) and path and weights and not path.startswith(ROOT):
        rooted = {**annotations, names.HIERARCHY: f"{ROOT}/{path}", names.HIERARCHY_WEIGHTS: f"1/{weights}"}
        filled["metadata"] = {**metadata, "annotations": rooted}
    return filled


def default_podgroup(podgroup: Mapping[str, Any], *, namespace_annotations: Mapping[str, str]) -> Json:
    """The PodGroup as `/podgroups/mutate` returns it: one in the default queue is put into its namespace's."""
    spec = _object(podgroup.get("spec"))
    wanted = namespace_annotations.get(names.SCHEDULING_QUEUE_NAME)
    if wanted and spec.get("queue") == DEFAULT:
        return {**podgroup, "spec": {**spec, "queue": wanted}}
    return dict(podgroup)


# Defaults are set before the schema is checked, so any value may occur anywhere. Wrong types are left for that
# check: only absence, null and the zero value of the field's own type ("" of a string, 0 of a number) get a default.


def _fill_text(parent: Json, key: str, default: str) -> None:
    if _is_empty(parent.get(key)):
        parent[key] = default


def _fill_number(parent: Json, key: str, default: int) -> None:
    if is_zero(parent.get(key)):
        parent[key] = default


def _is_empty(value: Any) -> bool:
    """Whether a string field has no value."""
    return value is None or value == ""


def is_zero(value: Any) -> bool:
    """Whether a number field has no value, or 0. False isn't 0 in JSON."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value == 0)


def _is_object(value: Any) -> bool:
    """Whether an object field has no value, or an object."""
    return value is None or isinstance(value, dict)


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def json_patch(before: Any, after: Any) -> list[Json]:
    """The RFC 6902 operations that turn `before` into `after`, and change nothing else. Lists of the same length are
    compared entry by entry, others are replaced."""
    patch: list[Json] = []
    _compare(before, after, "", patch)
    return patch


def _compare(before: Any, after: Any, path: str, patch: list[Json]) -> None:
    if before is after:
        return
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
