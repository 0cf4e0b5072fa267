"""Which pods a ResourceQuota counts, and which it turns away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.virtual_time import run
from tests.unit.apiserver.core.servers import Client, server, virtual
from tests.unit.apiserver.kinds.support import PODS, container, made, make_pod, pod, set_status

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
SMALL = [container(resources={"requests": {"cpu": "1"}})]


async def limit(client: Client, hard: dict[str, str], **spec: Any) -> None:
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    await made(client, QUOTAS, body)


@pytest.mark.parametrize(
    ("hard", "code"),
    [({"pods": "1"}, 201), ({"requests.cpu": "1"}, 201), ({"count/pods": "1"}, 403), ({"count/pods": "2"}, 201)],
)
@virtual
async def test_a_finished_pod_is_still_an_object_and_uses_nothing(hard: dict[str, str], code: int) -> None:
    async with server() as client:
        await limit(client, hard)
        await make_pod(client, "first", containers=SMALL)
        await set_status(client, f"{PODS}/first", {"phase": "Succeeded"})

        assert (await client.post(PODS, pod("second", containers=SMALL))).code == code


@virtual
async def test_a_deleted_pod_makes_room_at_once() -> None:
    async with server() as client:
        await limit(client, {"pods": "1"})
        await make_pod(client, "first")
        assert (await client.post(PODS, pod("second"))).code == 403

        await client.delete(f"{PODS}/first")

        assert (await client.post(PODS, pod("second"))).code == 201


def looking(where: str, **term: Any) -> dict[str, Any]:
    terms: list[Any] = [{"topologyKey": "zone", "labelSelector": {}, **term}]
    if where.startswith("preferred"):
        terms = [{"weight": 1, "podAffinityTerm": terms[0]}]
    return {"podAntiAffinity": {f"{where}DuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("BestEffort", {}, {"containers": SMALL}),
        ("NotBestEffort", {"containers": SMALL}, {}),
        ("Terminating", {"activeDeadlineSeconds": 5}, {}),
        ("NotTerminating", {}, {"activeDeadlineSeconds": 5}),
        ("CrossNamespacePodAffinity", {"affinity": looking("required", namespaces=["x"])}, {}),
        (
            "CrossNamespacePodAffinity",
            {"affinity": looking("preferred", namespaceSelector={})},
            {"affinity": looking("required")},
        ),
    ],
)
@virtual
async def test_a_quota_with_a_scope_concerns_the_pods_in_it(
    scope: str, inside: dict[str, Any], outside: dict[str, Any]
) -> None:
    async with server() as client:
        await limit(client, {"pods": "0"}, scopes=[scope])
        refused = await client.post(PODS, pod("inside", **inside))
        assert (refused.code, refused.message) == (
            403,
            'pods "inside" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0',
        )
        assert (await client.post(PODS, pod("outside", **outside))).code == 201


async def _quota(client: Client) -> tuple[dict[str, str], int]:
    """What it says is used, and its resourceVersion."""
    stored = (await client.get(f"{QUOTAS}/q")).body
    return stored["status"].get("used", {}), int(stored["metadata"]["resourceVersion"])


def _version(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


@virtual
async def test_usage_is_told_with_the_pod_that_is_made_finishes_or_goes_and_once_each() -> None:
    async with server() as client:
        await limit(client, {"pods": "5", "requests.cpu": "5", "count/pods": "5"})
        await asyncio.sleep(5)
        first = await make_pod(client, "first", containers=SMALL)
        used, version = await _quota(client)
        assert used == {"pods": "1", "requests.cpu": "1", "count/pods": "1"}
        assert version < _version(first), "whoever sees the pod could see it counted"
        await make_pod(client, "second", containers=[container(resources={"requests": {"cpu": "250m"}})])
        assert (await _quota(client))[0]["requests.cpu"] == "1250m"

        ended = await set_status(client, f"{PODS}/first", {"phase": "Succeeded"})
        used, version = await _quota(client)
        assert used == {"pods": "1", "requests.cpu": "250m", "count/pods": "2"}
        assert version > _version(ended.body)
        for name in ("first", "second"):
            await client.delete(f"{PODS}/{name}")
        used, version = await _quota(client)
        assert used == {"pods": "0", "requests.cpu": "0", "count/pods": "0"}
        await asyncio.sleep(5)
        assert (await _quota(client))[1] == version, "counting anew finds nothing to change"


@virtual
async def test_a_pod_that_is_refused_or_only_tried_counts_for_nothing() -> None:
    async with server() as client:
        await limit(client, {"pods": "1"})
        await asyncio.sleep(5)
        assert (await client.post(f"{PODS}?dryRun=All", pod("tried"))).code == 201
        assert (await _quota(client))[0] == {"pods": "0"}
        await make_pod(client, "first")
        assert (await client.post(PODS, pod("second"))).code == 403
        assert (await client.post(PODS, pod("first"))).code in (403, 409)
        assert (await _quota(client))[0] == {"pods": "1"}


@virtual
async def test_every_quota_that_a_pod_is_in_the_scope_of_tells_it() -> None:
    async with server() as client:
        await limit(client, {"pods": "5"}, scopes=["Terminating"])
        await asyncio.sleep(5)
        await make_pod(client, "outside")
        assert (await _quota(client))[0] == {"pods": "0"}
        await make_pod(client, "inside", activeDeadlineSeconds=9)
        assert (await _quota(client))[0] == {"pods": "1"}


_DEEDS = st.lists(
    st.tuples(st.sampled_from(["make", "make", "finish", "delete", "quota", "wait"]), st.integers(0, 9)), max_size=20
)


@given(deeds=_DEEDS)
@settings(max_examples=40)
def test_usage_is_what_the_pods_come_to_after_every_deed(deeds: list[tuple[str, int]]) -> None:
    async def play() -> None:
        async with server() as client:
            await limit(client, {"pods": "4", "requests.cpu": "5"})
            await asyncio.sleep(5)
            alive: dict[str, int] = {}
            for number, (deed, which) in enumerate(deeds):
                names = sorted(alive)
                name = names[which % len(names)] if names else ""
                match deed:
                    case "make":
                        sized = [container(resources={"requests": {"cpu": str(which % 3)}})]
                        answer = await client.post(PODS, pod(f"p{number}", containers=sized))
                        fits = len(alive) < 4 and sum(alive.values()) + which % 3 <= 5
                        assert answer.code == (201 if fits else 403)
                        if fits:
                            alive[f"p{number}"] = which % 3
                    case "finish" if name:
                        await set_status(client, f"{PODS}/{name}", {"phase": "Failed"})
                        del alive[name]
                    case "delete" if name:
                        await client.delete(f"{PODS}/{name}")
                        del alive[name]
                    case "quota":
                        await client.merge(f"{QUOTAS}/q", {"metadata": {"labels": {"n": str(number)}}})
                    case _:
                        await asyncio.sleep(which)
                reported = {"pods": str(len(alive)), "requests.cpu": str(sum(alive.values()))}
                assert (await _quota(client))[0] == reported

    run(play())
