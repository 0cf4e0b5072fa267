"""The scheduler of `vcbatch up`: its policy, which may change, its recordings, and the description that other commands
read."""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import Final

from vcbatch.api.names import DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.api.resources import LEASES
from vcbatch.cli.base.local_scheduler import LocalScheduler, leave
from vcbatch.cli.components.recorder import recorded_scheduler
from vcbatch.cli.files.plugin_files import load as load_plugins
from vcbatch.cli.local.options import LocalOptions
from vcbatch.cli.local.serving import SCHEDULER_NAMES
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces import ApiError
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.scheduling.extender import HttpConsultant
from vcbatch.runtime.scheduling.loop import SchedulerLoop
from vcbatch.runtime.scheduling.policy_source import FollowedPolicy, PolicyFile
from vcbatch.scheduler import Policy, parse_policy
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import Settings

log = logging.getLogger(__name__)

_LEASE_NAMESPACE: Final = "kube-system"


class LocalScheduling:
    """The parts that run the scheduler with the policy in force."""

    def __init__(self, api: Api, informers: Informers, options: LocalOptions, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._informers = informers
        self._options = options
        self._clock = clock
        self._random = random

    async def parts(self, meter: Meter) -> list[Part]:
        """All parts, once the policy is loaded. Raises `CliError` for an invalid one."""
        recorder = Recorder(
            self._api,
            clock=self._clock,
            random=self._random,
            component=DEFAULT_SCHEDULER,
            host=socket.gethostname(),
        )
        own = OwnObject(self._api, LEASES, _LEASE_NAMESPACE, SCHEDULER_LEASE)
        followed = None
        if self._options.scheduler_conf is not None:
            await ensure_lease(self._api, SCHEDULER_LEASE)
            parse = partial(parse_policy, extensions=load_plugins(self._options.plugins))
            source = PolicyFile(self._options.scheduler_conf, own=own)
            followed = FollowedPolicy(source, parse, clock=self._clock, recorder=recorder, meter=meter)
        policy = None if followed is None else await followed.first()
        settings = self._settings(policy)
        self._leave(settings)
        scheduler = recorded_scheduler(policy, settings, self._options.record_cycles)
        scheduler.consultant = HttpConsultant(clock=self._clock)
        loop = SchedulerLoop(
            self._api,
            scheduler,
            self._informers,
            recorder,
            clock=self._clock,
            random=self._random,
            meter=meter,
            own=own,
        )
        parts = [*loop.parts(), Part(name="sending the scheduler's events", run=recorder.run)]
        if followed is not None:
            parts.append(Part(name="following the policy", run=partial(followed.follow, partial(self._use, loop))))
        return parts

    def _settings(self, policy: Policy | None) -> Settings:
        return Settings(
            taken=self._clock.now(),
            policy=None if policy is None else effective(policy, metrics=False),
            scheduler_names=SCHEDULER_NAMES,
            queue_gates=self._options.queue_gates,
        )

    def _leave(self, settings: Settings) -> None:
        options = self._options
        leave(
            options.state,
            LocalScheduler(settings=settings, policy_file=options.scheduler_conf, plugins=options.plugins),
        )

    def _use(self, loop: SchedulerLoop, policy: Policy) -> None:
        """Schedule by another policy from now on."""
        loop.use(policy)
        try:
            self._leave(self._settings(policy))
        except OSError as error:
            log.error(
                "commands use the previous scheduler configuration: %s: %s",
                self._options.state.scheduler,
                error.strerror,
            )


async def ensure_lease(api: Api, name: str) -> OwnObject:
    """A Lease for events about errors in a file of the configuration, as on a cluster."""
    body = {"metadata": {"name": name}, "spec": {"holderIdentity": socket.gethostname()}}
    try:
        await api.create(LEASES, body, namespace=_LEASE_NAMESPACE)
    except ApiError as error:
        if not error.already_exists:
            raise
    return OwnObject(api, LEASES, _LEASE_NAMESPACE, name)
