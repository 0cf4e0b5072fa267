"""What happens to a container that has ended: its own restart rules, its own policy, then its pod's.

Source: Kubernetes `pkg/api/v1/pod/util.go` (ContainerShouldRestart), KEP-5307 (rules and policies of containers) and
KEP-5532 (RestartAllContainers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from vcbatch.api.model import Json


class RestartPolicy(StrEnum):
    """`restartPolicy` of a pod or of a container."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class RestartAction(StrEnum):
    """`action` of a container's restart rule."""

    RESTART = "Restart"
    RESTART_ALL = "RestartAllContainers"


def is_sidecar(container: Json) -> bool:
    """Whether an init container runs beside the pod's containers (KEP-753)."""
    return container.get("restartPolicy") == RestartPolicy.ALWAYS


def restarts(spec: Json, container: Json, exit_code: int) -> bool:
    """Whether a container with this exit code is restarted by itself."""
    if container.get("restartPolicy") and _action(container, exit_code) == RestartAction.RESTART:
        return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy") or RestartPolicy.ALWAYS
    return policy == RestartPolicy.ALWAYS or (policy == RestartPolicy.ON_FAILURE and exit_code != 0)


def restarts_all(container: Json, exit_code: int) -> bool:
    """Whether all containers of the pod are restarted, init containers first, after this exit code of the container."""
    return bool(container.get("restartPolicy")) and _action(container, exit_code) == RestartAction.RESTART_ALL


def may_restart_all(spec: Json) -> bool:
    """Whether a container of the pod has a rule that restarts all of them."""
    everyone: Sequence[Json] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    rules = (rule for container in everyone for rule in container.get("restartPolicyRules") or ())
    return any(rule.get("action") == RestartAction.RESTART_ALL for rule in rules)


def _action(container: Json, exit_code: int) -> str | None:
    """The action of the first rule that the exit code matches; None where it matches none."""
    rules: Sequence[Mapping[str, Any]] = container.get("restartPolicyRules") or ()
    return next((rule.get("action") for rule in rules if _meets(rule.get("exitCodes") or {}, exit_code)), None)


def _meets(wanted: Mapping[str, Any], exit_code: int) -> bool:
    values: Sequence[int] = wanted.get("values") or ()
    match wanted.get("operator"):
        case "In":
            return exit_code in values
        case "NotIn":
            return exit_code not in values
        case _:
            return False
