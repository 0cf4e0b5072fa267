"""The host names by which pods of a job reach each other: one rule for every plugin."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api import names
from vcbatch.core.job.plan import Plan, Task


def hosts(plan: Plan, task: Task) -> list[str]:
    """`host.subdomain` of each pod of the task. Pods whose template sets the host name all have the same one, which is
    then listed once."""
    spec = task.spec.pod_spec
    subdomain = spec.get("subdomain") or plan.job.name
    hostname = spec.get("hostname")
    if hostname:
        return [f"{hostname}.{subdomain}"]
    return [f"{names.pod_name(plan.job.name, task.name, index)}.{subdomain}" for index in range(task.replicas)]


def hosts_of_tasks(plan: Plan) -> Mapping[str, list[str]]:
    """The hosts of every task, in the order of the spec."""
    return {task.name: hosts(plan, task) for task in plan.tasks.values()}
