"""The command controller: deletes the Commands that no controller handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from vcbatch.api.command import Command
from vcbatch.api.loose import part
from vcbatch.api.resources import Resource
from vcbatch.core.command import decide
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter


def target_of(resource: Resource) -> Callable[[Json], list[str]]:
    """An index function for Commands: the key of the target object if it is of that kind; empty for Commands with
    another target kind."""

    def keys(command: Json) -> list[str]:
        target = part(command, "target")
        if (target.get("apiVersion"), target.get("kind")) != (resource.api_version, resource.kind):
            return []
        name = str(target.get("name", ""))
        return [f"{command['metadata'].get('namespace', '')}/{name}" if resource.namespaced else name]

    return keys


class CommandController:
    """Reconciles every Command, and again when its target is deleted. A Command for an existing object of one of the
    `targets` is left to the controller of that object."""

    def __init__(
        self,
        commands: Cache[Json],
        targets: Mapping[Resource, Cache[Json]],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._commands = commands
        self._targets = targets
        self.controller = Controller(
            ControllerConfig(name="command-controller", workers=2),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        commands.listen(self._on_command)
        for resource, cache in targets.items():
            commands.add_index(_index(resource), target_of(resource))
            cache.listen(partial(self._on_target, resource))

    def part(self) -> Part:
        return self.controller.part()

    def _on_command(self, change: Change[Json]) -> None:
        self.controller.queue.add(identity(change.current).uid)

    def _on_target(self, resource: Resource, change: Change[Json]) -> None:
        """A deleted target leaves behind the Commands that its controller didn't handle."""
        if change.new is None:
            for command in self._commands.indexed(_index(resource), identity(change.current).key):
                self.controller.queue.add(identity(command).uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._commands.get(uid)
        if stored is None:
            return None
        command = Command.parse(stored)
        return decide(command, taken=self._taken(command), now=now)

    def _taken(self, command: Command) -> bool:
        target = command.target
        if target is None:
            return False
        for resource, cache in self._targets.items():
            if (target.api_version, target.kind) == (resource.api_version, resource.kind):
                key = f"{command.namespace}/{target.name}" if resource.namespaced else target.name
                return cache.by_key(key) is not None
        return False


def _index(resource: Resource) -> str:
    return f"{resource.kind} that it is for"
