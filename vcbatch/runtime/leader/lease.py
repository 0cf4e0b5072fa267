"""Leader election on a `coordination.k8s.io` Lease, so that one of several replicas works and the others wait.

The rules and values of client-go's `tools/leaderelection`: the holder of the Lease renews it; a follower measures its
age with its own clock, from when it last saw it change (clocks of machines are never compared); every write names the
resourceVersion it is based on, so that one of two concurrent writes fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from vcbatch.api.names import FAILING_TASKS
from vcbatch.api.resources import LEASES
from vcbatch.api.timestamps import format_micro_time
from vcbatch.interfaces.api import Api, ApiError, Json, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.metrics.meter import Meter, NoMeter

T = TypeVar("T")
log = logging.getLogger(__name__)

_JITTER = 1.2
_AFTER_EXPIRY = 0.05
_LAST_SECONDS = 2.0
_LONGEST_ERROR = 2000  # characters
_NOT_TAKEN = frozenset({400, 403, 413, 422})
"""Codes with which a server refuses the content of an object, independently of other writers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseConfig:
    """The name of the Lease, and its times in seconds."""

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Raises `ValueError` for times with which two replicas could lead at once, as client-go does."""
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError(f"the lease duration has to be whole seconds, at least one: {self.duration:g}s")
        if self.renew_deadline >= self.duration:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline:g}s) has to be shorter than the lease duration "
                f"({self.duration:g}s)"
            )
        if self.retry_period <= 0 or self.retry_period * _JITTER >= self.renew_deadline:
            raise ValueError(
                f"the retry period ({self.retry_period:g}s) has to be above zero and, {_JITTER:g} times, shorter than "
                f"the renew deadline ({self.renew_deadline:g}s)"
            )


class LeadershipLostError(Exception):
    """The Lease could not be renewed in time, or has another holder: stop working at once."""


class LeaderElector:
    """Runs a work function only while the Lease is held."""

    def __init__(
        self, api: Api, config: LeaseConfig, *, clock: Clock, random: Random, meter: Meter | None = None
    ) -> None:
        self._api = api
        self._meter = meter or NoMeter()
        self._meter.gauge("lease_held", 0, lease=config.name)
        self._config = config
        self._clock = clock
        self._random = random
        self._lease: Json | None = None
        self._changed_at = 0.0  # when, by our clock, the Lease was last seen to change
        self._renewed_at = 0.0  # by our clock, start of the request of the last renewal
        self._words: Mapping[str, str] = {}
        self.errors: Callable[[], str] = lambda: ""
        """Returns the errors of the work: the Lease carries them in the annotation `FAILING_TASKS`, for `vcbatch
        doctor`."""
        self.leading = False
        """True from taking the Lease until the work has ended."""
        self.in_touch = False
        """Whether, at the last attempt, the Lease had another holder or the server accepted our write."""

    def may_write(self) -> bool:
        """Whether no other replica can have started to lead: to be checked before every write of the work."""
        return self.leading and self._unrenewed() < self._config.renew_deadline

    def error(self) -> str:
        """Why this replica is unhealthy, "" where it isn't: the work continues though the Lease has expired. That
        happens only if something hangs; as the `leaderElection` health check of client-go."""
        if self.leading and self._unrenewed() > self._config.duration:
            return f"lease {self._config.name} was renewed {self._unrenewed():.0f}s ago"
        return ""

    def say(self, annotations: Mapping[str, str]) -> None:
        """Replace the annotations that the Lease carries while this replica leads; those of other clients stay. They
        are written with the next renewal, so that they cost no request and no write of ours conflicts. Where the server
        refuses them, the Lease is renewed without."""
        self._words = annotations

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, run `work` while it is held, and release it when the work ends or is cancelled.

        Raises `LeadershipLostError` once it is lost, after the work was cancelled.
        """
        while not await self._try():
            await self._clock.sleep(self._until_next_try())
        log.info("leading", extra={"lease": self._config.name, "identity": self._config.identity})
        self.leading = True
        self._meter.gauge("lease_held", 1, lease=self._config.name)
        worker, keeper = asyncio.ensure_future(work()), asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait((worker, keeper), return_when=asyncio.FIRST_COMPLETED)
            if keeper.done():
                keeper.result()
            if worker.exception() is not None and not self.may_write():
                # The error of the work is a consequence: its writes were blocked, or it continued after another replica
                # took over.
                raise LeadershipLostError(f"lease {self._config.name} has run out") from worker.exception()
            worker.result()
        finally:
            await self._end(worker, keeper)
            self.leading = False
            self._meter.gauge("lease_held", 0, lease=self._config.name)
            with suppress(TimeoutError):
                await self._within(self._config.retry_period, self._release())

    async def _end(self, *tasks: asyncio.Future[None]) -> None:
        """Cancel the tasks and wait for them. Once the Lease may have another holder the wait is short: their writes
        are blocked anyway."""
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.wait(tasks, timeout=None if self.may_write() else _LAST_SECONDS)
        for task in done:
            if not task.cancelled():
                task.exception()  # marks it as retrieved: the relevant error was raised

    async def _keep(self) -> None:
        """Renew until that fails for longer than the deadline, which is before another replica may take the Lease."""
        while True:
            await self._clock.sleep(self._config.retry_period)
            left = self._config.renew_deadline - self._unrenewed()
            if left <= 0:
                raise LeadershipLostError(
                    f"lease {self._config.name} could not be renewed in {self._config.renew_deadline:g}s"
                )
            try:
                held = await self._within(left, self._try())
            except TimeoutError:
                continue
            if not held and self._held_by_another():
                raise LeadershipLostError(f"lease {self._config.name} is held by {self._holder()}")

    async def _within(self, seconds: float, attempt: Coroutine[Any, Any, T]) -> T:
        """The result of one attempt, limited to that time. Raises `TimeoutError`."""
        trying, timer = asyncio.ensure_future(attempt), asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((trying, timer), return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                raise TimeoutError
            return trying.result()
        finally:
            for task in (trying, timer):
                task.cancel()
            await asyncio.gather(trying, timer, return_exceptions=True)

    async def _try(self) -> bool:
        """Take or renew the Lease once. False where another replica holds it or the server refused."""
        config = self._config
        try:
            await self._check()
            if self._lease is None:
                body = {
                    "apiVersion": LEASES.api_version,
                    "kind": LEASES.kind,
                    "metadata": self._metadata({"name": config.name, "namespace": config.namespace}),
                    "spec": self._spec({}),
                }
                asked_at = self._clock.monotonic()
                self._saw(await self._api.create(LEASES, body, namespace=config.namespace))
                self._renewed_at = asked_at
                self.in_touch = True
                return True
            if self._held_by_another() and self._clock.monotonic() < self._changed_at + self._lease_seconds():
                self.in_touch = True
                return False
            if self.leading and not self.may_write():
                return False  # the process was stopped since the check: another replica may lead now
            body = {
                **self._lease,
                "metadata": self._metadata(self._lease["metadata"]),
                "spec": self._spec(self._lease.get("spec") or {}),
            }
            asked_at = self._clock.monotonic()
            self._saw(await self._renew(body))
            self._renewed_at = asked_at
            self.in_touch = True
        except ApiError as error:
            self.in_touch = error.conflict or error.already_exists
            level = logging.DEBUG if self.in_touch else logging.WARNING
            log.log(level, "the lease was not taken", extra={"lease": config.name, "error": error.message})
            return False
        return True

    async def _renew(self, lease: Json) -> Json:
        try:
            return await self._api.replace(LEASES, lease, namespace=self._config.namespace)
        except ApiError as error:
            if error.code in _NOT_TAKEN and self._news():
                log.warning("the Lease couldn't be annotated", extra={"lease": self._config.name})
                self._words = {}
            raise

    async def _check(self) -> None:
        current = await get_or_none(self._api, LEASES, self._config.name, namespace=self._config.namespace)
        if current is None:
            self._lease = None
        else:
            self._saw(current)

    def _saw(self, lease: Json) -> None:
        before = self._lease
        self._lease = lease
        if before is None or (before.get("spec") or {}) != (lease.get("spec") or {}):
            self._changed_at = self._clock.monotonic()
            transitions = (lease.get("spec") or {}).get("leaseTransitions") or 0
            if isinstance(transitions, int):
                self._meter.gauge("lease_transitions", transitions, lease=self._config.name)

    def _news(self) -> bool:
        """Whether this replica has annotations that the Lease lacks."""
        metadata: Json = (self._lease or {}).get("metadata") or {}
        return self.leading and not self._words.items() <= (metadata.get("annotations") or {}).items()

    def _metadata(self, before: Json) -> Json:
        if not self.leading:
            return before
        present: Json = before.get("annotations") or {}
        said = {**present, **self._words}
        if error := self.errors()[:_LONGEST_ERROR]:
            said[FAILING_TASKS] = error
        else:
            said.pop(FAILING_TASKS, None)
        return before if said == present else {**before, "annotations": said}

    def _spec(self, before: Json) -> Json:
        stamp = format_micro_time(self._clock.now())
        ours = before.get("holderIdentity") == self._config.identity
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            **before,
            "holderIdentity": self._config.identity,
            "leaseDurationSeconds": int(self._config.duration),
            "acquireTime": before.get("acquireTime") if ours and before.get("acquireTime") else stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions if ours or not before else transitions + 1,
        }

    async def _release(self) -> None:
        """Release the Lease, so that a follower needn't wait until it expires (client-go's ReleaseOnCancel).

        A renewal that was cancelled may have been stored all the same: then the Lease is newer than our copy.
        """
        config = self._config
        while self._holder() == config.identity and self._unrenewed() < config.renew_deadline:
            lease: Json = self._lease or {}
            stamp = format_micro_time(self._clock.now())
            spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": stamp}
            try:
                self._saw(await self._api.replace(LEASES, {**lease, "spec": spec}, namespace=config.namespace))
            except ApiError as error:
                log.debug("the lease was not released", extra={"lease": config.name, "error": error.message})
                if not error.conflict:
                    return
                with suppress(ApiError):
                    await self._check()

    def _holder(self) -> str:
        return str(((self._lease or {}).get("spec") or {}).get("holderIdentity") or "")

    def _held_by_another(self) -> bool:
        return self._holder() not in ("", self._config.identity)

    def _lease_seconds(self) -> float:
        """The duration that the holder of the Lease wrote; our own where that isn't valid."""
        seconds = ((self._lease or {}).get("spec") or {}).get("leaseDurationSeconds")
        return float(seconds) if isinstance(seconds, int) and seconds > 0 else self._config.duration

    def _unrenewed(self) -> float:
        return self._clock.monotonic() - self._renewed_at

    def _until_next_try(self) -> float:
        """The retry period with jitter, but no later than the expiry of the Lease: while no replica leads, nothing is
        started."""
        pause = self._config.retry_period * (1.0 + (_JITTER - 1.0) * self._random.random())
        left = self._changed_at + self._lease_seconds() - self._clock.monotonic()
        return min(pause, left + _AFTER_EXPIRY) if self._held_by_another() and left > 0 else pause
