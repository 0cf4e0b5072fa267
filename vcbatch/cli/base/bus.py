"""Asking a controller for something: a Command in the name of the job or queue that it is about."""

from __future__ import annotations

from vcbatch.api.loose import part
from vcbatch.api.phases import Action
from vcbatch.api.resources import COMMANDS, Resource
from vcbatch.interfaces.api import Api, Json


async def ask(api: Api, resource: Resource, name: str, action: Action, *, namespace: str | None, at: str) -> None:
    """Ask for `action` on the object of this name, in a Command in the namespace `at`. Raises `ApiError`."""
    target = await api.get(resource, name, namespace=namespace)
    await ask_of(api, resource, name, str(part(target, "metadata").get("uid")), action, at=at)


async def ask_of(api: Api, resource: Resource, name: str, uid: str, action: Action, *, at: str) -> None:
    """The same for an object whose UID is known. The Command belongs to this very object, and goes with it."""
    reference: Json = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    command: Json = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{name}-{action.lower()}-",
            "namespace": at,
            "ownerReferences": [reference],
        },
        "action": str(action),
        "target": reference,
    }
    await api.create(COMMANDS, command, namespace=at)
