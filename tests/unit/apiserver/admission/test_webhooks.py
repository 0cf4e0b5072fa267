"""Webhooks of services in the server's process: what may happen around them, and that they can't take the server
down. What they are told and what clients hear is held to a real server's answers in `tests/fidelity/webhooks`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import (
    CONFIGMAPS,
    CONFIGURATIONS,
    SERVICE,
    configmap,
    configure,
    server,
    virtual,
    webhook,
)
from vcbatch.local.apiserver.admission import Answer, Asked

Judge = Callable[[Asked], Awaitable[Answer]]

EVERYTHING = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
YES = Answer(allowed=True)


async def deny(_asked: Asked) -> Answer:
    return Answer(allowed=False, status={"message": "no"})


async def fail(_asked: Asked) -> Answer:
    raise RuntimeError("it broke")


def adds(key: str, value: str) -> Answer:
    return Answer(allowed=True, patch=[{"op": "add", "path": f"/data/{key}", "value": value}])


@virtual
async def test_a_webhook_that_refuses_everything_can_be_removed_and_namespaces_made() -> None:
    async with server(services={SERVICE: deny}) as client:
        await configure(client, "validating", webhook(rules=EVERYTHING))
        refused = await client.post(CONFIGMAPS, configmap("a"))
        assert (refused.code, refused.message) == (
            400,
            'admission webhook "check.example.com" denied the request: no',
        )

        assert (await client.delete(CONFIGURATIONS.format("validating") + "/checks")).code == 200
        assert (await client.post(CONFIGMAPS, configmap("a"))).code == 201


@virtual
async def test_a_namespace_is_furnished_whatever_webhooks_say() -> None:
    async with server(services={SERVICE: deny}) as client:
        await configure(client, "validating", webhook())
        await client.post("/api/v1/namespaces", {"metadata": {"name": "n"}})

        assert (await client.get("/api/v1/namespaces/n/configmaps/kube-root-ca.crt")).code == 200


@virtual
@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_the_failure_policy_decides_what_a_fault_of_a_webhook_does(policy: str, code: int) -> None:
    async with server(services={SERVICE: fail}) as client:
        await configure(client, "mutating", webhook(failurePolicy=policy))

        answer = await client.post(CONFIGMAPS, configmap("a"))

        assert answer.code == code
        if code == 500:
            wanted = 'failed calling webhook "check.example.com": failed to call webhook: it broke'
            assert answer.message == f"Internal error occurred: {wanted}"


@virtual
async def test_a_write_that_came_in_between_is_kept() -> None:
    """A patch is made anew on what is there once the webhooks have answered."""
    updates: list[Any] = []

    async def judge(asked: Asked) -> Answer:
        if asked.request["operation"] == "UPDATE":
            updates.append(asked.request["object"]["data"])
            if len(updates) == 1:
                await client.merge(f"{CONFIGMAPS}/a", {"data": {"theirs": "1"}})
        return YES

    async with server(services={SERVICE: judge}) as client:
        await client.make("a")
        await configure(client, "validating", webhook())

        answer = await client.merge(f"{CONFIGMAPS}/a", {"data": {"ours": "2"}})

        assert len(updates) == 3
        assert answer.body["data"] == {"k": "v", "theirs": "1", "ours": "2"}


@virtual
async def test_a_write_of_one_version_conflicts_with_one_that_came_in_between() -> None:
    updates: list[Any] = []

    async def judge(asked: Asked) -> Answer:
        if asked.request["operation"] == "UPDATE":
            updates.append(asked.request["object"]["data"])
            if len(updates) == 1:
                await client.merge(f"{CONFIGMAPS}/a", {"data": {"theirs": "1"}})
        return YES

    async with server(services={SERVICE: judge}) as client:
        made = await client.make("a")
        await configure(client, "validating", webhook())

        answer = await client.put(f"{CONFIGMAPS}/a", {**made, "data": {"ours": "2"}})

        assert answer.code == 409
        assert (await client.get(f"{CONFIGMAPS}/a")).body["data"] == {"k": "v", "theirs": "1"}


@virtual
async def test_of_two_creates_at_once_one_is_made() -> None:
    async def judge(_asked: Asked) -> Answer:
        await asyncio.sleep(1)
        return YES

    async with server(services={SERVICE: judge}) as client:
        await configure(client, "validating", webhook())

        answers = await asyncio.gather(*(client.post(CONFIGMAPS, configmap("a")) for _ in range(2)))

        assert sorted(answer.code for answer in answers) == [201, 409]


@virtual
async def test_an_object_that_is_replaced_while_its_deletion_is_judged_is_judged_again() -> None:
    judged: list[str] = []

    async def judge(asked: Asked) -> Answer:
        if asked.request["operation"] == "DELETE":
            judged.append(asked.request["oldObject"]["data"].get("theirs", "none"))
            if len(judged) == 1:
                await client.merge(f"{CONFIGMAPS}/a", {"data": {"theirs": "1"}})
        return YES

    async with server(services={SERVICE: judge}) as client:
        await client.make("a")
        await configure(client, "validating", webhook())

        assert (await client.delete(f"{CONFIGMAPS}/a")).code == 200
        assert judged == ["none", "1"]


@virtual
async def test_webhooks_are_asked_by_name_and_again_where_a_later_one_changed_the_object() -> None:
    order: list[str] = []

    async def judge(asked: Asked) -> Answer:
        name = asked.path.removeprefix("/").partition(".")[0]
        order.append(name)
        return adds(name, str(order.count(name)))

    async with server(services={SERVICE: judge}) as client:
        await configure(client, "mutating", webhook("b.example.com", reinvocationPolicy="IfNeeded"), name="b")
        await configure(client, "mutating", webhook("a.example.com", reinvocationPolicy="IfNeeded"), name="a")
        await configure(client, "mutating", webhook("c.example.com"), name="c")

        made = await client.post(CONFIGMAPS, configmap("x"))

        # Each of the first two changes the object when it is asked again, so that both are; once, in the same round.
        assert order == ["a", "b", "c", "a", "b"]
        assert made.body["data"] == {"k": "v", "a": "2", "b": "2", "c": "1"}


@virtual
async def test_a_service_that_is_not_here_fails_and_says_so() -> None:
    async with server() as client:
        await configure(client, "validating", webhook())
        absent = await client.post(CONFIGMAPS, configmap("a"))
        assert absent.message.endswith('/check.example.com?timeout=10s": service "checks" not found')

        await client.post("/api/v1/namespaces", {"metadata": {"name": SERVICE[0]}})
        service = {"metadata": {"name": SERVICE[1]}, "spec": {"ports": [{"port": 443}]}}
        await client.post(f"/api/v1/namespaces/{SERVICE[0]}/services", service)
        unserved = await client.post(CONFIGMAPS, configmap("a"))
        assert unserved.message.endswith("nothing serves services here: use a url")


@virtual
async def test_warnings_are_told_once_and_no_more_than_a_client_takes() -> None:
    async def judge(_asked: Asked) -> Answer:
        return Answer(
            allowed=True, warnings=["same", "same", "two\nlines", *(f"{n:03}" + "x" * 400 for n in range(40))]
        )

    async with server(services={SERVICE: judge}) as client:
        await configure(client, "validating", webhook())

        answer = await client.post(CONFIGMAPS, configmap("a"))

        texts = [value.removeprefix('299 - "')[:-1] for name, value in answer.headers if name == "Warning"]
        assert texts[0] == "same"
        assert {len(text) for text in texts[1:]} == {256}
        assert 4096 <= sum(map(len, texts)) < 4096 + 256
