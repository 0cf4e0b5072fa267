"""Resizing of a pod in place (`pods/resize`, KEP-1287): a queue's limit applies to it, too (Kubernetes issue
131835)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from vcbatch.api.pod import Container, ContainerStatus, Pod, PodStatus, ResourceRequirements
from vcbatch.api.quantities import read
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.queue import Queue
from vcbatch.api.validate.errors import Cause, ValidationError

_Amounts = dict[str, Quantity]
_UNSET_IF_ZERO = ("cpu", "memory")
"""Resources for which a capability of zero means no limit."""
_FINISHED = ("Succeeded", "Failed")


def resize_errors(pod: Pod, old: Pod, queues: Sequence[Queue]) -> list[ValidationError]:
    """Errors where the pod, which is in the first of these queues, the others being its ancestors, exceeds their
    limits.

    The increase over the pod's previous usage must be left of each `spec.capability`, according to `status.allocated`.
    A pod without a node isn't counted there yet: the scheduler places it, or doesn't, by its requests at that time.
    """
    if not pod.spec.node_name or pod.status.phase in _FINISHED:
        return []
    before, after = used(old, infeasible=old.resize_infeasible), used(pod, infeasible=False)
    raised = {name: after[name] - before.get(name, ZERO) for name in sorted(after)}
    raised = {name: more for name, more in raised.items() if more > ZERO}
    return [error for queue in queues for error in _queue_errors(queue, pod, old, raised)]


def _queue_errors(queue: Queue, pod: Pod, old: Pod, raised: Mapping[str, Quantity]) -> Iterator[ValidationError]:
    for name, more in raised.items():
        most = read(queue.spec.capability.get(name))
        if name not in queue.spec.capability or (name in _UNSET_IF_ZERO and not most):
            continue
        allocated = read(queue.status.allocated.get(name))
        if allocated + more <= most:
            continue
        field, value = _raised_at(pod, old, name)
        left = most - allocated if allocated < most else ZERO
        who = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        yield ValidationError(
            field,
            f'{field}: Invalid value: "{value}": {who} would use {more} more '
            f"{name}, and queue {queue.name} has {left} left of {most} (spec.capability): want at most {left} more",
            Cause.FORBIDDEN,
        )


def used(pod: Pod, *, infeasible: bool) -> _Amounts:
    """The usage of the pod in its queue: for each container the maximum of its request, of what the kubelet has
    reserved for it and of what it runs with; without its request where the resize is `infeasible`. The result is the
    larger of the running containers' sum and the peak while init containers run; pod-level resources replace the
    sum."""
    statuses = {
        one.name: one for one in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    }

    def takes(container: Container) -> _Amounts:
        return _most(_views(container.resources, statuses.get(container.name), infeasible=infeasible))

    total = _sum(takes(container) for container in pod.spec.containers)
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for container in pod.spec.init_containers or ():
        amounts = takes(container)
        while_it_runs = _sum([sidecars, amounts])
        if container.restart_policy == "Always":
            sidecars = while_it_runs
        peak = _most([peak, while_it_runs])
    found = _most([_sum([total, sidecars]), peak])
    if pod.spec.resources is not None:
        found |= _most(_views(pod.spec.resources, pod.status, infeasible=infeasible))
    return found


def _views(
    resources: ResourceRequirements | None, status: ContainerStatus | PodStatus | None, *, infeasible: bool
) -> Iterator[_Amounts]:
    reported: list[Mapping[str, str | int | float]] = []
    if status is not None and status.allocated_resources is not None:
        reported.append(status.allocated_resources)
    if status is not None and status.resources is not None and status.resources.requests is not None:
        reported.append(status.resources.requests)
    yield from map(_read, reported)
    if not (reported and infeasible):
        yield _asked(resources)


def _asked(resources: ResourceRequirements | None) -> _Amounts:
    """The requests. A limit without a request counts as a request."""
    return {} if resources is None else _read({**(resources.limits or {}), **(resources.requests or {})})


def _read(amounts: Mapping[str, str | int | float]) -> _Amounts:
    return {name: read(value) for name, value in amounts.items()}


def _sum(several: Iterable[_Amounts]) -> _Amounts:
    total: _Amounts = {}
    for amounts in several:
        for name, amount in amounts.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _most(several: Iterable[_Amounts]) -> _Amounts:
    most: _Amounts = {}
    for amounts in several:
        for name, amount in amounts.items():
            most[name] = max(most.get(name, ZERO), amount)
    return most


def _raised_at(pod: Pod, old: Pod, name: str) -> tuple[str, str]:
    """The first field that requests more of the resource than before, and its value."""
    at = [("spec", old.spec.resources, pod.spec.resources)]
    for kind, before, after in (
        ("containers", old.spec.containers, pod.spec.containers),
        ("initContainers", old.spec.init_containers or (), pod.spec.init_containers or ()),
    ):
        known = {container.name: container.resources for container in before}
        at += [(f"spec.{kind}[{i}]", known.get(one.name), one.resources) for i, one in enumerate(after)]
    for place, before, after in at:
        value = _asked(after).get(name, ZERO)
        if value > _asked(before).get(name, ZERO):
            return f"{place}.resources.requests[{name}]", str(value)
    return "spec.containers", ""
