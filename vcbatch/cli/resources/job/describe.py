"""`vcbatch job describe`: all details of one job on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod_usage import pod_usage
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.api.start_conditions import begin_time, deadline, dependencies
from vcbatch.api.time_limit import time_limit
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import NONE, dig, moment, name_of, namespace_of, number, objects, text, uid_of, words
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import age, say
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of, wrap
from vcbatch.cli.resources.job_columns import NO_USER, job_elapsed, user_of
from vcbatch.cli.resources.kinds import (
    POD,
    job_phase,
    job_queue,
    job_size,
    job_why,
    out_of_retries,
    toned,
)
from vcbatch.cli.resources.reading import events_of, owned_by, readable, within_reach
from vcbatch.cli.resources.sections import (
    document,
    events_text,
    facts,
    labels_text,
    moment_text,
    objects_table,
    quantities_text,
    section,
    width_of,
)
from vcbatch.core.waiting import gang_of
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.client.kept_logs import KeptLogs

if TYPE_CHECKING:
    from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]

_LOSSES_SHOWN = 5
_DEFAULT_RETRIES = 3
_POD_STATES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_OWN_KEYS = ("requests.", "limits.", "count/", "pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScreen:
    """A job with its related objects. `pod_group` is None where there is none; `gang_known` is False where it can't be
    read."""

    job: Json
    pod_group: Json | None = None
    gang_known: bool = True
    pods: Sequence[Json] = ()
    events: Sequence[Json] = ()
    kept: KeptLogs | None = None


@click.command("describe")
@click.argument("name", shell_complete=job_names)
@access_options
def command(name: str, access: Access) -> int:
    """Show details of a job: tasks, policies, retries, recent failures and events."""

    async def fetch(api: Api) -> JobScreen:
        job = await api.get(JOBS, name, namespace=access.namespace)
        selector = f"metadata.name={names.pod_group_name(name, uid_of(job))}"
        groups = await readable(api, PODGROUPS, namespace=access.namespace, field_selector=selector)
        selector = f"{names.JOB_NAME}={name}"
        pods = owned_by(await within_reach(api, PODS, namespace=access.namespace, label_selector=selector), uid_of(job))
        group = groups[0] if groups else None
        events = await events_of(api, job, *(groups or ()))
        kept: KeptLogs | None = None
        with suppress(ApiError):
            kept = await cast("RestApi", api).kept_logs(name, namespace=access.namespace)
        return JobScreen(job=job, pod_group=group, gang_known=groups is not None, pods=pods, events=events, kept=kept)

    say(described(access.once(fetch), terminal_of(), now=access.now(), complete=access.repeat))
    return 0


def described(screen: JobScreen, terminal: Terminal, *, now: datetime, complete: Callable[[str], str] = str) -> str:
    """The text of the screen. `complete` completes the commands in it."""
    return document(
        [
            facts(_facts(screen, now, complete), terminal),
            section("Tasks", tasks_text(screen.job, terminal), terminal),
            section("Policies", policies_text(screen.job), terminal),
            section("Recent failures", "\n".join(_losses(screen.job, terminal, now=now)), terminal),
            section("Pods", _pods(screen, terminal, now=now, complete=complete), terminal),
            section("Events", events_text(list(_events(screen)), terminal, now=now), terminal),
        ]
    )


def _facts(screen: JobScreen, now: datetime, complete: Callable[[str], str]) -> Iterator[tuple[str, Any]]:
    job = screen.job
    yield "Name", f"{namespace_of(job)}/{name_of(job)}"
    phase = toned(job_phase(job))
    entered = moment(job, "status", "state", "lastTransitionTime")
    yield "Phase", phase._replace(text=f"{phase.text} for {age(entered, now)}") if entered else phase
    yield "Reason", job_why(job)
    if job_phase(job) == JobPhase.PENDING:
        yield "Explain", complete(f"vcbatch job explain {name_of(job)}")
    yield "Queue", job_queue(job)
    yield "User", "" if user_of(job) == NO_USER else user_of(job)
    yield "Created", moment_text(moment(job, "metadata", "creationTimestamp"), now)
    yield "Controlled by", _maker(job)
    yield "Gang", _gang(screen)
    yield "Priority", text(job, "spec", "priorityClassName")
    yield "Scheduler", text(job, "spec", "schedulerName")
    yield "Retries", _restarts(job)
    yield "Elapsed", job_elapsed(job, now)
    limit = time_limit(words(job, "metadata", "annotations"))
    yield "Time limit", f"{limit} s" if limit is not None else ""
    annotations = words(job, "metadata", "annotations")
    yield "Starts after", ", ".join(_before(job, annotations))
    yield "Begins", moment_text(begin_time(annotations), now)
    yield "Deadline", moment_text(deadline(annotations), now)
    ttl = dig(job, "spec", "ttlSecondsAfterFinished")
    yield "TTL", f"{ttl} s after it finished" if ttl is not None else ""
    yield "Plugins", ", ".join(_plugins(job))
    yield "Volumes", ", ".join(_volumes(job))
    yield "Labels", labels_text(words(job, "metadata", "labels"))
    for shown_above in (names.LAST_APPLIED, names.USER):
        annotations.pop(shown_above, None)
    yield "Annotations", labels_text(annotations)
    yield "UID", uid_of(job)
    yield "Kept logs", _kept_text(screen)


def _kept_text(screen: JobScreen) -> str:
    """Where the logs of the job's deleted pods are, and of which attempts; "" without any."""
    runs = [run for run in screen.kept.runs if run.job_uid == uid_of(screen.job)] if screen.kept is not None else []
    if screen.kept is None or not runs:
        return ""
    attempts = sorted({run.attempt for run in runs})
    listed = f"attempt {attempts[0]}" if len(attempts) == 1 else f"attempts {', '.join(map(str, attempts))}"
    removed = " (some were removed)" if any(run.removed for run in runs) else ""
    return f"{listed} in {screen.kept.directory}/{uid_of(screen.job)}{removed}"


