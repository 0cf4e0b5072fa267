"""The JSON that an extender receives: tasks, nodes, gangs and queues under the field names that Volcano's servers read.

Volcano sends its own structures as Go encodes them, so these names are the only contract; only fields with a meaning
outside of Volcano's process are sent. Quantities are milli-cores, bytes, and thousandths of scalars.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from vcbatch.scheduler.model.objects import Job, NodeInfo, Queue, Task
from vcbatch.scheduler.model.resources import CPU, MEMORY, PODS, Dimensions, Vector
from vcbatch.scheduler.model.tables import NodeTable

Json: TypeAlias = dict[str, Any]

PERMIT, ABSTAIN, REJECT = 1, 0, -1
"""Votes."""


def resource(dims: Dimensions, amounts: Vector) -> Json:
    scalars = {name: float(amounts[r]) for r, name in enumerate(dims.names) if r > PODS and amounts[r]}
    return {
        "MilliCPU": float(amounts[CPU]),
        "Memory": float(amounts[MEMORY]),
        "ScalarResources": scalars,
        "MaxTaskNum": int(amounts[PODS]),
    }


def task(dims: Dimensions, one: Task) -> Json:
    request = resource(dims, one.cls.request)
    return {
        "UID": one.uid,
        "Job": one.job.key if one.job is not None else "",
        "Name": one.name,
        "Namespace": one.namespace,
        "TaskRole": one.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": one.node,
        "Status": 1 << int(one.status),
        "Priority": one.priority,
        "Preemptable": one.preemptable,
        "BestEffort": one.cls.best_effort,
        "Pod": msgspec.to_builtins(one.pod),
    }


def node(dims: Dimensions, nodes: NodeTable, info: NodeInfo) -> Json:
    row = info.row
    return {
        "Name": info.name,
        "Node": msgspec.to_builtins(info.node),
        "Allocatable": resource(dims, nodes.alloc[:, row]),
        "Capacity": resource(dims, dims.vector(info.node.status.capacity if info.node is not None else None)),
        "Idle": resource(dims, nodes.alloc[:, row] - nodes.used[:, row]),
        "Used": resource(dims, nodes.used[:, row]),
        "Releasing": resource(dims, nodes.releasing[:, row]),
        "Pipelined": resource(dims, nodes.pipelined[:, row]),
    }


def job(dims: Dimensions, one: Job) -> Json:
    group = one.group
    return {
        "UID": one.key,
        "PgUID": one.uid,
        "Name": group.metadata.name if group is not None else "",
        "Namespace": group.metadata.namespace if group is not None else "",
        "Queue": one.queue_name,
        "Priority": one.priority,
        "MinAvailable": one.min_member,
        "TaskMinAvailable": dict(one.role_minimums),
        "Tasks": {t.uid: task(dims, t) for t in one.tasks.values()},
        "PodGroup": msgspec.to_builtins(group),
    }


def queue(one: Queue) -> Json:
    return {"UID": one.name, "Name": one.name, "Weight": one.weight, "Queue": msgspec.to_builtins(one.view)}
