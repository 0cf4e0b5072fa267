"""Custom kinds, protobuf bodies and server-side apply through a whole server."""

from __future__ import annotations

import asyncio
import json

from tests.support.protobuf import encode
from tests.unit.apiserver.core.servers import CONFIGMAPS, Client, server, virtual

from .test_definitions import definition, widget

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def crd(**spec):
    made = definition(**spec)
    made["metadata"]["name"] = f"{made['spec']['names']['plural']}.example.com"
    return made


async def apply(client: Client, path: str, config, manager="me", **query):
    parameters = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **query}.items())
    headers = {"content-type": "application/apply-patch+yaml"}
    return await client.send("PATCH", f"{path}?{parameters}", config, headers=headers)


@virtual
async def test_a_definition_is_served_at_once_and_its_changes_too():
    async with server() as client:
        assert (await client.post(CRDS, crd())).code == 201
        made = await client.post(f"{WIDGETS}?fieldValidation=Strict", widget(spec={"size": 3}))
        assert (made.code, made.body["spec"]) == (201, {"size": 3, "m": 1})
        stored = (await client.get(f"{CRDS}/widgets.example.com")).body
        properties = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["mode"] = {"type": "string", "default": "slow"}
        assert (await client.put(f"{CRDS}/widgets.example.com", stored)).code == 200
        assert (await client.get(f"{WIDGETS}/w")).body["spec"]["mode"] == "slow"
        assert (await client.get(WIDGETS)).body["items"][0]["spec"]["mode"] == "slow"


@virtual
async def test_a_whole_number_is_stored_as_one_however_it_is_written():
    """Go writes 3.0 as 3, and so webhooks and clients get it. Only its accessor of replicas takes no 3.0."""
    async with server() as client:
        await client.post(CRDS, crd())
        body = json.dumps(widget(spec={"m": 3.0}))
        assert "3.0" in body
        made = await client.post(f"{WIDGETS}?fieldValidation=Strict", body.encode())
        assert (made.code, repr(made.body["spec"]["m"])) == (201, "3")
        patched = await client.merge(f"{WIDGETS}/w", b'{"spec": {"m": 4.0}}')
        assert (patched.code, repr(patched.body["spec"]["m"])) == (200, "4")
        refused = await client.merge(f"{WIDGETS}/w", b'{"spec": {"size": 4.0}}')
        assert refused.code == 422
        assert "accessor error: 4 is of the type float64" in refused.body["message"]


@virtual
async def test_a_name_that_becomes_free_goes_to_the_definition_that_waits_for_it():
    async with server() as client:
        await client.post(CRDS, crd())
        names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["wd"]}
        await client.post(CRDS, crd(names=names))
        waiting = (await client.get(f"{CRDS}/gadgets.example.com")).body["status"]["conditions"]
        assert {one["type"]: one["status"] for one in waiting} == {"NamesAccepted": "False", "Established": "False"}
        assert (await client.get("/apis/example.com/v1/gadgets")).code == 404
        await client.delete(f"{CRDS}/widgets.example.com")
        await asyncio.sleep(5)
        assert (await client.get("/apis/example.com/v1/gadgets")).code == 200


@virtual
async def test_a_status_write_touches_nothing_else():
    async with server() as client:
        await client.post(CRDS, crd())
        await client.post(WIDGETS, widget(spec={"size": 3}))
        answer = await client.merge(f"{WIDGETS}/w/status", {"spec": {"size": 9}, "status": {"ready": 2}})
        assert (answer.body["spec"]["size"], answer.body["status"]) == (3, {"ready": 2})
        assert answer.body["metadata"]["generation"] == 1
        scale = (await client.get(f"{WIDGETS}/w/scale")).body
        assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 3}, 2)


@virtual
async def test_bodies_may_be_protobuf_for_built_in_kinds_only():
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"k": "v"}}
    async with server() as client:
        made = await client.post(CONFIGMAPS, encode(config), headers=headers)
        assert (made.code, made.body["data"]) == (201, {"k": "v"})
        assert (await client.post(CONFIGMAPS, b"k8s\0\xff\xff", headers=headers)).code == 400
        await client.post(CRDS, crd())
        assert (await client.post(WIDGETS, encode(config), headers=headers)).code == 415


@virtual
async def test_apply_creates_merges_and_prunes_custom_resources():
    async with server() as client:
        await client.post(CRDS, crd())
        made = await apply(client, f"{WIDGETS}/w", widget(spec={"size": 3}))
        assert made.code == 201
        assert [one["manager"] for one in made.body["metadata"]["managedFields"]] == ["me"]
        assert (await client.merge(f"{WIDGETS}/w?fieldManager=you", {"spec": {"size": 4}})).code == 200
        assert (await apply(client, f"{WIDGETS}/w", widget(spec={"size": 3}))).code == 409
        forced = await apply(client, f"{WIDGETS}/w", widget(spec={"size": 3}), force="true")
        assert (forced.code, forced.body["spec"]["size"]) == (200, 3)
        version = forced.body["metadata"]["resourceVersion"]
        again = await apply(client, f"{WIDGETS}/w", widget(spec={"size": 3}))
        assert again.body["metadata"]["resourceVersion"] == version
        emptied = await apply(client, f"{WIDGETS}/w", widget(spec={}))
        assert emptied.body["spec"] == {"m": 1}


@virtual
async def test_apply_refuses_fields_that_the_resource_does_not_have():
    async with server() as client:
        await client.post(CRDS, crd())
        answer = await apply(client, f"{WIDGETS}/w", widget(spec={"bogus": 1}))
        assert (answer.code, answer.message) == (
            500,
            (
                "failed to create typed patch object (/w; example.com/v1, Kind=Widget): "
                ".spec.bogus: field not declared in schema"
            ),
        )
        assert (await apply(client, f"{WIDGETS}/w", {**widget(), "kind": "Gadget"})).code == 400
        assert (await apply(client, f"{WIDGETS}/other", widget())).code == 400


@virtual
async def test_objects_that_nobody_applied_have_no_managed_fields():
    async with server() as client:
        assert "managedFields" not in (await client.make("plain"))["metadata"]
        patched = await client.merge(f"{CONFIGMAPS}/plain", {"data": {"x": "y"}})
        assert "managedFields" not in patched.body["metadata"]
