"""Reads the inventory of a cluster, in pages and bounded. Items are read separately, so that a missing permission
affects only one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, TypeVar

import msgspec

from vcbatch.api import names
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import (
    COMMANDS,
    CONFIGMAPS,
    CRDS,
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBFLOWS,
    JOBS,
    LEASES,
    NODE_USAGES,
    NODES,
    NODESHARDS,
    PODGROUPS,
    PODS,
    QUEUES,
    SERVICES,
    STATEFULSETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from vcbatch.cli.base.fields import dig, moment, name_of, namespace_of, number, objects, text, words
from vcbatch.cli.inventory.drift import drift_of, shipped
from vcbatch.cli.inventory.model import (
    NAMES_KEPT,
    AdmissionPolicy,
    CommandEntry,
    CronEntry,
    Definition,
    Inventory,
    LeaseEntry,
    Maker,
    PolicyEntry,
    Program,
    QueueEntry,
    Role,
    Tally,
    Unread,
    Webhook,
)
from vcbatch.cli.inventory.policy import validated
from vcbatch.cli.inventory.programs import INSTALLER, MANAGED_BY, RESOURCE_POLICY, owner_of, program_of
from vcbatch.interfaces.api import Api, ApiError, get_or_none

Json = dict[str, Any]
T = TypeVar("T")

MOST: Final = 100_000
"""Maximum number of objects of one kind that are read."""
GROUPS: Final = ".volcano.sh"
_ADMISSION: Final = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS: Final = Resource(
    group=_ADMISSION, version="v1", plural="mutatingwebhookconfigurations", kind="MutatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip
ADMISSION_POLICIES: Final = tuple(
    Resource(group=_ADMISSION, version="v1", plural=plural, kind=kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    )
)
ENDPOINT_SLICES: Final = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice")
_FINISHED: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})
_VOLCANO_LEASES: Final = frozenset({"vc-controller-manager", "vc-hypernode-controller-manager", "vc-agent-scheduler"})
_VOLCANO_POLICIES: Final = frozenset(
    {
        "job-validation-policy",
        "queue-validation-policy",
        "podgroup-validation-policy",
        "pod-validation-policy",
        "hypernode-validation-policy",
        "jobflow-validation-policy",
    }
)
"""Policies of Volcano's chart (`vap_enable`); those of `map_enable` begin with `volcano-`."""


class PagedApi(Api, Protocol):
    """An API that returns lists page by page."""

    def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> AsyncIterator[Sequence[T]]: ...


# -- the fields that are kept of numerous objects ---------------------------------------------------------------------


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    owner_references: list[_Owner] | None = None
    labels: dict[str, str] | None = None


class _JobSpec(msgspec.Struct, rename="camel"):
    scheduler_name: str = ""


class _State(msgspec.Struct):
    phase: str = ""


class _JobStatus(msgspec.Struct):
    state: _State = msgspec.field(default_factory=_State)
    ledger: dict[str, Any] | None = None


class _Job(msgspec.Struct):
    metadata: _Meta
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)


class _Phase(msgspec.Struct):
    phase: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta
    status: _Phase = msgspec.field(default_factory=_Phase)


class _PodSpec(msgspec.Struct, rename="camel"):
    scheduler_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _Phase = msgspec.field(default_factory=_Phase)


class _Bare(msgspec.Struct):
    metadata: _Meta


class _Allocatable(msgspec.Struct):
    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class _Node(msgspec.Struct):
    metadata: _Meta
    status: _Allocatable = msgspec.field(default_factory=_Allocatable)


