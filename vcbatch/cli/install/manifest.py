"""The shipped manifest with the user's choices. They are applied to its objects, never to its text."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vcbatch.api.names import COMPONENTS_NAMESPACE, DEFAULT_SCHEDULER, NAMESPACE_LABEL, POLICY_KEY
from vcbatch.api.resources import CRDS, DEPLOYMENTS, NAMESPACES
from vcbatch.api.yaml_reader import documents
from vcbatch.cli.base.output import CliError
from vcbatch.cli.install.kinds import ordered, resource_of
from vcbatch.cli.inventory.programs import INSTALLER, MANAGED_BY

Json = dict[str, Any]

COMPONENTS: Final = ("controllers", "scheduler", "webhooks")
ADMISSION: Final = ("webhooks", "policies", "none")
_COMPONENT: Final = "app.kubernetes.io/component"
_PLACES: Final = (
    Path(__file__).parents[2] / "_data" / "install" / "vcbatch.yaml",  # in a wheel
    Path(__file__).parents[3] / "helm" / "manifest" / "vcbatch.yaml",  # in a checkout
)
_CONTROLLERS: Final = "vcbatch-controllers"
"""The service account of the controllers; the pods that they create for admitted jobs aren't validated again."""
_POLICY: Final = "vcbatch-scheduler-policy"
_POLICY_FOLDER: Final = "/etc/vcbatch/scheduler"
_IMAGE: Final = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::\d{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of an installation."""

    namespace: str = COMPONENTS_NAMESPACE
    image: str = ""
    admission: str = "webhooks"
    components: Sequence[str] = COMPONENTS
    crds: bool = True
    replicas: int | None = None
    scheduler_names: Sequence[str] = ()
    node_selectors: Sequence[str] = ()
    policy: str = ""


def shipped() -> list[Json]:
    """The objects of the shipped manifest. Raises `CliError` where it is missing."""
    place = next((path for path in _PLACES if path.is_file()), None)
    if place is None:
        raise CliError("the manifest is missing in this installation of vcbatch", hint="Install vcbatch from a wheel.")
    return [one.value for one in documents(place.read_bytes()) if isinstance(one.value, dict)]


def chosen(base: Sequence[Json], choices: Choices) -> list[Json]:
    """The objects to apply, in their order. Raises `CliError` for invalid choices."""
    check(choices)
    names = tuple(choices.scheduler_names) or (DEFAULT_SCHEDULER,)
    objects = [copy.deepcopy(dict(one)) for one in base if _wanted(one, choices)]
    if choices.admission == "policies":
        objects += _policies(names, choices.namespace)
    if choices.policy:
        objects.append(_policy(choices))
    for one in objects:
        _move(one, COMPONENTS_NAMESPACE, choices.namespace)
        one["metadata"].setdefault("labels", {})[MANAGED_BY] = INSTALLER
        if resource_of(one) == DEPLOYMENTS:
            _program(one, choices, names)
    return ordered(objects)


def check(choices: Choices) -> None:
    """Raise `CliError` for invalid choices."""
    if choices.image and not _IMAGE.fullmatch(choices.image):
        raise CliError(
            f"invalid image {choices.image[:100]!r}",
            hint="Use REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.",
        )
    unknown = [one for one in choices.components if one not in COMPONENTS]
    if unknown or not choices.components:
        raise CliError(f"components: must be some of {', '.join(COMPONENTS)}, got {', '.join(unknown) or 'none'}")
    if choices.replicas is not None and not 1 <= choices.replicas <= 10:
        raise CliError(f"replicas: must be 1 to 10, got {choices.replicas}")
    if any(not name or name.startswith("-") or len(name) > 63 for name in choices.scheduler_names):
        raise CliError("scheduler name must be 1 to 63 characters long")


def _wanted(obj: Json, choices: Choices) -> bool:
    resource = resource_of(obj)
    if resource == CRDS:
        return choices.crds
    component = obj["metadata"].get("labels", {}).get(_COMPONENT)
    if component == "webhooks":
        return choices.admission == "webhooks" and "webhooks" in choices.components
    return component not in COMPONENTS or component in choices.components


def _policies(names: Sequence[str], namespace: str) -> Iterator[Json]:
    from webhooks.policies import documents as policies

    for text in policies(tuple(names), controllers=f"{namespace}/{_CONTROLLERS}").values():
        for document in documents(text.encode()):
            if isinstance(document.value, dict):
                yield document.value


def _policy(choices: Choices) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": _POLICY,
            "namespace": COMPONENTS_NAMESPACE,
            "labels": {"app.kubernetes.io/name": "vcbatch", _COMPONENT: "scheduler"},
        },
        "data": {POLICY_KEY: choices.policy},
    }


def _move(obj: Json, old: str, new: str) -> None:
    """Replace the namespace of the programs everywhere in the object."""
    if old == new:
        return
    if resource_of(obj) == NAMESPACES and obj["metadata"]["name"] == old:
        obj["metadata"]["name"] = new
    waiting: list[Any] = [obj]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            if at.get("namespace") == old:
                at["namespace"] = new
            if at.get("key") == NAMESPACE_LABEL and isinstance(at.get("values"), list):
                at["values"] = [new if one == old else one for one in at["values"]]
            waiting += at.values()
        elif isinstance(at, list):
            at[:] = [_argument(one, old, new) for one in at]
            waiting += at


def _argument(argument: Any, old: str, new: str) -> Any:
    """A flag whose value is the old namespace or an object in it (`NAMESPACE/NAME`), with the new one."""
    if not isinstance(argument, str) or not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    namespace, slash, name = value.partition("/")
    return f"{flag}{equals}{new}{slash}{name}" if namespace == old else argument


def _program(deployment: Json, choices: Choices, names: Sequence[str]) -> None:
    spec = deployment["spec"]
    if choices.replicas is not None:
        spec["replicas"] = choices.replicas
    component = deployment["metadata"]["labels"].get(_COMPONENT)
    pod = spec["template"]["spec"]
    for container in pod["containers"]:
        if choices.image:
            container["image"] = choices.image
        arguments = container["args"]
        if choices.scheduler_names:
            at = next(number for number, one in enumerate(arguments) if one.startswith("--scheduler-name="))
            rest = [one for one in arguments if not one.startswith("--scheduler-name=")]
            container["args"] = arguments = [*rest[:at], *(f"--scheduler-name={one}" for one in names), *rest[at:]]
        if component != "scheduler":
            continue
        arguments += (f"--node-selector={one}" for one in choices.node_selectors)
        if choices.policy:
            arguments.append(f"--scheduler-conf={_POLICY_FOLDER}/{POLICY_KEY}")
            container["volumeMounts"].append({"name": "policy", "mountPath": _POLICY_FOLDER, "readOnly": True})
            pod["volumes"].append({"name": "policy", "configMap": {"name": _POLICY}})
