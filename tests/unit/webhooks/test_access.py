"""Who may submit, asked of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.admission_http import KnownWorld, answer_of, review_of
from tests.support.admission_world import queue
from tests.support.virtual_time import VirtualClock
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.resources import COMMANDS, CRONJOBS, JOBFLOWS, JOBS, JOBTEMPLATES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.metrics.meter import NoMeter
from webhooks.access import SubjectAccess
from webhooks.app import build
from webhooks.service import AdmissionService

TASK: Json = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
ANN: Json = {"username": "ann", "uid": "7", "groups": ["staff"], "extra": {"scopes": ["a", "b"]}}


class Cluster:
    """Answers SubjectAccessReviews, and keeps them."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self.down = False
        self.asked: list[Json] = []

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        assert (resource.path(), namespace) == ("/apis/authorization.k8s.io/v1/subjectaccessreviews", None)
        if self.down:
            raise ApiError(0, "", "no answer")
        self.asked.append(body["spec"])
        return {**body, "status": {"allowed": self.allowed, "reason": "because"}}


async def answer(cluster: Any) -> Json:
    meter = NoMeter()
    world = KnownWorld(known=[queue("root"), queue("team")])
    service = AdmissionService(world=world, clock=VirtualClock(), meter=meter, access=SubjectAccess(cluster))
    app = build(service, meter=meter, exposition=lambda: ("text/plain", b""))
    spec = {"queue": "team", "minAvailable": 1, "tasks": [TASK]}
    body = {"metadata": {"name": "j", "namespace": "ns"}, "spec": spec}
    review = review_of(Request(resource=JOBS, operation=Operation.CREATE, name="j", namespace="ns", object=body))
    review["request"]["userInfo"] = ANN
    return await answer_of(app, "/jobs/validate", review)


async def test_who_may_is_let() -> None:
    cluster = Cluster(allowed=True)
    assert (await answer(cluster))["allowed"]
    (asked,) = cluster.asked
    assert (asked["user"], asked["uid"], asked["groups"], asked["extra"]) == (
        "ann", "7", ["staff"], {"scopes": ["a", "b"]},
    )  # fmt: skip
    attributes = asked["resourceAttributes"]
    assert {key: attributes[key] for key in ("resource", "subresource", "verb", "name", "namespace")} == {
        "resource": "queues", "subresource": "submit", "verb": "create", "name": "team", "namespace": "ns",
    }  # fmt: skip


async def test_who_may_not_is_told_which_right_is_wanted() -> None:
    refused = await answer(Cluster(allowed=False))
    assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
    said = "user `ann` may not submit to queue `team` in namespace `ns`: want the right to create "
    assert refused["status"]["message"] == f"{said}queues/submit.scheduling.volcano.sh named team (because)"


async def test_nobody_is_let_where_it_cant_be_asked() -> None:
    cluster = Cluster(allowed=True)
    cluster.down = True
    refused = await answer(cluster)
    assert (refused["allowed"], refused["status"]["code"]) == (False, 503)


def test_a_flow_is_for_so_many_queues_that_they_can_be_asked_about() -> None:
    most = flow(*(f"q{number}" for number in range(admission.MOST_QUEUES)))
    many = flow(*(f"q{number}" for number in range(admission.MOST_QUEUES + 1)))
    for number, entry in enumerate([*most["spec"]["flows"], *many["spec"]["flows"]]):
        entry["name"] = f"t{number}"
    errors = [
        admission.review(
            Request(resource=JOBFLOWS, operation=Operation.CREATE, name="f", namespace="ns", object=made),
            KnownWorld(known=[]),
        ).message
        for made in (most, many)
    ]
    assert errors == ["", "spec.flows: jobs for 101 queues, want at most 100 new ones at a time"]


def pod(scheduler: str) -> Json:
    annotations = {"scheduling.volcano.sh/queue-name": "a"}
    return {"metadata": {"annotations": annotations}, "spec": {"schedulerName": scheduler}}


