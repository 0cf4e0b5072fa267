"""Admission through a real API server: what it answers is what the rules say, and it harms nobody who isn't asked.

No controllers run here, so that queues keep the states that a test gives them.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.cluster import admission as installed
from tests.cluster.components import WEBHOOKS, Component, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from tests.conformance import DATA
from tests.support.admission_http import answer_of, app_over, review_of
from tests.support.admission_world import World
from tests.support.alike import unlike
from vcbatch.api import admission, names
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, PODS, QUEUES, Resource

RESOURCES = (JOBS, QUEUES, PODGROUPS, CRONJOBS, JOBFLOWS, HYPERNODES)
CONTAINER: Json = {"name": "c", "image": "busybox", "command": ["sleep", "1"]}
TASK: Json = {"name": "w", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A control plane whose API server asks a running admission service."""

    plane: ControlPlane
    components: Components
    service: Component

    def create(self, resource: Resource, body: Json, *, dry_run: bool = True) -> tuple[int, Json]:
        path = place(resource, body) + ("?dryRun=All" if dry_run else "")
        return self.plane.request("POST", path, complete(resource, body))

    def update(self, resource: Resource, body: Json) -> tuple[int, Json]:
        path = f"{place(resource, body)}/{body['metadata']['name']}?dryRun=All"
        return self.plane.request("PUT", path, complete(resource, body))


def place(resource: Resource, body: Json) -> str:
    group = f"/apis/{resource.group}" if resource.group else "/api"
    namespace = f"/namespaces/{body['metadata'].get('namespace') or 'default'}" if resource.namespaced else ""
    return f"{group}/{resource.version}{namespace}/{resource.plural}"


def complete(resource: Resource, body: Json) -> Json:
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind}


def job(name: str = "j", **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"tasks": [TASK], **spec}}


def pod(name: str, scheduler: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default", **metadata},
            "spec": {"schedulerName": scheduler, "containers": [CONTAINER]}}  # fmt: skip


def add_queue(plane: ControlPlane, stored: Json) -> Json:
    """A queue as a controller left it, status and all."""
    path = place(QUEUES, stored)
    bare = {key: stored[key] for key in ("metadata", "spec") if key in stored}
    made = plane.call("POST", path, complete(QUEUES, bare))
    made["status"] = stored.get("status") or {}
    answer: Json = plane.call("PUT", f"{path}/{stored['metadata']['name']}/status", made)
    return answer


