"""An extender: an external server that takes part in decisions, called over HTTP by Volcano's extender protocol.

After a failed call it isn't called again in the cycle. If it is ignorable, the cycle continues without it; otherwise
all decisions that need it are postponed, and the pending reason says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np

from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec, PolicyError
from vcbatch.scheduler.framework.consultant import ConsultError
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin, Rejection, Verdict, Vote
from vcbatch.scheduler.framework.structures import comma_list, duration
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.resources import EPS
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.plugins import extender_wire as wire

RETRY = timedelta(seconds=1)
"""A server's answer may change at any time, so gangs that wait for it are tried again at this interval."""
_VERBS = (
    *("onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused"),
    *("jobEnqueueable", "jobEnqueued", "jobReady", "allocateFunc", "deallocateFunc"),
)


def _url(value: object, where: str) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        fine = (
            parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        )
    except ValueError:
        fine = False
    if not fine:
        raise PolicyError(f"{where}: must be an http or https URL, got {value!r}")
    return str(value).rstrip("/")


def _resources(value: object, where: str) -> tuple[str, ...]:
    """A list of names, or names separated by commas."""
    if not isinstance(value, list):
        return comma_list(value, where)
    names = cast("list[object]", value)
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise PolicyError(f"{where}[{i}]: must be a string, got {name!r}")
    return tuple(map(str, names))


