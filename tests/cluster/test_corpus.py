"""The corpus of `tests/corpus` asked of a real API server, with the service behind its webhook configurations.

All is dry run but the objects that cases change, which are made before admission is asked about anything: some of them
couldn't be made through it.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.cluster import admission as installed
from tests.cluster.components import WEBHOOKS, Components
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until
from tests.corpus.corpus import Case, bases, cases, changed, surroundings, world
from tests.support.alike import unlike
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.names import webhook_name
from vcbatch.api.resources import HYPERNODES, PODGROUPS, PODS, QUEUES, Resource

WORLD = world()
POLICIES = REPOSITORY / "helm/vcbatch/files/policies"
_AT_ONCE = 8


@dataclass(kw_only=True)
class Cluster:
    """A control plane with what the corpus expects to exist."""

    plane: ControlPlane
    stored: dict[str, Request] = field(default_factory=dict[str, Request])
    """By the names of the cases that change or delete something: that, as it is stored, and the change of it."""

    def ask(self, request: Request) -> tuple[int, Json, tuple[str, ...]]:
        """Code, answer and warnings of the request as a dry run."""
        resource, named = request.resource, request.operation is not Operation.CREATE
        path = resource.path(namespace=request.namespace or None, name=request.name if named else None)
        body = request.object and {"apiVersion": resource.api_version, "kind": resource.kind, **request.object}
        method = {Operation.CREATE: "POST", Operation.UPDATE: "PUT", Operation.DELETE: "DELETE"}[request.operation]
        asked = urllib.request.Request(
            f"{self.plane.server}{path}?dryRun=All", method=method, data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(asked, context=self.plane.client_context, timeout=60) as answer:
                warned = tuple(_unquoted(text) for text in answer.headers.get_all("Warning") or ())
                return answer.status, json.loads(answer.read()), warned
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), ()


def _unquoted(header: str) -> str:
    text = header.removeprefix("299 - ")
    return str(json.loads(text)) if text.startswith('"') else text


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    made = Cluster(plane=control_plane)
    given = surroundings()
    for name, noted in given["namespaces"].items():
        control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        body = {"metadata": {"annotations": noted}}
        control_plane.call("PATCH", f"/api/v1/namespaces/{name}", body, content_type="application/merge-patch+json")
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until("pods may be made", lambda path=account: control_plane.request("GET", path)[0] == 200)
    for name in given["priorityClasses"]:
        control_plane.call(
            "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1}
        )
    for queue in given["queues"]:
        _store(control_plane, QUEUES, queue)
    for group in given["podgroups"]:
        metadata = {key: value for key, value in group["metadata"].items() if key != "uid"}
        _store(control_plane, PODGROUPS, {**group, "metadata": metadata})
    updates = [(number, case) for number, case in enumerate(cases()) if case.request.operation is Operation.UPDATE]
    shared = [(number, case) for number, case in updates if _is_shared(case.request)]
    made.stored = {case.name: _prepared(control_plane, case.request, number) for number, case in shared}
    others = [(number, case) for number, case in updates if not _is_shared(case.request)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        prepared = pool.map(lambda item: _prepared(control_plane, item[1].request, item[0]), others)
        made.stored |= {case.name: request for (_, case), request in zip(others, prepared, strict=True)}
    yield made


@pytest.fixture(scope="module")
def admitted(cluster: Cluster) -> Iterator[Cluster]:
    with Components(cluster.plane) as components:
        service = components.start(WEBHOOKS).wait_ready()
        components.install_admission(service)
        yield cluster


@pytest.fixture(scope="module")
def ruled(cluster: Cluster) -> Iterator[Cluster]:
    """With the shipped policies in the place of the service."""
    installed.remove(cluster.plane)
    cluster.plane.apply(POLICIES)
    probes = [case for case in cases() if case.rule in ("job/plugins", "queue/deserved", "pod/budgets") and case.says]
    wait_until(
        "policies are followed", lambda: all(cluster.ask(case.request)[0] == 422 for case in probes), timeout=120
    )
    bare = next(case.request for case in cases() if case.rule == "job/defaults" and "/spec/schedulerName" in case.name)
    wait_until("defaults are filled in", lambda: cluster.ask(bare)[1].get("spec", {}).get("schedulerName") == "volcano")
    yield cluster


def _store(plane: ControlPlane, resource: Resource, given: Mapping[str, Any]) -> Json:
    """The object with its status, whoever may write that."""
    body = {**given, "apiVersion": resource.api_version, "kind": resource.kind}
    path = resource.path(namespace=given["metadata"].get("namespace"))
    stored: Json = plane.call("POST", path, body)
    if given.get("status") and resource != PODGROUPS:
        stored = plane.call("PUT", f"{path}/{given['metadata']['name']}/status", {**stored, "status": given["status"]})
    return stored


def _is_shared(request: Request) -> bool:
    """Whether the changed object is one of those that all cases share."""
    return request.resource == QUEUES and any(
        queue["metadata"]["name"] == request.name for queue in surroundings()["queues"]
    )


def _prepared(plane: ControlPlane, request: Request, number: int) -> Request:
    """The change of an object that exists, in a place of its own: cases change the same ones in many ways."""
    old, new, name, namespace = dict(request.old or {}), dict(request.object or {}), request.name, request.namespace
    if _is_shared(request):
        old = plane.call("GET", request.resource.path(name=name))
        old["spec"] = old.get("spec", {}) | (request.old or {})["spec"]
        old = plane.call("PUT", request.resource.path(name=name), old)
    else:
        if request.resource in (QUEUES, HYPERNODES):
            name = f"{name}-u{number}"
        else:
            namespace = f"u-{number}"
            plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        old["metadata"] = {**old["metadata"], "name": name} | ({"namespace": namespace} if namespace else {})
        old = _store(plane, request.resource, old)
    version = old["metadata"]["resourceVersion"]
    place = {"name": name, "resourceVersion": version} | ({"namespace": namespace} if namespace else {})
    new["metadata"] = {**new["metadata"], **place}
    filled = {key: value for key, value in old["spec"].items() if key not in (request.old or {})["spec"]}
    new["spec"] = filled | new["spec"]  # by the schema
    return replace(request, name=name, namespace=namespace, old=old, object=new)


def as_asked(cluster: Cluster, case: Case) -> Request:
    """The case's request for this cluster."""
    return cluster.stored.get(case.name, case.request)


