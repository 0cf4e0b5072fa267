"""Commands of `bus.volcano.sh` as clients create them: an action that a controller is to take on an object."""

from __future__ import annotations

from typing import Any, Final

from vcbatch.api.resources import COMMANDS, Resource

_LONGEST_NAME: Final = 200
"""Characters of the target's name that the Command's name begins with: the action and the random suffix still fit."""


def command_manifest(resource: Resource, name: str, uid: str, action: str, *, namespace: str) -> dict[str, Any]:
    """The Command in `namespace` that asks for `action` on the object with this name and UID, as Volcano's clients
    write it. The object owns it, so both are deleted together."""
    target = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{name[:_LONGEST_NAME]}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [target],
        },
        "action": str(action),
        "target": target,
    }
