"""How long the lists of a job's hosts are, which plugins write into objects and variables, and where they fit.

The limits show only when pods are made or started: Volcano stores such a job, whose containers then fail with "argument
list too long" (volcano-sh/volcano#5471, at some 1,100 pods).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api import names
from vcbatch.api.flags import PLUGIN_FLAGS, parse_flags
from vcbatch.api.job import JobSpec
from vcbatch.api.names import Plugin

LARGEST_ENVIRONMENT: Final = 32 * 1024
"""Bytes of `NAME=value` that the svc plugin puts into each container by itself."""
INJECT_HOSTS: Final = "inject-hosts-env"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """The hosts of one task: how many, and how many bytes `host.subdomain` of all of them have."""

    task: str
    count: int
    size: int
    subdomain: str

    @property
    def joined(self) -> int:
        """Bytes of the list with one separator between two hosts."""
        return self.size + max(self.count - 1, 0)

    @property
    def variable(self) -> int:
        """Bytes of `VC_<TASK>_HOSTS=...`."""
        return len(names.env_task_hosts(self.task)) + 1 + self.joined


def host_lists(spec: JobSpec, job: str) -> list[HostList]:
    """One for each task, in their order. A task whose template names the host has one host."""
    found: list[HostList] = []
    for position, task in enumerate(spec.tasks):
        name = task.name or names.default_task_name(position)
        pod = task.pod_spec
        subdomain = str(pod.get("subdomain") or job)
        if pod.get("hostname"):
            count, size = 1, len(f"{pod['hostname']}.{subdomain}".encode())
        else:
            count = max(task.replicas, 0)
            size = count * len(f"{names.pod_name(job, name, 0)[:-1]}.{subdomain}".encode()) + _digits(count)
        found.append(HostList(task=name, count=count, size=size, subdomain=subdomain))
    return found


def _digits(count: int) -> int:
    """How many digits the numbers below `count` have together."""
    return count + sum(max(count - 10**power, 0) for power in range(1, len(str(count))))


def in_environment(lists: Sequence[HostList], arguments: Sequence[str]) -> bool:
    """Whether the svc plugin with these arguments puts the lists into `VC_<TASK>_HOSTS`: as it was told, and where it
    was told nothing, while they have 32 KiB at most. They are in the files below /etc/volcano either way."""
    flags = parse_flags(arguments, PLUGIN_FLAGS[Plugin.SVC])
    if INJECT_HOSTS in flags.given or not flags.is_set(INJECT_HOSTS):
        return flags.is_set(INJECT_HOSTS)
    return sum(each.variable for each in lists) <= LARGEST_ENVIRONMENT


def left_out(spec: JobSpec, job: str) -> str:
    """Why the job's containers don't find the lists in their environment, where that is for their length; else ""."""
    arguments = spec.plugins.get(Plugin.SVC)
    if arguments is None or not parse_flags(arguments, PLUGIN_FLAGS[Plugin.SVC]).is_set(INJECT_HOSTS):
        return ""
    lists = host_lists(spec, job)
    if in_environment(lists, arguments):
        return ""
    size = sum(each.variable for each in lists)
    return (
        f"VC_<TASK>_HOSTS would have {size} bytes, above {LARGEST_ENVIRONMENT}, and are left out: read the files in"
        f" {names.SVC_MOUNT_PATH}, or ask with --{INJECT_HOSTS}"
    )
