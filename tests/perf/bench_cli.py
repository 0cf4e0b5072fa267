"""What Volcano's commands cost who types them: how long one takes to start, and how it bears ten thousand jobs. And
what a program pays for importing the SDK.

Whole processes against a small HTTP server in this one, so that the figures are the command's alone. Times of the
processor are told beside those on the clock, which others on the machine make longer.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.scripted_http import Answer, Asked, scripted

Json = dict[str, Any]
_RUNS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process: `seconds` on the clock, `cpu` seconds, and `memory` in bytes at most."""

    seconds: float
    cpu: float
    memory: float


def start_up() -> Cost:
    """`vcctl job list` with one job, the median of some runs."""
    with _serving(1) as url:
        costs = [_cost("job", "list", "--master", url) for _ in range(_RUNS)]
    return Cost(
        seconds=statistics.median(cost.seconds for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        memory=max(cost.memory for cost in costs),
    )


def long_list(jobs: int) -> Cost:
    """`vcctl job list` with so many jobs, the quickest of three."""
    with _serving(jobs) as url:
        costs = [_cost("job", "list", "--master", url) for _ in range(3)]
    return min(costs, key=lambda cost: cost.seconds)


def sdk_import() -> Cost:
    """A program that imports the names of the SDK and ends, the median of some runs."""
    costs = [_process([sys.executable, "-c", _IMPORT]) for _ in range(_RUNS)]
    return Cost(
        seconds=statistics.median(cost.seconds for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        memory=max(cost.memory for cost in costs),
    )


@contextmanager
def _serving(jobs: int) -> Iterator[str]:
    """A server with so many jobs of the usual size, encoded before anybody asks."""
    encoded = [json.dumps(_job(number)).encode() for number in range(jobs)]

    def page(asked: Asked) -> Answer:
        start, limit = int(asked.query.get("continue", "0")), int(asked.query.get("limit", "500"))
        end = start + limit
        following = f',"continue":"{end}"' if end < jobs else ""
        head = f'{{"metadata":{{"resourceVersion":"1"{following}}},"items":['
        return Answer(body=head.encode() + b",".join(encoded[start:end]) + b"]}")

    with scripted(page) as served:
        yield served.url


def _job(number: int) -> Json:
    container = {
        "name": "main",
        "image": "registry.example.com/research/train:2026-11-20",
        "command": ["torchrun", "--nnodes=4", "--nproc-per-node=8", "train.py", "--epochs=3"],
        "env": [{"name": f"SETTING_{index}", "value": "of some length"} for index in range(8)],
        "resources": {
            "requests": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"},
            "limits": {"nvidia.com/gpu": "8"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    task = {
        "name": "worker",
        "replicas": 4,
        "minAvailable": 4,
        "maxRetry": 3,
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "template": {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "data"}]}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": f"train-{number:05d}",
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-11-20T12:00:00Z",
            "labels": {"team": "research", "experiment": f"e{number % 50}"},
        },
        "spec": {
            "minAvailable": 4,
            "maxRetry": 3,
            "queue": "research",
            "schedulerName": "volcano",
            "plugins": {"pytorch": [], "svc": []},
            "tasks": [task],
        },
        "status": {
            "state": {"phase": "Running", "lastTransitionTime": "2026-11-20T12:00:10Z"},
            "minAvailable": 4,
            "running": 4,
            "conditions": [
                {"status": phase, "lastTransitionTime": "2026-11-20T12:00:10Z"} for phase in ("Pending", "Running")
            ],
            "taskStatusCount": {"worker": {"phase": {"Running": 4}}},
        },
    }


# The most that it held is told by the process itself: what its parent is told counts the parent too.
_REPORT_MOST = """
import atexit, re, sys
from pathlib import Path
status = Path("/proc/self/status")
most = lambda: re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1] if status.exists() else "0"
atexit.register(lambda: print(most(), file=sys.stderr))
"""
_COMMAND = f"{_REPORT_MOST}from vcbatch.cli.vcctl.main import vcctl; vcctl()"
_IMPORT = f"{_REPORT_MOST}from vcbatch import AsyncClient, Client, Job, Queue, Task, task"


def _cost(*arguments: str) -> Cost:
    return _process([sys.executable, "-c", _COMMAND, *arguments])


def _process(command: list[str]) -> Cost:
    """Raises `CalledProcessError` where the command fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds=seconds, cpu=cpu, memory=int(done.stderr) * 1024)
