from __future__ import annotations

import json
from typing import Any

from tests.unit.apiserver.core.servers import CONFIGMAPS, configmap, server, virtual
from vcbatch.api.resources import CONFIGMAPS as CONFIG_MAPS
from vcbatch.interfaces.api import PatchKind

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def owners(obj: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


@virtual
async def test_kubectl_keeps_what_it_applied_when_it_moves_to_the_server_side() -> None:
    """kubectl looks for the owner of its annotation and takes that owner's fields over, and no others."""
    async with server() as client:
        applied = configmap("a", data={"k": "v"})
        await client.make("a", annotations={LAST_APPLIED: json.dumps(applied)})
        await client.merge(f"{CONFIGMAPS}/a", {"data": {"other": "x"}})

        headers = {"content-type": "application/apply-patch+yaml"}
        path = f"{CONFIGMAPS}/a?fieldManager=me"
        answer = await client.send("PATCH", path, json.dumps(applied).encode(), headers=headers)

        assert answer.code == 200, answer.body
        fields = owners(answer.body)
        assert fields["kubectl-client-side-apply"]["f:data"] == {"f:k": {}}
        assert f"f:{LAST_APPLIED}" in fields["kubectl-client-side-apply"]["f:metadata"]["f:annotations"]
        assert fields["before-first-apply"]["f:data"] == {"f:other": {}}


@virtual
async def test_an_annotation_that_is_no_configuration_is_nobodys() -> None:
    async with server() as client:
        for name, text in (("a", "not json"), ("b", "[1]"), ("c", '"text"')):
            await client.make(name, annotations={LAST_APPLIED: text})
            body = json.dumps(configmap(name)).encode()
            headers = {"content-type": "application/apply-patch+yaml"}
            answer = await client.send("PATCH", f"{CONFIGMAPS}/{name}?fieldManager=me", body, headers=headers)

            assert answer.code == 200
            assert "kubectl-client-side-apply" not in owners(answer.body)


@virtual
async def test_those_who_dont_apply_write_to_what_was_applied() -> None:
    """Controllers of this process, and clients that send back claims without a manager's name."""
    async with server() as client:
        api = client.kernel.api
        await api.patch(CONFIG_MAPS, "a", configmap("a", data={"k": "1"}), namespace="default", kind=PatchKind.APPLY)
        changed = await api.patch(CONFIG_MAPS, "a", {"data": {"mine": "2"}}, namespace="default")
        claims = [(entry["manager"], entry["operation"]) for entry in changed["metadata"]["managedFields"]]
        assert claims == [("vcbatch", "Apply"), ("vcbatch", "Update")]

        for entry in changed["metadata"]["managedFields"]:
            del entry["manager"]
        assert (await client.put(f"{CONFIGMAPS}/a", changed)).code == 200
