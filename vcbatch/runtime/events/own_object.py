"""The object on which a program says what concerns itself."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.api.resources import Resource
from vcbatch.core.machine import ObjectRef
from vcbatch.interfaces.api import Api, ApiError


@dataclass(frozen=True, slots=True)
class OwnObject:
    """An object of a program's own, such as its Lease: what is to be said of a file is said there."""

    api: Api
    resource: Resource
    namespace: str
    name: str

    async def ref(self) -> ObjectRef | None:
        """None where it can't be read."""
        try:
            found = await self.api.get(self.resource, self.name, namespace=self.namespace)
        except ApiError:
            return None
        return ObjectRef(
            resource=self.resource, namespace=self.namespace, name=self.name, uid=str(found["metadata"].get("uid", ""))
        )
