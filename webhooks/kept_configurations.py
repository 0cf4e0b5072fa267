"""The service writes the rules of its own webhook configurations: once it is ready, and whenever they are changed.

Of several replicas only the holder of a Lease writes. During an update, replicas of two versions run at the same time;
then the rules of the older one apply, since the newer one supports them too, and not the other way round:

* An older replica takes the Lease from a newer one at once, and writes its rules before it is ready (a rollback).
* A newer replica gets the Lease once no older one renews it, and writes after a period in which any remaining older one
would have taken it (an upgrade).

So two versions write alternately only while replicas start and stop.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from vcbatch.api.loose import listed, part
from vcbatch.api.resources import LEASES, Resource
from vcbatch.api.timestamps import format_micro_time
from vcbatch.hosting.supervise import pause
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from webhooks.certificates.trust import Trust
from webhooks.configurations import MUTATING, RULES, RULES_VERSION, VALIDATING, covers

Json = dict[str, Any]
log = logging.getLogger(__name__)

LEASE: Final = "vcbatch-webhooks"
SETTLED_SECONDS: Final = 10.0
"""How long the service must have been ready, and have held the Lease, before it writes: its Service has endpoints by
then, and an older replica would have taken the Lease."""
LEASE_SECONDS: Final = 15
"""The time after which a Lease that isn't renewed expires."""
CHECK_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.5
_RELEASE_SECONDS: Final = 2.0


class RulesLease:
    """The Lease of the replica that writes. Its age is measured by our own clock, from the last observed change."""

    def __init__(self, api: Api, *, namespace: str, identity: str, clock: Clock, rules: int = RULES_VERSION) -> None:
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._rules = rules
        self._seen: str | None = None
        self._seen_at = 0.0
        self.held_since: float | None = None
        """The time by our clock; None where another replica holds it."""

    async def reconcile(self) -> None:
        """Renew it, or take it where it is free, expired, or held by a replica with newer rules. Raises `ApiError`."""
        held, self.held_since = self.held_since, None
        stored = await get_or_none(self._api, LEASES, LEASE, namespace=self._namespace)
        now = self._clock.monotonic()
        version = str(part(stored or {}, "metadata").get("resourceVersion"))
        if version != self._seen:
            self._seen, self._seen_at = version, now
        holder = part(stored or {}, "spec").get("holderIdentity") or ""
        newer = rules_of(stored or {}) > self._rules
        if holder not in ("", self._identity) and not newer and now - self._seen_at <= LEASE_SECONDS:
            return
        if await self._write(stored, self._identity):
            self.held_since = held if held is not None and holder == self._identity else now

    async def release(self) -> None:
        """Release it, so that another replica can take it at once."""
        if self.held_since is None:
            return
        self.held_since = None
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                stored = await get_or_none(self._api, LEASES, LEASE, namespace=self._namespace)
                if stored is not None and part(stored, "spec").get("holderIdentity") == self._identity:
                    await self._write(stored, "")

    async def _write(self, stored: Json | None, holder: str) -> bool:
        """Write the Lease; False where another replica was first."""
        metadata: Json = dict(part(stored, "metadata")) if stored else {"name": LEASE, "namespace": self._namespace}
        metadata["annotations"] = {**part(metadata, "annotations"), RULES: str(self._rules)}
        spec = {**part(stored or {}, "spec"), "holderIdentity": holder, "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": format_micro_time(self._clock.now())}  # fmt: skip
        body: Json = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        try:
            if stored is None:
                written = await self._api.create(LEASES, body, namespace=self._namespace)
            else:
                written = await self._api.replace(LEASES, body, namespace=self._namespace)
        except ApiError as error:
            if error.conflict or error.already_exists or error.not_found:
                return False
            raise
        self._seen, self._seen_at = str(written["metadata"]["resourceVersion"]), self._clock.monotonic()
        return True


