"""Whether the host lists that the plugin `svc` makes for a job fit where they go.

They are kept in one ConfigMap, each list twice, and come into containers as variables. Both have limits that only show
when pods are made or started: Volcano stores such a job, and its containers then fail with "argument list too long"
(volcano-sh/volcano#5471).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.api import names
from vcbatch.api.flags import PLUGIN_FLAGS, parse_flags
from vcbatch.api.job import JobSpec, TaskSpec
from vcbatch.api.names import Plugin
from vcbatch.api.validate.fault import Cause, Fault

LARGEST_CONFIG_MAP: Final = 1024 * 1024
"""Bytes of all values (k8s.io/kubernetes `pkg/apis/core/validation`, `MaxSecretSize`)."""
LARGEST_VARIABLE: Final = 128 * 1024 - 1
"""Bytes of `NAME=value` (Linux `MAX_ARG_STRLEN`, the last byte being its end)."""


def host_list_faults(spec: JobSpec, job: str, path: str) -> Iterator[Fault]:
    """Lists that are too large for a variable or for the ConfigMap, with their sizes."""
    arguments = spec.plugins.get(Plugin.SVC)
    if arguments is None:
        return
    field = f"{path}.plugins[{Plugin.SVC}]"
    sizes = {task.name: _list_size(task, job) for task in spec.tasks}
    total = 2 * sum(sizes.values())
    if total > LARGEST_CONFIG_MAP:
        text = f"the host lists of the job would have {total} bytes, and a ConfigMap holds {LARGEST_CONFIG_MAP}"
        yield Fault(field, f"{field}: {text}; want fewer replicas or shorter names", Cause.TOO_LONG)
    if not parse_flags(arguments, PLUGIN_FLAGS[Plugin.SVC]).is_set("inject-hosts-env"):
        return
    for task, size in sizes.items():
        variable = names.env_task_hosts(task)
        if len(variable) + 1 + size > LARGEST_VARIABLE:
            text = f"the variable {variable} would have {len(variable) + 1 + size} bytes, and a process takes"
            instead = "fewer replicas, shorter names, or --inject-hosts-env=false, which leaves the file"
            yield Fault(field, f"{field}: {text} {LARGEST_VARIABLE}; want {instead}", Cause.TOO_LONG)


def _list_size(task: TaskSpec, job: str) -> int:
    """Bytes of the task's hosts with a separator after each but the last."""
    subdomain = task.pod_spec.get("subdomain") or job
    if task.pod_spec.get("hostname"):
        return len(f"{task.pod_spec['hostname']}.{subdomain}".encode())
    if task.replicas <= 0:
        return 0
    digits = sum(max(task.replicas - 10**power, 0) for power in range(1, len(str(task.replicas)))) + task.replicas
    rest = len(f"{names.pod_name(job, task.name, 0)[:-1]}.{subdomain}".encode()) + 1
    return task.replicas * rest + digits - 1
