"""`vcctl pod list`."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.api.name_rules import label_value
from vcbatch.api.pod_summary import summarise
from vcbatch.api.resources import PODS
from vcbatch.cli.base.fields import dig, name_of, namespace_of, words
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.vcctl.access import once
from vcbatch.cli.vcctl.columns import NOTHING, Column, table
from vcbatch.cli.vcctl.flags import Given
from vcbatch.cli.vcctl.words import since
from vcbatch.interfaces.api import Api, Json

_TITLES = ("Name", "Ready", "Status", "Restart", "Age")


def list_pods(given: Given) -> int:
    """Print the pods of jobs, of one job, or of a queue (then those of other workloads too)."""
    job, queue, everywhere = given.text("job"), given.text("queue"), given.on("all-namespaces")
    errors = label_value(job)
    if errors:
        raise CliError(f"{job!r} can't be the name of a job: {'; '.join(errors)}")
    selector = f"{names.JOB_NAME}={job}" if job else "" if queue else names.JOB_NAME

    async def work(api: Api) -> Sequence[Json]:
        namespace = None if everywhere else given.text("namespace")
        return (await api.list(PODS, namespace=namespace, label_selector=selector)).items

    pods = once(given, work)
    if job and queue and any(_label(pod, names.QUEUE_NAME) not in ("", queue) for pod in pods):
        raise CliError(f"the input vcjob {job} does not match the queue {queue}")
    if queue and not job:
        pods = [pod for pod in pods if _in_queue(pod, queue)]
    if not pods:
        say(NOTHING)
        return 0
    shown = sorted(pods, key=lambda pod: (namespace_of(pod), name_of(pod)))
    titles = ("Namespace", *_TITLES) if everywhere else _TITLES
    columns = [Column(title=title, title_gap=2, gap=8) for title in titles]
    say(table(columns, [_row(pod, everywhere=everywhere) for pod in shown]))
    return 0


def _label(pod: Json, key: str) -> str:
    return words(pod, "metadata", "labels").get(key, "")


def _in_queue(pod: Json, queue: str) -> bool:
    annotations = words(pod, "metadata", "annotations")
    return queue in (_label(pod, names.QUEUE_NAME), annotations.get(names.SCHEDULING_QUEUE_NAME, ""))


def _row(pod: Json, *, everywhere: bool) -> list[str]:
    summary = summarise(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts += f" ({since(summary.last_restart.isoformat())} ago)"
    return [
        *([namespace_of(pod)] if everywhere else ()),
        name_of(pod),
        f"{summary.ready}/{summary.containers}",
        summary.reason,
        restarts,
        since(dig(pod, "metadata", "creationTimestamp")),
    ]