class Extender(Plugin):
    ARGUMENTS = ArgumentSpec(
        named={
            "extender.ignorable": Argument(default=False),
            **{f"extender.{verb}Verb": Argument(default="") for verb in _VERBS},
        },
        structured={
            "extender.urlPrefix": _url,
            "extender.httpTimeout": duration("1s", most="30s"),
            "extender.managedResources": _resources,
        },
    )

    def open(self, session: Handle) -> None:
        self._session = session
        self._nodes = session.nodes
        self._verbs = {verb: str(self.arguments[f"extender.{verb}Verb"]) for verb in _VERBS}
        self._ignorable = bool(self.arguments["extender.ignorable"])
        self._managed: dict[int, bool] = {}
        self._error = ""
        self._moves = 0
        self._known: dict[tuple[object, ...], Any] = {}
        if self._verbs["onSessionOpen"]:
            self._report("onSessionOpen", self._snapshot())
        if session.state.waiting and self._has_say:
            session.requeue_at(session.now + RETRY)

    @property
    def _has_say(self) -> bool:
        return any(self._verbs[v] for v in ("predicate", "prioritize", "queueOverused", "jobEnqueueable", "jobReady"))

    def close(self, session: Handle) -> None:
        if self._verbs["onSessionClose"]:
            self._report("onSessionClose", {})

    def _snapshot(self) -> wire.Json:
        state, dims = self._session.state, self._session.dims
        return {
            "Jobs": {key: wire.job(dims, job) for key, job in state.jobs.items() if job.group is not None},
            "Nodes": {info.name: wire.node(dims, self._nodes, info) for info in self._nodes.infos},
            "Queues": {name: wire.queue(queue) for name, queue in state.queues.items()},
            "NamespaceInfo": {},
            "RevocableNodes": {},
            "NodeList": [info.name for info in self._nodes.infos],
        }

    # Calls -----------------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer; None if the call failed, which `_error` then describes."""
        if self._error:
            return None
        url = f"{self.arguments['extender.urlPrefix']}/{self._verbs[verb]}"
        try:
            answer = self._session.consultant.ask(
                url, question, timeout=self.arguments["extender.httpTimeout"].total_seconds()
            )
        except ConsultError as error:
            self._error = f"extender {url} failed: {error}"
            return None
        if not isinstance(answer, Mapping):
            self._error = f"extender {url} failed: its answer is no object"
            return None
        return cast("Mapping[str, Any]", answer)

    def _report(self, verb: str, question: Mapping[str, Any]) -> None:
        """Call the server where the answer may be empty."""
        if self._error:
            return
        url = f"{self.arguments['extender.urlPrefix']}/{self._verbs[verb]}"
        try:
            self._session.consultant.ask(url, question, timeout=self.arguments["extender.httpTimeout"].total_seconds())
        except ConsultError as error:
            self._error = f"extender {url} failed: {error}"

    def _field(self, verb: str, answer: Mapping[str, Any] | None, key: str, kind: type | tuple[type, ...]) -> Any:
        """A field of the answer; None if it is missing, or has the wrong type, which counts as a failed call."""
        value = None if answer is None else answer.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self._error = f"extender {self._verbs[verb]} failed: {key} of its answer is {value!r}"
            return None
        return value

    @property
    def _refuses(self) -> bool:
        """Whether decisions that need the server are postponed."""
        return bool(self._error) and not self._ignorable

    def _cares(self, task: Task) -> bool:
        """Whether the task requests one of the resources that the server manages; True for all tasks if none are
        named."""
        managed: Sequence[str] = self.arguments["extender.managedResources"]
        known = self._managed.get(task.cls.id)
        if known is None:
            columns = [r for name in managed if (r := self._session.dims.column(name)) is not None]
            known = self._managed[task.cls.id] = not managed or any(task.cls.request[r] > 0 for r in columns)
        return known

    # Nodes -----------------------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        return bool(self._verbs["predicate"] or self._verbs["prioritize"] or self._refuses) and self._cares(task)

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        if not self._cares(task):
            return ()
        refused: dict[str, Floats] = {}
        if self._verbs["predicate"]:
            for row in self._fitting(task, static):
                reason = self._refusal(task, int(row))
                if reason:
                    refused.setdefault(reason, np.zeros(len(self._nodes)))[row] = 1
                if self._error:
                    break
        if self._refuses:
            return [Rejection(self._error, np.ones(len(self._nodes), dtype=bool), word=WaitReason.EXTENDER)]
        return [Rejection(reason, nodes > 0, word=WaitReason.EXTENDER) for reason, nodes in refused.items()]

    def _fitting(self, task: Task, static: Sequence[Rejection]) -> Rows:
        """The nodes that may take the task; the server is called for these alone."""
        admitted = np.ones(len(self._nodes), dtype=bool)
        for rejection in static:
            admitted &= ~rejection.nodes
        needed = task.cls.needed
        free = np.maximum(self._nodes.future(), self._nodes.alloc - self._nodes.used)[needed]
        return np.flatnonzero(admitted & (free + EPS >= task.cls.request[needed][:, None]).all(axis=0))

    def _refusal(self, task: Task, row: int) -> str:
        """Why the server rejects the node; empty if it doesn't."""
        key = ("predicate", task.uid, row, self._moves)
        if key not in self._known:
            info = self._nodes.infos[row]
            dims = self._session.dims
            answer = self._ask("predicate", {"task": wire.task(dims, task), "node": wire.node(dims, self._nodes, info)})
            message = self._field("predicate", answer, "status", str)
            self._known[key] = f"node(s) were refused by the extender: {message}" if message else ""
        return self._known[key]

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        if not self._verbs["prioritize"] or not self._cares(task):
            return None
        infos, dims = self._nodes.infos, self._session.dims
        question = {
            "task": wire.task(dims, task),
            "nodes": [wire.node(dims, self._nodes, infos[int(row)]) for row in candidates],
        }
        answer = self._ask("prioritize", question)
        error = self._field("prioritize", answer, "errorMessage", str)
        if error:
            self._error = f"extender {self._verbs['prioritize']} failed: {error}"
        points = self._field("prioritize", answer, "nodeScore", dict)
        if self._error or not points:
            return None
        found = [points.get(infos[int(row)].name, 0.0) for row in candidates]
        if not all(isinstance(p, (int, float)) and np.isfinite(p) for p in found):
            self._error = f"extender {self._verbs['prioritize']} failed: a score of its answer is no number"
            return None
        return np.array(found, dtype=np.float64)

    # Gangs and queues ------------------------------------------------------------------------------------------------

    def enqueueable(self, job: Job) -> Verdict:
        if not self._verbs["jobEnqueueable"]:
            return Verdict(Vote.ABSTAIN)
        answer = self._ask("jobEnqueueable", {"job": wire.job(self._session.dims, job)})
        status = self._field("jobEnqueueable", answer, "status", int)
        if self._error:
            return Verdict(Vote.PERMIT) if self._ignorable else Verdict(Vote.REJECT, self._error)
        if (status or wire.ABSTAIN) < 0:
            return Verdict(Vote.REJECT, "the extender refuses it")
        return Verdict(Vote.PERMIT if status else Vote.ABSTAIN)

    def enqueued(self, job: Job) -> None:
        if self._verbs["jobEnqueued"]:
            self._report("jobEnqueued", {"job": wire.job(self._session.dims, job)})

    def job_ready(self, job: Job) -> bool:
        """A gang doesn't start without the answers of the server that it needs."""
        if self._verbs["jobReady"]:
            key = ("jobReady", job.key, *job.counts)
            if key not in self._known:
                answer = self._ask("jobReady", {"job": wire.job(self._session.dims, job)})
                self._known[key] = self._field("jobReady", answer, "status", bool)
            if not self._error:
                return bool(self._known[key])
            return self._ignorable
        return not (self._refuses and self._asks_about_nodes and any(self._cares(t) for t in job.tasks.values()))

    @property
    def _asks_about_nodes(self) -> bool:
        return any(self._verbs[v] for v in ("predicate", "prioritize", "allocateFunc"))

    def overused(self, queue: Queue) -> str | None:
        if not self._verbs["queueOverused"]:
            return None
        key = ("queueOverused", queue.name, self._moves)
        if key not in self._known:
            answer = self._ask("queueOverused", {"queue": wire.queue(queue)})
            self._known[key] = self._field("queueOverused", answer, "overused", bool)
        if self._error:
            return self._error if self._refuses else None
        return f"the extender holds queue {queue.name} for overused" if self._known[key] else None

    def limit_stamp(self, queue: Queue) -> object:
        return self._session.uid if self._has_say else None

    # Victims ---------------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        return self._victims("preemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        return self._victims("reclaimable", reclaimer, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        if not self._verbs[verb]:
            return None
        dims = self._session.dims
        question = {"evictor": wire.task(dims, evictor), "evictees": [wire.task(dims, task) for task in candidates]}
        answer = self._ask(verb, question)
        status = self._field(verb, answer, "status", int)
        victims = self._field(verb, answer, "victims", list)
        if self._error:
            return None if self._ignorable else []
        if not status:
            return None
        named = {cast("wire.Json", v).get("UID") for v in cast("list[object]", victims or []) if isinstance(v, dict)}
        return [task for task in candidates if task.uid in named] if status > 0 else []

    # Accounting -----------------------------------------------------------------------------------------------------

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        self._moves += 1

    def moved(self, task: Task, row: int, step: int) -> None:
        verb = "allocateFunc" if step > 0 else "deallocateFunc"
        if self._verbs[verb] and self._cares(task):
            self._report(verb, {"task": wire.task(self._session.dims, task)})