class KeptConfigurations:
    """Keeps our configurations equal to `wanted`, with the authorities in them. `usable` is set once none of them has
    rules that are newer than ours, which this replica doesn't support."""

    def __init__(
        self,
        api: Api,
        trust: Trust,
        lease: RulesLease,
        *,
        wanted: Callable[[], Sequence[Json]],
        bundle: Callable[[], bytes],
        well: Callable[[], bool],
        clock: Clock,
        rules: int = RULES_VERSION,
    ) -> None:
        """`well`: whether this replica is healthy. `bundle`: the authorities for configurations that have none, in
        PEM."""
        self._api = api
        self._trust = trust
        self._lease = lease
        self._wanted = wanted
        self._bundle = bundle
        self._well = well
        self._clock = clock
        self._rules = rules
        self._well_since: float | None = None
        self._judging_from = 0.0
        self._met: set[str] = set()
        self._reported = ""
        self._changed = asyncio.Event()
        self.usable = asyncio.Event()
        trust.listen(self._changed.set)

    async def keep(self) -> None:
        """Reconcile periodically, and whenever a configuration has changed, until cancelled; then the Lease is
        released, and nothing is written any more."""
        await self._trust.synced()
        try:
            while True:
                self._changed.clear()
                try:
                    await self.reconcile()
                    self._reported = ""
                except ApiError as error:
                    self._report_once(str(error))
                await pause(self._clock, CHECK_SECONDS, woken=self._changed)
                await self._clock.sleep(_AGAIN_SECONDS)  # so that another writer is not raced
        finally:
            await self._lease.release()

    async def reconcile(self) -> None:
        """Reconcile once. Raises `ApiError` where a read or write fails."""
        now = self._clock.monotonic()
        self._well_since = (now if self._well_since is None else self._well_since) if self._well() else None
        for resource, one in self._ours():
            if self._trust.configuration(resource, _name(one)) is not None:
                self._met.add(_name(one))
        try:
            await self._lease.reconcile()
            if self._may_write(now):
                await self._write_all(now)
        finally:
            if not self._newer():
                self.usable.set()

    def _may_write(self, now: float) -> bool:
        held, well = self._lease.held_since, self._well_since
        if held is None:
            return False
        if self._newer():
            return True  # the replicas that serve now support our rules, and we don't support theirs
        return well is not None and now - well >= SETTLED_SECONDS and now - held >= SETTLED_SECONDS

    def _newer(self) -> bool:
        """Whether a configuration has rules that are newer than this replica's."""
        stored = (self._trust.configuration(resource, _name(one)) for resource, one in self._ours())
        return any(rules_of(one) > self._rules for one in stored if one is not None)

    def _ours(self) -> list[tuple[Resource, Json]]:
        """Our configurations, mutating ones before validating ones."""
        kinds = {resource.kind: resource for resource in (MUTATING, VALIDATING)}
        made = [(kinds[configuration["kind"]], configuration) for configuration in self._wanted()]
        return sorted(made, key=lambda one: one[0] is VALIDATING)

    async def _write_all(self, now: float) -> None:
        """Write all configurations. Validating webhooks must not be called without the mutating ones, and an API server
        may load the two in any order."""
        for resource, wanted in self._ours():
            if resource is VALIDATING and now < self._judging_from:
                self._changed.set()
                return
            if await self._write(resource, wanted) and resource is MUTATING:
                self._judging_from = now + CHECK_SECONDS

    async def _write(self, resource: Resource, wanted: Json) -> bool:
        """Write one configuration and return whether it was written. One that is deleted while the service runs isn't
        recreated: it is deleted with a release."""
        name = _name(wanted)
        stored = self._trust.configuration(resource, name)
        if stored is None:
            return name not in self._met and await self._create(resource, wanted)
        webhooks = _with_authorities(wanted["webhooks"], stored, self._bundle())
        if webhooks is None:
            return False
        current = rules_of(stored) == self._rules and covers(stored.get("webhooks"), webhooks)
        if current:
            return False
        # The version is a precondition: another client's later write is read first.
        metadata = {"resourceVersion": stored["metadata"]["resourceVersion"], "annotations": {RULES: str(self._rules)}}
        try:
            written = await self._api.patch(resource, name, {"metadata": metadata, "webhooks": webhooks})
        except ApiError as error:
            if error.conflict or error.not_found:
                return False
            raise
        self._trust.remember(resource, written)
        log.info("the rules of a webhook configuration were written", extra={"configuration": name})
        return True

    async def _create(self, resource: Resource, wanted: Json) -> bool:
        webhooks = _with_authorities(wanted["webhooks"], {}, self._bundle())
        if webhooks is None:
            return False
        metadata = {**wanted["metadata"], "annotations": {**part(wanted["metadata"], "annotations"),
                                                          RULES: str(self._rules)}}  # fmt: skip
        try:
            made = await self._api.create(resource, {**wanted, "metadata": metadata, "webhooks": webhooks})
        except ApiError as error:
            if error.already_exists:
                return False
            if error.code == 403:
                self._report_once(f"{resource.kind} {_name(wanted)} doesn't exist and may not be created: {error}")
                return False
            raise
        self._met.add(_name(wanted))
        self._trust.remember(resource, made)
        return True

    def _report_once(self, message: str) -> None:
        if message != self._reported:
            log.error("the webhook configurations can't be managed: %s", message)
        self._reported = message


def rules_of(stored: Mapping[str, Any]) -> int:
    """The version of an object's rules; 0 where it has none."""
    given = part(part(dict(stored), "metadata"), "annotations").get(RULES)
    return int(given) if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 10 else 0


def _name(configuration: Json) -> str:
    return str(configuration["metadata"]["name"])


def _with_authorities(webhooks: Sequence[Json], stored: Json, bundle: bytes) -> list[Json] | None:
    """The webhooks with the authorities of the stored ones of the same name, else those of the bundle. None where there
    are no authorities: a webhook that no API server can call would reject all requests."""
    known = {one.get("name"): part(one, "clientConfig").get("caBundle") for one in listed(stored, "webhooks")}
    made: list[Json] = copy.deepcopy(list(webhooks))
    for webhook in made:
        client = webhook["clientConfig"]
        if not client.get("caBundle"):
            client["caBundle"] = known.get(webhook["name"]) or base64.b64encode(bundle).decode()
        if not client["caBundle"]:
            return None
    return made
