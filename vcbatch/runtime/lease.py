"""Leader election on a `coordination.k8s.io` Lease, so that one of several replicas works and the others wait.

The rules and figures of client-go's `tools/leaderelection`: whoever holds the Lease renews it; a follower judges its
age by its own clock, from when it last saw it change (clocks of machines are never compared); every write names the
resourceVersion it is based on, so that of two writers one loses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vcbatch.api.resources import LEASES
from vcbatch.api.timestamps import format_micro_time
from vcbatch.seams.api import Api, ApiError, Json
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseConfig:
    """Which Lease, and its times in seconds."""

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeadershipLostError(Exception):
    """The Lease could not be renewed in time, or is somebody else's: stop working at once."""


class LeaderElector:
    """Runs a piece of work only while the Lease is held."""

    def __init__(self, api: Api, config: LeaseConfig, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._config = config
        self._clock = clock
        self._random = random
        self._lease: Json | None = None
        self._changed_at = 0.0  # when, by our clock, the Lease was last seen to change
        self.leading = False

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, do `work` while it is held, and give it back when the work ends or is cancelled.

        Raises `LeadershipLostError` once it is lost, after the work was cancelled.
        """
        while not await self._try():
            await self._clock.sleep(self._jittered(self._config.retry_period))
        log.info("leading", extra={"lease": self._config.name, "identity": self._config.identity})
        self.leading = True
        worker, keeper = asyncio.ensure_future(work()), asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait((worker, keeper), return_when=asyncio.FIRST_COMPLETED)
            if worker.done():
                worker.result()
            else:
                keeper.result()
        finally:
            self.leading = False
            for task in (worker, keeper):
                task.cancel()
            await asyncio.gather(worker, keeper, return_exceptions=True)
            await self._release()

    async def _keep(self) -> None:
        """Renew until it fails for longer than the deadline, which is before anybody else may take it."""
        renewed = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._config.retry_period)
            left = self._config.renew_deadline - (self._clock.monotonic() - renewed)
            if left <= 0:
                raise LeadershipLostError(
                    f"lease {self._config.name} could not be renewed in {self._config.renew_deadline}s"
                )
            started = self._clock.monotonic()
            try:
                held = await self._within(left)
            except TimeoutError:
                continue
            if held:
                renewed = started
            elif self._held_by_another():
                raise LeadershipLostError(f"lease {self._config.name} is held by {self._holder()}")

    async def _within(self, seconds: float) -> bool:
        """One try that may not take longer than the deadline leaves."""
        attempt, timer = asyncio.ensure_future(self._try()), asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((attempt, timer), return_when=asyncio.FIRST_COMPLETED)
            if not attempt.done():
                raise TimeoutError
            return attempt.result()
        finally:
            for task in (attempt, timer):
                task.cancel()
            await asyncio.gather(attempt, timer, return_exceptions=True)

    async def _try(self) -> bool:
        """Take or renew the Lease once. False where it is held by another or the server didn't agree."""
        config = self._config
        try:
            await self._look()
            if self._lease is None:
                body = {
                    "apiVersion": LEASES.api_version,
                    "kind": LEASES.kind,
                    "metadata": {"name": config.name, "namespace": config.namespace},
                    "spec": self._spec({}),
                }
                self._saw(await self._api.create(LEASES, body, namespace=config.namespace))
                return True
            if self._held_by_another() and self._clock.monotonic() < self._changed_at + self._lease_seconds():
                return False
            body = {**self._lease, "spec": self._spec(self._lease.get("spec") or {})}
            self._saw(await self._api.replace(LEASES, body, namespace=config.namespace))
        except ApiError as error:
            level = logging.DEBUG if error.conflict or error.already_exists else logging.WARNING
            log.log(level, "the lease was not taken", extra={"lease": config.name, "error": error.message})
            return False
        return True

    async def _look(self) -> None:
        try:
            current = await self._api.get(LEASES, self._config.name, namespace=self._config.namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            self._lease = None
        else:
            self._saw(current)

    def _saw(self, lease: Json) -> None:
        before = self._lease
        self._lease = lease
        if before is None or (before.get("spec") or {}) != (lease.get("spec") or {}):
            self._changed_at = self._clock.monotonic()

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
        """Let go of it, so that a follower needn't wait until it is old (client-go's ReleaseOnCancel)."""
        if self._lease is None or self._held_by_another():
            return
        stamp = format_micro_time(self._clock.now())
        spec = {**(self._lease.get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": stamp}
        try:
            await self._api.replace(LEASES, {**self._lease, "spec": spec}, namespace=self._config.namespace)
        except ApiError as error:
            log.debug("the lease was not released", extra={"lease": self._config.name, "error": error.message})

    def _holder(self) -> str:
        return str(((self._lease or {}).get("spec") or {}).get("holderIdentity") or "")

    def _held_by_another(self) -> bool:
        return self._holder() not in ("", self._config.identity)

    def _lease_seconds(self) -> float:
        """What its holder promised; ours where it says nothing usable."""
        seconds = ((self._lease or {}).get("spec") or {}).get("leaseDurationSeconds")
        return float(seconds) if isinstance(seconds, int) and seconds > 0 else self._config.duration

    def _jittered(self, seconds: float) -> float:
        return seconds * (1.0 + 0.2 * self._random.random())
