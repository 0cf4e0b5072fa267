"""`vcbatch replay --without`: remove an object, with those that would be deleted or recreated with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from vcbatch.api.names import GROUP_NAME
from vcbatch.api.resources import JOBS, NODES, PODGROUPS, PODS
from vcbatch.cli.base.output import CliError
from vcbatch.scheduler.model.reads import READS

Json = Mapping[str, Any]
Objects = dict[str, dict[str, Json]]
"""Objects by the key of their kind, then by `namespace/name`."""

_JOB_WORDS: Final = frozenset({"job", "jobs", "vcjob", "vj"})
_SHORT: Final = {"no": "nodes", "po": "pods", "pg": "podgroups", "q": "queues", "hn": "hypernodes"}
_KEYS: Final = {word: read.key for read in READS for word in (read.resource.kind.lower(), read.resource.plural)}
_NAMESPACED: Final = {read.key: read.resource.namespaced for read in READS}
_KEY_OF: Final = {read.resource: read.key for read in READS}
_MOST_NAMED: Final = 8
_OVER: Final = frozenset({"Succeeded", "Failed"})


def remove(objects: Objects, what: str) -> None:
    """Remove `KIND/NAME` or `KIND/NAMESPACE/NAME`: a PodGroup with its pods, a job with its PodGroup. On a removed
    node, pods of gangs become pending again, and other pods are removed.

    Raises:
        CliError: there is no such object; the message lists the existing ones.
    """
    kind, _, name = what.partition("/")
    word = kind.lower()
    if word in _JOB_WORDS:
        gangs = gangs_of(objects, name if "/" in name else f"default/{name}")
        if not gangs:
            raise _missing(
                what, {job for group in objects.get(_KEY_OF[PODGROUPS], {}).values() if (job := _job(group))}
            )
        for gang in gangs:
            remove_gang(objects, gang)
        return
    key = _KEYS.get(_SHORT.get(word, word))
    if key is None:
        raise CliError(f"--without {what}: unknown kind {kind!r}", hint=_FORM)
    known = objects.get(key, {})
    full = f"{'default' if _NAMESPACED[key] else ''}/{name}" if "/" not in name else name
    if full not in known:
        raise _missing(what, known.keys())
    if key == _KEY_OF[PODGROUPS]:
        remove_gang(objects, full)
        return
    del known[full]
    if key == _KEY_OF[NODES]:
        _clear(objects.get(_KEY_OF[PODS], {}), name)


_FORM: Final = "Use KIND/NAME or KIND/NAMESPACE/NAME, e.g. node/gpu-1 or job/team/train."


def _missing(what: str, names: Any) -> CliError:
    found = sorted(name.removeprefix("/") for name in names)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    hint = f"Available: {', '.join(found[:_MOST_NAMED])}{more}" if found else "No objects of that kind."
    return CliError(f"--without {what}: object not found", hint=hint)


def gangs_of(objects: Objects, job: str) -> list[str]:
    """The PodGroups of a job, both as `namespace/name`."""
    return [name for name, group in objects.get(_KEY_OF[PODGROUPS], {}).items() if _job(group) == job]


def _job(group: Json) -> str:
    """The job that owns the PodGroup, as `namespace/name`; empty for none."""
    owner = job_of(group)
    return f"{group['metadata'].get('namespace') or 'default'}/{owner.get('name')}" if owner else ""


def job_of(group: Json) -> Json:
    """The owner reference of the PodGroup to its job; empty for none."""
    for owner in group["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == JOBS.kind and str(owner.get("apiVersion")).partition("/")[0] == JOBS.group:
            return owner
    return {}


def remove_gang(objects: Objects, name: str) -> None:
    """Remove a PodGroup, `namespace/name`, and its pods."""
    del objects[_KEY_OF[PODGROUPS]][name]
    pods = objects.get(_KEY_OF[PODS], {})
    namespace, _, group = name.partition("/")
    for key in [k for k, pod in pods.items() if k.startswith(f"{namespace}/") and group_of(pod) == group]:
        del pods[key]


def group_of(pod: Json) -> str:
    """The name of the pod's PodGroup; empty for none."""
    notes = pod["metadata"].get("annotations")
    return str(cast("Json", notes).get(GROUP_NAME) or "") if isinstance(notes, Mapping) else ""


def _clear(pods: dict[str, Json], node: str) -> None:
    """Remove the pods of a node. Pods of gangs become pending, since their owners recreate them."""
    for key, pod in list(pods.items()):
        if (pod.get("spec") or {}).get("nodeName") != node:
            continue
        ending = pod["metadata"].get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in _OVER
        if ending or not group_of(pod):
            del pods[key]
        else:
            spec = {field: value for field, value in pod["spec"].items() if field != "nodeName"}
            pods[key] = {**pod, "spec": spec, "status": {"phase": "Pending"}}
