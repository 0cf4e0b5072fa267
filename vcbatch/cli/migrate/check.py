"""The consequences of a migration from Volcano for each class of objects in a cluster: pure decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.name_rules import dns_label, dns_subdomain
from vcbatch.api.phases import JobPhase, QueueState
from vcbatch.cli.inventory.components import SUCCESSORS
from vcbatch.cli.inventory.findings import Finding, Level, Purpose, findings
from vcbatch.cli.inventory.model import NAMES_KEPT, Inventory, Maker, Owner, Role

PHASES: Final[Mapping[str, str]] = {
    "": "not yet reconciled by a controller; handled as new",
    JobPhase.PENDING: "keep their PodGroup and pods, and start when resources are available",
    JobPhase.RUNNING: "keep running; pods aren't changed",
    JobPhase.RESTARTING: "finish their restart: pods of the old attempt terminate, then the next attempt starts",
    JobPhase.ABORTING: "become Aborted when their pods have terminated",
    JobPhase.ABORTED: "stay suspended until resumed (Command ResumeJob)",
    JobPhase.COMPLETING: "become Completed when their pods have terminated",
    JobPhase.COMPLETED: "stay finished; TTL counts from the last transition",
    JobPhase.TERMINATING: "become Terminated when their pods have terminated",
    JobPhase.TERMINATED: "stay finished; TTL counts from the last transition",
    JobPhase.FAILED: "stay finished, with their failed pods; TTL counts from the last transition",
}
"""The consequences for Jobs by phase."""
IN_FLIGHT: Final = (JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING)
CORE: Final = (Role.SCHEDULER, Role.CONTROLLERS, Role.ADMISSION)
_PATIENCE: Final = timedelta(minutes=1)
_GITOPS: Final = ("Argo CD", "Flux")


def consequences(inventory: Inventory, now: datetime) -> list[Finding]:
    """All findings of a migration: those about the cluster itself, then one or more for each class of objects."""
    return [
        *findings(inventory, now, purpose=Purpose.MIGRATE),
        *_owners(inventory),
        *_programs(inventory),
        *_admission(inventory),
        *_jobs(inventory),
        *_pod_groups(inventory),
        *_queues(inventory),
        *_commands(inventory, now),
        *_cronjobs(inventory),
        *_flows(inventory),
        *_names(inventory),
        *_nodes(inventory),
    ]


def _ok(check: str, message: str, subject: str = "") -> Finding:
    return Finding(level=Level.OK, check=check, subject=subject, message=message)


def owners(inventory: Inventory) -> list[Owner]:
    """The tools that manage Volcano's CRDs and programs, each once."""
    found = [one.owner for one in inventory.definitions]
    found += [one.owner for one in inventory.programs_of(Maker.VOLCANO)]
    kept = [one for one in found if one.tool in ("Helm", *_GITOPS) and not one.name.startswith("vcbatch")]
    # Annotations may have any value; one that isn't a valid release name is ignored.
    return [one for one in dict.fromkeys(kept) if not dns_subdomain(one.name) and not _odd(one.namespace)]


def _odd(namespace: str) -> bool:
    return bool(namespace) and bool(dns_label(namespace))


def _owners(inventory: Inventory) -> Iterator[Finding]:
    for owner in owners(inventory):
        count = sum(one.owner == owner for one in inventory.definitions)
        if owner.tool == "Helm" and count:
            yield Finding(
                level=Level.WARNING, check="ownership", subject=str(owner),
                message=f"owns {count} CRDs: `helm uninstall {owner.name}` would delete them with all Jobs, PodGroups "
                "and Queues, even if the CRDs now have the keep policy (Helm uses its stored manifest)",
                todo="Don't uninstall it. The plan removes Helm's release record and transfers the CRDs.",
            )  # fmt: skip
        elif owner.tool in _GITOPS:
            yield Finding(
                level=Level.WARNING, check="ownership", subject=str(owner),
                message="reverts changes and deletions on each sync",
                todo="Suspend it before the first step. Before resuming, remove Volcano from its source, with pruning "
                "of CRDs disabled.",
            )  # fmt: skip


