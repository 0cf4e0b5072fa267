"""Reads several kinds for a screen, some of which the user may not be allowed to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcbatch.api.resources import EVENTS, PODGROUPS, PRIORITYCLASSES, QUEUES, Resource
from vcbatch.cli.base.fields import name_of, number, uid_of
from vcbatch.cli.base.output import note
from vcbatch.interfaces.api import Api, ApiError

Json = dict[str, Any]


async def within_reach(
    api: Api, resource: Resource, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
) -> Sequence[Json]:
    """The objects; none, and a message on stderr, where they can't be read."""
    found = await readable(
        api, resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
    )
    return found or ()


async def readable(
    api: Api, resource: Resource, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
) -> Sequence[Json] | None:
    """The objects; None, and a message on stderr, where they may not be read or the server doesn't have the kind."""
    try:
        listing = await api.list(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )
    except ApiError as error:
        if error.code not in (403, 404):
            raise
        note(f"omitted: {resource.plural} ({error.sentence})")
        return None
    return listing.items


async def events_of(api: Api, *objects: Json) -> list[Json]:
    """The events about these objects, possibly none."""
    found: list[Json] = []
    for obj in objects:
        if uid := uid_of(obj):
            namespace = obj["metadata"].get("namespace") or "default"  # of events about cluster-scoped objects
            selector = f"involvedObject.uid={uid}"
            found += await within_reach(api, EVENTS, namespace=namespace, field_selector=selector)
    return found


async def pod_groups_in_reach(api: Api, namespace: str) -> Sequence[Json]:
    """The PodGroups of all namespaces, since namespaces share queues; those of one namespace where others can't
    be read."""
    try:
        return (await api.list(PODGROUPS)).items
    except ApiError as error:
        if error.code != 403:
            raise
    note("omitted: PodGroups of other namespaces in the queue (no permission)")
    return await within_reach(api, PODGROUPS, namespace=namespace)


async def queues_in_reach(api: Api) -> Sequence[Json]:
    return await within_reach(api, QUEUES)


async def priorities_in_reach(api: Api) -> Mapping[str, int]:
    """The values of PriorityClasses by name."""
    return {name_of(one): number(one, "value") for one in await within_reach(api, PRIORITYCLASSES)}


def owned_by(objects: Sequence[Json], uid: str) -> list[Json]:
    """The objects that the object with this UID controls."""
    return [
        obj
        for obj in objects
        if any(
            owner.get("uid") == uid and owner.get("controller")
            for owner in obj["metadata"].get("ownerReferences") or ()
        )
    ]