def as_seen(request: Request) -> Request:
    """The request as admission is shown it: status is nobody's who writes the object."""
    if request.object is None or request.resource in (PODGROUPS, PODS):
        return request
    status = (request.old or {}).get("status", {})
    return replace(request, object={**request.object, "status": status})


def judged(case: Case, request: Request, answered: tuple[int, Json, tuple[str, ...]]) -> str:
    """What is wrong with the answer; empty where nothing is."""
    code, answer, warned = answered
    reported = answer.get("message", "")
    if case.by_schema:
        return "" if code == 422 else f"{code}, not refused by the schema: {reported}"
    if code == 404 and request.operation is Operation.DELETE:
        return "" if case.says else reported
    seen = as_seen(request)
    filled = replace(seen, object=admission.mutate(seen, WORLD))
    verdict = admission.review(filled, WORLD)
    if not verdict.allowed:
        webhook = webhook_name(request.resource.plural, "validate")
        want = f'admission webhook "{webhook}" denied the request: {verdict.message}'
        if "generateName" in (request.object or {}).get("metadata", {}):
            reported = re.sub(r"(?<=aaa)[a-z0-9]{5}(?=-w-1 )", "x" * 5, reported)
        return "" if (code, reported) == (400, want) else f"{code} {reported}, want {want}"
    if code not in (200, 201):
        return f"{code} {reported}, want it allowed"
    wrong = unlike(filled.object or {}, answer) if request.operation is not Operation.DELETE else []
    warnings = [*admission.mutation_warnings(seen, filled.object), *verdict.warnings]
    clipped = [text if len(text) <= 256 else f"{text[:253]}..." for text in warnings]
    return "; ".join(wrong) or ("" if list(warned) == clipped else f"warned {warned}, want {clipped}")


def test_a_real_server_says_it(admitted: Cluster) -> None:
    asked = {case.name: as_asked(admitted, case) for case in cases()}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(asked, pool.map(admitted.ask, asked.values()), strict=True))
    wrong = {case.name: judged(case, asked[case.name], answers[case.name]) for case in cases()}
    assert {name: error for name, error in wrong.items() if error} == {}


def test_kubectl_shows_warnings(admitted: Cluster) -> None:
    job = changed(bases()["pair"]["object"], {"/spec/minAvailable": 2, "/spec/runningEstimate": "2h"})
    text = json.dumps({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **job})
    done = admitted.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "Warning: spec.minAvailable: 2 is below 3" in done.stderr
    assert "Warning: spec.runningEstimate: nothing reads it" in done.stderr


def ruled_alike(case: Case, request: Request, answered: tuple[int, Json, tuple[str, ...]]) -> str:
    """Where policies and rules don't agree; empty where they do, or where no policy has a say."""
    code, answer, _ = answered
    reported = answer.get("message", "")
    if case.by_schema or code == 404:
        return ""
    seen = as_seen(request)
    filled = replace(seen, object=admission.mutate(seen, WORLD))
    message = admission.review(filled, WORLD).message
    if message and case.by_policy:
        return "" if code == 422 and "ValidatingAdmissionPolicy" in reported else f"{code} {reported}, want {message}"
    if code not in (200, 201):
        return f"{code} {reported}, want {'nothing said: ' + message if message else 'it allowed'}"
    return "; ".join(unlike(filled.object or {}, answer)) if request.operation is not Operation.DELETE else ""


def test_policies_say_what_the_service_says(ruled: Cluster) -> None:
    asked = {case.name: as_asked(ruled, case) for case in cases()}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(asked, pool.map(ruled.ask, asked.values()), strict=True))
    wrong = {case.name: ruled_alike(case, asked[case.name], answers[case.name]) for case in cases()}
    assert {name: error for name, error in wrong.items() if error} == {}
