"""Discovery: the served groups, versions and resources, in the aggregated and in the plain form, and /version.

Source: k8s.io/apiserver `pkg/endpoints/discovery` (plain and aggregated), KEP-3352.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence

from vcbatch.api import names
from vcbatch.api.resources import CRDS
from vcbatch.local.apiserver.registry import Json, Reply, Served

API_MAJOR, API_MINOR = "1", "36"
"""The release of Kubernetes whose API is implemented."""

_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order of verbs of custom resources."""

_AGGREGATED = re.compile(r"^application/json;(?=.*\bas=APIGroupDiscoveryList\b)(?=.*\bv=(v2)(?:;|$))")


def documents(
    served: Sequence[Served], path: str, headers: Mapping[str, str], query: Mapping[str, Sequence[str]]
) -> Reply | None:
    """The response to GET of a discovery path, or None for any other path."""
    return _DISCOVERY(served, path, headers)


def version() -> Json:
    """The content of /version: the API level, and that this isn't a Kubernetes distribution."""
    return {
        "major": API_MAJOR,
        "minor": API_MINOR,
        "emulationMajor": API_MAJOR,
        "emulationMinor": API_MINOR,
        "minCompatibilityMajor": API_MAJOR,
        "minCompatibilityMinor": str(int(API_MINOR) - 1),
        "gitVersion": f"v{API_MAJOR}.{API_MINOR}.1{names.LOCAL_SERVER_MARK}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{_architecture()}",
    }


def version_order(version: str) -> tuple[int, int, int, str]:
    """A sort key for Kubernetes' preference of versions: v2, v1, v1beta2, v1alpha1, then others by name."""
    found = re.fullmatch(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", version)
    if not found:
        return 3, 0, 0, version
    rank = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return rank, -int(found[1]), -int(found[3] or 0), ""


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class _Discovery:
    """Renders each document once for a set of served resources."""

    def __init__(self) -> None:
        self._served: Sequence[Served] | None = None
        self._groups: Mapping[str, Mapping[str, Sequence[Served]]] = {}
        self._rendered: dict[str, bytes] = {}

    def __call__(self, served: Sequence[Served], path: str, headers: Mapping[str, str]) -> Reply | None:
        if served is not self._served:
            self._served, self._groups, self._rendered = served, _grouped(served), {}
        path = path.rstrip("/") or "/"
        if path in ("/api", "/apis"):
            form = _aggregated_form(headers.get("accept", ""))
            if form:
                return self._aggregated(path, form, headers)
        if path == "/api":
            host = headers.get("host", "")
            return Reply(
                body={
                    "kind": "APIVersions",
                    "versions": list(self._groups.get("", ())),
                    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
                }
            )
        make = self._document(path)
        if make is None:
            return None
        if path not in self._rendered:
            self._rendered[path] = json.dumps(make(), separators=(",", ":")).encode()
        return Reply(body=self._rendered[path])

    def _document(self, path: str) -> Callable[[], Json] | None:
        """The function that creates the document at `path`, or None."""
        parts = path.split("/")[1:]
        match parts:
            case [""]:
                return lambda: {"paths": self._paths()}
            case ["version"]:
                return version
            case ["apis"]:
                return lambda: {
                    "kind": "APIGroupList",
                    "apiVersion": "v1",
                    "groups": [_group(name, versions) for name, versions in self._groups.items() if name],
                }
            case ["api", wanted] if wanted in self._groups.get("", {}):
                return lambda: _resource_list("", wanted, self._groups[""][wanted])
            case ["apis", group] if group and group in self._groups:
                return lambda: {"kind": "APIGroup", "apiVersion": "v1", **_group(group, self._groups[group])}
            case ["apis", group, wanted] if wanted in self._groups.get(group, {}):
                return lambda: _resource_list(group, wanted, self._groups[group][wanted])
            case _:
                return None

    def _aggregated(self, path: str, form: str, headers: Mapping[str, str]) -> Reply:
        key = f"{path};{form}"
        if key not in self._rendered:
            groups = {name: versions for name, versions in self._groups.items() if (name == "") == (path == "/api")}
            document = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{form}",
                "metadata": {},
                "items": [_group_discovery(name, versions) for name, versions in groups.items()],
            }
            self._rendered[key] = json.dumps(document, separators=(",", ":")).encode()
        media = f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
        tag = f'"{hashlib.sha512(self._rendered[key]).hexdigest().upper()}"'
        caching = {"Vary": "Accept", "Etag": tag}
        if headers.get("if-none-match") == tag:
            return Reply(body=b"", code=304, content_type=media, headers=caching)
        return Reply(body=self._rendered[key], content_type=media, headers=caching)

    def _paths(self) -> list[str]:
        paths = ["/api", "/apis", "/apis/", "/healthz", "/livez", "/openapi/v3", "/openapi/v3/", "/readyz", "/version"]
        for group, versions in self._groups.items():
            if group:
                paths.append(f"/apis/{group}")
            paths += [f"/apis/{group}/{name}" if group else f"/api/{name}" for name in versions]
        return sorted(paths)


