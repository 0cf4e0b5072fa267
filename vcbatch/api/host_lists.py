"""The lengths of a job's host lists, which plugins write into objects and variables, and where they fit.

The limits take effect only when pods are created or started: Volcano stores such a job, whose containers then fail with
"argument list too long" (volcano-sh/volcano#5471, at some 1,100 pods).
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
"""The maximum of bytes of `NAME=value` that the svc plugin adds to each container by default."""
INJECT_HOSTS: Final = "inject-hosts-env"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """The hosts of one task: their number, and the sum of the bytes of `host.subdomain` of each."""

    task: str
    count: int
    size: int
    subdomain: str

    @property
    def joined(self) -> int:
        """The length in bytes of the list with one separator between two hosts."""
        return self.size + max(self.count - 1, 0)

    @property
    def variable(self) -> int:
        """The length in bytes of `VC_<TASK>_HOSTS=...`."""
        return len(names.env_task_hosts(self.task)) + 1 + self.joined


def host_lists(spec: JobSpec, job: str) -> list[HostList]:
    """One list for each task, in the order of the spec. A task whose template sets the host name has one host."""
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
    """The total number of digits of the numbers below `count`."""
    return count + sum(max(count - 10**power, 0) for power in range(1, len(str(count))))


def in_environment(lists: Sequence[HostList], arguments: Sequence[str]) -> bool:
    """Whether the svc plugin with these arguments puts the lists into `VC_<TASK>_HOSTS`: as its flag says, and without
    the flag, while they have 32 KiB at most. They are in the files below /etc/volcano in any case."""
    flags = parse_flags(arguments, PLUGIN_FLAGS[Plugin.SVC])
    if INJECT_HOSTS in flags.given or not flags.is_set(INJECT_HOSTS):
        return flags.is_set(INJECT_HOSTS)
    return sum(each.variable for each in lists) <= LARGEST_ENVIRONMENT


def left_out(spec: JobSpec, job: str) -> str:
    """Why the job's containers have no lists in their environment, where they are too long for it; else ""."""
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
