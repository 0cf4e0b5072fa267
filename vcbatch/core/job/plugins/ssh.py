"""ssh: the pods of a job may log in to each other, with a key that no other job has.

The key pair is generated once for the job's Secret and kept for its life: restarted pods connect to pods that weren't.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.api.resources import SECRETS
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, containers, entries
from vcbatch.core.job.plugins.hosts import hosts_of_tasks
from vcbatch.core.machine import FreshKeys, Json

_PRIVATE: Final = "id_rsa"
_PUBLIC: Final = ("id_rsa.pub", "authorized_keys")
_CONFIG: Final = "config"
_FOLDER: Final = ".ssh"
_ROOT_FOLDER: Final = "/root/.ssh"
_DEFAULT_PORT: Final = 22
# ssh refuses keys that other users may read; a user who isn't root couldn't read root's otherwise.
_ROOT_MODE: Final = 0o600
_USER_MODE: Final = 0o644


class SshPlugin:
    """One Secret with keys and a client configuration that lists every host, mounted where ssh expects it."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._plan = plan
        self._folder = flags.text("ssh-key-file-path")
        self._private, self._public = flags.text("ssh-private-key"), flags.text("ssh-public-key")
        port = flags.number("ssh-port")
        self._port = port if 0 < port < 65536 else _DEFAULT_PORT
        self._secret = names.ssh_secret(plan.job.name)

    def children(self) -> Sequence[Child]:
        data = {_CONFIG: _encoded(self._config())}
        keys = None
        if self._private:
            data |= {_PRIVATE: _encoded(self._private), **{key: _encoded(self._public) for key in _PUBLIC}}
        else:
            keys = FreshKeys(private=_PRIVATE, public=_PUBLIC)
        return (Child(SECRETS, self._secret, {"type": "Opaque", "data": data}, owned=("data",), keys=keys),)

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        del task, index
        items = [{"key": key, "path": f"{_FOLDER}/{key}"} for key in (_PRIVATE, *_PUBLIC, _CONFIG)]
        mode = _ROOT_MODE if self._folder == _ROOT_FOLDER else _USER_MODE
        volume: Json = {
            "name": self._secret,
            "secret": {"secretName": self._secret, "items": items, "defaultMode": mode},
        }
        entries(pod["spec"], "volumes").append(volume)
        for container in containers(pod, init=True):
            mount: Json = {"name": self._secret, "mountPath": self._folder, "subPath": _FOLDER}
            entries(container, "volumeMounts").append(mount)

    def _config(self) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for hosts in hosts_of_tasks(self._plan).values():
            for host in hosts:
                lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}", f"  Port {self._port}"]
        return "\n".join(lines) + "\n"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
