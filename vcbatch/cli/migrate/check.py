"""What becomes of everything in a cluster that vcbatch takes over from Volcano: pure, class by class."""

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
    "": "were not handled by any controller yet: they start as new ones",
    JobPhase.PENDING: "keep their PodGroup and pods, and start when there is room",
    JobPhase.RUNNING: "run on, no pod is touched",
    JobPhase.RESTARTING: "finish their restart: the last pods of the old attempt end, then the next attempt starts",
    JobPhase.ABORTING: "are suspended once their last pods have ended",
    JobPhase.ABORTED: "stay suspended until a Command ResumeJob",
    JobPhase.COMPLETING: "are Completed once their last pods have ended",
    JobPhase.COMPLETED: "stay finished; their TTL counts from their last transition",
    JobPhase.TERMINATING: "are Terminated once their last pods have ended",
    JobPhase.TERMINATED: "stay finished; their TTL counts from their last transition",
    JobPhase.FAILED: "stay finished, their failed pods as well; their TTL counts from their last transition",
}
"""What becomes of Jobs by phase."""
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
    """The tools that keep Volcano's CRDs and programs, each once."""
    found = [one.owner for one in inventory.definitions]
    found += [one.owner for one in inventory.programs_of(Maker.VOLCANO)]
    kept = [one for one in found if one.tool in ("Helm", *_GITOPS) and not one.name.startswith("vcbatch")]
    # Annotations may be anything; what is no name of a release names none.
    return [one for one in dict.fromkeys(kept) if not dns_subdomain(one.name) and not _odd(one.namespace)]


def _odd(namespace: str) -> bool:
    return bool(namespace) and bool(dns_label(namespace))


def _owners(inventory: Inventory) -> Iterator[Finding]:
    for owner in owners(inventory):
        count = sum(one.owner == owner for one in inventory.definitions)
        if owner.tool == "Helm" and count:
            yield Finding(
                level=Level.WARNING, check="ownership", subject=str(owner),
                message=f"keeps {count} CRDs: `helm uninstall {owner.name}` would delete them, and with them every "
                "Job, PodGroup and Queue, whatever annotations the CRDs have by then (Helm goes by the manifest that "
                "it stored)",
                todo="Don't uninstall it. The plan makes Helm forget the release, and hands the CRDs over.",
            )  # fmt: skip
        elif owner.tool in _GITOPS:
            yield Finding(
                level=Level.WARNING, check="ownership", subject=str(owner),
                message="restores what is changed or removed while it synchronises",
                todo="Pause it before the first step, and remove Volcano from its source before it goes on, with "
                "pruning of CRDs off.",
            )  # fmt: skip


def _programs(inventory: Inventory) -> Iterator[Finding]:
    volcanos = inventory.programs_of(Maker.VOLCANO)
    if not volcanos and not any(one.what.startswith("Deployments") for one in inventory.unread):
        yield _ok("programs", "no program of Volcano's was found")
    for one in volcanos:
        successor = SUCCESSORS[one.role]
        if successor.replaced:
            state = "is stopped by the plan" if one.running else "is stopped already"
            yield _ok("programs", f"{state}; {successor.by} takes its place", one.title)
        else:
            yield Finding(
                level=Level.WARNING, check="programs", subject=one.title,
                message=f"{successor.component} is left as it is; what takes its place: {successor.by}",
                todo="Keep it running, or do without it.",
            )  # fmt: skip
    for one in inventory.programs_of(Maker.VCBATCH, Role.SCHEDULER, Role.CONTROLLERS):
        rivals = [other for other in inventory.programs_of(Maker.VOLCANO, one.role) if other.running and one.running]
        for other in rivals:
            if one.role is Role.SCHEDULER and not set(one.scheduler_names) & set(other.scheduler_names):
                continue
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title,
                message=f"runs at the same time as {other.title}: both act on the same objects",
                todo=f"Stop one: kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=0",
            )  # fmt: skip


def _admission(inventory: Inventory) -> Iterator[Finding]:
    configurations = {(one.kind, one.configuration) for one in inventory.webhooks if one.maker is not Maker.VCBATCH}
    if configurations:
        yield _ok(
            "webhooks",
            f"{len(configurations)} configurations are removed before their program is stopped, so that nobody's pods "
            "are refused; ours come with the same names",
        )
    policies = [one for one in inventory.admission_policies if one.maker is Maker.VOLCANO]
    if policies:
        yield _ok("webhooks", f"{len(policies)} admission policies of Volcano's are removed with them")


def _jobs(inventory: Inventory) -> Iterator[Finding]:
    tally = inventory.jobs
    for phase, count in sorted(tally.counts.items()):
        subject = f"{count} {'job' if count == 1 else 'jobs'} {phase or 'without a phase'} ({tally.some(phase)})"
        if phase in PHASES:
            yield _ok("jobs", PHASES[phase], subject)
        else:
            yield Finding(
                level=Level.WARNING, check="jobs", subject=subject,
                message=f"{phase} is no phase of Volcano's API: the controllers take them for Pending",
                todo="See what wrote it, and what the jobs' pods do.",
            )  # fmt: skip


