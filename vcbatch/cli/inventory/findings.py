"""The findings of an inventory: pure decisions, one finding for each problem that a user may have to act on."""

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
from vcbatch.interfaces.installation import how_to_install

OLDEST: Final = (1, 34)
"""The oldest supported version of Kubernetes, as in the chart's `kubeVersion`."""
NEWEST: Final = (1, 37)
"""The newest version of Kubernetes that the tests run on."""
_SKEW: Final = timedelta(seconds=10)
_PATIENCE: Final = timedelta(minutes=1)
"""A Command that is older has no controller that executes it."""
_CORE: Final = (Role.SCHEDULER, Role.CONTROLLERS, Role.ADMISSION)


class Level(StrEnum):
    """The severity of a finding: blockers have to be fixed before anything is changed."""

    BLOCKER = "blocker"
    WARNING = "warning"
    OK = "ok"


class Purpose(StrEnum):
    """Why the cluster is checked: for an installation, or to diagnose an installed vcbatch."""

    INSTALL = "install"
    MIGRATE = "migrate"
    DOCTOR = "doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`check` is the kind of check, `subject` the object that it is about (empty: all of that kind), `todo` the
    suggested action, empty only where none is needed."""

    level: Level
    check: str
    subject: str = ""
    message: str
    todo: str = ""


def findings(inventory: Inventory, now: datetime, *, purpose: Purpose = Purpose.INSTALL) -> list[Finding]:
    """All findings, in the order of the checks."""
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
    """`(1, 36)` for `v1.36.1+k3s1`; None for a text that isn't a version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", version)
    return (int(found[1]), int(found[2])) if found else None


def _server(inventory: Inventory) -> Iterator[Finding]:
    release = release_of(inventory.version)
    supported = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}"
    if release is None:
        yield Finding(
            level=Level.WARNING, check="version", message=f"unknown server version {inventory.version!r}",
            todo=f"Kubernetes {supported} is supported.",
        )  # fmt: skip
    elif release < OLDEST:
        yield Finding(
            level=Level.BLOCKER, check="version",
            message=f"Kubernetes {inventory.version} is older than {_dotted(OLDEST)}, the minimum supported version",
            todo=f"Upgrade the cluster: Kubernetes {supported} is supported.",
        )  # fmt: skip
    elif release > NEWEST:
        yield Finding(
            level=Level.WARNING, check="version",
            message=f"Kubernetes {inventory.version} is newer than {_dotted(NEWEST)}, the newest tested version",
            todo="Test it on another cluster first.",
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
            message=f"the server's clock is {abs(skew).total_seconds():.0f} s {ahead} the local clock",
            todo="Ages and schedules are shown relative to the local clock; certificates and CronJobs use the clocks "
            "of their hosts. Synchronize the clocks (NTP).",
        )  # fmt: skip
    else:
        yield _ok("clock", "the clocks of the server and this client agree")


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
        yield _ok("crds", f"all {len(shipped())} CRDs match this version")


def _known(inventory: Inventory) -> list[Definition]:
    return [one for one in inventory.definitions if one.known]


def _definition(one: Definition, purpose: Purpose) -> Iterator[Finding]:
    subject = f"crd/{one.name}"
    if one.deleting:
        yield Finding(
            level=Level.BLOCKER, check="crds", subject=subject,
            message="is being deleted with all its objects",
            todo="Wait until it is deleted, then restore its objects from a backup.",
        )  # fmt: skip
        return
    if not one.known:
        if purpose is not Purpose.DOCTOR:
            yield Finding(
                level=Level.WARNING, check="crds", subject=subject,
                message="not a kind of vcbatch: its objects are kept but not reconciled",
                todo="Check whether you use them: kubectl get " + one.name,
            )  # fmt: skip
        return
    if not one.established:
        yield Finding(
            level=Level.BLOCKER, check="crds", subject=subject, message="not established: its objects aren't served",
            todo=f"See: kubectl describe crd {one.name}",
        )  # fmt: skip
    if not one.drift:
        return
    owned = f", managed by {one.owner}" if one.owner.tool else ""
    if purpose is Purpose.DOCTOR:
        yield Finding(
            level=Level.WARNING, check="crds", subject=subject,
            message=f"differs from this version{owned}: {drift_text(one.drift)}",
            todo="Upgrade it with the release that manages it, or: vcbatch crds | kubectl apply --server-side "
            "--force-conflicts -f -",
        )  # fmt: skip
    elif one.drift.extra:
        yield Finding(
            level=Level.WARNING, check="crds", subject=subject,
            message=f"has fields that this version doesn't have{owned}: {_listed(one.drift.extra)}",
            todo="After the CRD is replaced, the server drops these fields on the next write of an object. Check "
            "whether you use them, and back up the objects.",
        )  # fmt: skip
    else:
        yield _ok("crds", f"replaced by this version{owned}: {drift_text(one.drift)}", subject)


