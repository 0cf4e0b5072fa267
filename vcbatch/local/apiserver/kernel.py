"""The server without its sockets: store, verbs, kinds and background tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background
from vcbatch.interfaces import Clock, Random
from vcbatch.local.apiserver.admission import AdmissionRequest
from vcbatch.local.apiserver.admission.webhooks import Services, Webhooks
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.handler import Handler
from vcbatch.local.apiserver.inprocess import InProcessApi
from vcbatch.local.apiserver.lifecycle import Lifecycle
from vcbatch.local.apiserver.offload import Inline, Offload
from vcbatch.local.apiserver.persistence import Persistence
from vcbatch.local.apiserver.registry import CustomKinds, Documents, Served
from vcbatch.local.apiserver.schema import descriptions
from vcbatch.local.apiserver.served import ServedSet
from vcbatch.local.apiserver.store import Store

Json = dict[str, Any]


class Kernel:
    """Use `start`, then `handler` (any request) or `api` (the `Api` interface), then `stop`.

    With `state_dir` None nothing is stored. `services` are those in this process that webhook configurations may name;
    `notices` are warnings of the server's own for a create; the errors of `health` make /readyz fail; `offload` runs
    slow work, by default on the event loop. Raises `persistence.StateError` for a directory that can't be used.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        random: Random,
        built_in: Sequence[Served],
        custom: CustomKinds | None = None,
        documents: Sequence[Documents] = (),
        protobuf: Callable[[bytes], Json] | None = None,
        services: Services | None = None,
        notices: Callable[[AdmissionRequest], Sequence[str]] | None = None,
        state_dir: Path | None = None,
        known_version: int = 0,
        root_ca: str = "",
        health: Health | None = None,
        offload: Offload | None = None,
    ) -> None:
        self.background = Background(clock=clock, random=random, health=health)
        self.persistence = Persistence(state_dir, known_version=known_version) if state_dir else None
        try:
            self.store = Store(persistence=self.persistence)
        except BaseException:
            if self.persistence:
                self.persistence.close()
            raise
        self.engine = Engine(
            store=self.store,
            served=ServedSet(built_in, custom),
            clock=clock,
            random=random,
        )
        self.engine.offload = offload or Inline()
        self._webhooks = Webhooks(
            store=self.store,
            served=self.engine.served,
            random=random,
            services=services or {},
            notices=notices,
            offload=offload,
        )
        self.engine.admission = self._webhooks
        self.handler = Handler(self.engine, documents=documents, protobuf=protobuf, health=self.background.health)
        self.api = InProcessApi(self.handler)
        self._lifecycle = Lifecycle(
            self.engine, self.handler.writer, self.handler.deleter, root_ca=root_ca, background=self.background
        )

    async def start(self) -> None:
        await self._lifecycle.start()

    def end_watches(self) -> None:
        self.store.end_watches()

    async def stop(self) -> None:
        """End all watches and close the state."""
        await self.background.close()
        await self._webhooks.close()
        self.store.close()
        descriptions.stop()
