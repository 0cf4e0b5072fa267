"""The Command (`bus.volcano.sh/v1alpha1`): a user's request to a controller, which deletes it when it accepts it."""

from __future__ import annotations

from vcbatch.api.model import Object, OwnerReference


class Command(Object):
    """Do `action` to `target`, a Job or JobFlow of the same namespace or a Queue. There is no spec and no status."""

    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""