class _Sums:
    """Counts by group, with the first names of each."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._names: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, group: str, metadata: _Meta) -> None:
        self._counts[group] += 1
        if len(self._names[group]) < NAMES_KEPT:
            self._names[group].append(f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name)

    def tally(self) -> Tally:
        return Tally(counts=dict(self._counts), names={key: tuple(value) for key, value in self._names.items()})


# -- reading ----------------------------------------------------------------------------------------------------------


class Reader:
    """Reads one inventory."""

    def __init__(
        self,
        api: PagedApi,
        *,
        version: Callable[[], Awaitable[Json]],
        now: Callable[[], datetime],
        components: str = names.COMPONENTS_NAMESPACE,
    ) -> None:
        """`version` requests the server's version."""
        self._ask = version
        self._api = api
        self._now = now
        self._components = components
        self._unread: list[Unread] = []
        self._cut: list[str] = []

    async def read(self) -> Inventory:
        """The inventory. Raises `ApiError` where the server doesn't respond or doesn't authenticate the user;
        everything else that can't be read is listed in `unread`."""
        version, skew = await self._version()
        programs = await self._item("Deployments, StatefulSets and DaemonSets", self._programs, [])
        jobs, schedulers, ledgers, unfinished = await self._item(
            "Jobs of Volcano's API", self._jobs, (Tally(), {}, 0, frozenset[str]())
        )
        groups, old_names = await self._item("PodGroups", lambda: self._groups(unfinished), (Tally(), Tally()))
        devices, colocated = await self._item("Nodes", self._nodes, (0, 0))
        return Inventory(
            version=version,
            local=names.LOCAL_SERVER_MARK in version,
            skew=skew,
            components=self._components,
            programs=programs,
            definitions=await self._item("CustomResourceDefinitions", self._definitions, []),
            webhooks=await self._item("webhook configurations", lambda: self._webhooks(programs), []),
            admission_policies=await self._item("admission policies", self._admission_policies, []),
            leases=await self._item("Leases", lambda: self._leases(programs), []),
            policies=await self._item("ConfigMaps with policies", lambda: self._policies(programs), []),
            scheduler_names=await self._item("Pods", self._pods, {}),
            jobs=jobs,
            job_schedulers=schedulers,
            ledgers=ledgers,
            pod_groups=groups,
            old_names=old_names,
            queues=await self._item("Queues", self._queues, []),
            commands=await self._item("Commands", self._commands, []),
            cronjobs=await self._item("CronJobs of Volcano's API", self._cronjobs, []),
            flows=await self._item("JobFlows", self._flows, Tally()),
            shards=await self._item("NodeShards", self._shards, []),
            virtual_devices=devices,
            colocated=colocated,
            metrics_api=await self._item("the metrics API", self._metrics, None),
            unread=tuple(self._unread),
            cut=tuple(self._cut),
        )

    async def _item(self, what: str, read: Callable[[], Awaitable[T]], empty: T) -> T:
        try:
            return await read()
        except ApiError as error:
            if error.code in (0, 401):
                raise
            self._unread.append(Unread(what=what, why=error.sentence, forbidden=error.code == 403))
            return empty

    async def _each(
        self, resource: Resource, model: type[T] = dict, *, namespace: str | None = None, field_selector: str = ""
    ) -> AsyncIterator[T]:
        """At most `MOST` objects; none where the server doesn't have the kind."""
        count = 0
        pages = self._api.pages(resource, namespace=namespace, field_selector=field_selector, model=model)
        try:
            async with aclosing(pages) as each:  # type: ignore[type-var]
                async for page in each:
                    for one in page:
                        yield one
                    count += len(page)
                    if count >= MOST:
                        self._cut.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
                        return
        except ApiError as error:
            if not error.not_found:
                raise

    # The server

    async def _version(self) -> tuple[str, timedelta | None]:
        before = self._now()
        reported = await self._ask()
        return text(reported, "gitVersion"), skew_of(getattr(self._api, "server_date", ""), before, self._now())

    async def _metrics(self) -> bool:
        try:
            await self._api.list(NODE_USAGES, field_selector="metadata.name=none", model=_Bare)
        except ApiError as error:
            if error.not_found or error.code == 503:
                return False
            raise
        return True

    # Installed objects

    async def _definitions(self) -> list[Definition]:
        named = [one.metadata.name async for one in self._each(CRDS, _Bare) if one.metadata.name.endswith(GROUPS)]
        found = [await get_or_none(self._api, CRDS, name) for name in sorted(named)]
        return [definition_of(one) for one in found if one is not None]

    async def _programs(self) -> list[Program]:
        found: list[Program] = []
        for resource in (DEPLOYMENTS, STATEFULSETS, DAEMONSETS):
            async for one in self._each(resource):
                program = program_of(resource.kind, one)
                if program is not None:
                    found.append(program)
        return sorted(found, key=lambda one: (one.maker, one.role, one.namespace, one.name))

    async def _webhooks(self, programs: Sequence[Program]) -> list[Webhook]:
        found: list[Webhook] = []
        targets: dict[str, tuple[Maker, int | None]] = {}
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            async for configuration in self._each(resource):
                for webhook in objects(configuration, "webhooks"):
                    if not concerns(configuration, webhook):
                        continue
                    target = target_of(webhook)
                    if target not in targets:
                        targets[target] = await self._behind(webhook, programs)
                    maker, ready = targets[target]
                    found.append(webhook_of(resource.kind, configuration, webhook, maker, ready))
        return found

    async def _behind(self, webhook: Json, programs: Sequence[Program]) -> tuple[Maker, int | None]:
        """The project whose program serves a webhook's Service, and the number of its ready endpoints."""
        namespace = text(webhook, "clientConfig", "service", "namespace")
        name = text(webhook, "clientConfig", "service", "name")
        if not (namespace and name):
            return Maker.UNKNOWN, None
        try:
            service = await get_or_none(self._api, SERVICES, name, namespace=namespace)
            if service is None:
                return Maker.UNKNOWN, 0
            slices = await self._api.list(
                ENDPOINT_SLICES, namespace=namespace, label_selector=f"kubernetes.io/service-name={name}"
            )
        except ApiError as error:
            if error.code in (0, 401):
                raise
            self._unread.append(
                Unread(what=f"Service {namespace}/{name}", why=error.sentence, forbidden=error.code == 403)
            )
            return Maker.UNKNOWN, None
        ready = sum(
            max(1, len(endpoint.get("addresses") or ()))
            for one in slices.items
            for endpoint in objects(one, "endpoints")
            if dig(endpoint, "conditions", "ready") is not False
        )
        selector = words(service, "spec", "selector")
        makers = {
            one.maker
            for one in programs
            if one.namespace == namespace and selector and selector.items() <= one.selector.items()
        }
        return (makers.pop() if len(makers) == 1 else Maker.UNKNOWN), ready

    async def _admission_policies(self) -> list[AdmissionPolicy]:
        found: list[AdmissionPolicy] = []
        for resource in ADMISSION_POLICIES:
            async for one in self._each(resource):
                maker = policy_maker(one)
                if maker is not Maker.UNKNOWN:
                    owner = owner_of(one)
                    found.append(AdmissionPolicy(kind=resource.kind, name=name_of(one), maker=maker, owner=owner))
        return found

    async def _leases(self, programs: Sequence[Program]) -> list[LeaseEntry]:
        schedulers = {name for one in programs if one.maker is Maker.VOLCANO for name in one.scheduler_names} | {
            names.DEFAULT_SCHEDULER
        }
        found: list[LeaseEntry] = []
        for namespace in sorted({self._components, names.COMPONENTS_NAMESPACE, *(one.namespace for one in programs)}):
            async for lease in self._each(LEASES, namespace=namespace):
                name = name_of(lease)
                if name.startswith("vcbatch-"):
                    found.append(lease_of(lease, Maker.VCBATCH))
                elif name in _VOLCANO_LEASES | schedulers:
                    found.append(lease_of(lease, Maker.VOLCANO))
        return found

    async def _policies(self, programs: Sequence[Program]) -> list[PolicyEntry]:
        wanted = {
            (one.namespace, *one.policy): one.maker for one in programs if one.role is Role.SCHEDULER and one.policy[0]
        }
        found: list[PolicyEntry] = []
        for (namespace, name, key), maker in wanted.items():
            stored = await get_or_none(self._api, CONFIGMAPS, name, namespace=namespace)
            data = dig(stored, "data", key) if stored is not None else None
            found.append(validated(namespace, name, key, maker, data if isinstance(data, str) else None))
        return found

    # Running programs

    async def _jobs(self) -> tuple[Tally, dict[str, int], int, frozenset[str]]:
        sums, schedulers, ledgers, unfinished = _Sums(), Counter[str](), 0, set[str]()
        async for job in self._each(JOBS, _Job):
            phase = job.status.state.phase
            sums.add(phase, job.metadata)
            ledgers += bool(job.status.ledger)
            if phase not in _FINISHED:
                schedulers[job.spec.scheduler_name or names.DEFAULT_SCHEDULER] += 1
                unfinished.add(job.metadata.uid)
        return sums.tally(), dict(schedulers), ledgers, frozenset(unfinished)

    async def _groups(self, unfinished: frozenset[str]) -> tuple[Tally, Tally]:
        phases, old = _Sums(), _Sums()
        async for group in self._each(PODGROUPS, _Group):
            phases.add(group.status.phase, group.metadata)
            for owner in group.metadata.owner_references or ():
                if owner.controller and owner.uid in unfinished and group.metadata.name == owner.name:
                    old.add(owner.kind, group.metadata)
        return phases.tally(), old.tally()

    async def _pods(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        async for pod in self._each(PODS, _Pod, field_selector=f"spec.schedulerName!={names.KUBE_SCHEDULER}"):
            if pod.status.phase not in ("Succeeded", "Failed") and pod.spec.scheduler_name:
                found[pod.spec.scheduler_name] += 1
        return dict(found)

    async def _queues(self) -> list[QueueEntry]:
        return [queue_of(one) async for one in self._each(QUEUES)]

    async def _commands(self) -> list[CommandEntry]:
        return [
            CommandEntry(
                namespace=namespace_of(one),
                name=name_of(one),
                action=text(one, "action"),
                target=f"{text(one, 'target', 'kind')}/{text(one, 'target', 'name')}",
                created=moment(one, "metadata", "creationTimestamp"),
            )
            async for one in self._each(COMMANDS)
        ]

    async def _cronjobs(self) -> list[CronEntry]:
        return [
            CronEntry(
                namespace=namespace_of(one),
                name=name_of(one),
                suspended=dig(one, "spec", "suspend") is True,
                active=len(objects(one, "status", "active")),
                time_zone=text(one, "spec", "timeZone"),
            )
            async for one in self._each(CRONJOBS)
        ]

    async def _flows(self) -> Tally:
        sums = _Sums()
        async for flow in self._each(JOBFLOWS, _Job):
            sums.add(flow.status.state.phase, flow.metadata)
        return sums.tally()

    async def _shards(self) -> list[str]:
        return [one.metadata.name async for one in self._each(NODESHARDS, _Bare)]

    async def _nodes(self) -> tuple[int, int]:
        devices = colocated = 0
        async for node in self._each(NODES, _Node):
            devices += names.VGPU_NUMBER in node.status.allocatable
            colocated += (node.metadata.labels or {}).get(names.OVERSUBSCRIPTION) == "true"
        return devices, colocated


# -- decoding of objects
# ------------------------------------------------------------------------------------------------


def skew_of(date: str, before: datetime, after: datetime) -> timedelta | None:
    """How far the server's clock is ahead, by the header `Date` of a response that arrived between the two times. The
    header has whole seconds, so a difference within the request's duration and one second isn't skew."""
    try:
        there = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    if there.tzinfo is None:
        return None
    if there > after:
        return there - after
    if there + timedelta(seconds=1) < before:
        return there + timedelta(seconds=1) - before
    return timedelta()


def definition_of(stored: Json) -> Definition:
    conditions = {text(one, "type"): text(one, "status") for one in objects(stored, "status", "conditions")}
    return Definition(
        name=name_of(stored),
        owner=owner_of(stored),
        known=name_of(stored) in shipped(),
        established=conditions.get("Established") == "True",
        kept=words(stored, "metadata", "annotations").get(RESOURCE_POLICY) == "keep",
        drift=drift_of(stored),
        deleting=bool(text(stored, "metadata", "deletionTimestamp")),
    )


def concerns(configuration: Json, webhook: Json) -> bool:
    """Whether the webhook is called for Volcano's kinds, or is one of Volcano or vcbatch for pods."""
    for rule in objects(webhook, "rules"):
        groups = rule.get("apiGroups")
        if isinstance(groups, list) and any(isinstance(one, str) and one.endswith(GROUPS) for one in groups):
            return True
    return text(webhook, "name").endswith(GROUPS) or name_of(configuration).startswith("volcano-admission-service")


def target_of(webhook: Json) -> str:
    service = dig(webhook, "clientConfig", "service")
    if isinstance(service, dict):
        return f"{text(service, 'namespace')}/{text(service, 'name')}"
    return text(webhook, "clientConfig", "url")


def webhook_of(kind: str, configuration: Json, webhook: Json, maker: Maker, ready: int | None) -> Webhook:
    pods = any("pods" in (rule.get("resources") or ()) for rule in objects(webhook, "rules"))
    return Webhook(
        kind=kind,
        configuration=name_of(configuration),
        name=text(webhook, "name"),
        maker=maker if maker is not Maker.UNKNOWN else _maker_of(configuration),
        owner=owner_of(configuration),
        fails_closed=text(webhook, "failurePolicy") != "Ignore",
        trusted=bool(text(webhook, "clientConfig", "caBundle")),
        target=target_of(webhook),
        service=isinstance(dig(webhook, "clientConfig", "service"), dict),
        ready=ready,
        pods=pods,
        # The webhooks of vcbatch have a match condition on the scheduler's name.
        matches_all_pods=pods and not objects(webhook, "matchConditions") and not dig(webhook, "objectSelector"),
    )


def _maker_of(configuration: Json) -> Maker:
    """The project of a webhook configuration, where no program determines it."""
    labels = words(configuration, "metadata", "labels")
    owner = owner_of(configuration)
    ours = (labels.get("app.kubernetes.io/name"), labels.get("app.kubernetes.io/part-of"), labels.get(MANAGED_BY))
    if "vcbatch" in ours or INSTALLER in ours or owner.name.startswith("vcbatch"):
        return Maker.VCBATCH
    if owner.tool == "Helm" and name_of(configuration).startswith("volcano-admission-service"):
        return Maker.VOLCANO
    return Maker.UNKNOWN


def policy_maker(policy: Json) -> Maker:
    name = name_of(policy)
    labels = words(policy, "metadata", "labels")
    if name.startswith("vcbatch") or labels.get("app.kubernetes.io/name") == "vcbatch":
        return Maker.VCBATCH
    bound = text(policy, "spec", "policyName") or name
    bare = bound.removesuffix("-binding")
    return Maker.VOLCANO if bare in _VOLCANO_POLICIES or bare.startswith("volcano-") else Maker.UNKNOWN


def lease_of(lease: Json, maker: Maker) -> LeaseEntry:
    return LeaseEntry(
        namespace=namespace_of(lease),
        name=name_of(lease),
        maker=maker,
        holder=text(lease, "spec", "holderIdentity"),
        renewed=moment(lease, "spec", "renewTime"),
        duration=timedelta(seconds=number(lease, "spec", "leaseDurationSeconds") or 15),
        failing=words(lease, "metadata", "annotations").get(names.FAILING_TASKS, ""),
    )


def queue_of(queue: Json) -> QueueEntry:
    counts = {key: number(queue, "status", key) for key in ("pending", "inqueue", "running", "unknown", "completed")}
    managers = [
        f"{text(entry, 'manager')} ({text(entry, 'operation')})"
        for entry in objects(queue, "metadata", "managedFields")
        if dig(entry, "fieldsV1", "f:status", "f:state") is not None
    ]
    return QueueEntry(
        name=name_of(queue),
        state=text(queue, "status", "state"),
        parent=text(queue, "spec", "parent"),
        counts={key: value for key, value in counts.items() if value},
        state_managers=tuple(managers),
    )
