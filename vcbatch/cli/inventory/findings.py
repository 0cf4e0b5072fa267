"""What an inventory means: pure decisions, one finding for each thing that somebody may have to act on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.cli.inventory.model import (
    NAMES_KEPT,
    Definition,
    Drift,
    Inventory,
    LeaseEntry,
    Maker,
    Program,
    Role,
    Webhook,
)

OLDEST: Final = (1, 34)
"""As the chart's `kubeVersion` says."""
NEWEST: Final = (1, 37)
"""The newest version that the tests run on."""
_SKEW: Final = timedelta(seconds=10)
_PATIENCE: Final = timedelta(minutes=1)
"""A Command that is older has nobody who carries it out."""
_CORE: Final = (Role.SCHEDULER, Role.CONTROLLERS, Role.ADMISSION)


class Level(StrEnum):
    """How much a finding matters: a blocker has to be gone before anything is done."""

    BLOCKER = "blocker"
    WARNING = "warning"
    OK = "ok"


class Purpose(StrEnum):
    """What the cluster is checked for: whether vcbatch can be installed, or whether an installed one works."""

    INSTALL = "install"
    MIGRATE = "migrate"
    DOCTOR = "doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`check` is the kind of check, `subject` the object that it is about (empty: all of that kind), `todo` what to do,
    empty only where there is nothing to do."""

    level: Level
    check: str
    subject: str = ""
    message: str
    todo: str = ""


def findings(inventory: Inventory, now: datetime, *, purpose: Purpose = Purpose.INSTALL) -> list[Finding]:
    """All of them, in the order of the checks."""
    return [
        *_server(inventory),
        *_clock(inventory),
        *_definitions(inventory, purpose),
        *_programs(inventory, purpose),
        *_foreign(inventory, purpose),
        *_webhooks(inventory, purpose),
        *_leases(inventory, now, purpose),
        *_policies(inventory, purpose),
        *_schedulers(inventory, purpose),
        *_unread(inventory),
    ]


def _ok(check: str, message: str, subject: str = "") -> Finding:
    return Finding(level=Level.OK, check=check, subject=subject, message=message)


# -- the server -------------------------------------------------------------------------------------------------------


def release_of(version: str) -> tuple[int, int] | None:
    """`(1, 36)` of `v1.36.1+k3s1`; None for what is no version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", version)
    return (int(found[1]), int(found[2])) if found else None


def _server(inventory: Inventory) -> Iterator[Finding]:
    release = release_of(inventory.version)
    supported = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}"
    if release is None:
        yield Finding(
            level=Level.WARNING, check="version", message=f"the server's version {inventory.version!r} can't be read",
            todo=f"Kubernetes {supported} is supported.",
        )  # fmt: skip
    elif release < OLDEST:
        yield Finding(
            level=Level.BLOCKER, check="version",
            message=f"Kubernetes {inventory.version} is older than {_dotted(OLDEST)}, the oldest supported version",
            todo=f"Upgrade the cluster: Kubernetes {supported} is supported.",
        )  # fmt: skip
    elif release > NEWEST:
        yield Finding(
            level=Level.WARNING, check="version",
            message=f"Kubernetes {inventory.version} is newer than {_dotted(NEWEST)}, the newest that was tested",
            todo="Try it on a test cluster first.",
        )  # fmt: skip
    else:
        yield _ok("version", f"Kubernetes {inventory.version} is supported ({supported})")


