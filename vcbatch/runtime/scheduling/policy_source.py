"""Follows the scheduler configuration at its source: a new one is used within three seconds, an invalid one is reported
and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from vcbatch.api.names import POLICY_KEY
from vcbatch.api.reasons import PolicyEvent
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.core.machine import Emit, EventType, ObjectRef
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.configuration.followed_file import ConfigurationError, read_bounded
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.scheduler import Policy, PolicyError

log = logging.getLogger(__name__)

CHECK_SECONDS = 2.0


class PolicySource(Protocol):
    """A source of scheduler configuration."""

    @property
    def name(self) -> str:
        """Its name for users."""
        ...

    async def read(self) -> str:
        """The text of the configuration. Raises `ConfigurationError` where there is none."""
        ...

    async def about(self) -> ObjectRef | None:
        """The object on which to emit events about the configuration; None where there is none."""
        ...


class PolicyFile:
    """A file, such as a mounted ConfigMap. Its content is compared, since a mounted ConfigMap is a link that
    changes."""

    def __init__(self, path: Path, *, own: OwnObject | None = None) -> None:
        self.path = path
        self._own = own

    @property
    def name(self) -> str:
        return str(self.path)

    async def read(self) -> str:
        try:
            return read_bounded(self.path).decode()
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{self.path}: not UTF-8 text: {error}") from error

    async def about(self) -> ObjectRef | None:
        return None if self._own is None else await self._own.ref()


class PolicyConfigMap:
    """A key of a ConfigMap: the given one, else `volcano-scheduler.conf`, else its only key."""

    def __init__(self, api: Api, namespace: str, name: str, key: str = "") -> None:
        self._api = api
        self._namespace = namespace
        self._map = name
        self._key = key
        self._uid = ""

    @staticmethod
    def parse(api: Api, text: str) -> PolicyConfigMap:
        """Parse `namespace/name` or `namespace/name:key`. Raises `ValueError`."""
        place, _, key = text.partition(":")
        namespace, slash, name = place.partition("/")
        if not (namespace and slash and name) or "/" in name or (":" in text and not key):
            raise ValueError(f"{text!r} is not of the form NAMESPACE/NAME or NAMESPACE/NAME:KEY")
        return PolicyConfigMap(api, namespace, name, key)

    @property
    def name(self) -> str:
        return f"ConfigMap {self._namespace}/{self._map}" + (f":{self._key}" if self._key else "")

    async def read(self) -> str:
        try:
            found = await self._api.get(CONFIGMAPS, self._map, namespace=self._namespace)
        except ApiError as error:
            raise ConfigurationError(f"{self.name}: {error.message}") from error
        self._uid = str(found["metadata"].get("uid", ""))
        data: Json = found.get("data") or {}
        key = self._key or (POLICY_KEY if POLICY_KEY in data or len(data) != 1 else next(iter(data)))
        if not isinstance(data.get(key), str):
            has = ", ".join(sorted(data)) or "none"
            raise ConfigurationError(f"{self.name}: has no key {key!r}; its keys: {has}")
        return data[key]

    async def about(self) -> ObjectRef | None:
        if not self._uid:
            return None
        return ObjectRef(resource=CONFIGMAPS, namespace=self._namespace, name=self._map, uid=self._uid)


class FollowedPolicy:
    """Reads a configuration again when it changes, and passes valid ones on."""

    def __init__(
        self,
        source: PolicySource,
        parse: Callable[[str], Policy],
        *,
        clock: Clock,
        recorder: Recorder | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._source = source
        self._parse = parse
        self._clock = clock
        self._recorder = recorder
        self._meter = meter or NoMeter()
        self._seen: str | None = None
        self._error = ""
        self.policy: Policy | None = None
        """The last valid one."""

    @property
    def error(self) -> str:
        """Why the content of the source isn't in use; empty where it is."""
        return self._error

    async def first(self) -> Policy:
        """The first valid configuration, however long that takes: without one nothing is decided, since another
        configuration than the intended one might evict pods, or bind them to the wrong nodes."""
        while True:
            await self.refresh()
            if self.policy is not None:
                return self.policy
            await self._clock.sleep(CHECK_SECONDS)

    async def follow(self, take: Callable[[Policy], None]) -> None:
        """Pass every later configuration on, until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            before = self.policy
            await self.refresh()
            if self.policy is not None and self.policy is not before:
                take(self.policy)

    async def refresh(self) -> None:
        """Read the source once; `policy` and `error` then have the result."""
        try:
            text = await self._source.read()
            if text == self._seen:
                return
            self._seen = text
            policy = self._parse(text)
        except ConfigurationError as error:
            self._seen = None
            await self._refuse(str(error))
        except PolicyError as error:
            await self._refuse(f"{self._source.name}: {error}")
        else:
            news = self.policy is not None
            self.policy, self._error = policy, ""
            self._meter.gauge("config_last_reload_successful", 1.0)
            self._meter.count("config_reloads", result="applied")
            log.info("using the scheduler configuration of %s", self._source.name)
            for warning in policy.warnings:
                log.warning("the scheduler configuration of %s: %s", self._source.name, warning)
            if news:
                await self._event(EventType.NORMAL, PolicyEvent.APPLIED, "the scheduler configuration is in use")

    async def _refuse(self, error: str) -> None:
        if error == self._error:
            return
        self._error = error
        holds = "keeping the last valid configuration" if self.policy is not None else "nothing is scheduled"
        log.error("the scheduler configuration is invalid; %s: %s", holds, error)
        self._meter.count("config_reloads", result="refused")
        self._meter.gauge("config_last_reload_successful", 0.0)
        await self._event(EventType.WARNING, PolicyEvent.REFUSED, f"{holds}: {error}")

    async def _event(self, kind: EventType, reason: str, message: str) -> None:
        ref = None if self._recorder is None else await self._source.about()
        if self._recorder is not None and ref is not None:
            self._recorder.emit(Emit(ref=ref, type=kind, reason=reason, message=message))
