"""The object on which a program emits events about itself."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.api.resources import Resource
from vcbatch.core.machine import ObjectRef
from vcbatch.interfaces.api import Api, ApiError


@dataclass(frozen=True, slots=True)
class OwnObject:
    """An object that belongs to a program, such as its Lease: events about a configuration file are emitted on it."""

    api: Api
    resource: Resource
    namespace: str
    name: str

    async def ref(self) -> ObjectRef | None:
        """The reference of the object; None where it can't be read."""
        try:
            found = await self.api.get(self.resource, self.name, namespace=self.namespace)
        except ApiError:
            return None
        return ObjectRef(
            resource=self.resource, namespace=self.namespace, name=self.name, uid=str(found["metadata"].get("uid", ""))
        )
