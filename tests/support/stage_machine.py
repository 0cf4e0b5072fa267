"""State machines of Hypothesis on a stage of `lives`: rules are actions of users, and all controllers are idle after
each one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support.lives import Stage, misfortunes
from tests.support.virtual_time import VirtualTimeLoop
from vcbatch.api.resources import Resource

Json = dict[str, Any]


class StageMachine(RuleBasedStateMachine):
    """Subclasses define the other rules and the invariants."""

    followed: ClassVar[tuple[Resource, ...]]
    """The kinds whose changes may be observed late."""
    discovery: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._configuration = Path(self._folder.name, "volcano-controller.conf")
        self._configuration.write_text(self.discovery)
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.stage = self.play(self._begin())

    def play(self, deed: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(deed)

    def put(self, resource: Resource, name: str, **fields: Any) -> None:
        async def deed() -> None:
            self.stage.put(resource, name, **fields)

        self.play(deed())

    def change(self, resource: Resource, name: str, patch: Json) -> None:
        self.play(self.stage.change(resource, name, patch))

    def remove(self, resource: Resource, name: str) -> None:
        async def deed() -> None:
            self.stage.remove(resource, name)

        self.play(deed())

    def rest(self) -> None:
        self.play(self.stage.rest())

    @rule(data=st.data())
    def the_controllers_are_started_anew(self, data: st.DataObject) -> None:
        """An idle program writes nothing. The next runs crash at later writes, and observe changes late."""
        misfortune = data.draw(misfortunes(*self.followed))
        before = len(self.stage.writes)
        self.stage.lags = misfortune["lags"]
        self.stage.doom(*misfortune["deaths"])
        self.play(self.stage.restart())
        self.rest()
        assert self.stage.writes[before:] == []

    def teardown(self) -> None:
        self.play(self.stage.stop())
        self._runner.close()
        self._folder.cleanup()

    async def _begin(self) -> Stage:
        stage = Stage(discovery=self._configuration if self.discovery else None)
        await stage.restart()
        await stage.rest()
        return stage