_DISCOVERY = _Discovery()


def _aggregated_form(accept: str) -> str:
    """The version of the aggregated form that precedes any plain form in an Accept header; else ""."""
    for media in accept.split(","):
        media = media.replace(" ", "")
        found = _AGGREGATED.match(media)
        if found and "g=apidiscovery.k8s.io" in media:
            return found[1]
        if media.partition(";")[0] in ("application/json", "*/*") and "as=" not in media:
            return ""
    return ""


def _grouped(served: Sequence[Served]) -> Mapping[str, Mapping[str, Sequence[Served]]]:
    """Group to version to its resources; built-in groups first, then custom ones, each by name."""
    groups: dict[str, dict[str, list[Served]]] = {}
    for entry in served:
        groups.setdefault(entry.resource.group, {}).setdefault(entry.resource.version, []).append(entry)
    custom = {name for name, versions in groups.items() if all(e.generated for v in versions.values() for e in v)}
    return {
        name: {
            version: sorted(groups[name][version], key=lambda entry: entry.resource.plural)
            for version in sorted(groups[name], key=version_order)
        }
        for name in sorted(groups, key=lambda name: (name in custom, name))
    }


def _group(name: str, versions: Mapping[str, Sequence[Served]]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group: str, version: str, entries: Sequence[Served]) -> Json:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [described for entry in entries for described in _api_resources(entry)],
    }


def _api_resources(entry: Served) -> list[Json]:
    resource = entry.resource
    main: Json = {
        "name": resource.plural,
        "singularName": entry.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(entry),
    }
    if entry.short_names:
        main["shortNames"] = list(entry.short_names)
    if entry.categories:
        main["categories"] = list(entry.categories)
    if "list" in entry.verbs:
        main["storageVersionHash"] = _storage_hash(entry)
    return [main, *(_api_subresource(entry, name) for name in _subresources(entry))]


def _subresources(entry: Served) -> Sequence[str]:
    """The subresources in order: custom resources list status before scale, built-in ones by name."""
    names = list(entry.subresources)
    return sorted(names, reverse=entry.generated)


def _api_subresource(entry: Served, name: str) -> Json:
    group, version, kind = _subresource_kind(entry, name)
    described: Json = {
        "name": f"{entry.resource.plural}/{name}",
        "singularName": "",
        "namespaced": entry.resource.namespaced,
        "kind": kind,
        "verbs": list(entry.subresources[name]),
    }
    if (group, version) != (entry.resource.group, entry.resource.version):
        described.update({"group": group, "version": version} if group else {"version": version})
    return described


def _subresource_kind(entry: Served, name: str) -> tuple[str, str, str]:
    own = (entry.resource.group, entry.resource.version, entry.resource.kind)
    return entry.subresource_kinds.get(name, own)


def _verbs(entry: Served) -> list[str]:
    return list(_CUSTOM_VERBS) if entry.generated else list(entry.verbs)


def _storage_hash(entry: Served) -> str:
    """The hash by which clients detect a change of the stored version."""
    stored = entry.stored_as
    # Definitions are the only kind that Kubernetes stores in a version that it no longer serves.
    version = "v1beta1" if stored == CRDS else stored.version
    text = f"{stored.group}/{version}/{stored.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _group_discovery(name: str, versions: Mapping[str, Sequence[Served]]) -> Json:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {
                "version": version,
                "resources": [_resource_discovery(entry) for entry in entries],
                "freshness": "Current",
            }
            for version, entries in versions.items()
        ],
    }


def _response_kind(entry: Served, group: str, version: str, kind: str) -> Json:
    """The response kind of a resource; built-in resources omit their own group version."""
    own = not entry.generated and (group, version) == (entry.resource.group, entry.resource.version)
    return {"group": "" if own else group, "version": "" if own else version, "kind": kind}


def _resource_discovery(entry: Served) -> Json:
    resource = entry.resource
    described: Json = {
        "resource": resource.plural,
        "responseKind": _response_kind(entry, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": _verbs(entry),
    }
    if entry.short_names:
        described["shortNames"] = list(entry.short_names)
    if entry.categories:
        described["categories"] = list(entry.categories)
    if entry.subresources:
        described["subresources"] = [
            {
                "subresource": name,
                "responseKind": _response_kind(entry, *_subresource_kind(entry, name)),
                "verbs": list(entry.subresources[name]),
            }
            for name in _subresources(entry)
        ]
    return described
