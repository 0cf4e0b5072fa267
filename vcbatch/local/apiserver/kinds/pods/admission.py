"""The fields that admission adds to a new pod: resource defaults, service account, priority, runtime class,
tolerations.

Source of rules and texts: kubernetes `plugin/pkg/admission/{serviceaccount,priority,runtimeclass}` and
`.../defaulttolerationseconds`.
"""

from __future__ import annotations

import hashlib

from vcbatch.api.names import MIRROR_POD
from vcbatch.api.podspec.defaults import containers
from vcbatch.api.resources import PRIORITYCLASSES, SERVICEACCOUNTS, Resource
from vcbatch.local.apiserver.apierrors import StatusError, forbidden
from vcbatch.local.apiserver.kinds.pods import limits
from vcbatch.local.apiserver.registry import Json, RequestContext

_RUNTIME_CLASSES = Resource(
    group="node.k8s.io", version="v1", plural="runtimeclasses", kind="RuntimeClass", namespaced=False
)
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - a name
_TOKEN_SECONDS = 3607
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_EVICTION_SECONDS = 300
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
LOWER = "PreemptLowerPriority"


def admit(pod: Json, ctx: RequestContext) -> None:
    """Complete a pod that is being created. Raises `StatusError` where admission refuses it."""
    spec = pod["spec"]
    limits.default_amounts(pod, ctx)
    if MIRROR_POD not in ((pod.get("metadata") or {}).get("annotations") or {}):
        _service_account(pod, spec, ctx)
    _priority(pod, spec, ctx)
    _runtime_class(pod, spec, ctx)
    _tolerations(spec)


def _refused(pod: Json, message: str) -> StatusError:
    name = (pod.get("metadata") or {}).get("name") or ""
    return forbidden(group="", plural="pods", name=name, message=message)


def _service_account(pod: Json, spec: Json, ctx: RequestContext) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = ctx.lookup(SERVICEACCOUNTS, ctx.namespace, name)
    if account is None:
        if name != "default":
            looked_up = f'error looking up service account {ctx.namespace}/{name}: serviceaccount "{name}" not found'
            raise _refused(pod, looked_up)
        account = {}
    if _mounts_token(spec, account):
        _mount_token(pod, spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]


def _mounts_token(spec: Json, account: Json) -> bool:
    for source in (spec, account):
        if source.get("automountServiceAccountToken") is not None:
            return bool(source["automountServiceAccountToken"])
    return True


def _mount_token(pod: Json, spec: Json) -> None:
    """Add the projected volume with the token, and mount it in each container without another mount at its path."""
    volume = next((item for item in spec.get("volumes") or () if _is_token_volume(item)), None)
    name = volume["name"] if volume else _TOKEN_VOLUME + _suffix(pod)
    mounted = False
    for container in containers(spec, ephemeral=False):
        mounts = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
            continue
        container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}]
        mounted = True
    if mounted and volume is None:
        spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(name)]


def _is_token_volume(volume: Json) -> bool:
    return str(volume.get("name", "")).startswith(_TOKEN_VOLUME)


def _suffix(pod: Json) -> str:
    """Five letters that differ from pod to pod and stay the same when admission runs again."""
    metadata = pod.get("metadata") or {}
    seed = "/".join(str(metadata.get(key) or "") for key in ("namespace", "name", "generateName", "uid"))
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:5])


def _token_volume(name: str) -> Json:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


def _priority(pod: Json, spec: Json, ctx: RequestContext) -> None:
    name, value, policy = _class_of(pod, spec, ctx)
    if name:
        spec["priorityClassName"] = name
    if spec.get("priority") is not None and spec["priority"] != value:
        raise _refused(
            pod,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    spec["priority"] = value
    if spec.get("preemptionPolicy") is not None and spec["preemptionPolicy"] != policy:
        raise _refused(
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def _class_of(pod: Json, spec: Json, ctx: RequestContext) -> tuple[str, int, str]:
    """The name, value and preemption policy of the pod's priority class. The name is empty without a class."""
    name = spec.get("priorityClassName") or ""
    if name:
        found = ctx.lookup(PRIORITYCLASSES, None, name)
        if found is None and name in _SYSTEM_PRIORITIES:
            return name, _SYSTEM_PRIORITIES[name], LOWER
        if found is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
        return name, found.get("value", 0), found.get("preemptionPolicy", LOWER)
    defaults = [item for item in ctx.listed(PRIORITYCLASSES, None) if item.get("globalDefault")]
    if not defaults:
        return "", 0, LOWER
    chosen = min(defaults, key=lambda item: item.get("value", 0))
    return chosen["metadata"]["name"], chosen.get("value", 0), chosen.get("preemptionPolicy", LOWER)


def _runtime_class(pod: Json, spec: Json, ctx: RequestContext) -> None:
    """Add the overhead and scheduling constraints of the runtime class. Source: `plugin/pkg/admission/runtimeclass`."""
    name = spec.get("runtimeClassName")
    found = ctx.lookup(_RUNTIME_CLASSES, None, name) if name else None
    if name and found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = ((found or {}).get("overhead") or {}).get("podFixed")
    if spec.get("overhead") and spec["overhead"] != overhead:
        if overhead is None:
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        else:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise _refused(pod, why)
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = (found or {}).get("scheduling") or {}
    wanted, given = scheduling.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        if given.get(key, value) != value:
            here, there = f"pod.spec.nodeSelector[{key}]", f"runtimeClass.scheduling.nodeSelector[{key}]"
            raise _refused(pod, f"conflict: {there} = {value}; {here} = {given[key]}")
    if wanted:
        spec["nodeSelector"] = {**given, **wanted}
    kept = spec.get("tolerations") or []
    added = [one for one in scheduling.get("tolerations") or () if one not in kept]
    if added:
        spec["tolerations"] = [*kept, *added]


def _tolerations(spec: Json) -> None:
    """Add the default tolerations: a pod stays five minutes on a node that stops answering, unless it has its own."""
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        given = spec.get("tolerations") or []
        if any(_tolerates(toleration, key) for toleration in given):
            continue
        added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_SECONDS}
        spec["tolerations"] = [*given, added]


def _tolerates(toleration: Json, key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"