def drift_text(drift: Drift) -> str:
    """The differences as one sentence."""
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
        return  # `vcbatch.cli.migrate.check` reports on each of them
    ours = {name for one in inventory.programs_of(Maker.VCBATCH, Role.SCHEDULER) for name in one.scheduler_names}
    for one in inventory.programs_of(Maker.VOLCANO, *_CORE):
        if one.running:
            yield from _rival(one, ours or {DEFAULT_SCHEDULER}, purpose)
    yield from _twice(inventory)
    if purpose is Purpose.DOCTOR:
        yield from _readiness(inventory)


def _rival(one: Program, ours: set[str], purpose: Purpose) -> Iterator[Finding]:
    """The findings about a program of Volcano that runs beside vcbatch's."""
    todo = "For the order of stopping Volcano's components and starting vcbatch's: `vcbatch migrate plan`"
    if one.role is Role.SCHEDULER:
        shared = sorted(ours & set(one.scheduler_names))
        if not shared:
            names = ", ".join(one.scheduler_names)
            yield Finding(
                level=Level.WARNING, check="scheduler name", subject=one.title,
                message=f"Volcano's scheduler runs for schedulerName {names}, beside vcbatch",
                todo="Use separate nodes and queues for each: docs/sharding.md.",
            )  # fmt: skip
            return
        yield Finding(
            level=Level.BLOCKER, check="scheduler name", subject=one.title,
            message=f"Volcano's scheduler also runs for schedulerName {', '.join(shared)}",
            todo=todo if purpose is Purpose.INSTALL
            else f"Stop one: kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=0",
        )  # fmt: skip
        return
    yield Finding(
        level=Level.BLOCKER, check="programs", subject=one.title,
        message=f"Volcano's {one.role} is running; both would reconcile the same objects"
        if one.role is Role.CONTROLLERS
        else "Volcano's admission is running, with the same names of webhook configurations",
        todo=todo,
    )  # fmt: skip


def _twice(inventory: Inventory) -> Iterator[Finding]:
    """Findings about two Deployments of vcbatch with the same role and scheduler name."""
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
                        message=f"second {role} of vcbatch for {name}, besides {other.title}",
                        todo="Install one release per cluster; use another --scheduler-name for an additional "
                        "scheduler.",
                    )  # fmt: skip


def _readiness(inventory: Inventory) -> Iterator[Finding]:
    for one in inventory.programs_of(Maker.VCBATCH, *_CORE):
        if one.replicas == 0:
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title, message="scaled to 0 replicas",
                todo=f"kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=2",
            )  # fmt: skip
        elif one.ready == 0:
            yield Finding(
                level=Level.BLOCKER, check="programs", subject=one.title,
                message=f"0 of {one.replicas} replicas ready",
                todo=f"kubectl describe pods -n {one.namespace} -l {_selector(one)}, and their logs",
            )  # fmt: skip
        elif one.ready < one.replicas:
            yield Finding(
                level=Level.WARNING, check="programs", subject=one.title,
                message=f"{one.ready} of {one.replicas} replicas ready",
                todo=f"kubectl describe pods -n {one.namespace} -l {_selector(one)}",
            )  # fmt: skip
        else:
            yield _ok("programs", f"{one.ready} of {one.replicas} replicas ready", one.title)


def _selector(one: Program) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(one.selector.items()))


