"""Requests to the API server, drawn from a seed: every verb on every served kind, with mutated objects, patches, query
parameters and headers."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import yaml

from tests.fuzz.mutations import ODD, mutated, places
from vcbatch.interfaces.api import PatchKind
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.registry import Served

Json = dict[str, Any]

_ROOT = Path(__file__).parents[2]
NAMES = ("a", "a", "a", "b")
_NAMESPACES = ("default",) * 60 + ("kube-system",) * 3 + ("none", "-", "%00")
_BIG = (
    "9" * 30,
    "-1",
    "0",
    "1",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1e9",
    "x",
    "",
    "٣",
    "²",
    "+1",
    " 1",
    "1_0",
    "0x1",
)
_TOKEN = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYS9iIn0"
"""A continue token for what there is now."""
_QUERY: dict[str, tuple[str, ...]] = {
    "limit": _BIG,
    "continue": ("x", "e30", _TOKEN, "eyJ2IjoiIiwicnYiOjEsInN0YXJ0IjoiIn0", "%ff"),
    "resourceVersion": _BIG,
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "timeoutSeconds": _BIG,
    "sendInitialEvents": ("true", "false", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "watch": ("true", "1", "0", "x"),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a,,b", "a in (", "a==", "x" * 300, "a>1", "(" * 500, "\u2603=\x00"),
    "fieldSelector": (
        "metadata.name=a",
        "metadata.name!=a",
        "spec.nodeName=",
        "status.phase=x",
        "a=b",
        "=",
        "a\\",
        ",,",
    ),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("m", "x" * 200, "\x00", ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x"),
    "pretty": ("true", "x"),
    "gracePeriodSeconds": _BIG,
    "propagationPolicy": ("Orphan", "Foreground", "Background", "x"),
    "orphanDependents": ("true", "false", "x"),
    "includeObject": ("Object", "None", "Metadata", "x"),
    "container": ("c", "x", ""),
    "tailLines": _BIG,
    "sinceSeconds": _BIG,
    "limitBytes": _BIG,
    "sinceTime": ("2026-01-01T00:00:00Z", "x", "0000-00-00"),
    "follow": ("true", "x"),
    "previous": ("true",),
    "timestamps": ("true",),
    "command": ("true", "\x00"),
    "stdin": ("true",),
    "stdout": ("true",),
    "tty": ("true",),
    "ports": _BIG,
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("true", "x"),
}
_ACCEPT = (
    "*/*",
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ";;;q=x,,",
    "application/json;q=1e999",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
)
_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    ";",
    "application/json;charset",
)
_DOCUMENTS = (
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps/v1",
    "/apis/apps",
    "/apis/batch.volcano.sh/v1alpha1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/openapi/v3/apis/apps/v1",
    "/openapi/v3/apis/fuzz.example.com/v1",
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/readyz/ping",
    "/metrics",
    "/",
    "",
    "//",
    "/api/v1/",
    "/apis/x/y/z/w/v",
    "/api/v1/x",
    "/api/v1/watch/pods",
    "/api/v1/watch/namespaces/default/pods/a",
    "/apis/%00/v1/x",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/pods/a/b/c/d",
    "/.well-known/openid-configuration",
    "/apis/fuzz.example.com/v1",
)
_PATCH_KEYS = (
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/ports",
    "$setElementOrder/finalizers",
    "$deleteFromPrimitiveList/finalizers",
    "$deleteFromPrimitiveList/args",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
    "$setElementOrder",
    "$x",
)
_PATCH_VALUES: tuple[Any, ...] = (
    "replace",
    "delete",
    "merge",
    "x",
    "",
    None,
    True,
    1,
    [],
    {},
    ["a"],
    [{}],
    [{"name": "a"}],
    [["a"]],
    [None],
    [1.5],
    {"a": "b"},
    [{"name": {}}],
    [{"name": []}],
    ["name", "image"],
    [{"name": "c"}, {"name": "c"}],
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    def __str__(self) -> str:
        shown = self.body if len(self.body) < 3000 else self.body[:3000] + b"..."
        return f"{self.method} {self.path}?{self.query} {self.headers} {shown!r}"


CUSTOM: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "fuzzes.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"plural": "fuzzes", "kind": "Fuzz", "singular": "fuzz", "shortNames": ["fz"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "N", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "D", "type": "date", "jsonPath": ".spec.when"},
                    {"name": "L", "type": "string", "jsonPath": '.spec.items[?(@.name=="a")].size'},
                ],
                "selectableFields": [{"jsonPath": ".spec.text"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [
                                    {
                                        "rule": "!has(self.replicas) || self.replicas < 1000",
                                        "messageExpression": "'has ' + string(self.replicas)",
                                    },
                                    {"rule": "!has(self.text) || self.text.matches('^[a-z ]*$')"},
                                    {"rule": "!has(oldSelf.text) || has(self.text)"},
                                ],
                                "properties": {
                                    "replicas": {"type": "integer", "default": 1, "minimum": 0},
                                    "text": {"type": "string", "maxLength": 64},
                                    "when": {"type": "string", "format": "date-time"},
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "share": {"type": "number", "multipleOf": 0.5, "maximum": 100},
                                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "set": {
                                        "type": "array",
                                        "maxItems": 8,
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "items": {
                                        "type": "array",
                                        "maxItems": 8,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string", "maxLength": 9},
                                                "size": {"type": "integer", "nullable": True},
                                            },
                                            "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size >= 0"}],
                                        },
                                    },
                                    "either": {
                                        "type": "object",
                                        "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
                                        "properties": {"x": {"type": "string"}, "y": {"type": "boolean"}},
                                    },
                                    "pod": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}
_CUSTOM_OBJECT: Json = {
    "apiVersion": "fuzz.example.com/v1",
    "kind": "Fuzz",
    "metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["example.com/f"]},
    "spec": {
        "replicas": 2,
        "text": "abc",
        "when": "2026-01-01T00:00:00Z",
        "any": {"x": [1, {"y": None}]},
        "port": "http",
        "share": 1.5,
        "labels": {"k": "v"},
        "set": ["x", "y"],
        "items": [{"name": "a", "size": 1}, {"name": "b"}],
        "either": {"x": "1"},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    },
    "status": {"replicas": 1, "selector": "a=b"},
}
_OTHERS: tuple[Json, ...] = (
    {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}},
    {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
    {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a"},
        "deleteOptions": {
            "gracePeriodSeconds": 5,
            "preconditions": {"uid": "x", "resourceVersion": "1"},
            "dryRun": ["All"],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
        "preconditions": {"uid": "x", "resourceVersion": "5"},
        "orphanDependents": None,
        "dryRun": ["All"],
    },
    {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "u",
            "groups": ["g"],
            "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "x"},
            "nonResourceAttributes": None,
            "extra": {"a": ["b"]},
        },
    },
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x", "audiences": ["a"]}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}},
)
_HOOK_RULES: tuple[str, ...] = (
    "object.metadata.name == 'a'",
    "request.operation == 'CREATE'",
    "object.spec.?x.orValue('') == ''",
    "1 / 0 == 1",
    "[1,2,3].map(x, [1,2,3].map(y, x * y)).size() > 0",
    "'a'.matches('(a+)+$')",
    "object.",
    "(" * 50,
)


@cache
def originals() -> dict[tuple[str, str], list[Json]]:
    """(apiVersion, kind) to objects that the server accepts or nearly so."""
    found: dict[tuple[str, str], list[Json]] = {}
    objects: list[Json] = [_CUSTOM_OBJECT, CUSTOM, *_OTHERS]
    for file in sorted((_ROOT / "tests/fidelity/kinds/objects").glob("*.yaml")):
        objects += [each["object"] for each in yaml.safe_load(file.read_text()) if "object" in each]
    for obj in objects:
        found.setdefault((obj["apiVersion"], obj["kind"]), []).append(json.loads(json.dumps(obj, default=str)))
    return found


@cache
def everything() -> list[Json]:
    return [obj for each in originals().values() for obj in each]


class Requests:
    """Draws requests for one kernel: equal seeds on equal kernels give equal requests."""

    def __init__(self, random: Random, kernel: Kernel) -> None:
        self._random = random
        self._kernel = kernel
        self._kinds: list[Served] = []
        self._known: Sequence[Served] = ()

    def next(self) -> Asked:
        random = self._random
        if random.random() < 0.03:
            path = random.choice(_DOCUMENTS)
            return Asked(random.choice(("GET", "GET", "HEAD", "POST")), path, self._queries(0.1), self._headers(), b"")
        entry = self._entry()
        namespace = random.choice(_NAMESPACES) if entry.resource.namespaced or random.random() < 0.02 else None
        if random.random() < 0.01:
            namespace = None
        path = entry.resource.path(namespace=namespace)
        draw = random.random()
        name = random.choice(NAMES) if random.random() < 0.97 else quote(str(random.choice(ODD)), safe="")
        of_one = f"{path}/{name}"
        if draw < 0.32:
            return self._write("POST", path, self._object(entry, namespace, name, "POST"))
        if draw < 0.46:
            return self._write("PUT", of_one, self._object(entry, namespace, name, "PUT"))
        if draw < 0.70:
            return self._patch(entry, namespace, name, of_one)
        if draw < 0.74:
            return Asked("GET", of_one, self._queries(0.2), self._headers(), b"")
        if draw < 0.79:
            return Asked("GET", path, self._queries(0.5), self._headers(), b"")
        if draw < 0.82:
            query = "&".join(("watch=1", f"timeoutSeconds={random.randint(1, 30)}", self._queries(0.5)))
            return Asked("GET", path, query, self._headers(), b"")
        if draw < 0.89:
            return self._write("DELETE", of_one, self._options())
        if draw < 0.90:
            return self._write("DELETE", path, self._options())
        return self._subresource(entry, namespace, name, of_one)

    def _entry(self) -> Served:
        served = self._kernel.engine.served.all
        if served is not self._known:
            self._known = served
            # A few kinds at a time, so that most requests find an object.
            few = self._random.sample(list(served), 8)
            self._kinds = [*few * 4, *served, *(entry for entry in served if entry.generated for _ in range(9))]
        return self._random.choice(self._kinds)

    def _write(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> Asked:
        if self._random.random() < 0.02:
            content_type = self._random.choice((*_TYPES, *(str(kind) for kind in PatchKind)))
        query = self._queries(0.15)
        if "webhookconfigurations" in path:
            query = f"dryRun=All&{query}"  # a stored one would be asked about all that follows
        return Asked(method, path, query, self._headers(content_type), body)

    def _object(self, entry: Served, namespace: str | None, name: str, method: str) -> bytes:
        random, resource = self._random, entry.resource
        obj: Json | None = None
        if method != "POST" and random.random() < 0.8:
            obj = self._kernel.engine.lookup(resource, namespace, name)
        if obj is None:
            known = originals().get((resource.api_version, resource.kind)) or everything()
            obj = copy.deepcopy(random.choice(known))
            obj["metadata"] = {**(obj.get("metadata") or {}), "name": name}
            if random.random() < 0.1:
                obj["metadata"]["generateName"] = obj["metadata"].pop("name")
        if entry.resource.plural.endswith("webhookconfigurations"):
            for hook in obj.get("webhooks") or ():
                hook["matchConditions"] = [{"name": "c", "expression": random.choice(_HOOK_RULES)}]
        if random.random() < (0.6 if method == "POST" else 0.15):
            return _encoded(obj)
        return mutated(random, obj, everything())

    def _options(self) -> bytes:
        random = self._random
        if random.random() < 0.6:
            return b""
        return mutated(random, copy.deepcopy(_OTHERS[3]), everything())

    def _patch(self, entry: Served, namespace: str | None, name: str, path: str) -> Asked:
        random = self._random
        obj = self._kernel.engine.lookup(entry.resource, namespace, name)
        if obj is None:
            known = originals().get((entry.resource.api_version, entry.resource.kind)) or everything()
            obj = copy.deepcopy(random.choice(known))
        kind = random.choice(tuple(PatchKind))
        if kind is PatchKind.JSON:
            body = _encoded([self._operation(obj) for _ in range(random.choice((1, 1, 2, 5, 40)))])
        else:
            part = self._part(obj)
            if kind is PatchKind.STRATEGIC or random.random() < 0.05:
                self._direct(part)
            if kind is PatchKind.APPLY and random.random() < 0.9:
                part.update(apiVersion=entry.resource.api_version, kind=entry.resource.kind)
                part["metadata"] = {"name": name} if random.random() < 0.8 else part.get("metadata")
            body = mutated(random, part, everything()) if random.random() < 0.5 else _encoded(part)
        asked = self._write("PATCH", path, body, str(kind))
        if kind is PatchKind.APPLY and random.random() < 0.9:
            more = f"fieldManager={random.choice(('m', 'n'))}&force={random.choice(('true', 'false'))}"
            asked = Asked(asked.method, asked.path, "&".join((more, asked.query)), asked.headers, asked.body)
        return asked

    def _part(self, obj: Json) -> Json:
        """Some keys of the object and of what is below, with changed values."""
        random = self._random
        made: Json = {}
        for key in random.sample(sorted(obj), min(len(obj), random.randint(1, 3))):
            value = obj[key]
            if isinstance(value, dict) and value and random.random() < 0.8:
                made[key] = self._part(value)
            elif isinstance(value, list) and value and random.random() < 0.7:
                item = random.choice(value)
                made[key] = [self._part(item) if isinstance(item, dict) and item else item]
            else:
                made[key] = copy.deepcopy(random.choice((value, random.choice(ODD), None)))
        return made

    def _direct(self, part: Json) -> None:
        """Directives of strategic merge patches, at random places and with odd values."""
        random = self._random
        for _ in range(random.choice((0, 1, 1, 2))):
            found = [part, *(at[key] for at, key in places(part) if isinstance(at[key], dict))]
            random.choice(found)[random.choice(_PATCH_KEYS)] = copy.deepcopy(random.choice(_PATCH_VALUES))

    def _operation(self, obj: Json) -> Any:
        random = self._random
        value = copy.deepcopy(random.choice(ODD))
        if random.random() < 0.02:
            return value
        op: Json = {"op": random.choice(("add", "remove", "replace", "move", "copy", "copy", "copy", "test", "x", 1))}
        op["path"] = self._pointer(obj)
        if random.random() < 0.6:
            op["from"] = self._pointer(obj)
        if random.random() < 0.7:
            op["value"] = value
        return op

    def _pointer(self, obj: Json) -> Any:
        random, at, made = self._random, obj, ""
        if random.random() < 0.03:
            return copy.deepcopy(random.choice(ODD))
        value: Any = at
        while True:
            keys: list[Any] = (
                list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
            )
            if not keys or random.random() < 0.2:
                break
            key = random.choice(keys)
            value = value[key]
            made += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return made + random.choice(("", "", "", "/-", "/x", "/0", "/99999999999999999999", "/-1", "/²", "/"))

    def _subresource(self, entry: Served, namespace: str | None, name: str, path: str) -> Asked:
        random = self._random
        subs = [*entry.subresources, "status", "scale", "x"] if random.random() < 0.2 else list(entry.subresources)
        if not subs:
            return Asked("GET", path, self._queries(0.2), self._headers(), b"")
        sub = random.choice(subs)
        target, method = f"{path}/{sub}", random.choice(("GET", "POST", "PUT", "PATCH", "PUT", "PATCH", "DELETE"))
        match sub:
            case "scale":
                base = _OTHERS[0]
            case "binding":
                base = _OTHERS[1]
            case "eviction":
                base = _OTHERS[2]
            case _:
                base = None
        if sub in ("binding", "eviction", "exec", "attach", "portforward"):
            method = random.choice(("POST", "POST", "GET", "PUT"))
        if method == "PATCH":
            if base is None:
                return self._patch(entry, namespace, name, target)
            body = mutated(random, copy.deepcopy(base), everything())
            return self._write("PATCH", target, body, str(random.choice(tuple(PatchKind))))
        if method == "GET":
            return Asked(method, target, self._queries(0.5), self._headers(), b"")
        if base is None:
            return self._write(method, target, self._object(entry, namespace, name, method))
        made = copy.deepcopy(base)
        made["metadata"]["name"] = name
        return self._write(method, target, mutated(random, made, everything()))

    def _queries(self, chance: float) -> str:
        random = self._random
        if random.random() >= chance:
            return ""
        chosen = [random.choice(tuple(_QUERY)) for _ in range(random.choice((1, 1, 2, 3)))]
        return "&".join(f"{name}={quote(random.choice(_QUERY[name]), safe='%')}" for name in chosen)

    def _headers(self, content_type: str = "") -> dict[str, str]:
        random = self._random
        headers = {"host": "127.0.0.1", "authorization": "Bearer token"}
        if content_type:
            headers["content-type"] = content_type
        if random.random() < 0.08:
            headers["accept"] = random.choice(_ACCEPT)
        if random.random() < 0.03:
            key = random.choice(
                (
                    "user-agent",
                    "impersonate-user",
                    "impersonate-group",
                    "authorization",
                    "origin",
                    "if-none-match",
                    "content-length",
                    "accept-encoding",
                )
            )
            headers[key] = str(random.choice(ODD))
        return headers


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
