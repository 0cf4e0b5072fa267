"""Defaults of a pod spec. Source: kubernetes `pkg/apis/core/v1/defaults.go`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.names import KUBE_SCHEDULER

_FILE_MODE = 0o644


_HOST = r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?P<name>(?:(?:{_HOST}|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][-.A-Za-z0-9_]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)
"""The name of an image. Source: the grammar of github.com/distribution/reference."""
_LONGEST_IMAGE = 255
_LONGEST_WITH_DIGEST = 2048
"""Longer names aren't matched: matching takes some hundred bytes of memory for each character."""


def spec_defaults(spec: Json) -> None:
    """Defaults of a PodSpec, in a pod as in a template."""
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("schedulerName"):
        spec["schedulerName"] = KUBE_SCHEDULER
    for container in containers(spec):
        _container_defaults(container)
    for volume in listed(spec, "volumes"):
        _volume_defaults(volume)
    for claim in listed(spec, "resourceClaims"):
        if claim.get("source") == {}:
            del claim["source"]


def pod_defaults(spec: Json) -> None:
    """Defaults of pods only, after those of the spec."""
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec, ephemeral=False):
        _requests_from_limits(container)
    if spec.get("hostNetwork"):
        for container in containers(spec, ephemeral=False):
            for port in listed(container, "ports"):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    resources = spec.get("resources")
    if isinstance(resources, dict):
        _requests_from_limits(spec)


def containers(spec: Json, *, ephemeral: bool = True) -> Iterator[Json]:
    """All containers of a pod spec, init containers first, as they run."""
    kinds = ("initContainers", "containers", "ephemeralContainers") if ephemeral else ("initContainers", "containers")
    for kind in kinds:
        yield from listed(spec, kind)


def _requests_from_limits(container: Json) -> None:
    resources = container.get("resources")
    if not resources or not resources.get("limits"):
        return
    requests = part(resources, "requests")
    for name, amount in resources["limits"].items():
        requests.setdefault(name, amount)
    resources["requests"] = requests


def _container_defaults(container: Json) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image") or "") else "IfNotPresent"
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    container.setdefault("resources", {})
    for port in listed(container, "ports"):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in listed(container, "env"):
        _field_ref_defaults(part(part(variable, "valueFrom"), "fieldRef"))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            _probe_defaults(container[probe])
    hooks = part(container, "lifecycle")
    for hook in hooks:
        _http_defaults(part(part(hooks, hook), "httpGet"))


def _is_latest(image: str) -> bool:
    """Whether the image has the tag `latest`, or is well-formed and has neither tag nor digest."""
    name = _IMAGE.fullmatch(image) if len(image) <= _LONGEST_WITH_DIGEST else None
    if name is None or len(name["name"]) > _LONGEST_IMAGE:
        return False
    return name["tag"] == "latest" or (name["tag"] is None and name["digest"] is None)


def _probe_defaults(probe: Json) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    _http_defaults(part(probe, "httpGet"))
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


# A missing object reads as an empty one of its own, so that these two set defaults in no part of the spec.


def _http_defaults(action: Json) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def _field_ref_defaults(reference: Json) -> None:
    if not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def _volume_defaults(volume: Json) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for key in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(key) is not None and volume[key].get("defaultMode") is None:
            volume[key]["defaultMode"] = _FILE_MODE
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    for item in listed(part(volume, "downwardAPI"), "items"):
        _field_ref_defaults(part(item, "fieldRef"))
    for source in listed(part(volume, "projected"), "sources"):
        for item in listed(part(source, "downwardAPI"), "items"):
            _field_ref_defaults(part(item, "fieldRef"))
        token = source.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
    if volume.get("image") is not None and not volume["image"].get("pullPolicy"):
        latest = _is_latest(volume["image"].get("reference") or "")
        volume["image"]["pullPolicy"] = "Always" if latest else "IfNotPresent"
    part(part(part(volume, "ephemeral"), "volumeClaimTemplate"), "spec").setdefault("volumeMode", "Filesystem")
    if volume.get("iscsi") is not None and not volume["iscsi"].get("iscsiInterface"):
        volume["iscsi"]["iscsiInterface"] = "default"
