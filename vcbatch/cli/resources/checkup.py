"""The checks of `vcbatch doctor`: each one sends a few requests and yields findings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from vcbatch._version import __version__
from vcbatch.api import names
from vcbatch.api.phases import QueueState
from vcbatch.api.resources import (
    ACCESS_REVIEWS,
    COMMANDS,
    CRONJOBS,
    EVENTS,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    LEASES,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from vcbatch.cli.base.fields import dig, moment, name_of, objects, text
from vcbatch.cli.base.leases import holder_of
from vcbatch.cli.resources.kinds import queue_state
from vcbatch.cli.resources.nodes_table import node_state
from vcbatch.interfaces.api import Api, ApiError, get_or_none

Json = dict[str, Any]

_SILENCE: Final = timedelta(minutes=1)
"""How old a job or a gang may be before its controller has to have written a status."""
_KINDS: Final = (JOBS, QUEUES, PODGROUPS, COMMANDS, JOBFLOWS, JOBTEMPLATES, CRONJOBS)
_RIGHTS: Final[Sequence[tuple[str, Resource, str, str]]] = (
    ("create", JOBS, "", "submit jobs"),
    ("delete", JOBS, "", "delete jobs"),
    ("create", COMMANDS, "", "suspend and resume jobs"),
    ("list", PODS, "", "list pods"),
    ("get", PODS, "log", "read logs"),
    ("list", EVENTS, "", "list events"),
    ("list", QUEUES, "", "list queues"),
    ("list", PODGROUPS, "", "list PodGroups"),
)


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding; `todo` is the suggested action."""

    verdict: Verdict
    about: str
    message: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The scope of the checks: the namespace of jobs, that of the components, and the time."""

    namespace: str
    components: str
    now: datetime
    failing: Callable[[], Awaitable[Sequence[str]]] | None = None
    """Requests the failing readiness checks of the server."""
    local: bool = False
    """Whether the server is a `vcbatch up`, which runs everything in one process; set by `examine`."""


async def examine(
    api: Api, setting: Setting, *, server: str, version: Callable[[], Awaitable[Json]]
) -> AsyncIterator[Finding]:
    """All findings, check by check; only one where the server doesn't respond. `version` requests its version."""
    try:
        reported = text(await version(), "gitVersion")
    except ApiError as error:
        yield _unreachable(server, error)
        return
    yield _ok("connection", f"connected to {server}, version {reported or 'unknown'}; vcbatch {__version__}")
    setting = replace(setting, local=names.LOCAL_SERVER_MARK in reported)
    for check in (_tasks, _kinds, _rights, _admission, _controllers, _scheduler, _queues, _nodes, _jobs):
        try:
            async for finding in check(api, setting):
                yield finding
        except ApiError as error:
            yield Finding(
                verdict=Verdict.WARNING, about=check.__name__.strip("_"), message=f"check failed: {error.sentence}"
            )


def _ok(about: str, message: str) -> Finding:
    return Finding(verdict=Verdict.OK, about=about, message=message)


def _unreachable(server: str, error: ApiError) -> Finding:
    todo = "Log in again, or pass another --context."
    if error.code != 401:
        todo = "Check that the server is running and reachable, or pass another --kubeconfig or --context."
    return Finding(verdict=Verdict.FAILED, about="connection", message=f"{server}: {error}", todo=todo)


