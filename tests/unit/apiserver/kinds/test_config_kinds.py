"""ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import CONFIGMAPS, server, virtual
from tests.unit.apiserver.kinds.support import causes, made, rows
from vcbatch.api.name_rules import config_key
from vcbatch.local.apiserver.kinds.config import LARGEST

SECRETS = "/api/v1/namespaces/default/secrets"
FROZEN = "Forbidden: field is immutable when `immutable` is set"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@virtual
async def test_string_data_is_folded_into_data() -> None:
    async with server() as client:
        given = {"metadata": {"name": "s"}, "data": {"a": encoded("1"), "b": encoded("2")}, "stringData": {"b": "3"}}
        created = await made(client, SECRETS, given)
        assert created["data"] == {"a": encoded("1"), "b": encoded("3")}
        assert created["type"] == "Opaque"
        assert "stringData" not in created
        patched = await client.merge(f"{SECRETS}/s", {"stringData": {"c": "4"}})
        assert patched.body["data"]["c"] == encoded("4")


@pytest.mark.parametrize("path", [CONFIGMAPS, SECRETS])
@virtual
async def test_what_is_immutable_stays(path: str) -> None:
    async with server() as client:
        value = encoded("v")
        await made(client, path, {"metadata": {"name": "x"}, "data": {"k": value}, "immutable": True})
        assert causes(await client.merge(f"{path}/x", {"data": {"k": encoded("w")}})) == [f"data: {FROZEN}"]
        assert causes(await client.merge(f"{path}/x", {"immutable": None})) == [f"immutable: {FROZEN}"]
        assert (await client.merge(f"{path}/x", {"metadata": {"labels": {"a": "b"}}})).code == 200


@pytest.mark.parametrize(
    ("key", "sound"), [("k", True), ("a.b_C-1", True), (".", False), ("..x", False), ("a/b", False)]
)
def test_keys_may_become_file_names(key: str, sound: bool) -> None:
    assert (config_key(key) == []) is sound


@pytest.mark.parametrize(
    ("path", "obj", "errors"),
    [
        (
            CONFIGMAPS,
            {"data": {"a b": "x"}},
            [f'data[a b]: Invalid value: "a b": {config_key("a b")[0]}'],
        ),
        (
            CONFIGMAPS,
            {"data": {"k": "x"}, "binaryData": {"k": "eA=="}},
            ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
        ),
        (CONFIGMAPS, {"data": {"k": "x" * (LARGEST + 1)}}, [": Too long: may not be more than 1048576 bytes"]),
        (SECRETS, {"type": "kubernetes.io/tls"}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        (SECRETS, {"type": "kubernetes.io/ssh-auth"}, ["data[ssh-privatekey]: Required value"]),
        (SECRETS, {"type": "kubernetes.io/dockerconfigjson"}, ["data[.dockerconfigjson]: Required value"]),
    ],
)
@virtual
async def test_faults(path: str, obj: dict[str, Any], errors: list[str]) -> None:
    async with server() as client:
        assert causes(await client.post(path, {"metadata": {"name": "x"}, **obj})) == errors


@virtual
async def test_a_secret_keeps_its_type() -> None:
    async with server() as client:
        await made(client, SECRETS, {"metadata": {"name": "s"}})
        answer = await client.merge(f"{SECRETS}/s", {"type": "other"})
        assert causes(answer) == ['type: Invalid value: "other": field is immutable']


@virtual
async def test_secrets_can_be_selected_by_type() -> None:
    async with server() as client:
        await made(client, SECRETS, {"metadata": {"name": "a"}, "type": "x"})
        await made(client, SECRETS, {"metadata": {"name": "b"}})
        assert (await client.get(f"{SECRETS}?fieldSelector=type=x")).items == ["a"]
        assert [row["Type"] for row in await rows(client, SECRETS)] == ["x", "Opaque"]