def _pod_groups(inventory: Inventory) -> Iterator[Finding]:
    if inventory.old_names.total:
        yield Finding(
            level=Level.BLOCKER, check="podgroups",
            subject=f"{inventory.old_names.total} PodGroups ({inventory.old_names.some('Job')})",
            message="are named as their Job only, as before Volcano 1.10: vcbatch would make others, JOB-UID, which "
            "the pods that run don't belong to",
            todo="Let these jobs end first, or suspend and resume them under Volcano 1.10 or newer.",
        )  # fmt: skip
    total = inventory.pod_groups.total
    if total:
        phases = ", ".join(f"{count} {phase or 'new'}" for phase, count in sorted(inventory.pod_groups.counts.items()))
        yield _ok("podgroups", f"are kept with their phases ({phases})", f"{total} PodGroups")


def _queues(inventory: Inventory) -> Iterator[Finding]:
    odd = [one for one in inventory.queues if one.state == QueueState.UNKNOWN]
    if odd:
        yield Finding(
            level=Level.WARNING, check="queues", subject=_some([one.name for one in odd]),
            message="are in state Unknown, and stay so under vcbatch as under Volcano",
            todo="Open or close them: vcbatch queue open NAME",
        )  # fmt: skip
    others = [one for one in inventory.queues if one not in odd]
    if others:
        states = sorted({one.state or "new" for one in others})
        yield _ok("queues", f"are kept with their state ({', '.join(states)})", f"{len(others)} queues")


def _commands(inventory: Inventory, now: datetime) -> Iterator[Finding]:
    old = [one for one in inventory.commands if one.created is not None and now - one.created > _PATIENCE]
    if old:
        yield Finding(
            level=Level.WARNING, check="commands",
            subject=_some([f"{one.namespace}/{one.name} ({one.action} {one.target})" for one in old]),
            message="were not carried out by Volcano; vcbatch carries out those that still make sense, and removes the "
            "others with an event",
            todo="Delete those that nobody wants any more: kubectl delete commands.bus.volcano.sh -n NAMESPACE NAME",
        )  # fmt: skip
    fresh = len(inventory.commands) - len(old)
    if fresh:
        yield _ok("commands", "are carried out once, by whichever controllers see them first", f"{fresh} Commands")


def _cronjobs(inventory: Inventory) -> Iterator[Finding]:
    if not inventory.cronjobs:
        return
    here = [one for one in inventory.cronjobs if not one.time_zone and not one.suspended]
    if here:
        yield Finding(
            level=Level.WARNING, check="cronjobs", subject=_some([f"{one.namespace}/{one.name}" for one in here]),
            message="name no time zone: Volcano goes by the zone of its controllers' machine, vcbatch by UTC",
            todo="Set spec.timeZone where Volcano's containers don't run in UTC.",
        )  # fmt: skip
    active = sum(one.active for one in inventory.cronjobs)
    yield _ok(
        "cronjobs",
        f"go on with their next slot; no slot is started twice, as a slot's job has the same name. {active} active "
        "jobs are kept",
        f"{len(inventory.cronjobs)} CronJobs",
    )


def _flows(inventory: Inventory) -> Iterator[Finding]:
    if inventory.flows.total:
        phases = ", ".join(f"{count} {phase or 'new'}" for phase, count in sorted(inventory.flows.counts.items()))
        yield _ok(
            "jobflows",
            f"go on with the jobs that they have ({phases}); `flows[].patch` takes effect for jobs that are still to "
            "be made (docs/differences-jobflows.md)",
            f"{inventory.flows.total} JobFlows",
        )


def scheduler_names(inventory: Inventory) -> list[str]:
    """The names that Volcano's schedulers run for, and so ours will."""
    return sorted(
        {name for one in inventory.programs_of(Maker.VOLCANO, Role.SCHEDULER) for name in one.scheduler_names}
    )


def _names(inventory: Inventory) -> Iterator[Finding]:
    served = {name for one in inventory.programs for name in one.scheduler_names}
    for name, count in sorted(inventory.job_schedulers.items()):
        if served and name not in served:
            yield Finding(
                level=Level.WARNING, check="scheduler name", subject=name,
                message=f"{count} unfinished jobs name it, and no program runs for it",
                todo="They wait under vcbatch as under Volcano, unless a scheduler is given that name.",
            )  # fmt: skip


def _nodes(inventory: Inventory) -> Iterator[Finding]:
    if inventory.shards:
        yield Finding(
            level=Level.WARNING, check="nodeshards", subject=_some(list(inventory.shards)),
            message="are kept, and renewed only where `vcbatch controllers` gets Volcano's sharding.yaml",
            todo="Pass it with --sharding-conf (docs/sharding.md), or delete the NodeShards.",
        )  # fmt: skip
    if inventory.virtual_devices:
        yield _ok(
            "nodes", "have vGPUs, which the policy's plugin deviceshare assigns", f"{inventory.virtual_devices} nodes"
        )
    if inventory.colocated:
        yield Finding(
            level=Level.WARNING, check="nodes", subject=f"{inventory.colocated} nodes",
            message="are oversubscribed by Volcano's agent: vcbatch counts what they report, and replaces no agent",
            todo="Keep the agent running on them.",
        )  # fmt: skip


def _some(words: list[str]) -> str:
    shown = ", ".join(words[:NAMES_KEPT])
    return f"{shown} and {len(words) - NAMES_KEPT} more" if len(words) > NAMES_KEPT else shown