def _before(job: Json, annotations: Mapping[str, str]) -> Iterator[str]:
    """The jobs that it depends on, each with the required outcome and the one that was seen."""
    seen = {text(one, "name"): text(one, "outcome") for one in objects(job, "status", "ledger", "dependencies")}
    for one in dependencies(annotations):
        yield f"{one.name}:{one.outcome}{f' ({seen[one.name]})' if seen.get(one.name) else ''}"


def _maker(job: Json) -> str:
    owners = objects(job, "metadata", "ownerReferences")
    return ", ".join(f"{text(owner, 'kind')} {text(owner, 'name')}" for owner in owners)


def _gang(screen: JobScreen) -> str:
    needs = gang_text(number(screen.job, "spec", "minAvailable"), job_size(screen.job))
    if screen.pod_group is None:
        awaited = screen.gang_known and job_phase(screen.job) == JobPhase.PENDING
        return f"{needs}; no PodGroup yet" if awaited else needs
    gang = gang_of(screen.pod_group, {})
    asks = quantities_text(gang.asks)
    return f"{needs}{f' ({asks})' if asks else ''}; PodGroup {name_of(screen.pod_group)} is {gang.phase}"


def gang_text(least: int, size: int) -> str:
    """How many of its pods have to start together."""
    if size == 1:
        return "1 pod"
    return f"all {size} pods" if least == size else f"at least {least} of {size} pods"


def _restarts(job: Json) -> str:
    ledger = ("status", "ledger")
    infrastructure, resumes = number(job, *ledger, "infrastructureRetries"), number(job, *ledger, "resumes")
    own = max(number(job, "status", "retryCount") - infrastructure - resumes, 0)
    most = number(job, "spec", "maxRetry") or _DEFAULT_RETRIES
    # The restart that was no longer executed is counted as well, among those of its kind.
    own_exhausted = out_of_retries(job) and own >= most
    infrastructure -= out_of_retries(job) and not own_exhausted
    spent = own - own_exhausted
    if spent >= most - 1:
        parts = [f"no retries left ({spent} used)" if spent else "no retries left"]
    else:
        parts = [f"{spent} of {most - 1} used"]
    if infrastructure > 0:
        parts.append(f"{infrastructure} restart{'' if infrastructure == 1 else 's'} after infrastructure failures")
    if resumes:
        parts.append(f"resumed {resumes} times" if resumes > 1 else "resumed once")
    return ", ".join(parts)


def _plugins(job: Json) -> Iterator[str]:
    plugins = dig(job, "spec", "plugins")
    for name, arguments in sorted(plugins.items()) if isinstance(plugins, dict) else ():
        given = " ".join(map(str, arguments)) if isinstance(arguments, list) else ""
        yield f"{name} ({given})" if given else name


