"""Identifies the program of a workload by its image, its command line and its labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vcbatch.api.names import DEFAULT_SCHEDULER, POLICY_KEY
from vcbatch.cli.base.fields import dig, name_of, namespace_of, number, objects, text, words
from vcbatch.cli.inventory.model import Maker, Owner, Program, Role

Json = dict[str, Any]

_IMAGES: Final[Mapping[str, Role]] = {
    "vc-controller-manager": Role.CONTROLLERS,
    "vc-webhook-manager": Role.ADMISSION,
    "vc-agent-scheduler": Role.AGENT_SCHEDULER,
    "vc-scheduler": Role.SCHEDULER,
    "vc-hypernode-controller-manager": Role.HYPERNODES,
    "vc-agent": Role.AGENT,
    "vc-dashboard": Role.DASHBOARD,
    "volcano-vgpu-device-plugin": Role.VGPU,
    "volcano-device-plugin": Role.GPU,
    "vc-descheduler": Role.DESCHEDULER,
    "volcano-global": Role.GLOBAL,
    "numatopo": Role.TOPOLOGY,
}
"""Prefixes of image names; of two with a common beginning the longer one is first (images of Volcano's chart and
related projects)."""
_LABELS: Final[Mapping[str, Role]] = {
    "volcano-scheduler": Role.SCHEDULER,
    "volcano-controller": Role.CONTROLLERS,
    "volcano-admission": Role.ADMISSION,
}
"""The label `app` of Volcano's Deployments, which identifies the program where a mirror changed the image name."""
_FLAGS: Final[Mapping[str, Role]] = {
    "--enabled-admission": Role.ADMISSION,
    "--webhook-service-name": Role.ADMISSION,
}
_OURS: Final[Mapping[str, Role]] = {
    "scheduler": Role.SCHEDULER,
    "controllers": Role.CONTROLLERS,
    "webhooks": Role.ADMISSION,
}
"""The commands of `vcbatch` that run on a cluster."""
_PROGRAM: Final = "vcbatch"
_FALSE: Final = frozenset({"false", "False", "FALSE", "f", "F", "0"})


def program_of(kind: str, workload: Json) -> Program | None:
    """The program of a Deployment, StatefulSet or DaemonSet; None where it is neither Volcano's nor vcbatch's."""
    for container in objects(workload, "spec", "template", "spec", "containers"):
        found = _ours(container) or _volcanos(container, workload)
        if found is not None:
            return _program(kind, workload, container, *found)
    return None


def _ours(container: Json) -> tuple[Maker, Role] | None:
    command = _strings(container, "command")
    arguments = command + _strings(container, "args")
    image = image_name(text(container, "image"))
    called = bool(command) and command[0].rpartition("/")[2] == _PROGRAM
    module = command[1:3] == ["-m", _PROGRAM]
    if not (called or module or (image == _PROGRAM or image.startswith(f"{_PROGRAM}-"))):
        return None
    role = next((_OURS[one] for one in arguments if one in _OURS), None)
    return (Maker.VCBATCH, role) if role is not None else None


def _volcanos(container: Json, workload: Json) -> tuple[Maker, Role] | None:
    command = _strings(container, "command")
    called = [image_name(text(container, "image")), *(one.rpartition("/")[2] for one in command[:1])]
    for beginning, role in _IMAGES.items():
        if any(one.startswith(beginning) for one in called):
            return Maker.VOLCANO, role
    label = words(workload, "spec", "template", "metadata", "labels").get("app", "")
    if label in _LABELS:
        return Maker.VOLCANO, _LABELS[label]
    for argument in _strings(container, "args"):
        if (role := _FLAGS.get(argument.partition("=")[0])) is not None:
            return Maker.VOLCANO, role
    return None