@pytest.fixture(scope="module")
def admitted(control_plane: ControlPlane) -> Iterator[Admitted]:
    """With the queues `root` and `default`, Open."""
    for name, spec in (("root", {}), ("default", {"parent": "root"})):
        add_queue(control_plane, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_until("pods may be made", lambda: control_plane.request("GET", account)[0] == 200)
    with Components(control_plane) as components:
        service = components.start(WEBHOOKS).wait_ready()
        components.install_admission(service)
        yield Admitted(plane=control_plane, components=components, service=service)


# What is filled in and refused


def test_a_bare_job_is_filled_in(admitted: Admitted) -> None:
    code, made = admitted.create(JOBS, job(tasks=[{key: TASK[key] for key in ("replicas", "template")}]))
    assert code == 201, made
    spec = made["spec"]
    filled = {key: spec[key] for key in ("queue", "schedulerName", "maxRetry", "minAvailable")}
    assert filled == {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 2}
    assert (spec["tasks"][0]["name"], spec["tasks"][0]["minAvailable"]) == ("default0", 2)


def test_every_fault_of_a_job_is_told_at_once(admitted: Admitted) -> None:
    code, refused = admitted.create(JOBS, job(queue="nowhere", plugins={"unheard-of": []}, minAvailable=9))
    assert (code, refused.get("reason", "")) == (400, ""), "as any webhook that names no code"
    assert refused["message"].startswith('admission webhook "jobs.validate.volcano.sh" denied the request: ')
    for said in ("9 > 2", "unable to find job plugin: unheard-of", 'queue.scheduling.volcano.sh "nowhere" not found'):
        assert said in refused["message"]


def test_a_second_apply_of_the_same_file_changes_nothing(admitted: Admitted) -> None:
    text = json.dumps(complete(JOBS, job("applied")))
    try:
        for said in ("created", "configured"):
            done = admitted.plane.kubectl("apply", "-f", "-", stdin=text)
            assert (done.returncode, said in done.stdout) == (0, True), done.stderr
        assert admitted.plane.call("GET", place(JOBS, job()) + "/applied")["metadata"]["generation"] == 1
    finally:
        admitted.plane.must_kubectl("delete", "vcjob", "applied", "--ignore-not-found")


def test_a_job_right_after_its_queue_is_taken(admitted: Admitted) -> None:
    """However far behind the service's watch is."""
    for number in range(10):
        name = f"fresh-{number}"
        body: Json = {"metadata": {"name": name}, "spec": {}}
        admitted.plane.call("POST", place(QUEUES, body), complete(QUEUES, body))
        code, answer = admitted.create(JOBS, job(queue=name))
        assert code == 201, answer
        admitted.plane.call("DELETE", f"{place(QUEUES, body)}/{name}")


def test_warnings_reach_the_user(admitted: Admitted) -> None:
    flow = complete(JOBFLOWS, {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a"}]}})
    done = admitted.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(flow))
    assert done.returncode == 0, done.stderr
    assert ("Warning:" in done.stderr) is ("JobFlow" in admission.DEFAULT_SETTINGS.unsupported.kinds)


def test_the_first_queues_stay(admitted: Admitted) -> None:
    for name in ("default", "root"):
        code, refused = admitted.plane.request("DELETE", f"{place(QUEUES, {'metadata': {}})}/{name}?dryRun=All")
        assert code == 400
        assert refused["message"].endswith(f"denied the request: `{name}` queue can not be deleted")


# The corpus, three ways


def requests() -> list[Json]:
    assert DATA is not None
    return [json.loads(line) for line in (DATA / "admission/requests.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def peopled(admitted: Admitted) -> Iterator[World]:
    """The queues and namespaces among which the corpus was recorded, and the same as plain data."""
    if DATA is None:
        pytest.skip("the conformance data isn't beside this checkout")
    context = json.loads((DATA / "admission/requests-context.json").read_text())
    plane = admitted.plane
    installed.remove(plane)  # some of what exists could not be made through admission
    queues = [plane.call("GET", f"{place(QUEUES, {'metadata': {}})}/{name}") for name in ("root", "default")]
    queues += [add_queue(plane, stored) for stored in context["queues"] if stored["metadata"]["name"] != "default"]
    namespaces: dict[str, dict[str, str]] = {}
    for stored in context["namespaces"]:
        name = stored["metadata"]["name"]
        namespaces[name] = stored["metadata"].get("annotations") or {}
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        plane.call(
            "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"annotations": namespaces[name]}},
            content_type="application/merge-patch+json",
        )  # fmt: skip
    admitted.components.install_admission(admitted.service)
    yield World(
        known=[Queue.parse(stored) for stored in queues],
        namespaces=namespaces,
        priority_classes=frozenset(names.SYSTEM_PRIORITY_CLASSES),
    )


def asked(case: Json) -> Request:
    request = case["review"]["request"]
    resource = next(known for known in (*RESOURCES, PODS) if f"/{known.plural}/" in case["path"])
    old = request.get("oldObject")
    return Request(
        resource=resource, operation=Operation(request["operation"]), name=request.get("name", ""),
        namespace=request.get("namespace", ""), object=defaulted(resource, request.get("object")),
        old=defaulted(resource, old),
    )  # fmt: skip


def defaulted(resource: Resource, body: Json | None) -> Json | None:
    """As admission is shown it: with what the schema fills in, without what the schema doesn't know."""
    known: Json | None = pruned(body)
    if known is None or resource != PODGROUPS:
        return known
    return {**known, "spec": {"queue": "default", **(known.get("spec") or {})}}


def pruned(value: Any) -> Any:
    """Without the one unknown key of the corpus."""
    if isinstance(value, dict):
        return {key: pruned(item) for key, item in value.items() if key != "bogus"}
    return [pruned(item) for item in value] if isinstance(value, list) else value


class Tally:
    """Counts how requests were answered, and collects what differed."""

    def __init__(self) -> None:
        self.allowed = self.denied = self.refused_by_schema = 0
        self.wrong: dict[str, str] = {}

    def note(self, case: str, code: int, answer: Json, *, said: str, webhook: str) -> None:
        """`said`: the rules' message, "" where they allow it."""
        expected = f'admission webhook "{webhook}" denied the request: {said}' if said else ""
        if code == 422:
            self.refused_by_schema += 1
        elif code < 300 or code == 409:
            self.allowed += 1
            if said:
                self.wrong[case] = f"accepted, though: {said}"
        elif answer["message"] == expected:
            self.denied += 1
        else:
            self.wrong[case] = f"{code} {answer['message']} for {expected or 'what is allowed'}"


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.plural)
async def test_new_objects_are_judged_alike_by_functions_service_and_api_server(
    admitted: Admitted, peopled: World, resource: Resource
) -> None:
    app, tally = app_over(peopled), Tally()
    for case in requests():
        request = asked(case)
        if request.resource != resource or request.operation is not Operation.CREATE:
            continue
        request = replace(request, object={**(request.object or {}), "status": {}})  # which isn't for who creates
        filled = replace(request, object=admission.mutate(request, peopled))
        said = admission.review(filled, peopled).message
        by_service = await answer_of(app, f"/{resource.plural}/validate", review_of(filled))
        assert by_service.get("status", {}).get("message", "") == said
        code, answer = admitted.create(resource, request.object or {})
        tally.note(case["id"], code, answer, said=said, webhook=names.webhook_name(resource.plural, "validate"))
        if code == 201:
            differences = unlike(filled.object or {}, answer)
            assert not differences, (case["id"], differences)
    assert tally.wrong == {}
    assert tally.allowed, "nothing of the corpus was allowed"


@pytest.mark.parametrize("resource", [JOBS, QUEUES], ids=lambda resource: resource.plural)
def test_changes_are_judged_alike_by_functions_and_api_server(
    admitted: Admitted, peopled: World, resource: Resource
) -> None:
    tally = Tally()
    for case in requests():
        request = asked(case)
        if request.resource != resource or request.operation is not Operation.UPDATE or "/validate" not in case["path"]:
            continue
        old, new = dict(request.old or {}), dict(request.object or {})
        old["metadata"] = new["metadata"] = {**old["metadata"], "name": f"changed-{case['id']}"}
        code, stored = admitted.create(resource, old, dry_run=False)
        if code != 201:
            continue
        try:
            new["metadata"] = {**new["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
            code, answer = admitted.update(resource, new)
        finally:
            admitted.plane.call("DELETE", f"{place(resource, old)}/{old['metadata']['name']}")
        change = replace(request, name=old["metadata"]["name"], object=new, old=stored)
        filled = replace(change, object=admission.mutate(change, peopled))
        said = admission.review(filled, peopled).message
        tally.note(case["id"], code, answer, said=said, webhook=names.webhook_name(resource.plural, "validate"))
    assert tally.wrong == {}
    assert tally.allowed
    assert tally.denied


# When nobody answers


def refused_for_lack_of_admission(admitted: Admitted, said: str) -> None:
    """Our own kinds wait; nobody else's pods notice."""
    code, refused = admitted.create(JOBS, job())
    assert code == 500, refused
    assert 'failed calling webhook "jobs.mutate.volcano.sh"' in refused["message"]
    assert said in refused["message"]
    for scheduler in ("default-scheduler", "volcano"):
        code, answer = admitted.create(PODS, pod(f"of-{scheduler}", scheduler))
        assert code == 201, answer


def test_without_the_service_jobs_are_refused_and_pods_are_not(admitted: Admitted) -> None:
    program = admitted.service.program
    program.stop()
    try:
        refused_for_lack_of_admission(admitted, "connection refused")
        before = admitted.plane.request("GET", "/api/v1/namespaces/default")[0]
        assert before == 200
    finally:
        program.start()
        admitted.service.wait_ready()
    assert admitted.create(JOBS, job())[0] == 201


def test_a_service_that_hangs_is_waited_for_five_seconds(admitted: Admitted) -> None:
    program = admitted.service.program
    program.send(signal.SIGSTOP)
    try:
        code, refused = admitted.create(JOBS, job())
        assert code == 500
        assert "timeout=5s" in refused["message"], refused
        assert admitted.create(PODS, pod("unasked", "default-scheduler"))[0] == 201
    finally:
        program.send(signal.SIGCONT)
    assert admitted.create(JOBS, job())[0] == 201


def test_a_service_that_knows_nothing_yet_says_try_again(admitted: Admitted) -> None:
    blind = admitted.plane.user("blind")
    cold = admitted.components.start(WEBHOOKS, replica="cold", kubeconfig=blind)
    try:
        wait_until("it answers", cold.alive)
        assert not cold.ready()
        installed.install(admitted.plane, port=cold.port)
        wait_until("it is asked", lambda: admitted.create(JOBS, job())[0] == 503)
        code, refused = admitted.create(JOBS, job())
        assert (code, refused["reason"]) == (503, "ServiceUnavailable")
        assert "try again" in refused["message"]
        code, answer = admitted.create(PODS, pod("any", "volcano"))
        assert code == 201, answer
    finally:
        admitted.components.install_admission(admitted.service)
        cold.program.stop()
    assert admitted.create(JOBS, job())[0] == 201


def test_only_pods_of_ours_are_asked_about(admitted: Admitted) -> None:
    annotations = {names.JDB_MIN_AVAILABLE: "never"}
    assert admitted.create(PODS, pod("theirs", "default-scheduler", annotations=annotations))[0] == 201
    code, refused = admitted.create(PODS, pod("ours", "volcano", annotations=annotations))
    assert (code, "never" in refused["message"]) == (400, True)
    system = {**pod("ours", "volcano", annotations=annotations)}
    system["metadata"] = {**system["metadata"], "namespace": "kube-system"}
    code, answer = admitted.create(PODS, system)
    assert "denied the request" not in answer.get("message", ""), "the system's namespaces aren't asked about"


def test_generated_names_are_judged_as_they_are_made(admitted: Admitted) -> None:
    for prefix, taken in (("short-", True), ("a" * 55 + "-", False)):
        body = job(plugins={"svc": []})
        body["metadata"] = {"namespace": "default", "generateName": prefix}
        code, answer = admitted.create(JOBS, body)
        assert (code == 201) is taken, answer
        assert taken or "shorten the name of the job" in answer["message"]