def _dotted(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


def _clock(inventory: Inventory) -> Iterator[Finding]:
    skew = inventory.skew
    if skew is None:
        return
    if abs(skew) > _SKEW:
        ahead = "ahead of" if skew > timedelta() else "behind"
        yield Finding(
            level=Level.WARNING, check="clock",
            message=f"the server's clock is {abs(skew).total_seconds():.0f} s {ahead} this machine's",
            todo="Ages and schedules are shown by this machine's clock; certificates and CronJobs go by the clocks of "
            "the machines that they are on. Synchronise the clocks (NTP).",
        )  # fmt: skip
    else:
        yield _ok("clock", "the server's clock agrees with this machine's")


# -- definitions ------------------------------------------------------------------------------------------------------


def _definitions(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if _is_unread(inventory, "CustomResourceDefinitions"):
        return
    from vcbatch.cli.inventory.drift import shipped

    present = {one.name for one in inventory.definitions}
    missing = sorted(set(shipped()) - present)
    if purpose is Purpose.DOCTOR and missing:
        yield Finding(
            level=Level.BLOCKER, check="crds", message=f"missing: {_listed(missing)}",
            todo="Install them: vcbatch crds | kubectl apply --server-side -f -",
        )  # fmt: skip
    for one in inventory.definitions:
        yield from _definition(one, purpose)
    if inventory.definitions and not missing and all(one.established and not one.drift for one in _known(inventory)):
        yield _ok("crds", f"all {len(shipped())} CRDs are those of this version")


def _known(inventory: Inventory) -> list[Definition]:
    return [one for one in inventory.definitions if one.known]


def _definition(one: Definition, purpose: Purpose) -> Iterator[Finding]:
    subject = f"crd/{one.name}"
    if one.deleting:
        yield Finding(
            level=Level.BLOCKER, check="crds", subject=subject,
            message="is being deleted, and all objects of its kind with it",
            todo="Wait until it is gone; restore its objects from a backup afterwards.",
        )  # fmt: skip
        return
    if not one.known:
        if purpose is not Purpose.DOCTOR:
            yield Finding(
                level=Level.WARNING, check="crds", subject=subject,
                message="vcbatch has no such kind: its objects stay as they are, and nothing acts on them",
                todo="Check whether you use them: kubectl get " + one.name,
            )  # fmt: skip
        return
    if not one.established:
        yield Finding(
            level=Level.BLOCKER, check="crds", subject=subject, message="isn't established: its objects aren't served",
            todo=f"kubectl describe crd {one.name} says why.",
        )  # fmt: skip
    if not one.drift:
        return
    owned = f", kept by {one.owner}" if one.owner.tool else ""
    if purpose is Purpose.DOCTOR:
        yield Finding(
            level=Level.WARNING, check="crds", subject=subject,
            message=f"differs from this version's{owned}: {drift_text(one.drift)}",
            todo="Upgrade it with the release that keeps it, or: vcbatch crds | kubectl apply --server-side "
            "--force-conflicts -f -",
        )  # fmt: skip
    elif one.drift.extra:
        yield Finding(
            level=Level.WARNING, check="crds", subject=subject,
            message=f"has fields that this version's doesn't have{owned}: {_listed(one.drift.extra)}",
            todo="The server drops them from an object with its next write after the CRD is replaced. Check whether "
            "you use them; objects that were saved before have them.",
        )  # fmt: skip
    else:
        yield _ok("crds", f"is replaced by this version's{owned}: {drift_text(one.drift)}", subject)


def drift_text(drift: Drift) -> str:
    """In one sentence."""
    parts = [
        f"without {_listed(drift.missing)}" if drift.missing else "",
        f"with {_listed(drift.extra)}" if drift.extra else "",
        _listed(drift.other) if drift.other else "",
    ]
    return "; ".join(part for part in parts if part)


def _listed(words: Sequence[str], most: int = NAMES_KEPT) -> str:
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


# -- programs ---------------------------------------------------------------------------------------------------------


def _programs(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is Purpose.MIGRATE:
        return  # `vcbatch.cli.migrate.check` says what becomes of each
    ours = {name for one in inventory.programs_of(Maker.VCBATCH, Role.SCHEDULER) for name in one.scheduler_names}
    for one in inventory.programs_of(Maker.VOLCANO, *_CORE):
        if one.running:
            yield from _rival(one, ours or {DEFAULT_SCHEDULER}, purpose)
    yield from _twice(inventory)
    if purpose is Purpose.DOCTOR:
        yield from _readiness(inventory)


def _rival(one: Program, ours: set[str], purpose: Purpose) -> Iterator[Finding]:
    """A program of Volcano's that runs beside ours."""
    todo = "`vcbatch migrate plan` says in which order to stop Volcano's programs and to start ours."
    if one.role is Role.SCHEDULER:
        shared = sorted(ours & set(one.scheduler_names))
        if not shared:
            names = ", ".join(one.scheduler_names)
            yield Finding(
                level=Level.WARNING, check="scheduler name", subject=one.title,
                message=f"Volcano's scheduler runs for schedulerName {names}, beside ours",
                todo="Give each its own nodes and queues: docs/sharding.md.",
            )  # fmt: skip
            return
        yield Finding(
            level=Level.BLOCKER, check="scheduler name", subject=one.title,
            message=f"another scheduler of the same name runs: Volcano's, for schedulerName {', '.join(shared)}",
            todo=todo if purpose is Purpose.INSTALL
            else f"Stop one: kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=0",
        )  # fmt: skip
        return
    yield Finding(
        level=Level.BLOCKER, check="programs", subject=one.title,
        message=f"Volcano's {one.role} runs: two programs would reconcile the same objects"
        if one.role is Role.CONTROLLERS
        else "Volcano's admission runs, under the names of our webhook configurations",
        todo=todo,
    )  # fmt: skip


def _twice(inventory: Inventory) -> Iterator[Finding]:
    """Two Deployments of ours for the same work."""
    for role in (Role.SCHEDULER, Role.CONTROLLERS):
        taken: dict[str, Program] = {}
        for one in inventory.programs_of(Maker.VCBATCH, role):
            if not one.running or one.sharding:
                continue
            for name in one.scheduler_names if role is Role.SCHEDULER else ("all objects",):
                other = taken.setdefault(name, one)
                if other is not one and other.namespace != one.namespace:
                    yield Finding(
                        level=Level.BLOCKER, check="releases", subject=one.title,
                        message=f"a second {role} of vcbatch for {name}: {other.title} is one already",
                        todo="One release for a cluster; give a further scheduler another --scheduler-name.",
                    )  # fmt: skip


def _readiness(inventory: Inventory) -> Iterator[Finding]:
    for one in inventory.programs_of(Maker.VCBATCH, *_CORE):
        if one.replicas == 0:
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title, message="is scaled to 0 replicas",
                todo=f"kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=2",
            )  # fmt: skip
        elif one.ready == 0:
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title,
                message=f"none of {one.replicas} replicas is ready",
                todo=f"kubectl describe pods -n {one.namespace} -l {_selector(one)}, and their logs",
            )  # fmt: skip
        elif one.ready < one.replicas:
            yield Finding(
                level=Level.WARNING, check="programs", subject=one.title,
                message=f"{one.ready} of {one.replicas} replicas are ready",
                todo=f"kubectl describe pods -n {one.namespace} -l {_selector(one)}",
            )  # fmt: skip
        else:
            yield _ok("programs", f"{one.ready} of {one.replicas} replicas are ready", one.title)


def _selector(one: Program) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(one.selector.items()))