def flow(*queues: str) -> Json:
    return {"spec": {"flows": [{"name": "t", "patch": {"jobSpec": {"queue": queue}}} for queue in queues]}}


@pytest.mark.parametrize(
    ("resource", "made", "old", "queues"),
    [
        (JOBS, {"spec": {"queue": "a"}}, None, ("a",)),
        (JOBS, {"spec": {}}, None, ("default",)),
        (JOBS, {"spec": {"queue": "a"}}, {"spec": {"queue": "b"}}, ()),
        (PODGROUPS, {"spec": {"queue": "a"}}, {"spec": {"queue": "b"}}, ("a",)),
        (PODGROUPS, {"spec": {"queue": "a"}}, {"spec": {"queue": "a"}}, ()),
        (CRONJOBS, {"spec": {"jobTemplate": {"spec": {"queue": "a"}}}}, None, ("a",)),
        (CRONJOBS, {"spec": {"jobTemplate": {"spec": {}}}}, None, ("default",)),
        (JOBTEMPLATES, {"spec": {"queue": "a"}}, None, ("a",)),
        (JOBTEMPLATES, {"spec": {}}, None, ("default",)),
        (JOBTEMPLATES, {"spec": {"queue": "a"}}, {"spec": {"queue": "b"}}, ("a",)),
        (JOBTEMPLATES, {"spec": {"queue": "a", "maxRetry": 1}}, {"spec": {"queue": "a"}}, ()),
        (JOBFLOWS, flow("b", "", "a"), None, ("a", "b")),
        (JOBFLOWS, flow("b", "", "a"), flow("b"), ("a",)),
        (JOBFLOWS, {"spec": {"flows": [{"name": "t"}, None, {"patch": []}]}}, None, ()),
        (PODS, pod("volcano"), None, ("a",)),
        (PODS, pod("default-scheduler"), None, ()),
        (QUEUES, {"spec": {}}, None, ()),
    ],
)
def test_what_is_submitted_where(resource: Resource, made: Json, old: Json | None, queues: tuple[str, ...]) -> None:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    request = Request(resource=resource, operation=operation, name="x", object=made, old=old)
    assert admission.submissions(request) == queues


# Commands to queues --------------------------------------------------------------------------------------------------


def command(kind: str = "Queue", *, uid: str = "u", action: str = "CloseQueue", version: str = "v1beta1") -> Json:
    target = {"apiVersion": f"scheduling.volcano.sh/{version}", "kind": kind, "name": "team", "uid": uid}
    return {"metadata": {"name": "c", "namespace": "any"}, "action": action, "target": target}


async def commanded(cluster: Cluster, made: Json, old: Json | None = None) -> Json:
    meter = NoMeter()
    world = KnownWorld(known=[queue("root"), queue("team")])
    service = AdmissionService(world=world, clock=VirtualClock(), meter=meter, rights=SubjectAccess(cluster))
    app = build(service, meter=meter, exposition=lambda: ("text/plain", b""))
    operation = Operation.CREATE if old is None else Operation.UPDATE
    asked = Request(resource=COMMANDS, operation=operation, name="c", namespace="any", object=made, old=old)
    review = review_of(asked)
    review["request"]["userInfo"] = ANN
    return await answer_of(app, "/commands/validate", review)


async def test_who_may_update_a_queue_may_command_it() -> None:
    cluster = Cluster(allowed=True)
    assert (await commanded(cluster, command()))["allowed"]
    (asked,) = cluster.asked
    assert (asked["user"], asked["groups"]) == ("ann", ["staff"])
    assert asked["resourceAttributes"] == {
        "group": "scheduling.volcano.sh", "version": "v1beta1", "resource": "queues", "verb": "update", "name": "team",
    }  # fmt: skip


