"""Higher priority first, among gangs and inside a gang."""

from __future__ import annotations

from vcbatch.scheduler.model import Job, Task
from vcbatch.scheduler.plugins.base import Plugin


class Priority(Plugin):
    def job_key(self, job: Job) -> float:
        return -job.priority

    def task_key(self, task: Task) -> float:
        return -task.priority