def _foreign(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is Purpose.INSTALL and inventory.foreign:
        yield Finding(
            level=Level.BLOCKER, check="ownership", message=f"managed by another tool: {_listed(inventory.foreign)}",
            todo="To transfer them: `vcbatch migrate plan`. To upgrade a Helm release of vcbatch, use helm.",
        )  # fmt: skip


# -- admission --------------------------------------------------------------------------------------------------------


def _webhooks(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    fine = 0
    for one in inventory.webhooks:
        found = list(_webhook(one, purpose))
        fine += not found
        yield from found
    if fine and fine == len(inventory.webhooks):
        yield _ok("webhooks", f"all {fine} have ready endpoints")


def _webhook(one: Webhook, purpose: Purpose) -> Iterator[Finding]:
    subject = f"{one.kind.lower()}/{one.configuration}"
    what = "pods" if one.pods else one.name.partition(".")[0]
    if one.service and one.ready == 0 and one.fails_closed:
        every = "no pod of any scheduler" if one.matches_all_pods else f"no {what}"
        yield Finding(
            level=Level.BLOCKER, check="webhooks", subject=subject,
            message=f"Service {one.target} has no ready endpoints and failurePolicy is Fail: {every} can be created or "
            "changed",
            todo=f"Start its webhook, or remove the configuration: kubectl delete {one.kind.lower()} "
            f"{one.configuration}",
        )  # fmt: skip
    elif one.service and one.ready == 0:
        yield Finding(
            level=Level.WARNING, check="webhooks", subject=subject,
            message=f"Service {one.target} has no ready endpoints: {what} aren't checked (failurePolicy Ignore)",
            todo=f"Start its webhook, and check: kubectl get endpointslices -n {one.target.partition('/')[0]}",
        )  # fmt: skip
    elif not one.trusted and one.fails_closed:
        yield Finding(
            level=Level.BLOCKER if purpose is Purpose.DOCTOR else Level.WARNING, check="webhooks", subject=subject,
            message="has no caBundle; the API server can't verify the webhook",
            todo="`vcbatch webhooks` (or cert-manager) writes it when it is ready; check its log."
            if one.maker is not Maker.VOLCANO
            else "Volcano's vc-webhook-manager writes it; check its log.",
        )  # fmt: skip


# -- Leases, policies, names ------------------------------------------------------------------------------------------


def held(lease: LeaseEntry, now: datetime) -> bool:
    """Whether a replica renews the Lease."""
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
                    message=f"held by {lease.holder} of Volcano, which is running",
                    todo="Stop it, unless it should run beside vcbatch: `vcbatch migrate plan`.",
                )  # fmt: skip
        elif not held(lease, now):
            since = f" since {lease.renewed:%Y-%m-%d %H:%M:%S} UTC" if lease.renewed is not None else ""
            yield Finding(
                level=Level.BLOCKER, check="leases", subject=subject, message=f"no holder{since}",
                todo=f"Check the pods and their logs: kubectl get pods -n {lease.namespace}",
            )  # fmt: skip
        else:
            age = max(0, round((now - lease.renewed).total_seconds())) if lease.renewed is not None else 0
            yield _ok("leases", f"held by {lease.holder}, renewed {age} s ago", subject)


def _policies(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is Purpose.INSTALL:
        return
    for one in inventory.policies:
        subject = f"configmap/{one.name} in {one.namespace}"
        if one.errors is None:
            yield Finding(
                level=Level.WARNING, check="policy", subject=subject, message=f"{one.key} was not checked",
                todo=f"The installation lacks numpy. {how_to_install()}",
            )  # fmt: skip
            continue
        for error in one.errors:
            yield Finding(
                level=Level.BLOCKER, check="policy", subject=subject, message=f"{one.key}: {error}",
                todo="Fix it, and validate it with `vcbatch config check FILE`. To print the built-in configuration: "
                "`vcbatch config show`",
            )  # fmt: skip
        for warning in one.warnings:
            yield Finding(
                level=Level.WARNING, check="policy", subject=subject, message=f"{one.key}: {warning}",
                todo="It works as in Volcano; change it if that isn't intended.",
            )  # fmt: skip
        if one.needs_metrics_api and inventory.metrics_api is False:
            yield Finding(
                level=Level.WARNING, check="metrics api", subject=subject,
                message="the scheduler configuration uses node metrics, but the metrics API (metrics.k8s.io) isn't "
                "installed",
                todo="Install metrics-server, or set another type in section metrics of the configuration.",
            )  # fmt: skip
        elif not one.errors and not one.warnings:
            yield _ok("policy", f"{one.key} is valid", subject)


def _schedulers(inventory: Inventory, purpose: Purpose) -> Iterator[Finding]:
    if purpose is not Purpose.DOCTOR or inventory.local:
        return
    served = {name for one in inventory.programs if one.running for name in one.scheduler_names}
    if not served:
        return  # programs outside the cluster's workloads
    lost = {
        name: count
        for name, count in inventory.scheduler_names.items()
        if name not in served and name in inventory.job_schedulers
    }
    for name, count in sorted(lost.items()):
        yield Finding(
            level=Level.WARNING, check="scheduler name", subject=name,
            message=f"{count} pods of Jobs use scheduler {name}, which isn't running",
            todo="Start a scheduler with --scheduler-name " + name + ", or fix spec.schedulerName of the jobs.",
        )  # fmt: skip


def _is_unread(inventory: Inventory, what: str) -> bool:
    return any(one.what == what for one in inventory.unread)


def _unread(inventory: Inventory) -> Iterator[Finding]:
    for one in inventory.unread:
        yield Finding(
            level=Level.WARNING, check="rights" if one.forbidden else "reading", subject=one.what,
            message=f"not checked: {one.why}",
            todo="Run it with permission to read this." if one.forbidden else "Run it again.",
        )  # fmt: skip
    for one in inventory.cut:
        yield Finding(
            level=Level.WARNING, check="reading", subject=one, message="list is truncated",
            todo="Counts are lower bounds.",
        )  # fmt: skip
