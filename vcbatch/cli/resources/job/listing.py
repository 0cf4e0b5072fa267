"""`vcbatch job list` and `job get`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import click

from vcbatch.api import names
from vcbatch.api.names import USER
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import PODS, SELF_REVIEWS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import moment, objects, text
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.base.spans import SpanType
from vcbatch.cli.resources.formats import Shape
from vcbatch.cli.resources.job_columns import JOB, NO_USER, user_of, with_nodes
from vcbatch.cli.resources.kinds import job_phase, job_queue
from vcbatch.cli.resources.listing import Asked, Kind, get_command, list_options, show_list
from vcbatch.cli.resources.reading import within_reach
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api, ApiError

Json = dict[str, Any]
Keep = Callable[[Json], bool]

_REVIEW: Final = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}

getting = get_command(JOB)


@click.command("list")
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="QUEUE",
    help="Filter by queue; may be repeated.",
    shell_complete=queue_names,
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(list(JobPhase), case_sensitive=False),
    metavar="PHASE",
    help="Filter by phase; may be repeated.",
)
@click.option("--mine", is_flag=True, help="Only jobs that you created.")
@click.option(
    "--since",
    type=SpanType(),
    default=None,
    metavar="TIME",
    help="Only jobs that haven't finished, or finished within this time, e.g. 30m, 12h or 7d.",
)
@list_options(namespaced=True)
@access_options
def listing(
    access: Access,
    asked: Asked,
    queues: tuple[str, ...],
    phases: tuple[JobPhase, ...],
    mine: bool,
    since: timedelta | None,
) -> int:
    """List jobs: running ones first, then pending, suspended and finished ones, of each the newest first.

    PODS are the running or succeeded pods of all, GPUS the requested GPUs of all pods, ELAPSED is the time in phase
    Running. -o wide adds the number of nodes, the age and the message.
    """
    tests: list[Keep] = []
    if queues:
        tests.append(lambda job: job_queue(job) in queues)
    if phases:
        tests.append(lambda job: job_phase(job) in phases)
    if since is not None:
        tests.append(_lately(access.now() - since))
    if mine:
        tests.append(_Mine(access))
    keep: Keep = lambda job: all(test(job) for test in tests)  # noqa: E731
    code = show_list(access, _kind(access, asked), replace(asked, keep=keep if tests else None))
    for test in tests:
        if isinstance(test, _Mine):
            test.report()
    return code


def _lately(from_when: datetime) -> Keep:
    """Whether a job hasn't finished, or finished after a time. Servers can't select custom resources by such fields."""

    def keep(job: Json) -> bool:
        if not phase_of(job).finished:
            return True
        ended = moment(job, "status", "state", "lastTransitionTime")
        return ended is None or ended >= from_when

    return keep


class _Mine:
    """Whether a job was created by the user of this command. Counts the jobs without a recorded creator."""

    def __init__(self, access: Access) -> None:
        self._user = access.once(_user)
        self._known = self._unknown = 0

    def __call__(self, job: Json) -> bool:
        user = user_of(job)
        self._unknown += user == NO_USER
        self._known += user != NO_USER
        return user == self._user

    def report(self) -> None:
        """Print that no job names its user, where that is why the list is empty."""
        if self._unknown and not self._known:
            note(f"--mine: no job has a recorded user (annotation {USER})")


async def _user(api: Api) -> str:
    """The name of the user of the requests, as the server authenticates them. Raises `CliError`."""
    try:
        review = await api.create(SELF_REVIEWS, _REVIEW)
    except ApiError as error:
        if not error.not_found:
            raise
        hint = "List the jobs with their users: `vcbatch job list`"
        raise CliError("--mine: the server can't report who you are (SelfSubjectReview)", hint=hint) from error
    return text(review, "status", "userInfo", "username")


def _kind(access: Access, asked: Asked) -> Kind:
    """The columns of the list; with the number of nodes in a wide one. Changes of a watch come without pods, so it has
    no such column."""
    if asked.format.shape is not Shape.WIDE or asked.watch:
        return JOB
    namespace = None if asked.all_namespaces else access.namespace

    async def pods(api: Api) -> Sequence[Json]:
        return await within_reach(api, PODS, namespace=namespace, label_selector=names.JOB_NAME)

    nodes: defaultdict[str, set[str]] = defaultdict(set)
    for pod in access.once(pods):
        if text(pod, "status", "phase") in ("Pending", "Running") and (node := text(pod, "spec", "nodeName")):
            for owner in objects(pod, "metadata", "ownerReferences"):
                nodes[text(owner, "uid")].add(node)
    return with_nodes({uid: len(found) for uid, found in nodes.items()})
