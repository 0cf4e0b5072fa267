"""svc: the pods of a job reach each other by name, and have lists of all names.

A headless Service gives every pod a DNS name, a ConfigMap lists them (mounted, and as `VC_<TASK>_HOSTS` and
`VC_<TASK>_NUM`; lists that are too long for an environment are only in the files), and a NetworkPolicy keeps other pods
from connecting to the job's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vcbatch.api import host_lists, names
from vcbatch.api.flags import Flags
from vcbatch.api.names import Plugin
from vcbatch.api.resources import CONFIGMAPS, NETWORKPOLICIES, SERVICES
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_env, containers, entries
from vcbatch.core.job.plugins.hosts import hosts_of_tasks
from vcbatch.core.machine import Json


class SvcPlugin:
    """Names and name lists for the whole job."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._plan = plan
        self._flags = flags
        self._config_map = names.svc_config_map(plan.job.name)
        spec = plan.job.spec
        lists = host_lists.host_lists(spec, plan.job.name)
        self._hosts_in_environment = host_lists.in_environment(lists, spec.plugins[Plugin.SVC])

    def children(self) -> Sequence[Child]:
        job = self._plan.job
        selector = {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace}
        service: Json = {"clusterIP": "None", "selector": selector}
        if self._flags.is_set("publish-not-ready-addresses"):
            service["publishNotReadyAddresses"] = True
        children = [
            Child(CONFIGMAPS, self._config_map, {"data": self._lists()}, owned=("data",)),
            Child(SERVICES, job.name, {"spec": service}),
        ]
        if not self._flags.is_set("disable-network-policy"):
            pods = {"podSelector": {"matchLabels": selector}}
            policy: Json = {**pods, "ingress": [{"from": [pods]}], "policyTypes": ["Ingress"]}
            children.append(Child(NETWORKPOLICIES, job.name, {"spec": policy}))
        return children

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        del task, index
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or self._plan.job.name
        for container in containers(pod, init=True):
            for key in self._variables():
                reference = {"configMapKeyRef": {"name": self._config_map, "key": key}}
                add_env(container, {"name": key, "valueFrom": reference})
            mount: Json = {"name": self._config_map, "mountPath": names.SVC_MOUNT_PATH}
            entries(container, "volumeMounts").append(mount)
        volume: Json = {"name": self._config_map, "configMap": {"name": self._config_map}}
        entries(spec, "volumes").append(volume)

    def _variables(self) -> Iterator[str]:
        if not self._flags.is_set(host_lists.INJECT_HOSTS):
            return
        for name in self._plan.tasks:
            if self._hosts_in_environment:
                yield names.env_task_hosts(name)
            yield names.env_task_count(name)

    def _lists(self) -> dict[str, str]:
        data: dict[str, str] = {}
        for task, hosts in hosts_of_tasks(self._plan).items():
            data[names.svc_hosts_key(task)] = "\n".join(hosts)
            data[names.env_task_hosts(task)] = ",".join(hosts)
            data[names.env_task_count(task)] = str(len(hosts))
        return data
