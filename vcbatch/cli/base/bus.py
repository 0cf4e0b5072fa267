"""Requests to controllers, as a Command for the job, flow or queue."""

from __future__ import annotations

from vcbatch.api.bus import command_manifest
from vcbatch.api.loose import part
from vcbatch.api.phases import Action
from vcbatch.api.resources import COMMANDS, Resource
from vcbatch.interfaces.api import Api


async def request(api: Api, resource: Resource, name: str, action: Action, *, namespace: str | None, at: str) -> None:
    """Request `action` on the object of this name by a Command in the namespace `at`. Raises `ApiError`."""
    target = await api.get(resource, name, namespace=namespace)
    await request_of(api, resource, name, str(part(target, "metadata").get("uid")), action, at=at)


async def request_of(api: Api, resource: Resource, name: str, uid: str, action: Action, *, at: str) -> None:
    """The same for an object whose UID is known, without reading it first. Raises `ApiError`."""
    await api.create(COMMANDS, command_manifest(resource, name, uid, action, namespace=at), namespace=at)
