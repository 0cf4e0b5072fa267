"""Whose change stands in the way of a queue that was read and changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk.replacing import replaced

Json = dict[str, Any]


class Busy(FakeApi):
    """Something happens to the object just before so many of the next replacements."""

    def __init__(self, happens: Callable[[Json], None], times: int) -> None:
        super().__init__()
        self._happens = happens
        self._times = times

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        if self._times:
            self._times -= 1
            there = await self.get(resource, "q")
            self._happens(there)
            await super().replace(resource, there)
        return await super().replace(resource, body, namespace=namespace, subresource=subresource)


def counted(queue: Json) -> None:
    queue["status"] = {"running": queue.get("status", {}).get("running", 0) + 1}


def weighed(queue: Json) -> None:
    queue["spec"]["weight"] = 9
    queue["metadata"]["generation"] += 1


def labelled(queue: Json) -> None:
    queue["metadata"]["labels"] = {"team": "b"}


async def changed_by_a_person(api: FakeApi) -> Json:
    read = api.seed(QUEUES, {"metadata": {"name": "q", "generation": 1}, "spec": {"weight": 1}})
    return await replaced(api, QUEUES, {**read, "spec": {"weight": 2}})


@pytest.mark.parametrize("times", [0, 1, 5])
async def test_a_controller_that_counts_is_in_nobodys_way(times: int) -> None:
    assert (await changed_by_a_person(Busy(counted, times)))["spec"] == {"weight": 2}


@pytest.mark.parametrize("happens", [weighed, labelled])
async def test_what_somebody_else_changed_is_never_written_over(happens: Callable[[Json], None]) -> None:
    api = Busy(happens, 1)
    with pytest.raises(ApiError) as caught:
        await changed_by_a_person(api)
    assert caught.value.conflict
    assert (await api.get(QUEUES, "q"))["spec"] == ({"weight": 9} if happens is weighed else {"weight": 1})


async def test_a_controller_that_never_rests_ends_it() -> None:
    with pytest.raises(ApiError) as caught:
        await changed_by_a_person(Busy(counted, 1000))
    assert caught.value.conflict