async def _tasks(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    """Findings about the background tasks of `vcbatch up`; those of other components are on their Leases."""
    if not setting.local or setting.failing is None:
        return
    failing = await setting.failing()
    for each in failing:
        name, _, why = each.partition(" failed: ")
        yield _failing("tasks", f"{name}: {why}", "its log (see vcbatch status)")
    if not failing:
        yield _ok("tasks", "all background tasks are running")


def _failing(about: str, what: str, where: str) -> Finding:
    return Finding(
        verdict=Verdict.FAILED,
        about=about,
        message=f"a background task keeps failing: {what}",
        todo=f"Check {where}.",
    )


async def _kinds(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    missing: list[str] = []
    for resource in _KINDS:
        try:
            await api.list(resource, namespace=setting.namespace, field_selector="metadata.name=none")
        except ApiError as error:
            if error.not_found:
                missing.append(f"{resource.plural}.{resource.group}")
            elif error.code != 403:
                raise
    if missing:
        yield Finding(
            verdict=Verdict.FAILED,
            about="kinds",
            message=f"CRDs not installed: {', '.join(missing)}",
            todo="Install the CRDs: vcbatch crds | kubectl apply --server-side -f -",
        )
    else:
        yield _ok("CRDs", f"all {len(_KINDS)} installed")


async def _rights(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    denied: list[str] = []
    for verb, resource, subresource, words in _RIGHTS:
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "subresource": subresource,
            "namespace": setting.namespace if resource.namespaced else "",
        }
        review: Json = {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
        }
        if dig(await api.create(ACCESS_REVIEWS, review), "status", "allowed") is not True:
            denied.append(words)
    if denied:
        yield Finding(
            verdict=Verdict.WARNING,
            about="rights",
            message=f"missing in namespace {setting.namespace}: {', '.join(denied)}",
            todo="Ask your cluster administrator for these permissions, or use another namespace (-n).",
        )
    else:
        yield _ok("permissions", f"OK in namespace {setting.namespace}")


async def _admission(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    configurations = (await api.list(VALIDATING_WEBHOOKS)).items
    wanted = names.webhook_name("jobs", "validate")
    found = [one for each in configurations for one in objects(each, "webhooks") if text(one, "name") == wanted]
    if not found:
        yield Finding(
            verdict=Verdict.WARNING,
            about="admission",
            message="no admission webhooks for jobs",
            todo="Validate manifests before submitting them: vcbatch lint -f FILE",
        )
        return
    bare = [one for one in found if not text(one, "clientConfig", "caBundle")]
    if bare and not setting.local:
        yield Finding(
            verdict=Verdict.WARNING,
            about="admission",
            message=f"webhook {wanted} has no caBundle; the API server can't verify it",
            todo="`vcbatch webhooks` writes it when it is ready; check its log.",
        )
        return
    yield _ok("admission", "webhooks active")


async def _controllers(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    yield await _component(api, setting, "controllers", names.CONTROLLERS_LEASE)


async def _scheduler(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    yield await _component(api, setting, "scheduler", names.SCHEDULER_LEASE)


async def _component(api: Api, setting: Setting, about: str, lease_name: str) -> Finding:
    if setting.local:
        return _ok(about, "part of `vcbatch up`")
    lease = await get_or_none(api, LEASES, lease_name, namespace=setting.components)
    if lease is None:
        return Finding(
            verdict=Verdict.WARNING,
            about=about,
            message=f"Lease {lease_name} not found in namespace {setting.components}",
            todo=f"Start it (vcbatch {about}), or pass its namespace with --components-namespace. "
            "There is no Lease with --leader-elect=false, or if Volcano's component is used.",
        )
    holder = holder_of(lease, setting.now)
    if not holder:
        renewed = moment(lease, "spec", "renewTime")
        when = f" since {renewed:%Y-%m-%d %H:%M:%S} UTC" if renewed is not None else ""
        return Finding(
            verdict=Verdict.FAILED,
            about=about,
            message=f"its Lease has no holder{when}",
            todo=f"Check its pods: kubectl get pods -n {setting.components}",
        )
    if failing := text(lease, "metadata", "annotations", names.FAILING_TASKS):
        return _failing(about, failing, f"the log of {holder}")
    return _ok(about, f"leader is {holder}")


async def _queues(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    queues = {name_of(queue): queue for queue in (await api.list(QUEUES)).items}
    default = queues.get(names.DEFAULT_QUEUE)
    if default is None:
        yield Finding(
            verdict=Verdict.FAILED,
            about="queues",
            message="queue default doesn't exist; jobs without a queue use it",
            todo="Start the controllers, which create it, or run: vcbatch queue create default",
        )
    lost = sorted(
        name
        for name, queue in queues.items()
        if (parent := text(queue, "spec", "parent")) and parent not in queues and parent != names.ROOT_QUEUE
    )
    if lost:
        yield Finding(
            verdict=Verdict.WARNING,
            about="queues",
            message=f"parent queue missing: {', '.join(lost)}",
            todo="With hierarchical queues, their jobs stay pending. Create the parent, or change spec.parent.",
        )
    shut = sorted(name for name, queue in queues.items() if queue_state(queue) != QueueState.OPEN)
    if shut:
        yield Finding(
            verdict=Verdict.WARNING,
            about="queues",
            message=f"not open: {', '.join(f'{name} ({queue_state(queues[name])})' for name in shut)}",
            todo="To open a queue: vcbatch queue open NAME. Unknown means not yet reconciled.",
        )
    elif default is not None and not lost:
        yield _ok("queues", f"all {len(queues)} open")


async def _nodes(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    nodes = (await api.list(NODES)).items
    ready = [node for node in nodes if node_state(node).text == "Ready"]
    if not ready:
        yield Finding(
            verdict=Verdict.FAILED,
            about="nodes",
            message=f"0 of {len(nodes)} ready" if nodes else "no nodes",
            todo="No pods can be scheduled: kubectl get nodes",
        )
    else:
        yield _ok("nodes", f"{len(ready)} of {len(nodes)} ready")


async def _jobs(api: Api, setting: Setting) -> AsyncIterator[Finding]:
    """Whether controllers reconcile existing objects, which no Lease proves."""
    jobs = (await api.list(JOBS, namespace=setting.namespace)).items
    mute = [name_of(job) for job in jobs if not text(job, "status", "state", "phase") and _old(job, setting)]
    if mute:
        yield Finding(
            verdict=Verdict.FAILED,
            about="jobs",
            message=f"not reconciled by a controller: {_some(mute)}",
            todo="Check that the controllers are running and have permissions; see their log.",
        )
    groups = (await api.list(PODGROUPS, namespace=setting.namespace)).items
    mute = [name_of(group) for group in groups if not text(group, "status", "phase") and _old(group, setting)]
    if mute:
        yield Finding(
            verdict=Verdict.FAILED,
            about="gangs",
            message=f"not processed by a scheduler: {_some(mute)}",
            todo="Check that the scheduler is running and that its name matches spec.schedulerName of the jobs.",
        )
    if jobs and not mute:
        yield _ok("jobs", f"all {len(jobs)} reconciled")


def _old(obj: Json, setting: Setting) -> bool:
    created = moment(obj, "metadata", "creationTimestamp")
    return created is not None and setting.now - created > _SILENCE


def _some(words: Sequence[str]) -> str:
    shown = ", ".join(words[:3])
    return f"{shown} and {len(words) - 3} more" if len(words) > 3 else shown