async def test_who_may_not_is_told_which_right_a_command_needs() -> None:
    refused = await commanded(Cluster(allowed=False), command())
    assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
    said = "user `ann` may not open or close queue `team`: want the right to update queues.scheduling.volcano.sh named"
    assert refused["status"]["message"] == f"{said} team (because)"


@pytest.mark.parametrize("old", [command("Job"), command(action="OpenQueue"), {**command(), "target": {}}, None])
async def test_a_command_that_becomes_one_to_a_queue_is_asked_about(old: Json | None) -> None:
    refused = await commanded(Cluster(allowed=False), command(), old)
    assert "may not open or close queue `team`" in refused["status"]["message"]


@pytest.mark.parametrize(
    ("made", "old"),
    [
        (command("Job"), None),
        (command(version="v1"), None),  # the controllers don't read it
        ({"metadata": {"name": "c"}}, None),
        ({**command(), "metadata": {"name": "c", "labels": {"a": "b"}}}, command()),
    ],
)
async def test_other_commands_are_nobodys_to_judge(made: Json, old: Json | None) -> None:
    cluster = Cluster(allowed=False)
    assert (await commanded(cluster, made, old))["allowed"]
    assert cluster.asked == []


@pytest.mark.parametrize("uid", ["", None])
async def test_a_command_to_a_queue_names_its_uid(uid: Any) -> None:
    cluster = Cluster(allowed=True)
    refused = await commanded(cluster, command(uid=uid))
    assert "target.uid: Required value: want the UID of queue team" in refused["status"]["message"]
    assert cluster.asked == []


async def test_nobody_commands_where_it_cant_be_asked() -> None:
    cluster = Cluster(allowed=True)
    cluster.down = True
    refused = await commanded(cluster, command())
    assert (refused["allowed"], refused["status"]["code"]) == (False, 503)
    assert refused["status"]["message"] == "admission couldn't ask what ann may do, since no answer"


# The queue of the namespace ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "made", "queues"),
    [
        (CRONJOBS, {"spec": {"jobTemplate": {"spec": {"queue": "default"}}}}, ("team",)),
        (JOBTEMPLATES, {"spec": {}}, ("team",)),
        (JOBFLOWS, flow("default", "b"), ("b", "team")),
        (JOBS, {"spec": {"queue": "a"}}, ("a",)),
        (
            PODS,
            {**pod("volcano"), "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "default"}}},
            ("team",),
        ),
    ],
)
def test_what_is_for_the_default_queue_is_submitted_to_that_of_its_namespace(
    resource: Resource, made: Json, queues: tuple[str, ...]
) -> None:
    world = KnownWorld(namespaces={"blue": {"scheduling.volcano.sh/queue-name": "team"}})
    request = Request(resource=resource, operation=Operation.CREATE, name="x", namespace="blue", object=made)
    assert admission.submissions(request, lookup=world) == queues


# The queue of a pod --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("a", "a", ""),
        (None, None, ""),
        ("a", "b", 'Invalid value: "b": field is immutable: the pod was admitted with queue a'),
        ("a", None, 'Invalid value: "": field is immutable: the pod was admitted with queue a'),
        (None, "b", 'Invalid value: "b": field is immutable: the pod was admitted with no queue'),
    ],
)
@pytest.mark.parametrize("scheduler", ["volcano", "other"])
def test_a_pod_keeps_the_queue_that_it_was_admitted_with(
    before: str | None, now: str | None, said: str, scheduler: str
) -> None:
    def of(name: str | None) -> Json:
        annotations = {"x": "y"} if name is None else {"scheduling.volcano.sh/queue-name": name}
        return {"metadata": {"annotations": annotations}, "spec": {"schedulerName": scheduler}}

    request = Request(resource=PODS, operation=Operation.UPDATE, name="p", object=of(now), old=of(before))
    message = admission.review(request, KnownWorld()).message
    field = "metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert message == (f"{field}: {said}; make a new pod" if said and scheduler == "volcano" else "")