def _programs(inventory: Inventory) -> Iterator[Finding]:
    volcanos = inventory.programs_of(Maker.VOLCANO)
    if not volcanos and not any(one.what.startswith("Deployments") for one in inventory.unread):
        yield _ok("programs", "no Volcano components found")
    for one in volcanos:
        successor = SUCCESSORS[one.role]
        if successor.replaced:
            state = "stopped by the plan" if one.running else "already stopped"
            yield _ok("programs", f"{state}; replaced by {successor.by}", one.title)
        else:
            yield Finding(
                level=Level.WARNING, check="programs", subject=one.title,
                message=f"{successor.component} isn't changed; replacement: {successor.by}",
                todo="Keep it running, or remove it.",
            )  # fmt: skip
    for one in inventory.programs_of(Maker.VCBATCH, Role.SCHEDULER, Role.CONTROLLERS):
        rivals = [other for other in inventory.programs_of(Maker.VOLCANO, one.role) if other.running and one.running]
        for other in rivals:
            if one.role is Role.SCHEDULER and not set(one.scheduler_names) & set(other.scheduler_names):
                continue
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title,
                message=f"runs at the same time as {other.title}; both reconcile the same objects",
                todo=f"Stop one: kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=0",
            )  # fmt: skip


def _admission(inventory: Inventory) -> Iterator[Finding]:
    configurations = {(one.kind, one.configuration) for one in inventory.webhooks if one.maker is not Maker.VCBATCH}
    if configurations:
        yield _ok(
            "webhooks",
            f"{len(configurations)} configurations are removed before their webhook is stopped, so that no pods are "
            "rejected; vcbatch's have the same names",
        )
    policies = [one for one in inventory.admission_policies if one.maker is Maker.VOLCANO]
    if policies:
        yield _ok("webhooks", f"{len(policies)} admission policies of Volcano are removed with them")


def _jobs(inventory: Inventory) -> Iterator[Finding]:
    tally = inventory.jobs
    for phase, count in sorted(tally.counts.items()):
        subject = f"{count} {'job' if count == 1 else 'jobs'} {phase or 'without a phase'} ({tally.some(phase)})"
        if phase in PHASES:
            yield _ok("jobs", PHASES[phase], subject)
        else:
            yield Finding(
                level=Level.WARNING, check="jobs", subject=subject,
                message=f"{phase} is not a phase of Volcano's API; handled as Pending",
                todo="Check which client set it, and the pods of the jobs.",
            )  # fmt: skip


def _pod_groups(inventory: Inventory) -> Iterator[Finding]:
    if inventory.old_names.total:
        yield Finding(
            level=Level.BLOCKER, check="podgroups",
            subject=f"{inventory.old_names.total} PodGroups ({inventory.old_names.some('Job')})",
            message="have the name of their Job, as before Volcano 1.10; vcbatch would create new ones (JOB-UID), "
            "which running pods don't belong to",
            todo="Wait for these jobs to finish, or suspend and resume them with Volcano 1.10 or newer.",
        )  # fmt: skip
    total = inventory.pod_groups.total
    if total:
        phases = ", ".join(f"{count} {phase or 'new'}" for phase, count in sorted(inventory.pod_groups.counts.items()))
        yield _ok("podgroups", f"kept with their phases ({phases})", f"{total} PodGroups")


def _queues(inventory: Inventory) -> Iterator[Finding]:
    odd = [one for one in inventory.queues if one.state == QueueState.UNKNOWN]
    if odd:
        yield Finding(
            level=Level.WARNING, check="queues", subject=_some([one.name for one in odd]),
            message="are in state Unknown, and will stay in it",
            todo="Open or close them: vcbatch queue open NAME",
        )  # fmt: skip
    others = [one for one in inventory.queues if one not in odd]
    if others:
        states = sorted({one.state or "new" for one in others})
        yield _ok("queues", f"kept with their state ({', '.join(states)})", f"{len(others)} queues")