def _foreign(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is Purpose.INSTALL and inventory.foreign:
        yield Finding(
            level=Level.BLOCKER, check="ownership", message=f"kept by another tool: {_listed(inventory.foreign)}",
            todo="`vcbatch migrate plan` says how to hand them over; a Helm release of vcbatch is upgraded by helm.",
        )  # fmt: skip


# -- admission --------------------------------------------------------------------------------------------------------


def _webhooks(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    fine = 0
    for one in inventory.webhooks:
        found = list(_webhook(one, purpose))
        fine += not found
        yield from found
    if fine and fine == len(inventory.webhooks):
        yield _ok("webhooks", f"all {fine} can be reached as far as their endpoints say")


def _webhook(one: Webhook, purpose: Purpose) -> Iterator[Finding]:
    subject = f"{one.kind.lower()}/{one.configuration}"
    what = "pods" if one.pods else one.name.partition(".")[0]
    if one.service and one.ready == 0 and one.fails_closed:
        every = "no pod of any scheduler" if one.matches_all_pods else f"no {what}"
        yield Finding(
            level=Level.BLOCKER, check="webhooks", subject=subject,
            message=f"nobody answers at Service {one.target}, and failurePolicy is Fail: {every} can be created or "
            "changed",
            todo=f"Start what serves it, or remove the configuration: kubectl delete {one.kind.lower()} "
            f"{one.configuration}",
        )  # fmt: skip
    elif one.service and one.ready == 0:
        yield Finding(
            level=Level.WARNING, check="webhooks", subject=subject,
            message=f"nobody answers at Service {one.target}: {what} are created without it (failurePolicy Ignore)",
            todo=f"Start what serves it: kubectl get endpointslices -n {one.target.partition('/')[0]}",
        )  # fmt: skip
    elif not one.trusted and one.fails_closed:
        yield Finding(
            level=Level.BLOCKER if purpose is Purpose.DOCTOR else Level.WARNING, check="webhooks", subject=subject,
            message="has no caBundle, so that the server trusts nobody who answers",
            todo="`vcbatch webhooks` writes it once it runs; cert-manager where that is used. See their logs."
            if one.maker is not Maker.VOLCANO
            else "Volcano's vc-webhook-manager writes it; see its log.",
        )  # fmt: skip


# -- Leases, policies, names ------------------------------------------------------------------------------------------


def held(lease: LeaseEntry, now: datetime) -> bool:
    """Whether somebody renews it."""
    return bool(lease.holder) and lease.renewed is not None and now - lease.renewed <= 2 * lease.duration


def _leases(inventory: Inventory, now: datetime, purpose: Purpose) -> Iterator[Finding]:
    if purpose is not Purpose.DOCTOR:
        return
    for lease in inventory.leases:
        subject = f"lease/{lease.name} in {lease.namespace}"
        if lease.maker is Maker.VOLCANO:
            if held(lease, now):
                yield Finding(
                    level=Level.WARNING, check="leases", subject=subject,
                    message=f"{lease.holder} of Volcano holds it: a program of Volcano's works",
                    todo="Stop it, unless it is to run beside vcbatch: `vcbatch migrate plan`.",
                )  # fmt: skip
        elif not held(lease, now):
            since = f" since {lease.renewed:%Y-%m-%d %H:%M:%S} UTC" if lease.renewed is not None else ""
            yield Finding(
                level=Level.BLOCKER, check="leases", subject=subject, message=f"nobody holds it{since}",
                todo=f"See the pods and their logs: kubectl get pods -n {lease.namespace}",
            )  # fmt: skip
        else:
            age = max(0, round((now - lease.renewed).total_seconds())) if lease.renewed is not None else 0
            yield _ok("leases", f"{lease.holder} holds it, renewed {age} s ago", subject)


def _policies(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is Purpose.INSTALL:
        return
    for one in inventory.policies:
        subject = f"configmap/{one.name} in {one.namespace}"
        if one.faults is None:
            yield Finding(
                level=Level.WARNING, check="policy", subject=subject, message=f"{one.key} was not checked",
                todo="Install the scheduler beside this command: pip install 'vcbatch[scheduler]'",
            )  # fmt: skip
            continue
        for fault in one.faults:
            yield Finding(
                level=Level.BLOCKER, check="policy", subject=subject, message=f"{one.key}: {fault}",
                todo="Change a copy until `vcbatch config check FILE` accepts it; `vcbatch config show` prints the "
                "built-in policy.",
            )  # fmt: skip
        for warning in one.warnings:
            yield Finding(
                level=Level.WARNING, check="policy", subject=subject, message=f"{one.key}: {warning}",
                todo="It does the same as in Volcano; change it where that isn't meant.",
            )  # fmt: skip
        if one.needs_metrics_api and inventory.metrics_api is False:
            yield Finding(
                level=Level.WARNING, check="metrics api", subject=subject,
                message="the policy goes by the load of nodes, and the cluster has no metrics API (metrics.k8s.io)",
                todo="Install metrics-server, or choose another type in the policy's section metrics.",
            )  # fmt: skip
        elif not one.faults and not one.warnings:
            yield _ok("policy", f"{one.key} is accepted as it is", subject)


def _schedulers(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is not Purpose.DOCTOR or inventory.local:
        return
    served = {name for one in inventory.programs if one.running for name in one.scheduler_names}
    if not served:
        return  # programs that are no workloads of the cluster
    lost = {
        name: count
        for name, count in inventory.scheduler_names.items()
        if name not in served and name in inventory.job_schedulers
    }
    for name, count in sorted(lost.items()):
        yield Finding(
            level=Level.WARNING, check="scheduler name", subject=name,
            message=f"{count} pods of Jobs name the scheduler {name}, for which no program was found",
            todo="Start a scheduler with --scheduler-name " + name + ", or correct the jobs' spec.schedulerName.",
        )  # fmt: skip


def _is_unread(inventory: Inventory, what: str) -> bool:
    return any(one.what == what for one in inventory.unread)


def _unread(inventory: Inventory) -> Iterator[Finding]:
    for one in inventory.unread:
        yield Finding(
            level=Level.WARNING, check="rights" if one.forbidden else "reading", subject=one.what,
            message=f"not checked: {one.why}",
            todo="Run it as somebody who may read this." if one.forbidden else "Run it again.",
        )  # fmt: skip
    for one in inventory.cut:
        yield Finding(
            level=Level.WARNING, check="reading", subject=one, message="there are more than were read",
            todo="Counts are lower bounds.",
        )  # fmt: skip
