"""The logs of deleted pods, below `/vcbatch/v1`: a real server has no such path and answers 404.

`GET /vcbatch/v1/namespaces/NS/jobs/NAME/logs` lists the kept runs of all jobs of that name, and
`GET …/logs/JOB-UID/POD-UID/CONTAINER/RUN` is one log, with the parameters of a pod's `log` except `follow` and
`previous`. Both need the permission to get `pods/log` in the namespace; the job needn't exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from vcbatch.api.timestamps import format_micro_time
from vcbatch.interfaces.clock import Clock
from vcbatch.local.apiserver.access import User, authorize
from vcbatch.local.apiserver.apierrors import StatusError, bad_request, method_not_allowed
from vcbatch.local.apiserver.request import Target
from vcbatch.local.apiserver.response import Response, json_response
from vcbatch.local.apiserver.subresources.logs import log_options
from vcbatch.local.kubelet import logs
from vcbatch.local.kubelet.kept_logs import KeptLogs, KeptRun

Json = dict[str, Any]

_PREFIX = "/vcbatch/v1/namespaces/"


def is_kept_logs(path: str) -> bool:
    """Whether a request is one for kept logs."""
    return path.startswith(_PREFIX)


async def kept_logs_response(
    kept: KeptLogs | None, method: str, path: str, query: Mapping[str, Sequence[str]], user: User, clock: Clock
) -> Response:
    """The response to a request for kept logs; `kept` is None for a server that keeps none. Raises `StatusError`."""
    namespace, kind, job, word, *rest = [unquote(part) for part in path.removeprefix(_PREFIX).split("/")] + [""] * 4
    rest = [part for part in rest if part]
    if kind != "jobs" or word != "logs" or len(rest) not in (0, 4):
        raise StatusError(404, "NotFound", "the server could not find the requested resource")
    authorize(user, Target(group="", version="v1", namespace=namespace, plural="pods", subresource="log"), "get")
    if method != "GET":
        raise method_not_allowed()
    try:
        runs = kept.runs(namespace, job) if kept is not None else []
    except ValueError as error:
        raise bad_request(f"no job can have the name {error}") from None
    if not rest:
        return json_response(_listing(kept, namespace, job, runs))
    for run in runs:
        if rest == [run.origin.job_uid, run.origin.pod_uid, run.container, str(run.run)]:
            return _log(run, query, clock)
    raise StatusError(404, "NotFound", f"no log of {job} is kept under {'/'.join(rest)}")


def _listing(kept: KeptLogs | None, namespace: str, job: str, runs: Sequence[KeptRun]) -> Json:
    listing: Json = {"kind": "KeptLogs", "apiVersion": "vcbatch/v1", "enabled": kept is not None}
    if kept is not None:
        listing["directory"] = str(kept.job_directory(namespace, job))
        listing["retentionSeconds"] = int(kept.retention.age.total_seconds())
        listing["retentionBytes"] = kept.retention.size
    return {**listing, "runs": [_run(run) for run in runs]}


def _run(run: KeptRun) -> Json:
    origin = run.origin
    return {
        "jobUid": origin.job_uid,
        "attempt": origin.retry + 1,
        "jobVersion": origin.version,
        "task": origin.task,
        "index": origin.index,
        "pod": origin.pod,
        "podUid": origin.pod_uid,
        "podCreated": origin.created,
        "container": run.container,
        "init": run.container in origin.init_containers,
        "run": run.run,
        "restarts": run.restarts,
        "started": _text(run.started),
        "finished": _text(run.finished),
        "exitCode": run.exit_code,
        "bytes": run.size,
        "removed": run.removed,
        "path": str(run.path),
    }


def _text(moment: datetime | None) -> str:
    return "" if moment is None else format_micro_time(moment)


def _log(run: KeptRun, query: Mapping[str, Sequence[str]], clock: Clock) -> Response:
    if run.removed:
        raise StatusError(410, "Gone", f"the log was removed: {run.removed}")
    options = log_options(query)

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in logs.read(run.path, options, clock=clock, has_ended=lambda: True):
            yield chunk

    return Response(body=chunks(), content_type="text/plain")
