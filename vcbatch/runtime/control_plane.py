"""All controllers of one program, with the caches they share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypedDict

from vcbatch.api.names import CONTROLLERS_COMPONENT, DEFAULT_SCHEDULER
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.queue import QueueState
from vcbatch.api.quota import Quota
from vcbatch.api.resources import (
    COLOCATIONCONFIGURATIONS,
    COMMANDS,
    CRONJOBS,
    HYPERNODES,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    NODES,
    NODESHARDS,
    PERSISTENTVOLUMECLAIMS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCEQUOTAS,
    Resource,
)
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.core.hypernode import Discovery
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.accounting import AccountingStore
from vcbatch.interfaces.api import Api, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.accounting.recorder import KEPT_DAYS, Accounting
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.handlers import CustomResources, CustomResourceSource, Feed
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.controllers.children import Children
from vcbatch.runtime.controllers.claims import Claims
from vcbatch.runtime.controllers.colocation import ColocationController
from vcbatch.runtime.controllers.command import CommandController
from vcbatch.runtime.controllers.controller import Controller
from vcbatch.runtime.controllers.cronjob import CronJobController
from vcbatch.runtime.controllers.hypernode import HyperNodeController, NodeLabels
from vcbatch.runtime.controllers.job import JobController, JobSources
from vcbatch.runtime.controllers.jobflow import JobFlowController, JobFlowSources
from vcbatch.runtime.controllers.jobtemplate import JobTemplateController
from vcbatch.runtime.controllers.own_admission import OwnAdmission
from vcbatch.runtime.controllers.podgroup import PodGroupController, follow_workloads
from vcbatch.runtime.controllers.queue import QueueController
from vcbatch.runtime.controllers.references import References
from vcbatch.runtime.controllers.sharding import ShardingController, ShardingFile
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.fabric_manager import FabricManager
from vcbatch.runtime.metrics.creation import CreationMetrics
from vcbatch.runtime.metrics.ends import EndMetrics
from vcbatch.runtime.metrics.jobs import JobMetrics
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.probes import Ask, Prober, Sockets
from vcbatch.runtime.tracing.jobs import JobSpans
from vcbatch.runtime.tracing.tracer import Tracer

# Custom resources that are watched by kopf. A PodGroup changes about as often as a pod, and is watched like pods.
HOSTED = (JOBS, QUEUES, COMMANDS, CRONJOBS, HYPERNODES, JOBFLOWS, JOBTEMPLATES)


class _Common(TypedDict):
    """The arguments that all controllers have in common."""

    clock: Clock
    random: Random
    meter: Meter


class _HasController(Protocol):
    controller: Controller

    def part(self) -> Part: ...


class _Seen:
    """The caches that several controllers share."""

    def __init__(self, api: Api, informers: Informers, *, clock: Clock, shards: bool) -> None:
        """NodeShards are watched only with `shards`: a cluster may have no such kind."""
        self.custom: dict[Resource, Cache[Json]] = {resource: Cache() for resource in HOSTED}
        """The caches of `HOSTED`, filled from another source than `informers`."""
        self.podgroups = informers.follow(PODGROUPS)
        self.pods = informers.follow(PODS, Pod)
        self.node_shards: Cache[Json] = informers.follow(NODESHARDS) if shards else Cache()
        self._priority_classes = informers.follow(PRIORITYCLASSES, PriorityClassView)
        self._claims = Claims(api, informers.follow(PERSISTENTVOLUMECLAIMS, Claim))
        self._quotas = informers.follow(RESOURCEQUOTAS, Quota)
        self._children = Children(api, clock=clock)
        self._references = References(api, self._claims, self._priority_classes, clock=clock)

    def applier(
        self, api: Api, recorder: Recorder, *, clock: Clock, random: Random, schedulers: Collection[str]
    ) -> Applier:
        """The applier, which puts the response to each write into these caches at once."""
        own = OwnAdmission(self.custom[QUEUES], self.custom[JOBS], schedulers=schedulers)
        return Applier(
            api,
            {
                PODS: self.pods,
                PODGROUPS: self.podgroups,
                NODESHARDS: self.node_shards,
                PERSISTENTVOLUMECLAIMS: self._claims.cache,
                **self.custom,
                **self._children.caches,
            },
            recorder,
            clock=clock,
            random=random,
            without_status=[PODGROUPS],
            unfollowed=self._children.caches,
            judges={PODS: own.of_pod, PODGROUPS: own.of_pod_group},
        )

    def by_jobs(self) -> JobSources:
        """The caches for decisions about Jobs."""
        return JobSources(
            jobs=self.custom[JOBS],
            pods=self.pods,
            podgroups=self.podgroups,
            queues=self.custom[QUEUES],
            commands=self.custom[COMMANDS],
            priority_classes=self._priority_classes,
            children=self._children,
            claims=self._claims,
            references=self._references,
            quotas=self._quotas,
        )

    def by_flows(self) -> JobFlowSources:
        """The caches for decisions about JobFlows."""
        return JobFlowSources(
            flows=self.custom[JOBFLOWS],
            templates=self.custom[JOBTEMPLATES],
            jobs=self.custom[JOBS],
            pods=self.pods,
            commands=self.custom[COMMANDS],
        )


class ControlPlane:
    """The controllers of Jobs, CronJobs, JobFlows, JobTemplates, Queues, PodGroups, Commands and HyperNodes.

    kopf hosts them: it watches the `HOSTED` custom resources, unless `followed_by` gives another source (a simulation
    has one loop and one clock, and kopf brings its own). Pods that name no gang get a PodGroup if a scheduler of
    `scheduler_names` has to place them, with the annotations of their workload unless `inherit_owner_annotations` is
    off. HyperNodes are created from what `discovery` names, and NodeShards as `sharding` configures. JobFlows probe
    pods through `asks`, over the network by default. Failures of kopf are reported to `health`. Reconciles and the
    progress of jobs are recorded by `tracer`, and the attempts of jobs in the store `accounting`, for
    `accounting_days`."""

    def __init__(
        self,
        api: Api,
        connection: Connection,
        informers: Informers,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        host: str = "",
        scheduler_names: Collection[str] = (DEFAULT_SCHEDULER,),
        inherit_owner_annotations: bool = True,
        discovery: FollowedFile[Discovery] | None = None,
        sharding: ShardingFile | None = None,
        followed_by: Callable[[Sequence[Feed]], CustomResourceSource] | None = None,
        asks: Ask | None = None,
        health: Health | None = None,
        tracer: Tracer | None = None,
        accounting: AccountingStore | None = None,
        accounting_days: int = KEPT_DAYS,
    ) -> None:
        common = _Common(clock=clock, random=random, meter=meter or NoMeter())
        seen = _Seen(api, informers, clock=clock, shards=sharding is not None)
        custom, pods, podgroups = seen.custom, seen.pods, seen.podgroups
        self._informers = informers
        self._queue_cache = custom[QUEUES]
        self._discovery = discovery
        self._sharding = sharding
        self._prober = Prober(asks or Sockets(), clock=clock)
        self.recorder = Recorder(
            api,
            clock=clock,
            random=random,
            component=CONTROLLERS_COMPONENT,
            host=host,
            on_drop=lambda count: common["meter"].count("events_dropped", count, component="controllers"),
        )
        feeds = [Feed(resource=resource, cache=cache) for resource, cache in custom.items()]
        self.custom_resources: CustomResourceSource = (
            followed_by(feeds) if followed_by else CustomResources(api, connection, feeds, **common, health=health)
        )
        applier = seen.applier(api, self.recorder, clock=clock, random=random, schedulers=scheduler_names)

        self.accounting = (
            Accounting(accounting, jobs=custom[JOBS], pods=pods, days=accounting_days, **common)
            if accounting is not None
            else None
        )
        ending = self.accounting.ending if self.accounting is not None else None
        self.jobs = JobController(seen.by_jobs(), applier, self.recorder, **common, ending=ending)
        self.cron_jobs = CronJobController(custom[CRONJOBS], custom[JOBS], applier, self.recorder, **common)
        self.job_flows = JobFlowController(seen.by_flows(), self._prober, applier, self.recorder, **common)
        self.job_templates = JobTemplateController(custom[JOBTEMPLATES], custom[JOBS], applier, **common)
        workloads = follow_workloads(informers)
        self.queues = QueueController(
            custom[QUEUES],
            podgroups,
            custom[COMMANDS],
            applier,
            **common,
            jobs=custom[JOBS],
            pods=pods,
            workloads=workloads,
        )
        self.podgroups = PodGroupController(
            api,
            pods,
            podgroups,
            workloads,
            applier,
            self.recorder,
            **common,
            scheduler_names=scheduler_names,
            inherit_owner_annotations=inherit_owner_annotations,
        )
        targets = {resource: custom[resource] for resource in (JOBS, QUEUES, JOBFLOWS)}
        self.commands = CommandController(custom[COMMANDS], targets, applier, **common)
        self.hyper_nodes = HyperNodeController(
            custom[HYPERNODES], informers.follow(NODES, NodeLabels), applier, **common, discovery=discovery
        )
        fabric = discovery.current.fabric if discovery is not None else None
        self._fabric = FabricManager(api, clock=clock, fabric=fabric, learned=self.hyper_nodes.know_fabric)
        if discovery is not None:
            discovery.listen(lambda: self._fabric.use(discovery.current.fabric))
        configurations = informers.follow(COLOCATIONCONFIGURATIONS, optional=True)
        self.colocation = ColocationController(configurations, pods, applier, **common)
        self.node_shards = (
            ShardingController(sharding, seen.node_shards, informers.follow(NODES, Node), pods, applier, **common)
            if sharding is not None
            else None
        )

        self.ends = EndMetrics(common["meter"], jobs=custom[JOBS], flows=custom[JOBFLOWS])
        self._job_metrics = JobMetrics(common["meter"], jobs=custom[JOBS], queues=custom[QUEUES])
        self._spans = JobSpans(tracer, custom[JOBS], clock=clock) if tracer is not None else None
        for each in self._controllers():
            each.controller.tracer = tracer
        self._creations = CreationMetrics(common["meter"], jobs=custom[JOBS], pods=pods)

    def sources(self) -> list[Part]:
        """The background tasks that fill the custom resources' caches. They must run, and `listed` be set, before pods
        are listed: with pods older than the jobs in the caches, pods would seem to be lost."""
        return [
            Part(name="listing custom resources", run=self.custom_resources.audit),
            Part(name="watching custom resources", run=self.custom_resources.watch),
        ]

    async def queue_open(self, name: str) -> None:
        """Return once that queue accepts jobs."""
        opened = asyncio.Event()

        def reconcile(_: object = None) -> None:
            queue = self._queue_cache.by_key(name)
            if queue is not None and (queue.get("status") or {}).get("state") == QueueState.OPEN:
                opened.set()

        self._queue_cache.listen(reconcile)
        reconcile()
        await opened.wait()

    async def listed(self) -> None:
        await self.custom_resources.listed.wait()

    def parts(self) -> list[Part]:
        """The background tasks of the controllers. Each waits until all caches are complete."""
        controllers = self._controllers()

        timing = Part(name="timing the creation of pods", run=self._creations.run)
        tracing = [Part(name="tracing jobs", run=self._spans.run)] if self._spans is not None else []
        accounting = [self.accounting.part()] if self.accounting is not None else []
        parts = [
            timing,
            *tracing,
            *accounting,
            self.jobs.check_part(),
            *(controller.part() for controller in controllers),
        ]
        return [
            *(Part(name=part.name, run=self._after_sync(part)) for part in parts),
            Part(name="sending the controllers' events", run=self.recorder.run),
            self._prober.part(),
            *(self._discovering(self._discovery) if self._discovery else []),
            *([Part(name="following the sharding", run=self._sharding.follow)] if self._sharding else []),
        ]

    def unfollowed(self) -> str:
        """Which resources aren't watched at present; "" where all are."""
        return "; ".join(filter(None, (self._informers.error(), self.custom_resources.error())))

    def stuck(self) -> str:
        """Which controllers have queued objects and reconcile none; "" where no controller is stuck."""
        return "; ".join(filter(None, (each.controller.error() for each in self._controllers())))

    def _controllers(self) -> Sequence[_HasController]:
        return (
            self.jobs,
            self.cron_jobs,
            self.job_flows,
            self.job_templates,
            self.queues,
            self.podgroups,
            self.commands,
            self.hyper_nodes,
            self.colocation,
            *([self.node_shards] if self.node_shards is not None else []),
        )

    def _discovering(self, discovery: FollowedFile[Discovery]) -> list[Part]:
        return [
            Part(name="following the configuration", run=discovery.follow),
            Part(name="asking the fabric manager", run=self._fabric.run),
        ]

    def _after_sync(self, part: Part) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self.listed()
            await self._informers.synced()
            await part.run()

        return run