def _program(kind: str, workload: Json, container: Json, maker: Maker, role: Role) -> Program:
    arguments = _strings(container, "command") + _strings(container, "args")
    schedules = role in (Role.SCHEDULER, Role.CONTROLLERS, Role.ADMISSION)
    names = tuple(dict.fromkeys(each for each in flag(arguments, "scheduler-name") if each))
    elects = [*flag(arguments, "leader-elect")]
    daemons = kind == "DaemonSet"
    replicas = dig(workload, "spec", "replicas")
    return Program(
        kind=kind,
        namespace=namespace_of(workload),
        name=name_of(workload),
        maker=maker,
        role=role,
        owner=owner_of(workload),
        replicas=number(workload, "status", "desiredNumberScheduled") if daemons
        else replicas if isinstance(replicas, int) else 1,
        ready=number(workload, "status", "numberReady" if daemons else "readyReplicas"),
        image=text(container, "image"),
        selector=words(workload, "spec", "selector", "matchLabels"),
        scheduler_names=(names or (DEFAULT_SCHEDULER,)) if schedules else (),
        leader_elect=not (elects and elects[-1] in _FALSE),
        sharding=next((each for each in flag(arguments, "scheduler-sharding-mode") if each not in ("none", "")), ""),
        policy=_policy(workload, arguments, container) if role is Role.SCHEDULER else ("", ""),
    )  # fmt: skip


def _policy(workload: Json, arguments: Sequence[str], container: Json) -> tuple[str, str]:
    """The ConfigMap of the scheduler configuration: named by a flag of vcbatch, or mounted where `--scheduler-conf`
    points."""
    if named := next((each for each in flag(arguments, "scheduler-configmap") if each), ""):
        name, _, key = named.rpartition("/")[2].partition(":")
        return name, key or POLICY_KEY
    path = next((each for each in flag(arguments, "scheduler-conf") if each), "")
    if not path:
        return "", ""
    directory, _, key = path.rpartition("/")
    mounts = {text(one, "mountPath").rstrip("/"): text(one, "name") for one in objects(container, "volumeMounts")}
    volume = mounts.get(directory, "")
    for one in objects(workload, "spec", "template", "spec", "volumes"):
        if text(one, "name") == volume and (name := text(one, "configMap", "name")):
            items = {text(item, "path"): text(item, "key") for item in objects(one, "configMap", "items")}
            return name, items.get(key, key)
    return "", ""


def flag(arguments: Sequence[str], name: str) -> Iterator[str]:
    """The values of a flag, with one or two dashes, and with `=` or as the next argument."""
    forms = (f"--{name}", f"-{name}")
    for at, argument in enumerate(arguments):
        word, equals, value = argument.partition("=")
        if word not in forms:
            continue
        if equals:
            yield value
        elif at + 1 < len(arguments) and not arguments[at + 1].startswith("-"):
            yield arguments[at + 1]
        else:
            yield "true"


def image_name(image: str) -> str:
    """The last component of an image name: `vc-scheduler` for `registry:5000/volcanosh/vc-scheduler:v1@sha256:…`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _strings(obj: Json, key: str) -> list[str]:
    value = obj.get(key)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


# -- the tool that manages an object ---------------------------------------------------------------------------------

RELEASE_NAME: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
RESOURCE_POLICY: Final = "helm.sh/resource-policy"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTALLER: Final = "vcbatch-install"
"""Field manager and value of the label `app.kubernetes.io/managed-by` of the objects that `vcbatch install` creates."""


def owner_of(obj: Json) -> Owner:
    """The managing tool, by the annotations of Helm, Argo CD and Flux, the label `managed-by`, else the field manager
    that most recently set fields other than status."""
    annotations, labels = words(obj, "metadata", "annotations"), words(obj, "metadata", "labels")
    if tracking := annotations.get("argocd.argoproj.io/tracking-id"):
        return Owner(tool="Argo CD", name=tracking.partition(":")[0])
    if instance := labels.get("argocd.argoproj.io/instance"):
        return Owner(tool="Argo CD", name=instance)
    for key in ("helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"):
        if name := labels.get(f"{key}/name"):
            return Owner(tool="Flux", name=name, namespace=labels.get(f"{key}/namespace", ""))
    if release := annotations.get(RELEASE_NAME):
        return Owner(tool="Helm", name=release, namespace=annotations.get(RELEASE_NAMESPACE, ""))
    if labels.get(MANAGED_BY) == INSTALLER:
        return Owner(tool=INSTALLER)
    managers = [
        (text(entry, "time"), text(entry, "manager"))
        for entry in objects(obj, "metadata", "managedFields")
        if not text(entry, "subresource") and text(entry, "manager")
    ]
    return Owner(tool=max(managers, default=("", ""))[1])
