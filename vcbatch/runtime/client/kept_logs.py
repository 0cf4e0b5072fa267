"""The logs of deleted pods, as the local server lists them (`vcbatch.local.apiserver.kept_logs`)."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import Wire


class KeptRun(Wire):
    """One run of a container of a deleted pod. `attempt` counts from 1; `removed` is the reason why the log is no
    longer kept. Times are RFC 3339, "" where they are unknown."""

    job_uid: str = ""
    attempt: int = 1
    job_version: int = 0
    task: str = ""
    index: int = 0
    pod: str = ""
    pod_uid: str = ""
    pod_created: str = ""
    container: str = ""
    init: bool = False
    run: int = 0
    restarts: int = 0
    started: str = ""
    finished: str = ""
    exit_code: int | None = None
    bytes: int = 0
    removed: str = ""
    path: str = ""


class KeptLogs(Wire):
    """The kept runs of all jobs of one name, oldest first. `enabled`: whether the server keeps logs of deleted pods.
    `supported` is False for a server without this interface, such as that of a cluster."""

    enabled: bool = False
    supported: bool = True
    directory: str = ""
    retention_seconds: int = 0
    retention_bytes: int = 0
    runs: list[KeptRun] = msgspec.field(default_factory=list[KeptRun])


def logs_path(namespace: str, job: str) -> str:
    """The path of the list."""
    return f"/vcbatch/v1/namespaces/{namespace}/jobs/{job}/logs"


def log_path(namespace: str, job: str, run: KeptRun) -> str:
    """The path of one log."""
    return f"{logs_path(namespace, job)}/{run.job_uid}/{run.pod_uid}/{run.container}/{run.run}"
