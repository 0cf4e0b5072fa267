"""Deleted jobs whose logs are kept."""

from __future__ import annotations

from typing import Any

from vcbatch.runtime.client.kept_logs import KeptRun
from vcbatch.sdk.past_logs import PastLogs

Json = dict[str, Any]


def from_kept(past: PastLogs) -> Json:
    """A job with the tasks, sizes and containers that its kept logs show, for line prefixes and the check of names."""
    tasks: dict[str, Json] = {}
    for run in _runs(past):
        task = tasks.setdefault(run.task, {"name": run.task, "replicas": 0, "template": {"spec": {}}})
        task["replicas"] = max(task["replicas"], run.index + 1)
        containers = task["template"]["spec"].setdefault("initContainers" if run.init else "containers", [])
        if {"name": run.container} not in containers:
            containers.append({"name": run.container})
    request = past.request
    metadata = {"name": request.name, "namespace": request.namespace, "uid": request.uid}
    return {"metadata": metadata, "spec": {"tasks": list(tasks.values())}, "status": {}}


def other_jobs(past: PastLogs) -> str:
    """A note that other deleted jobs of this name have kept logs, with their UIDs, newest first; "" without any."""
    uids = list(
        dict.fromkeys(run.job_uid for run in sorted(past.kept.runs, key=lambda run: run.finished, reverse=True))
    )
    others = [uid for uid in uids if uid != past.request.uid]
    if not others:
        return ""
    jobs = "1 more deleted job" if len(others) == 1 else f"{len(others)} more deleted jobs"
    listed = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
    return f"logs of {jobs} named {past.request.name} are kept: --uid {listed}"


def _runs(past: PastLogs) -> list[KeptRun]:
    return [run for run in past.kept.runs if run.job_uid == past.request.uid]
