"""What other projects create and rely on (`integrators/*.yaml`): their PodGroups, pods and Jobs in the form that they
write them, each what its `why` says. Played in the language of `tests.scenarios.player`, under virtual time; a string
`UID OF KIND/NAME` stands for what a controller would have read there.

The manifests are written from the projects' sources and documents, not dumped from their clusters.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from tests.scenarios.conditions import target
from tests.scenarios.history import Observer
from tests.scenarios.player import Scenario, play
from tests.scenarios.simulated import simulated
from tests.support import virtual_time
from vcbatch.api.resources import Resource
from vcbatch.interfaces import Api

Json = dict[str, Any]

INTEGRATORS = sorted((Path(__file__).parent / "integrators").glob("*.yaml"))
_UID = re.compile(r"UID OF (\S+)")


class _KnowsUids:
    """An `Api` that fills in the UIDs of owners."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None, **options: Any) -> Any:
        owners = [await self._known(owner, namespace) for owner in body["metadata"].get("ownerReferences", ())]
        filled = {**body, "metadata": {**body["metadata"], **({"ownerReferences": owners} if owners else {})}}
        return await self._api.create(resource, filled, namespace=namespace, **options)

    async def _known(self, owner: Json, namespace: str | None) -> Json:
        if (named := _UID.fullmatch(owner["uid"])) is None:
            return owner
        resource, name = target(named[1])
        found = cast("Json", await self._api.get(resource, name, namespace=namespace))
        return {**owner, "uid": found["metadata"]["uid"]}


@pytest.mark.parametrize("path", INTEGRATORS, ids=lambda path: path.stem)
def test_has_what_it_relies_on(path: Path) -> None:
    scenario = Scenario.load(path)

    async def run() -> None:
        async with simulated(scenario.nodes, namespace=scenario.name) as world, Observer(world.api) as observer:
            world.history = observer.history(world.namespace)
            world.api = cast("Api", _KnowsUids(world.api))
            await play(scenario, world)

    virtual_time.run(run())