def _volumes(job: Json) -> Iterator[str]:
    for volume in objects(job, "spec", "volumes"):
        claim = text(volume, "volumeClaimName") or "new claim"
        yield f"{claim} at {text(volume, 'mountPath')}"


def tasks_text(job: Json, terminal: Terminal) -> str:
    """The tasks of a job or a template, with a column for each state that some of the pods are in."""
    tasks = objects(job, "spec", "tasks")
    states = [state for state in _POD_STATES if any(_in_state(job, task, state) for task in tasks)]
    rows: list[Row] = [("TASK", "PODS", "MIN", *(state.upper() for state in states), "REQUESTS PER POD")]
    for task in tasks:
        replicas, least = number(task, "replicas"), dig(task, "minAvailable")
        counts = [str(_in_state(job, task, state)) for state in states]
        rows.append(
            (text(task, "name"), str(replicas), str(replicas if least is None else least), *counts, _asks(task))
        )
    last = len(rows[0]) - 1
    return table(rows, indent="  ", terminal=terminal, right=range(1, last), flexible=[last]) if tasks else ""


def _in_state(job: Json, task: Json, state: str) -> int:
    return number(job, "status", "taskStatusCount", text(task, "name"), "phase", state)


def _asks(task: Json) -> str:
    return pod_asks(part(part(task, "template"), "spec")) or NONE


def pod_asks(spec: Json) -> str:
    """The requests of a pod, each resource once."""
    usage = pod_usage(spec)
    return quantities_text({key: quantity for key, quantity in usage.items() if not key.startswith(_OWN_KEYS)})


def policies_text(job: Json) -> str:
    """The lifecycle policies of the job and of its tasks."""
    return "\n".join(_policies(job))


def _policies(job: Json) -> Iterator[str]:
    for policy in objects(job, "spec", "policies"):
        yield f"  {_policy(policy)}"
    for task in objects(job, "spec", "tasks"):
        for policy in objects(task, "policies"):
            yield f"  task {text(task, 'name')}: {_policy(policy)}"


def _policy(policy: Json) -> str:
    given = [*(dig(policy, "events") or ()), *([text(policy, "event")] if text(policy, "event") else ())]
    code = dig(policy, "exitCode")
    when = f"exit code {code}" if code is not None else " or ".join(map(str, given))
    delay = text(policy, "timeout")
    return f"on {when}{f' after {delay}' if delay else ''}: {text(policy, 'action')}"


def _losses(job: Json, terminal: Terminal, *, now: datetime) -> Iterator[str]:
    """The controllers' records of failed and lost pods, which outlive the pods."""
    losses = objects(job, "status", "ledger", "losses")
    for loss in losses[-_LOSSES_SHOWN:]:
        when = moment(loss, "time")
        parts = [text(loss, "pod"), text(loss, "cause")]
        if text(loss, "exitCode"):
            parts.append(f"exit code {text(loss, 'exitCode')}")
        if text(loss, "signal"):
            parts.append(f"signal {text(loss, 'signal')}")
        if text(loss, "node"):
            parts.append(f"on node {text(loss, 'node')}")
        if when is not None:
            parts.append(f"{age(when, now)} ago")
        if reason := text(loss, "reason"):
            parts.append(reason)
        yield f"  {terminal.paint(parts[0], Tone.BAD)}: {', '.join(filter(None, parts[1:]))}"
        yield from wrap(text(loss, "message"), width_of(terminal), indent="      ", hang="      ")


def _events(screen: JobScreen) -> Iterator[Json]:
    """The events, those of the PodGroup without its long name, and without those that an event of the job quotes."""
    said = [text(event, "message") for event in screen.events if _about(event) == JOBS.kind]
    for event in screen.events:
        if _about(event) != PODGROUPS.kind:
            yield event
        elif not any(text(event, "message") in message for message in said):
            yield {**event, "involvedObject": {**event["involvedObject"], "name": ""}}


def _about(event: Json) -> str:
    return text(event, "involvedObject", "kind")


def _pods(screen: JobScreen, terminal: Terminal, *, now: datetime, complete: Callable[[str], str]) -> str:
    all_of_them = complete(f"vcbatch pod list -j {name_of(screen.job)}")
    return objects_table(POD.columns, screen.pods, terminal, now=now, more=all_of_them)