def _commands(inventory: Inventory, now: datetime) -> Iterator[Finding]:
    old = [one for one in inventory.commands if one.created is not None and now - one.created > _PATIENCE]
    if old:
        yield Finding(
            level=Level.WARNING, check="commands",
            subject=_some([f"{one.namespace}/{one.name} ({one.action} {one.target})" for one in old]),
            message="not processed by Volcano; vcbatch processes those that are still valid, and removes the others "
            "with an event",
            todo="Delete those that are no longer needed: kubectl delete commands.bus.volcano.sh -n NAMESPACE NAME",
        )  # fmt: skip
    fresh = len(inventory.commands) - len(old)
    if fresh:
        yield _ok("commands", "processed once, by the first controllers that receive them", f"{fresh} Commands")


def _cronjobs(inventory: Inventory) -> Iterator[Finding]:
    if not inventory.cronjobs:
        return
    here = [one for one in inventory.cronjobs if not one.time_zone and not one.suspended]
    if here:
        yield Finding(
            level=Level.WARNING, check="cronjobs", subject=_some([f"{one.namespace}/{one.name}" for one in here]),
            message="have no time zone: Volcano uses the time zone of its controllers, vcbatch uses UTC",
            todo="Set spec.timeZone if Volcano's containers don't use UTC.",
        )  # fmt: skip
    active = sum(one.active for one in inventory.cronjobs)
    yield _ok(
        "cronjobs",
        f"continue with their next run; no run is started twice, as its job has the same name. {active} active jobs "
        "are kept",
        f"{len(inventory.cronjobs)} CronJobs",
    )


def _flows(inventory: Inventory) -> Iterator[Finding]:
    if inventory.flows.total:
        phases = ", ".join(f"{count} {phase or 'new'}" for phase, count in sorted(inventory.flows.counts.items()))
        yield _ok(
            "jobflows",
            f"continue with their existing jobs ({phases}); `flows[].patch` applies to jobs not yet created "
            "(docs/differences-jobflows.md)",
            f"{inventory.flows.total} JobFlows",
        )


def scheduler_names(inventory: Inventory) -> list[str]:
    """The scheduler names of Volcano's schedulers, which vcbatch's scheduler takes over."""
    return sorted(
        {name for one in inventory.programs_of(Maker.VOLCANO, Role.SCHEDULER) for name in one.scheduler_names}
    )


def _names(inventory: Inventory) -> Iterator[Finding]:
    served = {name for one in inventory.programs for name in one.scheduler_names}
    for name, count in sorted(inventory.job_schedulers.items()):
        if served and name not in served:
            yield Finding(
                level=Level.WARNING, check="scheduler name", subject=name,
                message=f"used by {count} unfinished jobs, but no scheduler of that name runs",
                todo="They stay pending unless a scheduler of that name is started.",
            )  # fmt: skip


def _nodes(inventory: Inventory) -> Iterator[Finding]:
    if inventory.shards:
        yield Finding(
            level=Level.WARNING, check="nodeshards", subject=_some(list(inventory.shards)),
            message="kept, but only updated if `vcbatch controllers` has Volcano's sharding.yaml",
            todo="Pass it with --sharding-conf (docs/sharding.md), or delete the NodeShards.",
        )  # fmt: skip
    if inventory.virtual_devices:
        yield _ok("nodes", "have vGPUs, assigned by scheduler plugin deviceshare", f"{inventory.virtual_devices} nodes")
    if inventory.colocated:
        yield Finding(
            level=Level.WARNING, check="nodes", subject=f"{inventory.colocated} nodes",
            message="oversubscribed by Volcano's agent, which vcbatch doesn't replace",
            todo="Keep the agent running on these nodes.",
        )  # fmt: skip


def _some(words: list[str]) -> str:
    shown = ", ".join(words[:NAMES_KEPT])
    return f"{shown} and {len(words) - NAMES_KEPT} more" if len(words) > NAMES_KEPT else shown
