"""Defaults, as expressions that return JSON patches."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api import names
from vcbatch.api.defaults import DEFAULT_MAX_RETRY
from vcbatch.api.names import Plugin
from vcbatch.api.queue import DEFAULT, ROOT
from webhooks.policies.expressions import annotation, listed, text

JOB_VARIABLES = {
    "spec": "object.?spec.orValue({})",
    "tasks": "variables.spec.?tasks.orValue([])",
    "plugins": "variables.spec.?plugins.orValue({})",
    "least": "variables.tasks.map(t, int(t.?minAvailable.orValue(t.?partitionPolicy.?minPartitions.orValue(0) > 0"
    " ? t.partitionPolicy.minPartitions * t.partitionPolicy.partitionSize : t.?replicas.orValue(0))))",
}
"""`least`: the minimum of each task."""


def job_patches(scheduler: str) -> Iterator[str]:
    """Expressions, each of which returns a list of operations."""
    for field, value in (("queue", DEFAULT), ("schedulerName", scheduler)):
        yield _where(f"variables.spec.?{field}.orValue('') == ''", f"/spec/{field}", text(value))
    namespace = f"{annotation(names.SCHEDULING_QUEUE_NAME, 'namespaceObject')}.orValue('')"
    unnamed = f"variables.spec.?queue.orValue({text(DEFAULT)}) in ['', {text(DEFAULT)}]"
    stays = f"(oldObject == null || oldObject.?spec.?queue.orValue('') == {namespace})"
    yield _where(f"{namespace} != '' && {unnamed} && {stays}", "/spec/queue", namespace)
    yield _where("variables.spec.?maxRetry.orValue(0) == 0", "/spec/maxRetry", str(DEFAULT_MAX_RETRY))
    yield _of_tasks("t.?name.orValue('') == ''", "/name", "'default' + string(i)")
    yield _of_tasks("t.?maxRetry.orValue(0) == 0", "/maxRetry", str(DEFAULT_MAX_RETRY))
    yield _of_tasks("!has(t.minAvailable)", "/minAvailable", "variables.least[i]")
    hosts = "t.?template.?spec.?hostNetwork.orValue(false) && t.?template.?spec.?dnsPolicy.orValue('') == ''"
    yield _of_tasks(hosts, "/template/spec/dnsPolicy", "'ClusterFirstWithHostNet'")
    yield _where("variables.spec.?minAvailable.orValue(0) == 0", "/spec/minAvailable", "variables.least.sum()")
    frameworks = listed((Plugin.TENSORFLOW, Plugin.MPI, Plugin.PYTORCH, Plugin.RAY))
    needed = f"{frameworks}.exists(k, k in variables.plugins) && !('svc' in variables.plugins)"
    yield _where(needed, "/spec/plugins/svc", "[]")
    yield _where("'mpi' in variables.plugins && !('ssh' in variables.plugins)", "/spec/plugins/ssh", "[]")


def queue_patches() -> Iterator[str]:
    """Expressions, each of which returns a list of operations."""
    yield _where("!has(object.spec)", "/spec", "{}")
    yield _where("object.?spec.?weight.orValue(0) == 0", "/spec/weight", "1")
    yield _where("!object.?spec.?reclaimable.hasValue()", "/spec/reclaimable", "true")
    path, weights = (f"{annotation(name)}.orValue('')" for name in (names.HIERARCHY, names.HIERARCHY_WEIGHTS))
    rooted = f"{path} != '' && {weights} != '' && !{path}.startsWith({text(ROOT)})"
    whole = _operation(f"/metadata/annotations/{_key(names.HIERARCHY)}", f"{text(ROOT + '/')} + {path}")
    parts = _operation(f"/metadata/annotations/{_key(names.HIERARCHY_WEIGHTS)}", f"'1/' + {weights}")
    yield f"{rooted} ? [{whole}, {parts}] : []"


def podgroup_patches() -> Iterator[str]:
    """Expressions, each of which returns a list of operations."""
    wanted = f"{annotation(names.SCHEDULING_QUEUE_NAME, 'namespaceObject')}.orValue('')"
    yield _where(f"{wanted} != '' && object.?spec.?queue.orValue('') == {text(DEFAULT)}", "/spec/queue", wanted)


def _where(condition: str, path: str, value: str) -> str:
    return f"({condition} ? [{_operation(path, value)}] : [])"


def _operation(path: str, value: str) -> str:
    return f"JSONPatch{{op: 'add', path: {text(path)}, value: {value}}}"


def _of_tasks(condition: str, path: str, value: str) -> str:
    place = f"'/spec/tasks/' + string(i) + {text(path)}"
    return f"variables.tasks.transformList(i, t, {condition}, JSONPatch{{op: 'add', path: {place}, value: {value}}})"


def _key(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
